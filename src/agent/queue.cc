#include "agent/queue.h"

#include "agent/core.h"

namespace hawser::agent {

Result<std::shared_ptr<QueueCore>> QueueCore::make(std::weak_ptr<Core> core, std::size_t capacity) {
  constexpr std::size_t kCapacityMax = 1u << 20;
  if (capacity == 0 || capacity > kCapacityMax) {
    return Status(Code::kInvalid, "make_queue: capacity " + std::to_string(capacity) + " is not in 1.." +
                                      std::to_string(kCapacityMax));
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
  lock_.lock();
  bool wanted = hints_ < kHints;
  for (std::size_t i = 0; wanted && i < count_; ++i) {
    const Completion& entry = ring_[(head_ + i) % ring_.size()];
    wanted = entry.kind == CompletionKind::kTransfer || entry.kind != kind || entry.cookie != cookie;
  }
  if (wanted) {
    ++hints_;
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
      --hints_;
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
