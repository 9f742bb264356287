#include "compat/incoming_parts.h"

#include <cstdint>
#include <optional>

#include <hawser/time.h>

#include "base/format.h"

HAWSER_NAMESPACE_BEGIN
namespace compat {

std::vector<const void*> IncomingParts::gone() const {
  std::vector<const void*> gone;
  for (const auto& [key, from] : all_) {
    if (from.sender.is_gone()) gone.push_back(key);
  }
  return gone;
}

void IncomingParts::take(Sender from, std::string_view text, NotificationMap& into) {
  const void* const key = from.key;
  const auto at = all_.try_emplace(key, std::move(from), &budget_).first;
  const std::string& name = at->second.sender.name;
  Assembler::Taken taken = at->second.assembler.take(text);
  if (taken.text) into[name].push_back(std::move(*taken.text));
  if (!taken.lost.ok()) {
    const std::string line = base::format("get_notifs: from agent '{}': {}", name, taken.lost.to_string());
    const std::optional<std::uint64_t> held_back = line_gate_.pass(line, Clock::steady().now());
    if (held_back) HAWSER_LOG(log_, kWarn, "{}{}", line, base::LineGate::more(*held_back));
  }
  if (at->second.assembler.empty()) all_.erase(at);
}

void IncomingParts::forget(const std::vector<const void*>& gone) {
  for (const void* const key : gone) {
    const auto at = all_.find(key);
    if (at == all_.end()) continue;
    HAWSER_LOG(log_, kWarn, "get_notifs: agent '{}' is gone: what came of {} long notifications is dropped",
               at->second.sender.name, at->second.assembler.bodies());
    all_.erase(at);
  }
}

}  // namespace compat
HAWSER_NAMESPACE_END
