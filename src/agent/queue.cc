#include "agent/queue.h"

#include <algorithm>

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
  lock_.unlock();
}

void QueueCore::put(Completion completion) {
  ring_[(head_ + count_) % ring_.size()] = std::move(completion);
  ++count_;
  waiting_.store(count_, std::memory_order_release);
}

void QueueCore::push(Completion completion) {
  lock_.lock();
  put(std::move(completion));
  lock_.unlock();
  if (event_wanted_.load(std::memory_order_acquire)) event_.signal();
}

void QueueCore::hint(CompletionKind kind, std::uint64_t cookie) {
  const std::pair<CompletionKind, std::uint64_t> news(kind, cookie);
  lock_.lock();
  const bool wanted = hints_.size() < kHints && std::find(hints_.begin(), hints_.end(), news) == hints_.end();
  if (wanted) {
    hints_.push_back(news);
    put({.kind = kind, .cookie = cookie, .bytes = 0, .status = {}});
  }
  lock_.unlock();
  if (wanted && event_wanted_.load(std::memory_order_acquire)) event_.signal();
}

std::size_t QueueCore::poll(std::span<Completion> out) {
  if (out.empty() || empty()) return 0;
  lock_.lock();
  std::size_t taken = 0;
  std::size_t freed = 0;
  while (taken < out.size() && count_ > 0) {
    Completion& entry = ring_[head_];
    if (entry.kind == CompletionKind::kTransfer) {
      ++freed;
    } else {
      std::erase(hints_, std::pair(entry.kind, entry.cookie));
    }
    out[taken++] = std::move(entry);
    entry = Completion{};
    head_ = (head_ + 1) % ring_.size();
    --count_;
  }
  reserved_ -= freed;
  const bool owed = refused_ && freed > 0;
  if (owed) refused_ = false;
  waiting_.store(count_, std::memory_order_release);
  if (count_ == 0 && event_wanted_.load(std::memory_order_relaxed)) event_.drain();
  lock_.unlock();
  if (owed) hint(CompletionKind::kRoom, 0);
  return taken;
}

int QueueCore::event_fd() {
  if (!event_wanted_.exchange(true, std::memory_order_acq_rel) && !empty()) event_.signal();
  return event_.fd();
}

}  // namespace hawser::agent
