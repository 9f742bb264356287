#include "agent/engine/chunk_dispatcher.h"

#include <algorithm>
#include <array>
#include <utility>

#include "agent/peer_core.h"
#include "base/planted.h"

namespace hawser::agent {
namespace {

constexpr std::size_t kBatchChunks = 32;   ///< Offered to a path at once.
constexpr std::uint32_t kPassingMax = 32;  ///< Transfers looked at behind one that is blocked.

std::uint64_t cookie_of(const Slot& slot, std::uint32_t chunk) {
  return static_cast<std::uint64_t>(slot.index) << 32 | chunk;
}

/// A lost path says nothing about the request: its chunks may go by another one.
bool can_go_again(const Status& status) {
  return status.code() == Code::kDisconnected && status.scope() == Scope::kPath;
}

/// This path cannot carry this region, another may.
bool needs_other_path(const Status& status) {
  return status.code() == Code::kUnsupported && status.scope() == Scope::kPath;
}

/// A small transfer does not wait behind large ones of its priority that their path has no room for.
bool passes_blocked(const Slot& slot) {
  const PlanCore& plan = *slot.plan;
  return plan.chunk_count() == 1 && plan.chunks.chunks.front().bytes <= backend::kSmallChunk;
}

backend::Chunk chunk_of(const Slot& slot, std::uint32_t index, bool covered) {
  const PlanCore& plan = *slot.plan;
  const plan::ChunkSpan& shape = plan.chunks.chunks[index];
  return {.op = plan.operation,
          .priority = slot.priority,
          .covered = covered,
          .read_next = slot.covered(),
          .durable = slot.durable,
          .index = index,
          .transfer = slot.id,
          .cookie = cookie_of(slot, index),
          .target = plan.route.bindings[plan.pieces.groups[shape.group].region],
          .pieces = shape.pieces,
          .bytes = shape.bytes};
}

std::size_t fill_batch(const Slot& slot, bool covered, std::span<backend::Chunk> batch) {
  std::size_t count = 0;
  for (std::size_t i = 0; i < slot.again.size() && count < batch.size(); ++i) {
    batch[count] = chunk_of(slot, slot.again[i], covered);
    batch[count++].again = true;
  }
  for (std::uint32_t i = slot.next_chunk; i < slot.plan->chunk_count() && count < batch.size(); ++i) {
    batch[count++] = chunk_of(slot, i, covered);
  }
  return count;
}

void count_taken(Slot& slot, std::span<const backend::Chunk> offered, const backend::Submitted& result) {
  const std::size_t from_again = std::min<std::size_t>(result.taken, slot.again.size());
  slot.again.erase(slot.again.begin(), slot.again.begin() + static_cast<std::ptrdiff_t>(from_again));
  slot.next_chunk += static_cast<std::uint32_t>(result.taken - from_again);
  slot.in_flight += result.taken - result.done;
  slot.done_chunks += result.done;
  slot.touched |= result.done > 0;
  std::uint64_t bytes = 0;
  for (const backend::Chunk& chunk : offered.first(result.done)) bytes += chunk.bytes;
  if (bytes == 0) return;
  slot.bytes_done.store(slot.bytes_done.load(std::memory_order_relaxed) + bytes, std::memory_order_relaxed);
}

/// What the end of a chunk says of the transfer's bytes.
void count_ended(Slot& slot, std::uint32_t chunk, const backend::PortEvent& event) {
  const BufferState buffer = event.status.buffer();
  --slot.in_flight;
  slot.touched |= event.status.ok() || buffer != BufferState::kUntouched;
  if (!event.status.ok()) {
    slot.torn |= buffer == BufferState::kPartlyWritten;
    slot.unsure += buffer == BufferState::kUnknown || buffer == BufferState::kComplete;
    return;
  }
  ++slot.done_chunks;
  slot.uncounted |= event.uncounted;
  slot.bytes_done.store(slot.bytes_done.load(std::memory_order_relaxed) + slot.plan->chunks.chunks[chunk].bytes,
                        std::memory_order_relaxed);
}

}  // namespace

void ChunkDispatcher::wait_in_line(Slot& slot, Session& session) {
  session.pending[static_cast<std::size_t>(slot.priority)].push_back(slot);
}

Status ChunkDispatcher::accept(Slot& slot, Instant now) {
  if (slot.plan->peer->state.load(std::memory_order_relaxed) == PeerState::kDown) {
    return uses_.peers.down_status(*slot.plan->peer);
  }
  Session& session = uses_.sessions.of(slot.plan->peer);
  if (Status refused = uses_.transfers.enter(slot, session, now); !refused.ok() || slot.is_held) return refused;
  wait_in_line(slot, session);
  uses_.connector.want(session, now);
  return {};
}

Status ChunkDispatcher::start(Slot& slot, Instant now) {
  PeerCore& peer = *slot.plan->peer;
  Session* const idle = uses_.at_once.free_session(*slot.plan);
  if (idle == nullptr || peer.state.load(std::memory_order_relaxed) == PeerState::kDown) {
    if (Status refused = accept(slot, now); !refused.ok()) return refused;
    serve_now(peer, now);
    return {};
  }
  if (Status refused = uses_.transfers.enter(slot, *idle, now); !refused.ok() || slot.is_held) return refused;
  if (advance(slot, *idle, now) == Offer::kBlocked) {
    wait_in_line(slot, *idle);
    if (idle->control_serial != 0 && !base::planted(base::Planted::kBlockedForgotten)) {
      uses_.sessions.block(*idle, now);
    }
  }
  turn_control(*idle, now);
  return {};
}

void ChunkDispatcher::serve_now(PeerCore& peer, Instant now) {
  if (!peer.session() || peer.session()->control_serial == 0) return;
  Session& session = *peer.session();
  offer(session, now);
  if (uses_.held.has_called()) serve_called(now);
  turn_control(session, now);
}

/// A direct path did all it could on the spot. Others have put frames into a queue that the port's turn sends.
void ChunkDispatcher::turn_control(Session& session, Instant now) {
  const PathEntry* control = session.control();
  if (control == nullptr || uses_.ports.traits(control->backend).direct) return;
  uses_.ports.turn_only(control->backend, now);
}

std::size_t ChunkDispatcher::offer(Session& session, Instant now) {
  if (!session.lost.empty()) return 0;  // The path that comes up in place of a lost one asks for it again.
  std::size_t work = 0;
  for (auto& list : session.pending) {
    bool is_blocked = false;
    std::uint32_t looked_at = 0;  // Behind the first that was blocked.
    for (Slot& slot : list) {
      if (is_blocked && ++looked_at > kPassingMax) break;
      if (is_blocked && !passes_blocked(slot)) continue;
      const std::uint32_t before = slot.next_chunk + slot.done_chunks;
      const Offer result = advance(slot, session, now);
      if (result == Offer::kEnded) {
        ++work;
        continue;
      }
      work += slot.next_chunk + slot.done_chunks - before;
      if (result == Offer::kBlocked) {
        if (session.control_serial == 0) return work;  // There is no path; its coming up is waited for.
        is_blocked = true;
        continue;
      }
      base::IntrusiveList<Slot, &Slot::pending_hook>::erase(slot);
    }
    if (!is_blocked) continue;
    // Lower priorities must not overtake on the same path.
    if (!base::planted(base::Planted::kBlockedForgotten)) uses_.sessions.block(session, now);
    return work;
  }
  return work;
}

bool ChunkDispatcher::carries_arrivals(const PathEntry& entry, const Slot& slot) const {
  return uses_.ports.traits(entry.backend).carries_arrivals && entry.path->carries_arrivals(slot.plan->chunk_count());
}

ChunkDispatcher::Offer ChunkDispatcher::advance(Slot& slot, Session& session, Instant now) {
  Status why;
  PathEntry* entry = uses_.router.route(*slot.plan, session, &why);
  if (entry == nullptr) {
    if (why.ok()) return Offer::kBlocked;  // A path is on its way.
    uses_.transfers.end_early(slot, why, now);
    return Offer::kEnded;
  }
  if (slot.covered() && slot.plan->operation == Operation::kWrite) {
    const bool carries = carries_arrivals(*entry, slot);
    if (slot.arrive_sent && !carries) slot.uncounted = true;
    if (!slot.arrive_sent && carries &&
        !uses_.arrives.announce(slot, session, static_cast<std::uint32_t>(slot.plan->chunk_count()))) {
      return Offer::kBlocked;
    }
  }
  const Offer offered = offer_chunks(slot, *entry, now);
  if (offered != Offer::kAll || slot.in_flight > 0) return offered;
  return conclude(slot, session, now);
}

/// Most plans are one chunk; making room for many costs more than moving a small one.
ChunkDispatcher::Offer ChunkDispatcher::offer_only_chunk(Slot& slot, PathEntry& entry, Instant now) {
  if (slot.next_chunk == 1 && slot.again.empty()) return Offer::kAll;
  backend::Chunk chunk = chunk_of(slot, 0, slot.arrive_sent && carries_arrivals(entry, slot));
  chunk.again = !slot.again.empty();
  const backend::Submitted result = entry.path->submit({&chunk, 1}, now);
  count_taken(slot, {&chunk, 1}, result);
  return result.taken == 0 ? Offer::kBlocked : Offer::kAll;
}

ChunkDispatcher::Offer ChunkDispatcher::offer_chunks(Slot& slot, PathEntry& entry, Instant now) {
  if (slot.plan->chunk_count() == 1) return offer_only_chunk(slot, entry, now);
  std::array<backend::Chunk, kBatchChunks> batch;
  return offer_batches(slot, entry, batch, now);
}

ChunkDispatcher::Offer ChunkDispatcher::offer_batches(Slot& slot, PathEntry& entry, std::span<backend::Chunk> batch,
                                                      Instant now) {
  const bool covered = slot.arrive_sent && carries_arrivals(entry, slot);
  for (;;) {
    const std::size_t count = fill_batch(slot, covered, batch);
    if (count == 0) return Offer::kAll;
    const backend::Submitted result = entry.path->submit(batch.first(count), now);
    count_taken(slot, batch.first(count), result);
    if (result.taken < count) return Offer::kBlocked;
  }
}

ChunkDispatcher::Offer ChunkDispatcher::conclude(Slot& slot, Session& session, Instant now) {
  if (slot.covered() && !slot.arrive_sent && !uses_.arrives.announce(slot, session, 0)) return Offer::kBlocked;
  if (slot.uncounted && !uses_.arrives.tell_all_visible(slot, session)) return Offer::kBlocked;
  uses_.transfers.finalize(slot, Status(), now);
  return Offer::kEnded;
}

void ChunkDispatcher::on_chunk_done(const backend::PortEvent& event, Instant now) {
  if (uses_.paths.find(event.path) == nullptr) return;  // Released meanwhile; its chunks were ended then.
  Slot& slot = *uses_.slots.at(static_cast<std::uint32_t>(event.cookie >> 32));
  const auto index = static_cast<std::uint32_t>(event.cookie);
  const bool was_touched = slot.touched;
  count_ended(slot, index, event);
  Session& session = uses_.sessions.of(slot.plan->peer);
  PathEntry* const entry = session.find(event.path);
  if (entry != nullptr && event.status.ok()) ++entry->carried;
  uses_.fences.note_end(entry, slot, event);
  if (slot.ending) {
    if (slot.in_flight == 0) uses_.transfers.end_quiet(slot, now);
    return;
  }
  if (!event.status.ok()) {
    if (entry != nullptr) ++entry->errors;
    if (!needs_other_path(event.status) && !can_go_again(event.status)) {
      // What the path says of its chunk is true of the transfer only where it was the only chunk.
      const bool alone = slot.plan->chunk_count() == 1 && !was_touched;
      uses_.transfers.end_early(slot, alone ? event.status : event.status.with_buffer(BufferState::kUnknown), now);
      return;
    }
    end_failed_chunk(slot, session, entry, event);
  }
  const bool all_done = slot.done_chunks == slot.plan->chunk_count();
  if (!slot.pending_hook.is_linked() && (all_done || !slot.again.empty())) {
    if (all_done && conclude(slot, session, now) == Offer::kEnded) return;
    wait_in_line(slot, session);
    uses_.sessions.enlist(session);
  }
}

/// The transfer goes on: the chunk is offered again, to another path where this one cannot carry it.
void ChunkDispatcher::end_failed_chunk(Slot& slot, Session& session, PathEntry* entry,
                                       const backend::PortEvent& event) {
  const auto index = static_cast<std::uint32_t>(event.cookie);
  if (entry != nullptr) ++entry->retries;
  if (entry != nullptr && needs_other_path(event.status)) {
    Router::refuse_chunk(*entry, *slot.plan, index, event.status);
    slot.plan->route = Route();
  }
  if (base::planted(base::Planted::kRetryForgotten)) {
    ++slot.done_chunks;
  } else {
    slot.again.push_back(index);
  }
  ++session.flow.retries;
}

void ChunkDispatcher::begin_held(Slot& slot, Instant now) {
  uses_.held.let_off(slot);
  Session& session = uses_.sessions.of(slot.plan->peer);
  wait_in_line(slot, session);
  uses_.sessions.enlist(session);
  uses_.connector.want(session, now);
}

std::size_t ChunkDispatcher::serve_called(Instant now) {
  std::size_t moved = 0;
  while (Slot* slot = uses_.held.next_called()) {
    ++moved;
    if (Status lost = HeldTransfers::lost_leader(*slot); !lost.ok()) {
      uses_.transfers.end_early(*slot, std::move(lost), now);
    } else if (HeldTransfers::must_wait(*slot)) {
      uses_.held.wait_for_word(*slot);
    } else {
      begin_held(*slot, now);
    }
  }
  return moved;
}

std::size_t ChunkDispatcher::check_held(Instant now) {
  return uses_.held.begin_reached([&](Slot& slot) { begin_held(slot, now); });
}

}  // namespace hawser::agent
