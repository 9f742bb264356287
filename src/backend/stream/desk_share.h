#pragma once

// DeskShare: the part of one path in the FileDesk: the memory that its chunks on files hold there, and the jobs that it
// hands over. A peer's paths together hold kStagedPerPeer at most.
//
// Thread rule: one thread. Lifetime: desk and account outlive it.

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "backend/peer_guard.h"
#include "backend/stream/bound_regions.h"
#include "backend/stream/file_desk.h"

namespace hawser::backend::stream {

class DeskShare {
 public:
  /// Jobs end at `target`, which reports on `path`. `desk` may be null: then no region in a file is ever bound.
  DeskShare(FileDesk* desk, Target* target, Path* path, PeerAccount& account)
      : desk_(desk), target_(target), path_(path), account_(account) {}

  /// Nothing when the peer holds its share, or the desk has no more.
  Staged stage(std::uint64_t bytes);
  void unstage(Staged& staged);
  /// Bytes that this path holds.
  std::uint64_t held() const { return held_; }

  /// A job on a region's file, without memory and pieces.
  FileJob job(Operation op, const BoundRegion& region, const wire::ChunkHead& chunk, std::uint64_t bytes) const;
  void start(FileJob job);
  /// Nothing is told to the target any more.
  void abandon();
  /// What this path still holds is not on its account any more: jobs give it back to the desk when they end.
  void forget_held();

  /// Gives each piece its part of the staged bytes, in order.
  static void place(std::span<Piece> pieces, std::byte* at);

 private:
  FileDesk* const desk_;
  Target* const target_;
  Path* const path_;
  PeerAccount& account_;
  std::uint64_t held_ = 0;
};

}  // namespace hawser::backend::stream
