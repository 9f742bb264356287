#include "agent/engine/at_once.h"

#include "agent/engine/router.h"
#include "agent/engine/transfer_table.h"
#include "agent/peer_core.h"

namespace hawser::agent {
namespace {

bool all_open(const LocalRegions& locals) {
  for (const auto& region : locals) {
    if (region->state.load(std::memory_order_relaxed) != RegionState::kOpen) return false;
  }
  return true;
}

backend::Chunk only_chunk(const PlanCore& plan, std::uint64_t transfer) {
  const plan::ChunkSpan& shape = plan.chunks.chunks.front();
  return {.op = plan.operation,
          .transfer = transfer,
          .target = plan.route.bindings[plan.pieces.groups[shape.group].region],
          .pieces = shape.pieces,
          .bytes = shape.bytes};
}

}  // namespace

Session* AtOnce::free_session(const PlanCore& plan) const {
  Session* session = plan.peer->session();
  if (session == nullptr || session->control_serial == 0 || !session->lost.empty() || sessions_.is_closing()) {
    return nullptr;
  }
  for (const auto& waiting : session->pending) {
    if (!waiting.empty()) return nullptr;
  }
  return session;
}

bool AtOnce::move(PlanCore& plan, const std::optional<std::string_view>& notify) const {
  Session* session = free_session(plan);
  if (session == nullptr || !all_open(plan.locals)) return false;
  PathEntry* entry = Router::in_force(plan.route, *session);
  if (entry == nullptr) return false;
  FlowCounters& flow = session->flow;
  const bool timed = TransferTimes::is_timed_at_once(flow, plan.pieces.bytes);
  const Instant begin = timed ? clock_.now() : Instant();
  if (!(notify ? move_and_tell(plan, *session, *entry, *notify) : move_alone(plan, *session, *entry))) return false;
  const bool is_write = plan.operation == Operation::kWrite;
  (is_write ? flow.bytes_written : flow.bytes_read) += plan.pieces.bytes;
  ++(is_write ? flow.writes : flow.reads);
  if (timed) times_.note(*session, entry, plan.pieces, clock_.now() - begin, session->slots == 0);
  return true;
}

bool AtOnce::move_alone(const PlanCore& plan, Session& session, const PathEntry& entry) {
  if (!entry.path->move_at_once(only_chunk(plan, session.next_plain | kPlainBit))) return false;
  ++session.next_plain;
  return true;
}

/// With a notification, where no other covered transfer and no message is before it.
bool AtOnce::move_and_tell(const PlanCore& plan, Session& session, const PathEntry& entry, std::string_view notify) {
  PeerCore& peer = *session.peer;
  const bool is_first = session.covered.empty() && session.links.can_pass(Priority::kRealtime) &&
                        session.unsent.has_none(Priority::kRealtime);
  if (!is_first || entry.serial != session.control_serial) return false;
  if (!peer.use().notify_out.try_take(notify.size())) return false;
  const std::uint64_t id = session.next_covered;
  backend::Chunk chunk = only_chunk(plan, id);
  chunk.read_next = true;
  // Where the bytes were moved and the ring of messages has no room, a slot moves them again: nobody was told of them.
  if (!entry.path->move_at_once(chunk) || !tell(session, entry, id, notify)) {
    peer.use().notify_out.give_back(notify.size());
    return false;
  }
  ++session.next_covered;
  ++session.flow.notifications_sent;
  return true;
}

bool AtOnce::tell(Session& session, const PathEntry& entry, std::uint64_t id, std::string_view notify) {
  const std::span<const std::byte> body = std::as_bytes(std::span(notify));
  // Finished with this message, and there is no other: the peer need not remember it.
  const wire::Arrive arrive{
      .place = session.links.next(Priority::kRealtime), .transfer = id, .oldest = id + 1, .notify = body};
  HeadArray head;
  if (!entry.path->send(Priority::kRealtime, wire::encode(arrive, head), body)) return false;
  session.links.pass(Priority::kRealtime);
  return true;
}

}  // namespace hawser::agent
