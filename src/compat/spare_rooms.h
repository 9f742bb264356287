#pragma once

// SpareRooms: memory of lists of rows that are gone, for lists to come.
//
// Room is never waited for: it is only spare, and in a forked child nobody may be left to unlock it.
//
// Thread rule: thread-safe. Bound: kRoomsMax rooms of kBlocksMax rows (6 MiB) each.

#include <cstddef>
#include <mutex>
#include <utility>
#include <vector>

#include <hawser/export.h>

#include "plan/row_table.h"

HAWSER_NAMESPACE_BEGIN
namespace compat {

class SpareRooms {
 public:
  static constexpr std::size_t kBlocksMax = std::size_t{1} << 18;
  static constexpr std::size_t kRoomsMax = 4;

  /// Empty where there is none.
  std::vector<plan::RowBlock> take() {
    const std::unique_lock lock(mutex_, std::try_to_lock);
    if (!lock || rooms_.empty()) return {};
    std::vector<plan::RowBlock> room = std::move(rooms_.back());
    rooms_.pop_back();
    return room;
  }
  void keep(std::vector<plan::RowBlock> room) {
    if (room.capacity() == 0 || room.capacity() > kBlocksMax) return;
    const std::unique_lock lock(mutex_, std::try_to_lock);
    if (lock && rooms_.size() < kRoomsMax) rooms_.push_back(std::move(room));
  }

 private:
  std::mutex mutex_;
  std::vector<std::vector<plan::RowBlock>> rooms_;
};

}  // namespace compat
HAWSER_NAMESPACE_END
