#pragma once

// ChunkReports: tells the lane how each chunk ended, and writes the error where one did not end well: what the peer
// refused and why, what was cancelled, what the path took with it, and what the bytes at the side that was written to
// are now.
//
// Thread rule: one thread.

#include <string>

#include "backend/backend.h"
#include "backend/stream/chunk_slots.h"
#include "backend/stream/events.h"
#include "backend/stream/outlet.h"
#include "wire/stream_frames.h"

namespace hawser::backend::stream {

class ChunkReports {
 public:
  /// `peer` is a name, for errors.
  ChunkReports(EventQueue& events, Path* path, std::string peer)
      : events_(events), path_(path), peer_(std::move(peer)) {}

  void tell(const ChunkSlot& slot, Status status) { events_.chunk_done(path_, slot.cookie, std::move(status)); }
  /// The chunk is not one: it was never taken.
  void tell_malformed(const Chunk& chunk);
  /// A cancelled write ends although the peer has not said whether it landed.
  void tell_unanswered(const ChunkSlot& slot);

  /// By the slot's outcome, or cancelled with what that outcome left.
  Status status_of(const ChunkSlot& slot) const;
  /// Cancelled, and the peer has seen nothing of it.
  Status cancelled_unsent() const;
  /// A read was cancelled; `landed`: some of its data is in place.
  Status cancelled_read(bool landed) const;
  /// The path ended. `outlet` is the chunk's stream.
  Status lost(const ChunkSlot& slot, const Status& why, const Outlet& outlet) const;

  /// The peer's, as it told them: for errors.
  void note_quotas(const wire::Quotas& quotas) { quotas_ = quotas; }

 private:
  Status over_quota(const ChunkSlot& slot) const;

  EventQueue& events_;
  Path* path_;
  const std::string peer_;
  wire::Quotas quotas_;
};

}  // namespace hawser::backend::stream
