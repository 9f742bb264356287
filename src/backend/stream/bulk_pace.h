#pragma once

// BulkPace: how much bulk the paths of a port move in one turn. Whatever comes meanwhile waits for the turn's end, so
// bulk moves in small steps where small operations come beside it, and in larger ones the longer there was none. A
// small operation that comes when no bulk is under way, such as the barrier before a large collective, changes nothing.
//
// Thread rule: one thread.

#include <algorithm>
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
  /// Bulk that was under way so long ago is over.
  static constexpr Duration kBesideFor = std::chrono::milliseconds(1);
  /// Small steps are for kManySmall operations, of which one is forgotten in each kForgetOne. Fewer have middle ones.
  static constexpr std::int64_t kManySmall = 4;
  static constexpr Duration kForgetOne = std::chrono::microseconds(100);

  /// Bulk is under way in the turn that begins now.
  void note_bulk(Instant now) { bulk_until_ = now + kBesideFor; }
  /// A small operation came or went.
  void note_small(Instant now) {
    if (now >= bulk_until_) return;
    counted_until_ = std::max(counted_until_, now) + kForgetOne;
    const bool are_many = counted_until_ - now > (kManySmall - 1) * kForgetOne;
    if (are_many) small_until_ = now + kSmallFor;
    middle_until_ = now + kMiddleFor;
    counted_until_ = std::min(counted_until_, now + kManySmall * kForgetOne);
  }
  /// What the turn that begins now may move. `most`: bytes of one call where nothing small is about.
  Share share(Instant now, std::uint64_t most) const {
    const std::uint64_t step = now < small_until_ ? kSmallStep : now < middle_until_ ? kMiddleStep : most;
    return {.left = 2 * step, .step = step};
  }

 private:
  Instant small_until_ = Instant::min(), middle_until_ = Instant::min(), bulk_until_ = Instant::min();
  Instant counted_until_ = Instant::min();  ///< When the last small operation is forgotten.
};

}  // namespace hawser::backend::stream
