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
      return write ? BufferState::kUnknown : BufferState::kUntouched;
    default:
      return BufferState::kUntouched;
  }
}

}  // namespace

Status Initiator::status_of(const Slot& slot) const {
  const bool write = slot.op == Operation::kWrite;
  if (slot.cancelled) {
    return Status(Code::kCancelled, "cancelled while on its way")
        .with_peer(options_.peer)
        .with_buffer(state_of(write, slot.outcome));
  }
  if (slot.outcome == wire::Outcome::kOk) return Status();
  return Status(code_of(slot.outcome),
                base::format("{} refused to {} {} bytes {} its region #{}: {}", options_.peer, write ? "write" : "read",
                             slot.bytes, write ? "into" : "from", slot.target->bind.index, reason_of(slot.outcome)))
      .with_peer(options_.peer)
      .with_buffer(state_of(write, slot.outcome));
}

void Initiator::tell(Slot& slot, Status status) { events_.chunk_done(path_, slot.cookie, std::move(status)); }

void Initiator::free_slot(Slot& slot) {
  if (slot.cancelled && slot.op == Operation::kWrite) --cancelled_writes_;
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
  make_skip(slot.head, slot.op == Operation::kRead ? 0 : slot.bytes, slot.copied);
  return slot.op == Operation::kRead || slot.copied || outlet.let_go(slot.end, true);
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
  if (slot.op == Operation::kWrite) {
    // What is on its way lands; the end is told when the peer acknowledged it. Until then only our memory is free.
    ++cancelled_writes_;
    slot.cancel_period = cancel_period_;
    if (!slot.copied) static_cast<void>(outlets[slot.stream].let_go(slot.end, false));
    return;
  }
  BufferState state = BufferState::kUntouched;
  if (slot.landing != kNowhere) {
    if (inlets[slot.landing].landed() > 0) state = BufferState::kPartlyWritten;
    if (!base::planted(base::Planted::kCancelledReadLands)) inlets[slot.landing].drop();
  }
  slot.state = State::kEnded;  // Keeps its tag until the data came, which goes nowhere.
  tell(slot, Status(Code::kCancelled, "cancelled before all data came").with_peer(options_.peer).with_buffer(state));
}

bool Initiator::next_cancel_period() {
  bool punctual = true;
  for (const Slot& slot : slots_) {
    const bool waits = slot.state != State::kFree && slot.cancelled && slot.op == Operation::kWrite;
    if (waits && slot.cancel_period != cancel_period_) punctual = false;
  }
  ++cancel_period_;
  return punctual;
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
  for (Slot& slot : slots_) {
    if (slot.state == State::kFree) continue;
    if (slot.state != State::kEnded) tell(slot, lost(slot, why, &outlets[slot.stream]));
    free_slot(slot);
  }
}

}  // namespace hawser::backend::stream
