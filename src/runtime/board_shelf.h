#pragma once

// BoardShelf: the memory of the boards of all worlds of one rank. A region costs descriptors, at its owner and while it
// is mapped, and a rank may be in a thousand worlds; so boards lie together in a few regions, and the place of one that
// is no longer used goes to the next world.
//
// Who still looks at the board of a world before sees other words there: see Board.
//
// Thread rule: thread-safe. Lifetime: places may outlive the shelf. Memory: regions of 4, 8, 16, 32 and then 64 boards,
// kept until the shelf and all places are gone.

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include <hawser/status.h>

#include "base/mutex.h"

namespace hawser::runtime {

class BoardShelf {
 public:
  struct Memory {
    std::span<std::byte> bytes;
    std::shared_ptr<const void> owner;
  };
  /// Makes a region of at least so many bytes, all 0, that ranks of this host may map to read.
  using Allocate = std::function<Result<Memory>(std::size_t bytes)>;

  explicit BoardShelf(Allocate allocate) : allocate_(std::move(allocate)) {}

  /// kBoardBytes for a Board, as good as new, for as long as the owner is held. Errors: those of Allocate.
  Result<Memory> take();
  /// Of all its regions.
  std::uint64_t bytes() const;

 private:
  struct Plank {
    Memory memory;
    std::vector<std::size_t> free;  ///< Places.
    std::vector<bool> was_used;
  };
  struct Planks {
    base::Mutex mutex;
    std::deque<Plank> all HAWSER_GUARDED_BY(mutex);
  };

  static Memory take_from(const std::shared_ptr<Planks>& planks);

  const Allocate allocate_;
  const std::shared_ptr<Planks> planks_ = std::make_shared<Planks>();
};

}  // namespace hawser::runtime
