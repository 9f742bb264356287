#include "compat/home_process.h"

#include <unistd.h>

#include "agent/fork_guard.h"
#include "base/format.h"
#include "compat/refusal.h"

HAWSER_NAMESPACE_BEGIN
namespace compat {

HomeProcess::HomeProcess() : pid_(::getpid()), forks_(agent::watch_forks()) {}

bool HomeProcess::is_this() const { return pid_ == ::getpid(); }

Status HomeProcess::need(std::string_view call, std::string_view agent) const {
  if (agent::forks_so_far() == forks_) [[likely]]
    return {};
  return refusal(NixlCode::kBackend, call,
                 base::format("agent '{}' was opened by process {}; this one is its child", agent, pid_))
      .with_advice("make an agent in each process, after the fork");
}

}  // namespace compat
HAWSER_NAMESPACE_END
