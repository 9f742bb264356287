#pragma once

// Ring: a queue that grows by doubling up to a limit that its owner checks, and never gives memory back while it lives.
//
// Thread rule: one thread. Lifetime: references die with the next push.

#include <bit>
#include <cstddef>
#include <utility>
#include <vector>

#include "base/check.h"

namespace hawser::backend::stream {

template <typename T>
class Ring {
 public:
  bool empty() const { return count_ == 0; }
  std::size_t count() const { return count_; }
  T& front() { return (*this)[0]; }
  T& back() { return (*this)[count_ - 1]; }
  const T& back() const { return (*this)[count_ - 1]; }
  T& operator[](std::size_t index) { return items_[(first_ + index) & (items_.size() - 1)]; }
  const T& operator[](std::size_t index) const { return items_[(first_ + index) & (items_.size() - 1)]; }

  T& push(T item) {
    if (count_ == items_.size()) grow();
    T& slot = (*this)[count_++];
    slot = std::move(item);
    return slot;
  }
  /// A new one at the end, to be filled where it lies: as T() makes it.
  T& add() {
    if (count_ == items_.size()) grow();
    return (*this)[count_++];
  }
  T pop() {
    HAWSER_ASSERT(count_ > 0, "pop from an empty ring");
    T item = std::exchange(items_[first_], T());
    step();
    return item;
  }
  /// Ends the first one where it lies.
  void drop() {
    HAWSER_ASSERT(count_ > 0, "drop from an empty ring");
    items_[first_] = T();
    step();
  }
  void clear() {
    while (!empty()) static_cast<void>(pop());
  }
  /// Keeps, in order, what `keep` approves of.
  template <typename Keep>
  void filter(Keep&& keep) {
    for (std::size_t left = count_; left > 0; --left) {
      T item = pop();
      if (keep(item)) push(std::move(item));
    }
  }

 private:
  void step() {
    first_ = (first_ + 1) & (items_.size() - 1);
    --count_;
  }
  void grow() {
    std::vector<T> larger(items_.empty() ? kFirst : items_.size() * 2);
    for (std::size_t i = 0; i < count_; ++i) larger[i] = std::move((*this)[i]);
    items_ = std::move(larger);
    first_ = 0;
  }

  static constexpr std::size_t kFirst = 8;
  std::vector<T> items_;  ///< A power of two of them, or none.
  std::size_t first_ = 0;
  std::size_t count_ = 0;
};

}  // namespace hawser::backend::stream
