#pragma once

// RelayQueue: what waits at a rank for the credit of one neighbour. Words about the world go before frames.
//
// Bound: a rank has no more pieces under way to another than its window (see RelayWindow), and sends them once more for
// each change of the ways. So a queue holds `copies` windows of each pair of ranks at most; what goes beyond comes from
// a defective rank and is dropped. A queue never makes its filler wait.
//
// Thread rule: one thread at a time.

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "wire/relay.h"

namespace hawser::runtime {

/// A message whose body is kept here.
struct RelayItem {
  wire::RelayMessage message;
  std::shared_ptr<const std::string> body;  ///< Null: it has none.
};

class RelayQueue {
 public:
  void push_word(RelayItem item) { words_.push_back(std::move(item)); }
  /// False: dropped. `copies`: how many windows of one pair of ranks may wait here.
  bool push_frame(RelayItem item, std::uint64_t copies);
  /// Null: nothing waits. It holds until pop.
  const RelayItem* front() const;
  void pop();
  /// Frames go nowhere from here.
  void drop_frames();
  std::size_t size() const { return words_.size() + frames_.size(); }
  /// Of bodies. A body that waits in several queues counts in each.
  std::uint64_t bytes() const;

 private:
  using Pair = std::pair<std::uint32_t, std::uint32_t>;  ///< Source and target.
  std::deque<RelayItem> words_, frames_;
  std::map<Pair, std::uint64_t> waiting_;  ///< Frames of each pair.
};

}  // namespace hawser::runtime
