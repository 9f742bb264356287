#pragma once

// ClosedWorlds: the last worlds that a rank has closed. What still comes for them is dropped.
//
// Thread rule: one thread at a time. Memory: bounded by the number given.

#include <cstddef>
#include <cstdint>
#include <deque>
#include <unordered_set>

namespace hawser::runtime {

class ClosedWorlds {
 public:
  explicit ClosedWorlds(std::size_t kept) : kept_(kept) {}

  bool contains(std::uint64_t world) const { return closed_.contains(world); }
  /// The one that was closed first goes where there are too many.
  void add(std::uint64_t world) {
    if (closed_.insert(world).second) order_.push_back(world);
    if (order_.size() <= kept_) return;
    closed_.erase(order_.front());
    order_.pop_front();
  }

 private:
  const std::size_t kept_;
  std::unordered_set<std::uint64_t> closed_;
  std::deque<std::uint64_t> order_;
};

}  // namespace hawser::runtime
