#pragma once

// ShmBinding: how a path reaches one region of its peer: mapped, or at an address for cross-memory attach.
//
// It begins by asking the peer over the socket; chunks that come before the answer wait in the path.
//
// Thread rule: confined to its path's lane. Lifetime: owned by the path until unbind.

#include <algorithm>
#include <cstdint>
#include <memory>

#include <hawser/memory.h>
#include <hawser/status.h>

#include "backend/backend.h"
#include "backend/chunk_copy.h"
#include "backend/shm/atomics.h"
#include "backend/shm/first_touch.h"
#include "backend/shm/mapping.h"

namespace hawser::backend::shm {

/// The one byte that add_region puts into a card entry. An address is not told there: it would help attackers of other
/// hosts, and only who proved to be here can use it.
enum class CardKind : std::uint8_t {
  kNone = 0,     ///< Not served by shm.
  kArena = 1,    ///< Can be mapped.
  kForeign = 2,  ///< By cross-memory attach only.
  kAdopted = 3,  ///< Can be mapped but for its ends, which go by cross-memory attach.
};

class ShmBinding final : public Binding {
 public:
  enum class State : std::uint8_t { kAsking, kMapped, kForeign, kFailed };

  State state = State::kAsking;
  Rights rights = Rights::kNone;
  std::uint32_t index = 0;
  std::uint32_t generation = 0;
  std::byte* base = nullptr;  ///< kMapped: where the region begins here.
  std::uint64_t size = 0;     ///< Bytes of the region.
  const Atomics::GateWord* gate = nullptr;
  std::uint64_t address = 0;         ///< Where it begins there: kForeign, and for the ends.
  std::uint64_t head = 0;            ///< kMapped: bytes at the beginning that are not in the mapping,
  std::uint64_t tail = 0;            ///< and at the end. What is mapped in their place nobody reads.
  std::shared_ptr<Mapping> mapping;  ///< kMapped: of the file that it lies in, shared with others that do.
  mutable FirstTouch first_touch;    ///< kMapped.
  base::Id128 key;
  std::uint32_t request = 0;
  Status status;  ///< kFailed: why.
};

/// Whether an admitted chunk reaches into bytes that are not mapped.
inline bool meets_ends(const ShmBinding& target, const Chunk& chunk) {
  if ((target.head | target.tail) == 0) [[likely]]
    return false;
  return std::ranges::any_of(chunk.pieces, [&](const Piece& piece) {
    return piece.size != 0 && (piece.remote < target.head || piece.remote + piece.size > target.size - target.tail);
  });
}

inline bool admits(const ShmBinding& target, const Chunk& chunk) {
  return backend::admits(target.size, target.rights, chunk);
}

}  // namespace hawser::backend::shm
