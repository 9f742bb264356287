#include "runtime/board_shelf.h"

#include <algorithm>
#include <utility>

#include "base/try.h"
#include "runtime/board.h"

namespace hawser::runtime {
namespace {

constexpr std::size_t kFirstPlank = 4, kLargestPlank = 64;  ///< Boards.

}  // namespace

/// Without bytes: no place is free.
BoardShelf::Memory BoardShelf::take_from(const std::shared_ptr<Planks>& planks) {
  const base::MutexLock lock(planks->mutex);
  const auto found = std::ranges::find_if(planks->all, [](const Plank& plank) { return !plank.free.empty(); });
  if (found == planks->all.end()) return {};
  const std::size_t place = found->free.back();
  found->free.pop_back();
  const std::span<std::byte> bytes = found->memory.bytes.subspan(place * kBoardBytes, kBoardBytes);
  if (found->was_used[place]) Board::wipe(bytes);
  found->was_used[place] = true;
  const auto give_back = [planks, which = found - planks->all.begin(), place](const void*) {
    const base::MutexLock again(planks->mutex);
    planks->all[static_cast<std::size_t>(which)].free.push_back(place);
  };
  return {.bytes = bytes, .owner = std::shared_ptr<const void>(bytes.data(), give_back)};
}

Result<BoardShelf::Memory> BoardShelf::take() {
  for (;;) {
    if (Memory there = take_from(planks_); !there.bytes.empty()) return there;
    std::size_t count = kFirstPlank;
    {
      const base::MutexLock lock(planks_->mutex);
      for (std::size_t i = 0; i < planks_->all.size() && count < kLargestPlank; ++i) count *= 2;
    }
    HAWSER_TRY_ASSIGN(Memory memory, allocate_(count * kBoardBytes));  // Not under the lock: it may take others.
    Plank plank{.memory = std::move(memory), .free = {}, .was_used = std::vector<bool>(count)};
    for (std::size_t place = count; place-- > 0;) plank.free.push_back(place);
    const base::MutexLock lock(planks_->mutex);
    planks_->all.push_back(std::move(plank));
  }
}

std::uint64_t BoardShelf::bytes() const {
  const base::MutexLock lock(planks_->mutex);
  std::uint64_t bytes = 0;
  for (const Plank& plank : planks_->all) bytes += plank.memory.bytes.size();
  return bytes;
}

}  // namespace hawser::runtime
