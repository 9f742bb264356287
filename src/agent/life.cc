#include "agent/life.h"

#include <unistd.h>

#include <utility>

#include "base/try.h"

namespace hawser::agent {

Life::Life(std::string agent) : agent_(std::move(agent)), opener_(::getpid()) {}

Status Life::not_forked(std::string_view call) const {
  if (!disowned()) return {};
  return Status(Code::kInvalid, std::string(call) + ": agent '" + agent_ + "' was opened by process " +
                                    std::to_string(opener_) + ", this is a forked child")
      .with_advice("open an agent in the child");
}

Status Life::not_inline(std::string_view call) const {
  if (!user_code_.runs_here()) [[likely]]
    return {};
  return Status(Code::kInvalid, std::string(call) +
                                    ": an inline handler must not call it: it runs in the middle of a " +
                                    "turn of agent '" + agent_ + "', for which the call would wait")
      .with_advice("register the handler without `runs_inline`");
}

Status Life::usable(std::string_view call) const {
  HAWSER_TRY(not_forked(call));
  HAWSER_TRY(not_inline(call));
  if (is_closing()) return Status(Code::kInvalid, std::string(call) + ": agent '" + agent_ + "' is closed");
  return {};
}

void Life::end() {
  begin_to_close();
  is_closed_.store(true, std::memory_order_seq_cst);
}

}  // namespace hawser::agent
