#include "backend/stream/chunk_reports.h"

#include "base/format.h"

namespace hawser::backend::stream {
namespace {

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
    case wire::Outcome::kTooManyBytes:  // ChunkReports::over_quota says it.
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

/// What a cancelled write left at the peer. This end knows only whether it sent some bytes, and filler for the others.
BufferState state_of_void(const ChunkSlot& slot) {
  return slot.voided && slot.has_begun ? BufferState::kPartlyWritten : BufferState::kUnknown;
}

}  // namespace

void ChunkReports::tell_malformed(const Chunk& chunk) {
  events_.chunk_done(path_, chunk.cookie,
                     Status(Code::kInvalid, "a chunk has 1 to 256 pieces that add up to at most 16 MiB")
                         .with_buffer(BufferState::kUntouched));
}

void ChunkReports::tell_unanswered(const ChunkSlot& slot) {
  events_.chunk_done_unsettled(path_, slot.cookie,
                               Status(Code::kCancelled, base::format("cancelled, and {} has not said whether its bytes "
                                                                     "landed; nothing is written to that region until "
                                                                     "it has",
                                                                     peer_))
                                   .with_peer(peer_)
                                   .with_buffer(BufferState::kUnknown));
}

Status ChunkReports::status_of(const ChunkSlot& slot) const {
  const bool write = slot.op == Operation::kWrite;
  const bool is_void = slot.outcome == wire::Outcome::kVoid || slot.outcome == wire::Outcome::kVoidedMidway;
  const BufferState state = write && is_void ? state_of_void(slot) : state_of(write, slot.outcome);
  if (slot.cancelled) {
    return Status(Code::kCancelled, "cancelled while on its way").with_peer(peer_).with_buffer(state);
  }
  if (slot.outcome == wire::Outcome::kOk) return Status();
  const bool is_over_quota =
      slot.outcome == wire::Outcome::kTooManyOperations || slot.outcome == wire::Outcome::kTooManyBytes;
  if (is_over_quota) return over_quota(slot);
  return Status(code_of(slot.outcome),
                base::format("{} refused to {} {} bytes {} its region #{}: {}", peer_, write ? "write" : "read",
                             slot.bytes, write ? "into" : "from", slot.target->bind.index, reason_of(slot.outcome)))
      .with_peer(peer_)
      .with_buffer(state);
}

Status ChunkReports::over_quota(const ChunkSlot& slot) const {
  const bool is_bytes = slot.outcome == wire::Outcome::kTooManyBytes;
  const std::string_view option = is_bytes ? "limits.peer_bytes" : "limits.peer_operations";
  const std::string_view variable = is_bytes ? "HAWSER_LIMITS_PEER_BYTES" : "HAWSER_LIMITS_PEER_OPERATIONS";
  const std::uint64_t value = is_bytes ? quotas_.bytes : quotas_.operations;
  return Status(code_of(slot.outcome),
                base::format("{} refused to {} {} bytes {} its region #{}: its {} = {} is in use by this peer", peer_,
                             slot.op == Operation::kWrite ? "write" : "read", slot.bytes,
                             slot.op == Operation::kWrite ? "into" : "from", slot.target->bind.index, option, value))
      .with_peer(peer_)
      .with_buffer(BufferState::kUntouched)
      .with_advice(base::format("wait until what is under way has ended, or raise {} ({}) there", option, variable));
}

Status ChunkReports::cancelled_unsent() const {
  return Status(Code::kCancelled, "cancelled before it was sent").with_peer(peer_).with_buffer(BufferState::kUntouched);
}

Status ChunkReports::cancelled_read(bool landed) const {
  return Status(Code::kCancelled, "cancelled before all data came")
      .with_peer(peer_)
      .with_buffer(landed ? BufferState::kPartlyWritten : BufferState::kUntouched);
}

Status ChunkReports::lost(const ChunkSlot& slot, const Status& why, const Outlet& outlet) const {
  BufferState state = BufferState::kUntouched;
  if (slot.op == Operation::kRead) {
    if (slot.landing != ChunkSlot::kNowhere) state = BufferState::kPartlyWritten;
  } else if (slot.state != ChunkSlot::State::kQueued && outlet.sent_end() > slot.begin) {
    state = BufferState::kUnknown;
  }
  const Code code = slot.cancelled ? Code::kCancelled : Code::kDisconnected;
  return Status(code, base::format("the path to {} ended during a {} of {} bytes", peer_,
                                   slot.op == Operation::kWrite ? "write" : "read", slot.bytes))
      .with_scope(why.scope())
      .with_peer(peer_)
      .with_buffer(state)
      .because(why);
}

}  // namespace hawser::backend::stream
