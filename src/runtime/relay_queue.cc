#include "runtime/relay_queue.h"

#include <algorithm>

#include "runtime/relay_window.h"

namespace hawser::runtime {
namespace {

/// Of one window: its pieces, and acknowledgements, of which there are fewer than pieces of the other direction.
constexpr std::uint64_t kFramesOfPair = 2 * kWindowPieces;

}  // namespace

bool RelayQueue::push_frame(RelayItem item, std::uint64_t copies) {
  const Pair pair{item.message.source, item.message.target};
  std::uint64_t& waiting = waiting_[pair];
  if (waiting >= kFramesOfPair * copies) return false;
  ++waiting;
  frames_.push_back(std::move(item));
  return true;
}

const RelayItem* RelayQueue::front() const {
  if (!words_.empty()) return &words_.front();
  return frames_.empty() ? nullptr : &frames_.front();
}

void RelayQueue::pop() {
  if (!words_.empty()) return words_.pop_front();
  const wire::RelayMessage& message = frames_.front().message;
  const auto its = waiting_.find({message.source, message.target});
  if (--its->second == 0) waiting_.erase(its);
  frames_.pop_front();
}

void RelayQueue::drop_frames() {
  frames_.clear();
  waiting_.clear();
}

std::uint64_t RelayQueue::bytes() const {
  std::uint64_t bytes = 0;
  const auto add = [&bytes](const RelayItem& item) { bytes += item.body == nullptr ? 0 : item.body->size(); };
  std::ranges::for_each(words_, add);
  std::ranges::for_each(frames_, add);
  return bytes;
}

}  // namespace hawser::runtime
