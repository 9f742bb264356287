#pragma once

// SlotTable: up to `limit` objects at addresses that never move, each named by an id that goes stale when it is erased.
// For transfers, regions, peers and whatever else a completion or a peer's message names by number.
//
// Thread rule: none of its own; the owner confines or locks it.
// Lifetime: a pointer from get() is good until its id is erased. Memory is kept until the table dies: it grows in
// segments, each twice the one before, so an idle table is small and growing never copies.

#include <array>
#include <bit>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <utility>

#include "base/check.h"

namespace hawser::base {

/// `generation` 0 names nothing. An index would have to be reused 2^32 times before a stale id could come alive.
struct SlotId {
  std::uint32_t index = 0;
  std::uint32_t generation = 0;

  constexpr bool is_null() const { return generation == 0; }
  constexpr std::uint64_t to_u64() const { return std::uint64_t{generation} << 32 | index; }
  static constexpr SlotId from_u64(std::uint64_t value) {
    return {static_cast<std::uint32_t>(value), static_cast<std::uint32_t>(value >> 32)};
  }
  friend constexpr auto operator<=>(const SlotId&, const SlotId&) = default;
};

template <typename T>
class SlotTable {
 public:
  struct Entry {
    SlotId id;
    T* value = nullptr;  ///< Null when the table is full.
    explicit operator bool() const { return value != nullptr; }
  };

  explicit SlotTable(std::uint32_t limit) : limit_(limit) {
    HAWSER_ASSERT(limit <= kLimitMax, "the limit of a slot table is too large");
  }
  ~SlotTable() { clear(); }
  SlotTable(const SlotTable&) = delete;
  SlotTable& operator=(const SlotTable&) = delete;

  template <typename... Args>
  Entry emplace(Args&&... args) {
    if (free_ == kNone && !add_slot()) return {};
    const std::uint32_t index = free_;
    Slot& slot = slot_at(index);
    T* value = ::new (static_cast<void*>(slot.storage)) T(std::forward<Args>(args)...);
    free_ = slot.next_free;
    slot.next_free = kLive;
    ++size_;
    return {{index, slot.generation}, value};
  }

  /// Null when stale, or when a peer made it up.
  T* get(SlotId id) {
    if (id.index >= slots_made_) return nullptr;
    Slot& slot = slot_at(id.index);
    return slot.next_free == kLive && slot.generation == id.generation ? slot.value() : nullptr;
  }
  const T* get(SlotId id) const { return const_cast<SlotTable*>(this)->get(id); }

  /// False when stale.
  bool erase(SlotId id) {
    T* value = get(id);
    if (value == nullptr) return false;
    Slot& slot = slot_at(id.index);
    // Stale before the destructor runs, reusable only after it: it may look into this table.
    slot.generation = slot.generation == UINT32_MAX ? 1 : slot.generation + 1;
    slot.next_free = kNone;
    --size_;
    std::destroy_at(value);
    slot.next_free = free_;
    free_ = id.index;
    return true;
  }

  /// Calls visit(SlotId, T&) in order of index. `visit` may erase any entry; one that it adds may be missed.
  template <typename Visit>
  void for_each(Visit&& visit) {
    for (std::uint32_t index = 0; index < slots_made_; ++index) {
      Slot& slot = slot_at(index);
      if (slot.next_free == kLive) visit(SlotId{index, slot.generation}, *slot.value());
    }
  }
  void clear() {
    for_each([this](SlotId id, T&) { erase(id); });
  }

  std::uint32_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  bool full() const { return size_ == limit_; }
  std::uint32_t limit() const { return limit_; }

 private:
  static constexpr std::uint32_t kNone = UINT32_MAX;
  static constexpr std::uint32_t kLive = UINT32_MAX - 1;
  static constexpr std::uint32_t kFirstCount = 16;
  static constexpr int kSegmentsMax = 26;  // 16 * (2^26 - 1) slots
  static constexpr std::uint32_t kLimitMax = kFirstCount * ((std::uint32_t{1} << kSegmentsMax) - 1);

  struct Slot {
    std::uint32_t generation = 1;
    std::uint32_t next_free = kNone;
    alignas(T) std::byte storage[sizeof(T)];
    T* value() { return std::launder(reinterpret_cast<T*>(storage)); }
  };

  // Segment s holds the indices from kFirstCount * (2^s - 1) on, so biased / kFirstCount has s as its highest bit.
  static int segment_of(std::uint32_t index) {
    return static_cast<int>(std::bit_width(index + kFirstCount)) - std::bit_width(kFirstCount);
  }
  Slot& slot_at(std::uint32_t index) {
    const int segment = segment_of(index);
    return segments_[static_cast<std::size_t>(segment)][index + kFirstCount - (kFirstCount << segment)];
  }
  bool add_slot() {
    if (slots_made_ == limit_) return false;
    const int segment = segment_of(slots_made_);
    auto& slots = segments_[static_cast<std::size_t>(segment)];
    if (slots == nullptr) slots.reset(new Slot[kFirstCount << segment]);
    free_ = slots_made_++;
    return true;
  }

  std::array<std::unique_ptr<Slot[]>, kSegmentsMax> segments_;
  const std::uint32_t limit_;
  std::uint32_t slots_made_ = 0;
  std::uint32_t free_ = kNone;
  std::uint32_t size_ = 0;
};

}  // namespace hawser::base

template <>
struct std::hash<hawser::base::SlotId> {
  std::size_t operator()(const hawser::base::SlotId& id) const noexcept {
    return static_cast<std::size_t>(id.to_u64() * 0x9e3779b97f4a7c15U);
  }
};
