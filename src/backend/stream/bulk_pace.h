#pragma once

// BulkPace: how much bulk the paths of a port move in one turn. Whatever comes meanwhile waits for the turn's end, so
// bulk moves in small steps where small operations are about, and in larger ones the longer there was none.
//
// Thread rule: one thread.

#include <chrono>
#include <cstdint>

#include <hawser/time.h>

namespace hawser::backend::stream {

/// What one turn of a port may still move.
struct Share {
  std::uint64_t left = 0;  ///< Bytes of bulk in all.
  std::uint64_t step = 0;  ///< Bytes of bulk in one call.
};

class BulkPace {
 public:
  /// A call of kSmallStep takes about 10 us. Of kMiddleStep: a turn of two takes about 100 us, with what the agent does
  /// with the bytes. A round trip that is longer than kSmallFor because of bulk comes back to small steps through it.
  static constexpr std::uint64_t kSmallStep = 16 * 1024;
  static constexpr std::uint64_t kMiddleStep = 64 * 1024;
  static constexpr Duration kSmallFor = std::chrono::microseconds(500);
  static constexpr Duration kMiddleFor = std::chrono::milliseconds(3);

  /// A small operation came or went.
  void note_small(Instant now) {
    small_until_ = now + kSmallFor;
    middle_until_ = now + kMiddleFor;
  }
  /// What the turn that begins now may move. `most`: bytes of one call where nothing small is about.
  Share share(Instant now, std::uint64_t most) const {
    const std::uint64_t step = now < small_until_ ? kSmallStep : now < middle_until_ ? kMiddleStep : most;
    return {.left = 2 * step, .step = step};
  }

 private:
  Instant small_until_ = Instant::min(), middle_until_ = Instant::min();
};

}  // namespace hawser::backend::stream
