// How chunks end: by their outcome, by cancelling, with the path.

#include "backend/stream/frame_writer.h"
#include "backend/stream/initiator.h"
#include "base/format.h"
#include "base/planted.h"

namespace hawser::backend::stream {
namespace {

constexpr std::uint16_t kGenerationMask = (1u << 14) - 1;

std::string_view reason_of(wire::Outcome outcome) {
  switch (outcome) {
    case wire::Outcome::kDenied:
      return "no such region, wrong key or no right";
    case wire::Outcome::kOutOfBounds:
      return "out of the region's bounds";
    case wire::Outcome::kClosed:
      return "the region was closed";
    case wire::Outcome::kClosedMidway:
      return "the region was closed while bytes landed";
    case wire::Outcome::kNoRoom:
      return "it has no memory to stage it in now";
    case wire::Outcome::kFileFull:
      return "its disk is full, a quota is used up, or the file would pass its process's limit (RLIMIT_FSIZE)";
    case wire::Outcome::kFileFailed:
      return "the file ends before, or its device failed (its log of level debug has the cause)";
    case wire::Outcome::kVoid:
    case wire::Outcome::kVoidedClean:
    case wire::Outcome::kVoidedMidway:
      return "it was given up";
    case wire::Outcome::kTooManyOperations:
    case wire::Outcome::kTooManyBytes:  // Initiator::over_quota says it.
    case wire::Outcome::kOk:
      break;
  }
  return "";
}

Code code_of(wire::Outcome outcome) {
  switch (outcome) {
    case wire::Outcome::kOutOfBounds:
      return Code::kInvalid;
    case wire::Outcome::kNoRoom:
    case wire::Outcome::kFileFull:
    case wire::Outcome::kTooManyOperations:
    case wire::Outcome::kTooManyBytes:
      return Code::kBusy;
    case wire::Outcome::kFileFailed:
      return Code::kFailed;
    default:
      return Code::kDenied;
  }
}

/// What the bytes of a refused or failed chunk are at the side that was written to.
BufferState state_of(bool write, wire::Outcome outcome) {
  switch (outcome) {
    case wire::Outcome::kOk:
      return BufferState::kComplete;
    case wire::Outcome::kClosedMidway:
      return write ? BufferState::kPartlyWritten : BufferState::kUntouched;
    case wire::Outcome::kFileFull:
    case wire::Outcome::kFileFailed:
    case wire::Outcome::kVoid:
    case wire::Outcome::kVoidedMidway:
      return write ? BufferState::kUnknown : BufferState::kUntouched;
    default:
      return BufferState::kUntouched;
  }
}

}  // namespace

/// Of a write that was given up: known is only whether some of its bytes went, and filler in place of the others.
BufferState Initiator::state_of_void(const Slot& slot) {
  return slot.voided && slot.has_begun ? BufferState::kPartlyWritten : BufferState::kUnknown;
}

Status Initiator::status_of(const Slot& slot) const {
  const bool write = slot.op == Operation::kWrite;
  const bool is_void = slot.outcome == wire::Outcome::kVoid || slot.outcome == wire::Outcome::kVoidedMidway;
  const BufferState state = write && is_void ? state_of_void(slot) : state_of(write, slot.outcome);
  if (slot.cancelled) {
    return Status(Code::kCancelled, "cancelled while on its way").with_peer(options_.peer).with_buffer(state);
  }
  if (slot.outcome == wire::Outcome::kOk) return Status();
  const bool is_over_quota =
      slot.outcome == wire::Outcome::kTooManyOperations || slot.outcome == wire::Outcome::kTooManyBytes;
  if (is_over_quota) return over_quota(slot);
  return Status(code_of(slot.outcome),
                base::format("{} refused to {} {} bytes {} its region #{}: {}", options_.peer, write ? "write" : "read",
                             slot.bytes, write ? "into" : "from", slot.target->bind.index, reason_of(slot.outcome)))
      .with_peer(options_.peer)
      .with_buffer(state);
}

Status Initiator::over_quota(const Slot& slot) const {
  const bool is_bytes = slot.outcome == wire::Outcome::kTooManyBytes;
  const std::string_view option = is_bytes ? "limits.peer_bytes" : "limits.peer_operations";
  const std::string_view variable = is_bytes ? "HAWSER_LIMITS_PEER_BYTES" : "HAWSER_LIMITS_PEER_OPERATIONS";
  const std::uint64_t value = is_bytes ? quotas_.bytes : quotas_.operations;
  return Status(code_of(slot.outcome),
                base::format("{} refused to {} {} bytes {} its region #{}: its {} = {} is in use by this peer",
                             options_.peer, slot.op == Operation::kWrite ? "write" : "read", slot.bytes,
                             slot.op == Operation::kWrite ? "into" : "from", slot.target->bind.index, option, value))
      .with_peer(options_.peer)
      .with_buffer(BufferState::kUntouched)
      .with_advice(base::format("wait until what is under way has ended, or raise {} ({}) there", option, variable));
}

void Initiator::tell(Slot& slot, Status status) {
  if (slot.cancelled && slot.op == Operation::kWrite) --cancelled_writes_;
  events_.chunk_done(path_, slot.cookie, std::move(status));
}

void Initiator::free_slot(Slot& slot) {
  if (slot.op == Operation::kRead) --reads_;
  --in_flight_;
  bytes_ -= slot.bytes;
  if (slot.target->in_file) file_bytes_ -= slot.bytes;
  slot.state = State::kFree;
  slot.generation = (slot.generation + 1) & kGenerationMask;
  free_.push_back(static_cast<std::uint32_t>(&slot - slots_.data()));
  RemoteBinding& binding = *slot.target;
  if (--binding.uses == 0 && binding.gone) drop_binding(binding);
}

// Takes back a frame of which nothing was sent: its head says SKIP now, and payload that it only refers to is left out.
bool Initiator::withdraw(Slot& slot, Outlet& outlet) {
  if (outlet.sent_end() > slot.begin) return false;
  if (slot.op == Operation::kWrite && !slot.copied) return outlet.stop_frame(slot.end, wire::Outcome::kVoid).withdrawn;
  const std::uint64_t following = slot.op == Operation::kRead ? 0 : wire::padded(slot.bytes);
  wire::make_skip(slot.head, static_cast<std::uint32_t>(following));
  return true;
}

void Initiator::cancel(std::uint64_t transfer, std::span<Outlet> outlets, std::span<Inlet> inlets) {
  if (!bulk_.empty()) {
    bulk_.filter([&](std::uint32_t number) { return slots_[number].transfer != transfer; });
  }
  for (Slot& slot : slots_) {
    if (slot.state == State::kFree || slot.transfer != transfer || slot.cancelled) continue;
    cancel_slot(slot, outlets, inlets);
  }
}

void Initiator::cancel_slot(Slot& slot, std::span<Outlet> outlets, std::span<Inlet> inlets) {
  const Status cancelled = Status(Code::kCancelled, "cancelled before it was sent")
                               .with_peer(options_.peer)
                               .with_buffer(BufferState::kUntouched);
  if (slot.state == State::kQueued || (slot.state == State::kFramed && withdraw(slot, outlets[slot.stream]))) {
    tell(slot, cancelled);
    free_slot(slot);
    return;
  }
  slot.cancelled = true;
  if (slot.op == Operation::kRead) {
    cancel_read(slot, inlets);
  } else {
    cancel_write(slot, outlets[slot.stream]);
  }
}

void Initiator::cancel_read(Slot& slot, std::span<Inlet> inlets) {
  bool landed = slot.received > 0;
  if (slot.in_frame) {
    landed = landed || inlets[slot.landing].landed() > 0;
    if (!base::planted(base::Planted::kCancelledReadLands)) inlets[slot.landing].drop();
  }
  slot.state = State::kEnded;  // Keeps its tag until the data came, which goes nowhere.
  tell(slot, Status(Code::kCancelled, "cancelled before all data came")
                 .with_peer(options_.peer)
                 .with_buffer(landed ? BufferState::kPartlyWritten : BufferState::kUntouched));
}

// It has begun, so its frame is completed: with filler, and its trailer says so. Its end is told when the peer says
// that nothing of it lands any more, or, where the peer does not answer, after kAnswerPeriod and as unknown.
//
// Where it may have landed before and been counted, filler would tear bytes that the peer was told of. So it goes on
// with its own, from a copy, and ends as a small one does. That is one frame a stream at most: of the others nothing
// was sent.
void Initiator::cancel_write(Slot& slot, Outlet& outlet) {
  ++cancelled_writes_;
  slot.cancel_period = cancel_period_;
  if (slot.copied || slot.state == State::kAcked) return;
  if (slot.again) {
    slot.copied = true;
    if (!outlet.keep_frame(slot.end)) slot.held_until = outlet.sent_total();
    return;
  }
  const Outlet::Stopped stopped = outlet.stop_frame(slot.end, wire::Outcome::kVoid);
  slot.voided = stopped.voided;
  slot.has_begun = stopped.before > 0;
  if (!stopped.quiet) slot.held_until = outlet.sent_total();
  // On the first stream the peer would hear it behind the write itself.
  if (slot.stream != 0) voids_.push(tag_of(slot));
}

// The peer lets nothing of it land from now on. Its own acknowledgement, which frees its tag, is still to come.
bool Initiator::on_voided(Slot& slot, wire::Outcome outcome, const Outlet& outlet) {
  if (!slot.void_said || slot.answered) return false;
  slot.answered = true;
  slot.outcome = outcome;
  if (slot.state == State::kEnded) {
    end_stray(slot);
  } else if (outlet.released_total() >= slot.held_until) {
    end_voided(slot, status_of(slot));
  }
  return true;
}

void Initiator::end_voided(Slot& slot, Status status) {
  tell(slot, std::move(status));
  slot.state = State::kEnded;
}

void Initiator::end_stray(Slot& slot) {
  if (std::exchange(slot.stray, false)) --slot.target->strays;
}

bool Initiator::next_cancel_period(std::span<const Outlet> outlets) {
  bool punctual = true;
  for (Slot& slot : slots_) {
    const bool waits = slot.state == State::kFramed || slot.state == State::kAcked;
    if (!waits || !slot.cancelled || slot.cancel_period == cancel_period_) continue;
    const std::uint32_t periods = cancel_period_ - slot.cancel_period;
    const bool held = slot.state == State::kAcked || outlets[slot.stream].released_total() < slot.held_until;
    if (held) {
      punctual = punctual && periods < kHeldPeriods;
      continue;
    }
    slot.stray = true;
    ++slot.target->strays;
    slot.state = State::kEnded;
    tell_stray(slot);
  }
  ++cancel_period_;
  return punctual;
}

void Initiator::tell_stray(Slot& slot) {
  --cancelled_writes_;
  events_.chunk_done_unsettled(path_, slot.cookie,
                               Status(Code::kCancelled, base::format("cancelled, and {} has not said whether its bytes "
                                                                     "landed; nothing is written to that region until "
                                                                     "it has",
                                                                     options_.peer))
                                   .with_peer(options_.peer)
                                   .with_buffer(BufferState::kUnknown));
}

Status Initiator::lost(const Slot& slot, const Status& why, const Outlet* outlet) const {
  BufferState state = BufferState::kUntouched;
  if (slot.op == Operation::kRead) {
    if (slot.landing != kNowhere) state = BufferState::kPartlyWritten;
  } else if (slot.state != State::kQueued && outlet->sent_end() > slot.begin) {
    state = BufferState::kUnknown;
  }
  const Code code = slot.cancelled ? Code::kCancelled : Code::kDisconnected;
  return Status(code, base::format("the path to {} ended during a {} of {} bytes", options_.peer,
                                   slot.op == Operation::kWrite ? "write" : "read", slot.bytes))
      .with_scope(why.scope())
      .with_peer(options_.peer)
      .with_buffer(state)
      .because(why);
}

void Initiator::fail(const Status& why, std::span<Outlet> outlets) {
  bulk_.clear();
  voids_.clear();
  for (Slot& slot : slots_) {
    if (slot.state == State::kFree) continue;
    if (slot.state != State::kEnded) tell(slot, lost(slot, why, &outlets[slot.stream]));
    end_stray(slot);
    free_slot(slot);
  }
}

}  // namespace hawser::backend::stream
