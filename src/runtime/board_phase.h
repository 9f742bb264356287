#pragma once

// BoardPhase: one rank's part in what the ranks of a host do together on their boards: BoardCall in one turn of these,
// StagedCall in many.
//
// Thread rule: under the lane's lock. Lifetime: the board outlives it.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "runtime/board.h"

namespace hawser::runtime {

class BoardPhase {
 public:
  struct Buffers {
    const std::byte* input = nullptr;
    std::byte* output = nullptr;
    /// out[i] = first[i] op second[i]; see reduce::Combine. Empty where nothing is combined.
    std::function<void(void* out, const void* first, const void* second, std::size_t count)> combine;
  };
  enum class Step : std::uint8_t {
    kWaits,
    kMoved,  ///< It wrote something, or others may write where it has read: they may wait for that. Go on at once.
    kOver,
    kDiffers,  ///< `culprit` called something else,
    kBad,      ///< or wrote what no rank of this world can have written.
  };

  explicit BoardPhase(Board& board) : board_(board) {}
  BoardPhase(const BoardPhase&) = delete;
  BoardPhase& operator=(const BoardPhase&) = delete;
  virtual ~BoardPhase() = default;

  virtual Step go_on() = 0;
  /// Whether go_on would get further.
  virtual bool has_news() const = 0;
  /// Its first turn of the boards.
  virtual std::uint64_t turn() const = 0;
  virtual std::uint32_t culprit() const = 0;
  /// Ranks that have not written yet, or have to read first what they were written before.
  std::vector<std::uint32_t> awaited() const;
  /// One of them told last that it is on that core.
  bool awaits_one_on(int core) const;
  /// The lowest rank whose board can be read no more and is waited for.
  std::optional<std::uint32_t> out_of_sight() const;

 protected:
  /// Never of this rank.
  virtual bool is_awaited(std::uint32_t rank) const = 0;

  Board& board_;
};

}  // namespace hawser::runtime
