#pragma once

// ShmBinding: how a path reaches one region of its peer: mapped, or at an address for cross-memory attach.
//
// It begins by asking the peer over the socket; chunks that come before the answer wait in the path.
//
// Thread rule: confined to its path's lane. Lifetime: owned by the path until unbind.

#include <cstdint>

#include <hawser/memory.h>
#include <hawser/status.h>

#include "backend/backend.h"
#include "backend/shm/atomics.h"
#include "backend/shm/mapping.h"

namespace hawser::backend::shm {

/// The one byte that add_region puts into a card entry. An address is not told there: it would help attackers of other
/// hosts, and only who proved to be here can use it.
enum class CardKind : std::uint8_t {
  kNone = 0,     ///< Not served by shm.
  kArena = 1,    ///< Can be mapped.
  kForeign = 2,  ///< By cross-memory attach only.
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
  std::uint64_t address = 0;  ///< kForeign: where it begins there.
  Mapping mapping;
  base::Id128 key;
  std::uint32_t request = 0;
  Status status;  ///< kFailed: why.
};

constexpr Rights right_for(Operation op) { return op == Operation::kWrite ? Rights::kWrite : Rights::kRead; }

/// Whether all pieces lie in the region and the operation is allowed. Planned chunks always do; a wrong plan or card
/// must not become a wild store.
inline bool admits(const ShmBinding& target, const Chunk& chunk) {
  if (!allows(target.rights, right_for(chunk.op))) return false;
  for (const Piece& piece : chunk.pieces) {
    if (!in_bounds(piece.remote, piece.size, target.size)) [[unlikely]]
      return false;
  }
  return true;
}

}  // namespace hawser::backend::shm
