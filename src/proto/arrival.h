#pragma once

// The covered transfers of one peer, at their target: which chunks were seen, and whether the initiator said that all
// are sent. A transfer is complete exactly once, in whatever order chunks and the Arrive come and however often.
//
// Completed transfers are remembered, so that a late duplicate does nothing, until the initiator says that it is done
// with them (`retire`). To the initiator a covered transfer is finished once its Arrive was given to the link, or none
// will be. It holds submits back (kBusy) so that the covered transfers from its oldest unfinished one on, to this peer,
// are at most kArrivalsMax.
//
// Thread rule: one thread at a time.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "wire/session.h"

namespace hawser::proto {

/// Covered transfers that are not retired, per peer. The table may find out late: it never holds more than twice that.
inline constexpr std::size_t kArrivalsMax = 65536;
/// For transfers of more than 64 chunks, per peer: 67 million chunks at once.
inline constexpr std::size_t kArrivalBitmapBytesMax = 8u << 20;

enum class ArrivalState : std::uint8_t {
  kWaiting = 1,   ///< Noted; chunks or the Arrive are still to come.
  kComplete = 2,  ///< All is there now: notify and bump. Answered once per transfer.
  kIgnored = 3,   ///< A duplicate, or retired.
  kCorrupt = 4,   ///< The peer broke a bound or contradicts itself.
};

struct ArrivalResult {
  ArrivalState state = ArrivalState::kWaiting;
  std::uint64_t cookie = 0;  ///< kComplete: what on_arrive was given for this transfer.
};

class ArrivalTable {
 public:
  explicit ArrivalTable(std::size_t limit = kArrivalsMax, std::size_t bitmap_bytes_max = kArrivalBitmapBytesMax)
      : limit_(limit), bitmap_bytes_max_(bitmap_bytes_max) {}

  /// A covered chunk of the peer is visible.
  ArrivalResult on_chunk(std::uint64_t transfer, std::uint32_t index);
  /// The initiator said that `transfer` has `chunks` covered chunks (0: it is visible already). `cookie` names what the
  /// caller keeps for it (its notification); kIgnored and kCorrupt mean that it was not taken. One with 0 chunks may
  /// follow another, when not all chunks went over paths that tell of them: it completes what still waits, and the
  /// answer holds the cookie of the first.
  ArrivalResult on_arrive(std::uint64_t transfer, std::uint32_t chunks, std::uint64_t cookie);
  /// on_arrive with 0 chunks, of one whose initiator says in the same message that it is finished (its `oldest` is
  /// beyond it): mostly nothing was heard of it before, and nothing has to be kept. `retire` must follow.
  ArrivalResult on_whole(std::uint64_t transfer, std::uint64_t cookie);
  /// The transfer ended badly: nothing more is expected of it. The cookie of its Arrive, if that was still waiting.
  std::optional<std::uint64_t> cancel(std::uint64_t transfer);
  /// Every transfer below `oldest` is finished at the initiator: those without an Arrive will get none. Those that
  /// still wait for chunks go on waiting: these may come on another rail. Call it after on_arrive of the same message.
  void retire(std::uint64_t oldest) {
    if (oldest > oldest_) oldest_ = oldest;
  }
  /// The peer is gone: calls `drop(cookie)` for each Arrive still waiting for chunks, and forgets all.
  template <typename Drop>
  void clear(Drop drop) {
    for (const Record& record : records_) {
      if (record.transfer != 0 && record.arrived && !record.complete) drop(record.cookie);
    }
    forget_all();
  }

  std::uint64_t oldest() const { return oldest_; }
  std::size_t count() const { return count_; }  ///< Records held, retired ones included until they are swept.
  std::size_t bitmap_bytes() const { return bitmap_bytes_; }

 private:
  struct Record {
    std::uint64_t transfer = 0;  ///< 0: a free place.
    std::uint64_t cookie = 0;
    std::uint64_t bits = 0;                 ///< Chunks 0 to 63 seen,
    std::unique_ptr<std::uint64_t[]> more;  ///< and those from 64 on.
    std::uint32_t more_words = 0;
    std::uint32_t seen = 0;
    std::uint32_t end = 0;     ///< Highest index seen, plus 1.
    std::uint32_t chunks = 0;  ///< Once arrived.
    bool arrived = false;
    bool complete = false;
  };

  Record* find_or_add(std::uint64_t transfer);
  std::size_t place_of(std::uint64_t transfer) const;
  bool is_retired(const Record& record) const {
    return record.transfer < oldest_ && (record.complete || !record.arrived);
  }
  bool make_room();
  enum class Mark : std::uint8_t { kNew, kSeen, kNoRoom };
  Mark mark(Record& record, std::uint32_t index);
  bool grow_bitmap(Record& record, std::uint32_t word);
  void drop_bitmap(Record& record);
  ArrivalResult finish_if_all(Record& record);
  void forget_all();

  const std::size_t limit_;
  const std::size_t bitmap_bytes_max_;
  std::vector<Record> records_;  ///< Open addressing; its size is a power of two.
  std::size_t count_ = 0;
  std::size_t sweep_at_ = 0;  ///< Count at which retired records are swept out: sweeping costs O(1) per record.
  std::size_t bitmap_bytes_ = 0;
  std::uint64_t oldest_ = 0;
};

}  // namespace hawser::proto
