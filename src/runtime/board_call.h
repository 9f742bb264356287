#pragma once

// BoardCall: one rank's part in a collective that goes by boards. It writes this rank's input and the digest of the
// call once the slot is free, and waits until all ranks have done so. Then it takes the result from what all wrote, in
// the order of ranks: so all ranks have the same bits.
//
// Every rank waits for every other one, also where it needs nothing of it (the root of a broadcast): so each finds out
// whether the ranks called the same.
//
// Thread rule: under the lane's lock.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include <hawser/status.h>

#include "runtime/board.h"
#include "schedule/collective.h"

namespace hawser::runtime {

class BoardCall {
 public:
  struct Buffers {
    const std::byte* input = nullptr;
    std::byte* output = nullptr;
    /// out[i] = first[i] op second[i]; see reduce::Combine. Empty where nothing is combined.
    std::function<void(void* out, const void* first, const void* second, std::size_t count)> combine;
  };
  enum class Step : std::uint8_t {
    kWaits,
    kWrote,  ///< For the first time: the others may wait for it. Go on at once.
    kOver,
    kDiffers,  ///< `culprit` called something else,
    kBad,      ///< or wrote what no rank of this world can have written.
  };

  /// `board` and `call` outlive it. The buffers are the caller's until it is over.
  BoardCall(Board& board, const schedule::Call& call, Buffers buffers, std::uint64_t turn, std::uint64_t number,
            std::uint64_t digest);
  BoardCall(Board& board, schedule::Call&& call, Buffers buffers, std::uint64_t turn, std::uint64_t number,
            std::uint64_t digest) = delete;

  Step go_on();
  /// Whether go_on would get further.
  bool has_news() const;
  std::uint64_t turn() const { return turn_; }
  std::uint32_t culprit() const { return seen_; }
  /// Ranks that have not written yet, or have to read first what they were written before.
  std::vector<std::uint32_t> awaited() const;
  /// One of them told last that it is on that core.
  bool awaits_one_on(int core) const;
  /// The lowest rank whose board can be read no more and is waited for.
  std::optional<std::uint32_t> out_of_sight() const;

 private:
  bool is_awaited(std::uint32_t rank) const;
  std::span<const std::byte> own_bytes() const;
  bool take_result();
  void combine(std::uint64_t at, std::uint64_t count);

  Board& board_;
  const schedule::Call& call_;
  const Buffers buffers_;
  const std::uint64_t turn_, number_, digest_;
  bool has_written_ = false;
  std::uint32_t seen_ = 0;                               ///< All ranks before it have written.
  const std::span<std::span<const std::byte>> written_;  ///< By rank. The board's.
};

}  // namespace hawser::runtime
