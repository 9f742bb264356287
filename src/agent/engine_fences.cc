// Fences: a path can be lost here while the peer still reads what was sent by it. Where another path is up, nothing
// must go by that before the lost one is dead at the peer: its late bytes would land on newer ones. So a path is opened
// in its place, and while that is not agreed upon nothing is offered.

#include <algorithm>

#include "agent/core.h"
#include "agent/engine.h"
#include "base/planted.h"

namespace hawser::agent {
namespace {

constexpr proto::BackoffOptions kFencePauses = {.first = std::chrono::milliseconds(5),
                                                .longest = std::chrono::seconds(1)};

}  // namespace

void Engine::note_unsettled(PathEntry* entry, const Slot& slot, const backend::PortEvent& event) {
  if (entry == nullptr || event.status.ok() || event.status.buffer() == BufferState::kUntouched) return;
  if (slot.plan->operation != Operation::kWrite) return;
  if (entry->path->state() != backend::PathState::kDown && !event.unsettled) return;
  if (!backends_[entry->backend].traits->direct) entry->unsettled = true;  // Else it was this agent that copied.
}

void Engine::on_lost(Session& session, const PathEntry& entry, Instant now) {
  if (!entry.unsettled || base::planted(base::Planted::kFenceForgotten)) return;
  session.lost.push_back({.session = entry.session, .until = now + core_.options.peer_timeout});
}

/// By what works first; another time by another one, for the device of the lost one may be away, here or there.
std::vector<std::size_t> Engine::fence_order(Session& session, LostPath& lost) {
  std::vector<std::size_t> order = candidates(*session.peer);
  const auto works = [&](std::size_t i) {
    return std::ranges::any_of(session.paths, [i](const PathEntry& each) { return each.backend == i && each.agreed; });
  };
  std::stable_partition(order.begin(), order.end(), works);
  if (order.empty()) return order;
  const std::ptrdiff_t first = lost.tries++ % static_cast<std::ptrdiff_t>(order.size());
  std::rotate(order.begin(), order.begin() + first, order.end());
  return order;
}

void Engine::fence_later(Session& session, Instant now) {
  if (!session.fence_backoff) session.fence_backoff.emplace(kFencePauses, Instant::max());
  timers_.set(session.alarms[SessionTimer::kFence], session.fence_backoff->next(now, rng_).value_or(now));
}

std::size_t Engine::fence_lost(Session& session, Instant now) {
  if (session.lost.empty() || session.paths.empty()) return 0;  // Without a path the next one fences.
  const auto is_late = [now](const LostPath& each) { return now >= each.until; };
  if (std::ranges::any_of(session.lost, is_late)) {
    break_path(session,
               Status(Code::kTimedOut,
                      "a path was lost with writes under way, and none came up in its place to end it "
                      "at the peer within peer_timeout"),
               now);
    return 1;
  }
  for (LostPath& each : session.lost) {
    if (session.find(each.serial) != nullptr) continue;  // It is on its way.
    const std::vector<std::size_t> order = fence_order(session, each);
    const auto opens = [&](std::size_t i) { return open_path(session, i, each.until, now, each.session); };
    each.serial = std::ranges::any_of(order, opens) ? session.paths.back().serial : 0;
  }
  fence_later(session, now);  // To look whether it came up.
  return 1;
}

void Engine::on_fenced(Session& session, const base::Id128& lost) {
  if (std::erase_if(session.lost, [&](const LostPath& each) { return each.session == lost; }) == 0) return;
  if (!session.lost.empty()) return;
  timers_.clear(session.alarms[SessionTimer::kFence]);
  session.fence_backoff.reset();
}

}  // namespace hawser::agent
