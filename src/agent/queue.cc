#include "agent/queue.h"

#include <algorithm>
#include <utility>

#include "agent/core.h"

namespace hawser::agent {

Result<std::shared_ptr<QueueCore>> QueueCore::make(std::weak_ptr<Core> core, std::size_t capacity) {
  constexpr std::size_t kCapacityMax = 1u << 20;
  if (capacity == 0 || capacity > kCapacityMax) {
    return Status(Code::kInvalid,
                  "make_queue: capacity " + std::to_string(capacity) + " is not in 1.." + std::to_string(kCapacityMax));
  }
  Result<base::EventFd> event = base::EventFd::open();
  if (!event) return event.error();
  return std::shared_ptr<QueueCore>(new QueueCore(std::move(core), capacity, std::move(*event)));
}

bool QueueCore::reserve() {
  lock_.lock();
  const bool room = reserved_ < capacity_;
  if (room) ++reserved_;
  if (!room) refused_ = true;
  lock_.unlock();
  return room;
}

void QueueCore::unreserve() {
  lock_.lock();
  --reserved_;
  const bool is_owed = std::exchange(refused_, false);
  if (is_owed) put_hint({CompletionKind::kRoom, 0});
  lock_.unlock();
  if (is_owed) tell_of_room();
}

void QueueCore::tell_of_room() {
  const std::shared_ptr<Core> its = core_.lock();
  if (its == nullptr) return;
  its->lane.wake();
  its->lane.news();
}

void QueueCore::put(Completion completion) {
  ring_[(head_ + count_) % ring_.size()] = std::move(completion);
  ++count_;
  waiting_.store(count_, std::memory_order_release);
  if (count_ == 1 && event_wanted_) event_.signal();
}

void QueueCore::put_hint(const Hint& hint) {
  if (std::ranges::find(hints_, hint) != hints_.end()) return;
  if (hints_.size() == kHints) {
    later_.insert(hint);
    return;
  }
  hints_.push_back(hint);
  put({.kind = hint.first, .cookie = hint.second, .bytes = 0, .status = {}});
}

void QueueCore::push(Completion completion) {
  lock_.lock();
  put(std::move(completion));
  lock_.unlock();
}

void QueueCore::hint(CompletionKind kind, std::uint64_t cookie) {
  lock_.lock();
  put_hint({kind, cookie});
  lock_.unlock();
}

std::size_t QueueCore::poll(std::span<Completion> out) {
  if (out.empty() || empty() || is_forked()) return 0;
  lock_.lock();
  std::size_t taken = 0;
  std::size_t freed = 0;
  while (taken < out.size() && count_ > 0) {
    Completion& entry = ring_[head_];
    const bool is_hint = entry.kind != CompletionKind::kTransfer;
    if (is_hint) {
      std::erase(hints_, Hint(entry.kind, entry.cookie));
    } else {
      ++freed;
    }
    out[taken++] = std::move(entry);
    entry = Completion{};
    head_ = (head_ + 1) % ring_.size();
    --count_;
    if (is_hint && !later_.empty()) put_hint(later_.extract(later_.begin()).value());
  }
  reserved_ -= freed;
  waiting_.store(count_, std::memory_order_release);
  if (count_ == 0 && event_wanted_) event_.drain();
  const bool is_owed = freed > 0 && std::exchange(refused_, false);
  if (is_owed) put_hint({CompletionKind::kRoom, 0});
  lock_.unlock();
  if (is_owed) tell_of_room();
  return taken;
}

int QueueCore::event_fd() {
  if (is_forked()) return -1;
  lock_.lock();
  if (!std::exchange(event_wanted_, true) && count_ > 0) event_.signal();
  lock_.unlock();
  return event_.fd();
}

}  // namespace hawser::agent
