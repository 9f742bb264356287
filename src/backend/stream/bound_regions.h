#pragma once

// BoundRegions: the regions of this end that the peer has bound on one path, and whether a chunk may reach what it
// names in one.
//
// Thread rule: one thread. Memory: a peer may have kBindingsFree bindings, and twice as many as there are open regions.
// A peer that names regions which are not there makes this side remember nothing.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <unordered_map>
#include <vector>

#include "backend/backend.h"
#include "backend/peer_guard.h"
#include "backend/stream/file_desk.h"
#include "wire/stream_frames.h"

namespace hawser::backend::stream {

/// Bindings that one peer may have: so many, and twice as many as there are open regions. An honest one has as many as
/// regions, and for a moment the last one's, too, where an index is used again.
inline constexpr std::size_t kBindingsFree = 64;

struct BoundRegion {
  std::uint32_t index = 0, generation = 0;
  std::byte* base = nullptr;
  std::uint64_t size = 0;
  Rights rights = Rights::kNone;
  std::shared_ptr<fileio::File> file;  ///< `base` is null then.
  std::uint64_t file_offset = 0;       ///< Where the region begins in it.
  std::shared_ptr<SingleUse> once;     ///< A grant for one transfer keeps here whether it was used.
  bool valid = false;
  std::uint8_t announced = 0;  ///< Streams on which it was bound and not unbound.
};

class BoundRegions {
 public:
  /// Without `files` the peer reaches no regions in files. All outlive it.
  BoundRegions(RegionTable& regions, FileDesk* files, const PeerAccount& account)
      : regions_(regions), files_(files), account_(account) {}

  // Frames that came on `stream`. False: malformed, or beyond what a peer may have.
  bool on_bind(unsigned stream, std::span<const std::byte> meta);
  bool on_unbind(unsigned stream, std::span<const std::byte> meta);

  struct Resolved {
    wire::Outcome outcome = wire::Outcome::kOk;
    const BoundRegion* region = nullptr;  ///< With kOk; good until the next frame.
  };
  /// kOk: the chunk has that right to all of `pieces`. Then `out` has their places, or, in a file, their offsets.
  Resolved resolve(const wire::ChunkHead& chunk, Rights right, std::span<const wire::RemotePiece> pieces,
                   std::vector<Piece>& out) const;
  bool is_open(std::uint32_t index, std::uint32_t generation) const { return regions_.is_open(index, generation); }
  std::size_t count() const { return bindings_.size(); }
  void clear() { bindings_.clear(); }

 private:
  bool has_room();

  RegionTable& regions_;
  FileDesk* const files_;
  const PeerAccount& account_;
  std::unordered_map<std::uint32_t, BoundRegion> bindings_;
};

}  // namespace hawser::backend::stream
