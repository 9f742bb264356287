#include "agent/engine/fences.h"

#include <algorithm>

#include "base/planted.h"

namespace hawser::agent {
namespace {

constexpr proto::BackoffOptions kFencePauses = {.first = std::chrono::milliseconds(5),
                                                .longest = std::chrono::seconds(1)};

}  // namespace

void Fences::note_end(PathEntry* entry, const Slot& slot, const backend::PortEvent& event) const {
  if (entry == nullptr || event.status.ok() || event.status.buffer() == BufferState::kUntouched) return;
  if (slot.plan->operation != Operation::kWrite) return;
  if (entry->path->state() != backend::PathState::kDown && !event.unsettled) return;
  if (!uses_.ports.traits(entry->backend).direct) entry->unsettled = true;  // Else it was this agent that copied.
}

void Fences::on_lost(Session& session, const PathEntry& entry, Instant now) const {
  if (!entry.unsettled || base::planted(base::Planted::kFenceForgotten)) return;
  const auto replacing = std::ranges::find(session.paths, entry.session, &PathEntry::supersedes);
  const bool is_replaced = replacing != session.paths.end() && !entry.session.is_zero();
  if (is_replaced && replacing->up) return;  // The peer dropped the lost one before it answered there.
  session.lost.push_back(
      {.session = entry.session, .serial = is_replaced ? replacing->serial : 0, .until = now + uses_.peer_timeout});
}

/// By what works first; another time by another one, for the device of the lost one may be away, here or there.
std::vector<std::size_t> Fences::order(Session& session, LostPath& lost) const {
  std::vector<std::size_t> order = uses_.reach.candidates(*session.peer);
  const auto works = [&](std::size_t i) {
    return std::ranges::any_of(session.paths, [i](const PathEntry& each) { return each.backend == i && each.agreed; });
  };
  std::stable_partition(order.begin(), order.end(), works);
  if (order.empty()) return order;
  const std::ptrdiff_t first = lost.tries++ % static_cast<std::ptrdiff_t>(order.size());
  std::rotate(order.begin(), order.begin() + first, order.end());
  return order;
}

void Fences::later(Session& session, Instant now) {
  if (!session.fence_backoff) session.fence_backoff.emplace(kFencePauses, Instant::max());
  uses_.timers.set(session.alarms[SessionTimer::kFence], session.fence_backoff->next(now, uses_.rng).value_or(now));
}

void Fences::fence_soon(Session& session, Instant now) {
  if (!session.lost.empty() && !session.alarms.is_set(SessionTimer::kFence)) later(session, now);
}

Status Fences::fence(Session& session, Instant now) {
  if (session.lost.empty() || session.paths.empty()) return {};  // Without a path the next one fences.
  const auto is_late = [now](const LostPath& each) { return now >= each.until; };
  if (std::ranges::any_of(session.lost, is_late)) {
    return Status(Code::kTimedOut,
                  "a path was lost with writes under way, and none came up in its place to end it at the peer within "
                  "peer_timeout");
  }
  for (LostPath& each : session.lost) {
    if (session.find(each.serial) != nullptr) continue;  // It is on its way.
    const std::vector<std::size_t> backends = order(session, each);
    const auto opens = [&](std::size_t i) { return uses_.opener.open(session, i, each.until, now, each.session); };
    each.serial = std::ranges::any_of(backends, opens) ? session.paths.back().serial : 0;
  }
  later(session, now);  // To look whether it came up.
  return {};
}

void Fences::on_fenced(Session& session, const base::Id128& lost) {
  if (std::erase_if(session.lost, [&](const LostPath& each) { return each.session == lost; }) == 0) return;
  if (!session.lost.empty()) return;
  uses_.timers.clear(session.alarms[SessionTimer::kFence]);
  session.fence_backoff.reset();
}

void Fences::forget(Session& session) {
  session.lost.clear();
  uses_.timers.clear(session.alarms[SessionTimer::kFence]);
}

}  // namespace hawser::agent
