// Transfers in the engine: accepted, offered to paths chunk by chunk, ended exactly once.

#include <algorithm>
#include <array>

#include "agent/core.h"
#include "agent/end_news.h"
#include "agent/engine.h"
#include "base/planted.h"
#include "base/shown.h"

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

/// The path cannot carry this chunk: what it is between is refused together, and named.
void refuse_chunk(PathEntry& entry, const PlanCore& plan, std::uint32_t chunk, const Status& why) {
  const RemoteRegion& remote = plan.remote_of(chunk);
  std::vector<Refusals::Id> locals;
  std::string names;
  for (const auto& local : plan.locals_of(chunk)) {
    locals.emplace_back(local->entry->index, local->entry->generation);
    names += (names.empty() ? "'" : ", '") + local->entry->name + "'";
  }
  const Status named(Code::kUnsupported,
                     "between the local memory " + names + " and the region '" + base::shown(remote.name) + "'");
  entry.refused.add({remote.index, remote.generation}, std::move(locals), named.because(why));
}

/// Of a write, once no chunk is in flight any more. Says only what is known: bytes that were under way when their path
/// was lost may be there or not.
BufferState buffer_of_write(const Slot& slot) {
  const std::uint32_t count = slot.plan->chunk_count();
  if (slot.done_chunks == count) return BufferState::kComplete;
  // `unsure` counts ends, so a chunk that was sent twice may count twice: then fewer are found surely missing.
  const bool some_missing = std::uint64_t{slot.done_chunks} + slot.unsure < count;
  const bool some_there = slot.done_chunks > 0;
  if (slot.unsure == 0) return some_there || slot.torn ? BufferState::kPartlyWritten : BufferState::kUntouched;
  return some_there && some_missing ? BufferState::kPartlyWritten : BufferState::kUnknown;
}

BufferState buffer_after(const Slot& slot) {
  if (!slot.touched || base::planted(base::Planted::kUntouchedClaimed)) return BufferState::kUntouched;
  if (slot.plan->operation == Operation::kRead) return BufferState::kUnknown;
  return base::planted(base::Planted::kBufferGuessed) ? BufferState::kPartlyWritten : buffer_of_write(slot);
}

/// A small transfer does not wait behind large ones of its priority that their path has no room for.
bool passes_blocked(const Slot& slot) {
  const PlanCore& plan = *slot.plan;
  return plan.chunk_count() == 1 && plan.chunks.chunks.front().bytes <= backend::kSmallChunk;
}

}  // namespace

Status check_locals(const Slot& slot) {
  const LocalRegion* closed = nullptr;
  slot.for_each_local([&](const LocalRegion& region) {
    if (region.state.load(std::memory_order_acquire) != RegionState::kOpen) closed = &region;
  });
  if (closed == nullptr) return {};
  const bool is_word =
      std::ranges::none_of(slot.plan->locals, [closed](const auto& region) { return region.get() == closed; });
  return Status(Code::kInvalid, "submit: region '" + closed->entry->name + "' of " +
                                    (is_word ? "a word to wait for or to set" : "the plan") + " is closed")
      .with_buffer(BufferState::kUntouched)
      .with_advice(is_word ? "give words of regions that are open" : "plan again with regions that are open");
}

Status take_place(Slot& slot, PeerCore& peer) {
  if (!slot.covered() || slot.place_taken) return {};
  slot.place_taken = peer.notify_out.try_take(slot.notify_size.value_or(0));
  if (slot.place_taken) return {};
  return Status(Code::kBusy, "submit: the inbox of " + peer.name + " has no room for another notification")
      .with_peer(peer.name)
      .with_advice("the peer must take notifications; retry after a pause");
}

void give_place_back(Slot& slot, PeerCore& peer) {
  if (std::exchange(slot.place_taken, false) && !base::planted(base::Planted::kPlaceKept))
    peer.notify_out.give_back(slot.notify_size.value_or(0));
}

Status Engine::admit(Slot& slot, Session& session, Instant now) {
  if (closing_) return Status(Code::kInvalid, "submit: agent '" + core_.identity.name + "' is closing");
  if (Status closed = check_locals(slot); !closed.ok()) return closed;
  if (slot.cancel_asked.load(std::memory_order_relaxed)) {
    return Status(Code::kCancelled, "cancelled before it began").with_buffer(BufferState::kUntouched);
  }
  if (now >= slot.deadline) {
    return Status(Code::kTimedOut, "the deadline had passed before the transfer began")
        .with_buffer(BufferState::kUntouched);
  }
  if (!slot.has_extras) return admit_covered(slot, session);
  if (Status lost = lost_leader(slot); !lost.ok()) return lost;
  if (held_count_ >= kHeldMax && must_wait(slot)) {
    return Status(Code::kBusy, "submit: " + std::to_string(kHeldMax) + " transfers wait for their `after` words and " +
                                   "the transfers that they follow");
  }
  return admit_covered(slot, session);
}

Status Engine::admit_covered(Slot& slot, Session& session) {
  if (!slot.covered()) return {};
  const Slot* oldest = session.covered.front();
  if (oldest != nullptr && session.next_covered - oldest->id >= proto::kArrivalsMax / 2) {
    return Status(Code::kBusy, "submit: " + std::to_string(proto::kArrivalsMax / 2) +
                                   " transfers with notification or signal are in flight to " + session.peer->name);
  }
  return take_place(slot, *session.peer);
}

void Engine::link(Slot& slot, Session& session) {
  slot.next_chunk = slot.in_flight = slot.done_chunks = 0;
  slot.again.clear();
  slot.outcome = Status();
  slot.arrive_sent = slot.uncounted = slot.ending = slot.touched = slot.torn = false;
  slot.unsure = 0;
  slot.for_each_local([](LocalRegion& region) { ++region.users; });
  in_flight_.push_back(slot);
  session.in_flight.push_back(slot);
  ++in_flight_count_;
  ++session.slots;
}

void Engine::refuse(Slot& slot, Status status, Instant now) {
  link(slot, session(slot.plan->peer));
  finalize(slot, std::move(status), now);
}

Status Engine::enter(Slot& slot, Session& session, Instant now) {
  if (Status refused = admit(slot, session, now); !refused.ok()) return refused;
  link(slot, session);
  if (slot.covered()) {
    slot.id = session.next_covered++;
    session.covered.push_back(slot);
  } else {
    slot.id = session.next_plain++ | kPlainBit;
  }
  earliest_deadline_ = std::min(earliest_deadline_, slot.deadline);
  if (slot.has_extras && must_wait(slot)) hold(slot);
  return {};
}

Status Engine::accept(Slot& slot, Instant now) {
  if (slot.plan->peer->state.load(std::memory_order_relaxed) == PeerState::kDown) {
    return core_.down_status(*slot.plan->peer);
  }
  Session& its_session = session(slot.plan->peer);
  if (Status refused = enter(slot, its_session, now); !refused.ok() || slot.is_held) return refused;
  its_session.pending[static_cast<std::size_t>(slot.priority)].push_back(slot);
  want(its_session, now);
  return {};
}

Status Engine::start(Slot& slot, Instant now) {
  PeerCore& peer = *slot.plan->peer;
  Session* const idle = free_session(*slot.plan);
  if (idle == nullptr || peer.state.load(std::memory_order_relaxed) == PeerState::kDown) {
    if (Status refused = accept(slot, now); !refused.ok()) return refused;
    serve_now(peer, now);
    return {};
  }
  if (Status refused = enter(slot, *idle, now); !refused.ok() || slot.is_held) return refused;
  if (advance(slot, *idle, now) == Offer::kBlocked) {
    idle->pending[static_cast<std::size_t>(slot.priority)].push_back(slot);
    if (idle->control_serial != 0 && !base::planted(base::Planted::kBlockedForgotten)) block(*idle, now);
  }
  turn_control(*idle, now);
  return {};
}

void Engine::serve_now(PeerCore& peer, Instant now) {
  if (!peer.session || peer.session->control_serial == 0) return;
  Session& its_session = *peer.session;
  offer(its_session, now);
  if (!called_.empty()) serve_called(now);
  turn_control(its_session, now);
}

/// A direct path did all it could on the spot. Others have put frames into a queue that the port's turn sends.
void Engine::turn_control(Session& session, Instant now) {
  const PathEntry* control = session.control();
  if (control == nullptr || backends_[control->backend].traits->direct) return;
  backends_[control->backend].port->turn(now, backend::TurnBudget{});
}

std::size_t Engine::offer(Session& session, Instant now) {
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
    if (!base::planted(base::Planted::kBlockedForgotten)) block(session, now);
    return work;
  }
  return work;
}

bool Engine::carries_arrivals(const PathEntry& entry, const Slot& slot) const {
  return backends_[entry.backend].traits->carries_arrivals && entry.path->carries_arrivals(slot.plan->chunk_count());
}

Engine::Offer Engine::advance(Slot& slot, Session& session, Instant now) {
  Status why;
  PathEntry* entry = route(*slot.plan, session, &why);
  if (entry == nullptr) {
    if (why.ok()) return Offer::kBlocked;  // A path is on its way.
    end_early(slot, why, now);
    return Offer::kEnded;
  }
  if (slot.covered() && slot.plan->operation == Operation::kWrite) {
    const bool carries = carries_arrivals(*entry, slot);
    if (slot.arrive_sent && !carries) slot.uncounted = true;
    if (!slot.arrive_sent && carries &&
        !send_arrive(slot, session, static_cast<std::uint32_t>(slot.plan->chunk_count()))) {
      return Offer::kBlocked;
    }
  }
  const Offer offered = offer_chunks(slot, *entry, now);
  if (offered != Offer::kAll || slot.in_flight > 0) return offered;
  return conclude(slot, session, now);
}

backend::Chunk Engine::chunk_of(const Slot& slot, std::uint32_t index, bool covered) {
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

std::size_t Engine::fill_batch(const Slot& slot, bool covered, std::span<backend::Chunk> batch) {
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

void Engine::count_taken(Slot& slot, std::span<const backend::Chunk> offered, const backend::Submitted& result) {
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

/// Most plans are one chunk; making room for many costs more than moving a small one.
Engine::Offer Engine::offer_only_chunk(Slot& slot, PathEntry& entry, Instant now) {
  if (slot.next_chunk == 1 && slot.again.empty()) return Offer::kAll;
  backend::Chunk chunk = chunk_of(slot, 0, slot.arrive_sent && carries_arrivals(entry, slot));
  chunk.again = !slot.again.empty();
  const backend::Submitted result = entry.path->submit({&chunk, 1}, now);
  count_taken(slot, {&chunk, 1}, result);
  return result.taken == 0 ? Offer::kBlocked : Offer::kAll;
}

Engine::Offer Engine::offer_chunks(Slot& slot, PathEntry& entry, Instant now) {
  if (slot.plan->chunk_count() == 1) return offer_only_chunk(slot, entry, now);
  std::array<backend::Chunk, kBatchChunks> batch;
  return offer_batches(slot, entry, batch, now);
}

Engine::Offer Engine::offer_batches(Slot& slot, PathEntry& entry, std::span<backend::Chunk> batch, Instant now) {
  const bool covered = slot.arrive_sent && carries_arrivals(entry, slot);
  for (;;) {
    const std::size_t count = fill_batch(slot, covered, batch);
    if (count == 0) return Offer::kAll;
    const backend::Submitted result = entry.path->submit(batch.first(count), now);
    count_taken(slot, batch.first(count), result);
    if (result.taken < count) return Offer::kBlocked;
  }
}

bool Engine::send_arrive(Slot& slot, Session& session, std::uint32_t chunks) {
  wire::Arrive arrive{.seq = session.link_out.next_seq(), .transfer = slot.id, .chunks = chunks};
  const Slot* oldest = session.covered.front();
  arrive.oldest = oldest != nullptr ? oldest->id : session.next_covered;
  std::span<const std::byte> body;
  if (slot.notify_size) {
    body = std::as_bytes(std::span(slot.notify.data(), *slot.notify_size));
    arrive.notify = body;
  }
  if (slot.signal.region) {
    arrive.signal = wire::SignalBump{.region = slot.signal.region->index,
                                     .generation = slot.signal.region->generation,
                                     .key = slot.signal.region->key,
                                     .offset = slot.signal.offset,
                                     .add = slot.signal.add};
  }
  std::array<std::byte, wire::kHeadMax> buffer;
  if (!push_reliable(session, wire::encode(arrive, buffer), body)) return false;
  slot.arrive_sent = true;
  if (slot.notify_size) ++session.flow.notifications_sent;
  return true;
}

/// Tells the peer not to count further: every chunk is visible.
bool Engine::send_all_visible(Slot& slot, Session& session) {
  std::array<std::byte, wire::kHeadMax> buffer;
  const wire::Arrive visible{.seq = session.link_out.next_seq(), .transfer = slot.id, .chunks = 0};
  if (!push_reliable(session, wire::encode(visible, buffer), {})) return false;
  slot.uncounted = false;
  return true;
}

Engine::Offer Engine::conclude(Slot& slot, Session& session, Instant now) {
  if (slot.covered() && !slot.arrive_sent && !send_arrive(slot, session, 0)) return Offer::kBlocked;
  if (slot.uncounted && !send_all_visible(slot, session)) return Offer::kBlocked;
  finalize(slot, Status(), now);
  return Offer::kEnded;
}

void Engine::on_chunk_done(const backend::PortEvent& event, Instant now) {
  if (session_of(event.path) == nullptr) return;  // Released meanwhile; its chunks were ended then.
  Slot& slot = *core_.slots->at(static_cast<std::uint32_t>(event.cookie >> 32));
  const auto index = static_cast<std::uint32_t>(event.cookie);
  --slot.in_flight;
  const bool was_touched = slot.touched;
  slot.touched |= event.status.ok() || event.status.buffer() != BufferState::kUntouched;
  if (!event.status.ok()) {
    slot.torn |= event.status.buffer() == BufferState::kPartlyWritten;
    slot.unsure += event.status.buffer() == BufferState::kUnknown || event.status.buffer() == BufferState::kComplete;
  }
  if (event.status.ok()) {
    ++slot.done_chunks;
    slot.uncounted |= event.uncounted;
    slot.bytes_done.store(slot.bytes_done.load(std::memory_order_relaxed) + slot.plan->chunks.chunks[index].bytes,
                          std::memory_order_relaxed);
  }
  Session& its_session = session(slot.plan->peer);
  PathEntry* const entry = its_session.find(event.path);
  if (entry != nullptr && event.status.ok()) ++entry->carried;
  note_unsettled(entry, slot, event);
  if (slot.ending) {
    if (slot.in_flight == 0) end_quiet(slot, now);
    return;
  }
  if (!event.status.ok()) {
    if (entry != nullptr) ++entry->errors;
    const bool other_path = needs_other_path(event.status);
    if (!other_path && !can_go_again(event.status)) {
      // What the path says of its chunk is true of the transfer only where it was the only chunk.
      const bool alone = slot.plan->chunk_count() == 1 && !was_touched;
      end_early(slot, alone ? event.status : event.status.with_buffer(BufferState::kUnknown), now);
      return;
    }
    if (entry != nullptr) ++entry->retries;
    if (entry != nullptr && other_path) {
      refuse_chunk(*entry, *slot.plan, index, event.status);
      slot.plan->route = Route();
    }
    if (base::planted(base::Planted::kRetryForgotten)) {
      ++slot.done_chunks;
    } else {
      slot.again.push_back(index);
    }
    ++its_session.flow.retries;
  }
  const bool all_done = slot.done_chunks == slot.plan->chunk_count();
  if (!slot.pending_hook.is_linked() && (all_done || !slot.again.empty())) {
    if (all_done && conclude(slot, its_session, now) == Offer::kEnded) return;
    its_session.pending[static_cast<std::size_t>(slot.priority)].push_back(slot);
    enlist(its_session);
  }
}

void Engine::end_early(Slot& slot, Status status, Instant now) {
  if (slot.ending) return;
  slot.ending = true;
  slot.outcome = std::move(status);
  let_off(slot);
  if (base::planted(base::Planted::kCompletionTwice)) EndNews(slot, slot.outcome).tell();
  slot.pending_hook.unlink();
  Session& its_session = session(slot.plan->peer);
  if (slot.in_flight > 0) {
    for (PathEntry& entry : its_session.paths) {
      if (entry.path != nullptr) entry.path->cancel(slot.id);
    }
    return;  // Its chunks' ends come as events; the last one finalizes.
  }
  end_quiet(slot, now);
}

void Engine::end_quiet(Slot& slot, Instant now) {
  if (slot.in_flight > 0) {  // Its path is gone and did not say how far it came.
    slot.unsure += slot.in_flight;
    slot.in_flight = 0;
    slot.touched = true;
  }
  if (slot.outcome.buffer() == BufferState::kUnknown) slot.outcome = slot.outcome.with_buffer(buffer_after(slot));
  finalize(slot, slot.outcome, now);
}

void Engine::finalize(Slot& slot, Status status, Instant now) {
  Session& its_session = session(slot.plan->peer);
  let_off(slot);
  slot.pending_hook.unlink();
  slot.flight_hook.unlink();
  slot.session_hook.unlink();
  --in_flight_count_;
  --its_session.slots;
  if (!slot.arrive_sent) give_place_back(slot, *its_session.peer);
  if (slot.covered_hook.is_linked()) {
    slot.covered_hook.unlink();
    if (slot.arrive_sent && !status.ok() && !base::planted(base::Planted::kCancelUntold)) {
      its_session.cancelled.push_back(slot.id);  // The peer may hold a place for what will never arrive.
      enlist(its_session);
    }
  }
  slot.for_each_local([](LocalRegion& region) { --region.users; });
  if (!status.ok()) {
    status = status.with_peer(status.peer().empty() ? std::string_view(its_session.peer->name) : status.peer())
                 .with_progress(slot.bytes_done.load(std::memory_order_relaxed),
                                std::max(Duration::zero(), now - slot.submitted));
  }
  count_end(slot, status, now);
  ++finalized_;
  EndNews news = slot.has_extras ? EndNews(slot, status) : EndNews();
  slot.status = std::move(status);
  if (!slot.followers.empty()) call_followers(slot);
  slot.plan.reset();
  slot.forget_extras();
  core_.slots->finished(&slot);
  news.tell();
}

void Engine::time_transfer(const Slot& slot, Session& session, Duration took) {
  // Of one that waited for others, or for its word, the path cannot be judged.
  const bool was_alone = session.slots == 0 && slot.after.word == nullptr && slot.leader == nullptr;
  note_time(session, session.find(slot.plan->route.serial), slot.plan->pieces, took, was_alone);
}

void Engine::note_time(Session& session, PathEntry* entry, const plan::Pieces& pieces, Duration took, bool was_alone) {
  const auto took_ns = static_cast<std::uint64_t>(took.count());
  session.latency.add(took_ns);
  if (entry == nullptr) return;  // Its path is gone already.
  if (entry->times == nullptr) entry->times = std::make_unique<PathTimes>();
  entry->times->latency.add(took_ns);
  if (!was_alone) return;
  entry->times->health.observe(*backends_[entry->backend].traits, pieces.bytes, pieces.all.size(), took);
}

void Engine::count_end(const Slot& slot, const Status& status, Instant now) {
  Session& its_session = session(slot.plan->peer);
  FlowCounters& flow = its_session.flow;
  const std::uint64_t bytes = slot.bytes_done.load(std::memory_order_relaxed);
  if (status.ok()) {
    const bool write = slot.plan->operation == Operation::kWrite;
    (write ? flow.bytes_written : flow.bytes_read) += bytes;
    const bool within_submit = now == slot.submitted;
    if (!within_submit || is_timed_at_once(flow, bytes)) {
      // A turn's time may be a little older than the submit.
      time_transfer(slot, its_session, (now <= slot.submitted ? core_.now() : now) - slot.submitted);
    }
    ++(write ? flow.writes : flow.reads);
  } else {
    ++flow.errors;
    if (status.code() == Code::kCancelled) ++flow.cancels;
    if (status.code() == Code::kTimedOut) ++flow.timeouts;
  }
}

/// The end of a transfer at its deadline, with all that is known of what it waited for.
Status Engine::overdue(const Slot& slot, Instant now) {
  Status status(Code::kTimedOut, "the transfer did not end by its deadline");
  const Session* session = slot.plan->peer->session.get();
  if (session == nullptr) return status;
  bool is_up = false;
  for (const PathEntry& entry : session->paths) {
    is_up = is_up || entry.up;
    status = status.because(entry.path->condition(now));
  }
  return is_up ? status : status.because(session->last_failure);
}

std::size_t Engine::expire(Instant now) {
  if (now < earliest_deadline_ || base::planted(base::Planted::kDeadlineIgnored)) return 0;
  std::size_t ended = 0;
  Instant earliest = Instant::max();
  for (Slot& slot : in_flight_) {
    if (slot.ending) continue;
    if (now >= slot.deadline) {
      ++ended;
      end_early(slot, overdue(slot, now), now);
    } else {
      earliest = std::min(earliest, slot.deadline);
    }
  }
  ended += expire_services(now, &earliest);
  earliest_deadline_ = earliest;
  return ended;
}

bool Engine::apply_cancel(Slot& slot, Instant now) {
  if (!slot.flight_hook.is_linked() || slot.ending || !slot.cancel_asked.load(std::memory_order_acquire)) return false;
  end_early(slot, Status(Code::kCancelled, "the transfer was cancelled"), now);
  return true;
}

std::size_t Engine::apply_cancels(Instant now) {
  std::size_t ended = 0;
  for (Slot& slot : in_flight_) ended += apply_cancel(slot, now) ? 1 : 0;
  return ended;
}

void Engine::cancel_region(const LocalRegion& region, Instant now) {
  for (Slot& slot : in_flight_) {
    bool uses = false;
    slot.for_each_local([&](const LocalRegion& used) { uses = uses || &used == &region; });
    if (uses) end_early(slot, Status(Code::kCancelled, "region '" + region.entry->name + "' was closed"), now);
  }
}

std::size_t Engine::end_label(std::uint64_t label, const Status& status, Instant now) {
  std::size_t ended = 0;
  for (Slot& slot : in_flight_) {
    if (slot.label != label || slot.ending) continue;
    end_early(slot, status, now);
    ++ended;
  }
  return ended;
}

void Engine::end_all(const Status& status, Instant now) {
  for (Slot& slot : in_flight_) end_early(slot, status, now);
  for (Session* session : sessions_) end_services(*session, status);
}

void Engine::fail_transfers(Session& session, const Status& cause, Instant now) {
  const Status told = status_of_failed(session, cause);
  end_services(session, told);
  for (Slot& slot : session.in_flight) end_early(slot, told, now);
}

}  // namespace hawser::agent
