#include "agent/engine/transfer_table.h"

#include <algorithm>
#include <string>
#include <utility>

#include "agent/end_news.h"
#include "agent/peer_core.h"
#include "base/planted.h"
#include "base/shown.h"

namespace hawser::agent {
namespace {

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

/// The end of a transfer at its deadline, with all that is known of what it waited for.
Status overdue(const Slot& slot, Instant now) {
  Status status(Code::kTimedOut, "the transfer did not end by its deadline");
  const Session* session = slot.plan->peer->session();
  if (session == nullptr) return status;
  bool is_up = false;
  for (const PathEntry& entry : session->paths) {
    is_up = is_up || entry.up;
    status = status.because(entry.path->condition(now));
  }
  return is_up ? status : status.because(session->last_failure);
}

/// Refuses a plan of which some grant, which is for one transfer, has had it.
Status check_use(const PlanCore& plan) {
  for (const auto& region : plan.remotes) {
    if (region->once == nullptr || !region->once->has_begun()) continue;
    return Status(Code::kDenied, "submit: the grant of region '" + base::shown(region->name) + "' of peer '" +
                                     plan.peer->name + "' is for one transfer, and has had it")
        .with_buffer(BufferState::kUntouched)
        .with_advice("ask its owner for another grant");
  }
  return {};
}

void begin_use(Slot& slot) {
  slot.has_use = true;
  for (const auto& region : slot.plan->remotes) {
    if (region->once != nullptr) region->once->begin();
  }
}

void end_use(Slot& slot) {
  if (!std::exchange(slot.has_use, false)) return;
  for (const auto& region : slot.plan->remotes) {
    if (region->once != nullptr) region->once->end();
  }
}

/// Tells a refusal by the owner as the end of the grant; a plan without grants keeps the status.
Status of_grant(const PlanCore& plan, const Status& status, Instant now) {
  for (const auto& region : plan.remotes) {
    if (!region->grant) continue;
    return grant_ended(*region, "the transfer was refused", now)
        .with_buffer(status.buffer())
        .with_scope(status.scope())
        .because(status);
  }
  return status;
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
  slot.place_taken = peer.use().notify_out.try_take(slot.notify_size.value_or(0));
  if (slot.place_taken) return {};
  return Status(Code::kBusy, "submit: the inbox of " + peer.name + " has no room for another notification")
      .with_peer(peer.name)
      .with_advice("the peer must take notifications; retry after a pause");
}

void give_place_back(Slot& slot, PeerCore& peer) {
  if (std::exchange(slot.place_taken, false) && !base::planted(base::Planted::kPlaceKept))
    peer.use().notify_out.give_back(slot.notify_size.value_or(0));
}

TransferTable::~TransferTable() {
  for (Slot& slot : in_flight_) slot.flight_hook.unlink();
}

Status TransferTable::admit(Slot& slot, Session& session, Instant now) {
  if (uses_.sessions.is_closing()) {
    return Status(Code::kInvalid, "submit: agent '" + std::string(uses_.agent) + "' is closing");
  }
  if (Status closed = check_locals(slot); !closed.ok()) return closed;
  if (slot.cancel_asked.load(std::memory_order_relaxed)) {
    return Status(Code::kCancelled, "cancelled before it began").with_buffer(BufferState::kUntouched);
  }
  if (now >= slot.deadline) {
    return Status(Code::kTimedOut, "the deadline had passed before the transfer began")
        .with_buffer(BufferState::kUntouched);
  }
  if (slot.plan->is_single_use) {
    if (Status used = check_use(*slot.plan); !used.ok()) return used;
  }
  if (!slot.has_extras) return admit_covered(slot, session);
  if (Status lost = HeldTransfers::lost_leader(slot); !lost.ok()) return lost;
  if (uses_.held.is_full() && HeldTransfers::must_wait(slot)) {
    return Status(Code::kBusy, "submit: " + std::to_string(kHeldMax) + " transfers wait for their `after` words and " +
                                   "the transfers that they follow");
  }
  return admit_covered(slot, session);
}

Status TransferTable::admit_covered(Slot& slot, Session& session) {
  if (!slot.covered()) return {};
  const Slot* oldest = session.covered.front();
  if (oldest != nullptr && session.next_covered - oldest->id >= proto::kArrivalsMax / 2) {
    return Status(Code::kBusy, "submit: " + std::to_string(proto::kArrivalsMax / 2) +
                                   " transfers with notification or signal are in flight to " + session.peer->name);
  }
  return take_place(slot, *session.peer);
}

void TransferTable::link(Slot& slot, Session& session) {
  slot.next_chunk = slot.in_flight = slot.done_chunks = 0;
  slot.again.clear();
  slot.outcome = Status();
  slot.arrive_sent = slot.uncounted = slot.ending = slot.touched = slot.torn = false;
  slot.unsure = 0;
  slot.for_each_local([](LocalRegion& region) { ++region.users; });
  in_flight_.push_back(slot);
  session.in_flight.push_back(slot);
  ++count_;
  ++session.slots;
}

Status TransferTable::enter(Slot& slot, Session& session, Instant now) {
  if (Status refused = admit(slot, session, now); !refused.ok()) return refused;
  link(slot, session);
  if (slot.plan->is_single_use) begin_use(slot);
  if (slot.covered()) {
    slot.id = session.next_covered++;
    session.covered.push_back(slot);
  } else {
    slot.id = session.next_plain++ | kPlainBit;
  }
  earliest_deadline_ = std::min(earliest_deadline_, slot.deadline);
  if (slot.has_extras && HeldTransfers::must_wait(slot)) uses_.held.hold(slot);
  return {};
}

/// Its submitter was told that it is under way. So it was the one transfer of a grant for one, but where there was no
/// room for it: it may be submitted again.
void TransferTable::refuse(Slot& slot, Status status, Instant now) {
  link(slot, uses_.sessions.of(slot.plan->peer));
  if (slot.plan->is_single_use && status.code() != Code::kBusy && check_use(*slot.plan).ok()) begin_use(slot);
  finalize(slot, std::move(status), now);
}

void TransferTable::end_early(Slot& slot, Status status, Instant now) {
  if (slot.ending) return;
  slot.ending = true;
  slot.outcome = std::move(status);
  uses_.held.let_off(slot);
  if (base::planted(base::Planted::kCompletionTwice)) EndNews(slot, slot.outcome).tell();
  slot.pending_hook.unlink();
  if (slot.in_flight > 0) {
    for (PathEntry& entry : uses_.sessions.of(slot.plan->peer).paths) {
      if (entry.path != nullptr) entry.path->cancel(slot.id);
    }
    return;  // Its chunks' ends come as events; the last one finalizes.
  }
  end_quiet(slot, now);
}

void TransferTable::end_quiet(Slot& slot, Instant now) {
  if (slot.in_flight > 0) {  // Its path is gone and did not say how far it came.
    slot.unsure += slot.in_flight;
    slot.in_flight = 0;
    slot.touched = true;
  }
  if (slot.outcome.buffer() == BufferState::kUnknown) slot.outcome = slot.outcome.with_buffer(buffer_after(slot));
  finalize(slot, slot.outcome, now);
}

void TransferTable::finalize(Slot& slot, Status status, Instant now) {
  Session& session = uses_.sessions.of(slot.plan->peer);
  uses_.held.let_off(slot);
  slot.pending_hook.unlink();
  slot.flight_hook.unlink();
  slot.session_hook.unlink();
  --count_;
  --session.slots;
  if (!slot.arrive_sent) give_place_back(slot, *session.peer);
  if (slot.covered_hook.is_linked()) {
    slot.covered_hook.unlink();
    if (slot.arrive_sent && !status.ok() && !base::planted(base::Planted::kCancelUntold)) {
      uses_.arrives.cancel(session, slot.id);
    }
  }
  slot.for_each_local([](LocalRegion& region) { --region.users; });
  const bool had_no_use = slot.plan->is_single_use && !slot.has_use;
  end_use(slot);
  if (!status.ok()) {
    const bool is_refused = slot.plan->has_grants && status.code() == Code::kDenied && !had_no_use;
    if (is_refused) status = of_grant(*slot.plan, status, now);
    status = status.with_peer(status.peer().empty() ? std::string_view(session.peer->name) : status.peer())
                 .with_progress(slot.bytes_done.load(std::memory_order_relaxed),
                                std::max(Duration::zero(), now - slot.submitted));
  }
  count_end(slot, status, now);
  uses_.news.note();
  EndNews news = slot.has_extras ? EndNews(slot, status) : EndNews();
  slot.status = std::move(status);
  if (!slot.followers.empty()) uses_.held.call_followers(slot);
  slot.plan.reset();
  slot.forget_extras();
  uses_.slots.finished(&slot);
  news.tell();
}

void TransferTable::count_end(const Slot& slot, const Status& status, Instant now) {
  Session& session = uses_.sessions.of(slot.plan->peer);
  FlowCounters& flow = session.flow;
  const std::uint64_t bytes = slot.bytes_done.load(std::memory_order_relaxed);
  if (status.ok()) {
    const bool is_write = slot.plan->operation == Operation::kWrite;
    (is_write ? flow.bytes_written : flow.bytes_read) += bytes;
    const bool within_submit = now == slot.submitted;
    if (!within_submit || TransferTimes::is_timed_at_once(flow, bytes)) {
      // A turn's time may be a little older than the submit.
      time(slot, session, (now <= slot.submitted ? uses_.clock.now() : now) - slot.submitted);
    }
    ++(is_write ? flow.writes : flow.reads);
  } else {
    ++flow.errors;
    if (status.code() == Code::kCancelled) ++flow.cancels;
    if (status.code() == Code::kTimedOut) ++flow.timeouts;
  }
}

void TransferTable::time(const Slot& slot, Session& session, Duration took) {
  // Of one that waited for others, or for its word, the path cannot be judged.
  const bool was_alone = session.slots == 0 && slot.after.word == nullptr && slot.leader == nullptr;
  uses_.times.note(session, session.find(slot.plan->route.serial), slot.plan->pieces, took, was_alone);
}

std::size_t TransferTable::expire(Instant now) {
  if (now < earliest_deadline_) return 0;
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
  earliest_deadline_ = earliest;
  return ended;
}

bool TransferTable::apply_cancel(Slot& slot, Instant now) {
  if (!slot.flight_hook.is_linked() || slot.ending || !slot.cancel_asked.load(std::memory_order_acquire)) return false;
  end_early(slot, Status(Code::kCancelled, "the transfer was cancelled"), now);
  return true;
}

std::size_t TransferTable::apply_cancels(Instant now) {
  std::size_t ended = 0;
  for (Slot& slot : in_flight_) ended += apply_cancel(slot, now) ? 1 : 0;
  return ended;
}

void TransferTable::cancel_region(const LocalRegion& region, Instant now) {
  for (Slot& slot : in_flight_) {
    bool uses = false;
    slot.for_each_local([&](const LocalRegion& used) { uses = uses || &used == &region; });
    if (uses) end_early(slot, Status(Code::kCancelled, "region '" + region.entry->name + "' was closed"), now);
  }
}

std::size_t TransferTable::end_label(std::uint64_t label, const Status& status, Instant now) {
  std::size_t ended = 0;
  for (Slot& slot : in_flight_) {
    if (slot.label != label || slot.ending) continue;
    end_early(slot, status, now);
    ++ended;
  }
  return ended;
}

void TransferTable::end_all(const Status& status, Instant now) {
  for (Slot& slot : in_flight_) end_early(slot, status, now);
}

void TransferTable::end_of(Session& session, const Status& status, Instant now) {
  for (Slot& slot : session.in_flight) end_early(slot, status, now);
}

void TransferTable::on_paths_gone(Session& session, Instant now) {
  for (Slot& slot : session.in_flight) {
    if (!slot.ending || base::planted(base::Planted::kCompletionLost)) continue;
    end_quiet(slot, now);
  }
}

void TransferTable::shut_down(Instant now) {
  for (Slot& slot : in_flight_) {
    if (slot.outcome.ok()) slot.outcome = Status(Code::kCancelled, "the agent was closed");
    end_quiet(slot, now);
  }
}

}  // namespace hawser::agent
