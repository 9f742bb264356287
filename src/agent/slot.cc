#include "agent/slot.h"

namespace hawser::agent {

void Slot::forget_extras() {
  if (!std::exchange(has_extras, false)) return;
  queue.reset();
  signal.region.reset();
  after = done_word = LocalWord();
  if (leader != nullptr) pool->unfollow(*this);
}

Slot* SlotPool::take() {
  lock_.lock();
  if (free_.empty() && made_ < limit_) {
    if (segments_.capacity() == 0) segments_.reserve(limit_ / kSegment + 1);
    segments_.push_back(std::make_unique<Slot[]>(kSegment));
    free_.reserve(segments_.size() * kSegment);
    const std::uint32_t count = std::min(kSegment, limit_ - made_);
    for (std::uint32_t i = count; i > 0; --i) free_.push_back(made_ + i - 1);
    made_ += count;
  }
  if (free_.empty()) {
    lock_.unlock();
    return nullptr;
  }
  const std::uint32_t index = free_.back();
  free_.pop_back();
  ++handles_;
  Slot* slot = at(index);
  slot->handle_held = true;
  in_use_.store(in_use_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  lock_.unlock();
  slot->pool = this;
  slot->index = index;
  slot->cancel_asked.store(false, std::memory_order_relaxed);
  slot->bytes_done.store(0, std::memory_order_relaxed);
  slot->phase.store(Phase::kInFlight, std::memory_order_relaxed);
  return slot;
}

void SlotPool::recycle(Slot* slot) {
  slot->status = Status();
  slot->phase.store(Phase::kFree, std::memory_order_relaxed);
  free_.push_back(slot->index);
  in_use_.store(in_use_.load(std::memory_order_relaxed) - 1, std::memory_order_relaxed);
}

void SlotPool::recycle_if_unused(Slot* slot) {
  const bool final = slot->phase.load(std::memory_order_relaxed) == Phase::kFinal;
  if (final && !slot->handle_held && slot->followers_in == 0) recycle(slot);
}

void SlotPool::follow(Slot& follower, Slot& leader) {
  lock_.lock();
  ++leader.followers_in;
  lock_.unlock();
  follower.leader = &leader;
}

void SlotPool::unfollow(Slot& follower) {
  Slot* const leader = std::exchange(follower.leader, nullptr);
  lock_.lock();
  --leader->followers_in;
  recycle_if_unused(leader);
  lock_.unlock();
}

void SlotPool::finished(Slot* slot) {
  lock_.lock();
  // The phase is published under the lock, so that a handle dropped at this moment is seen by exactly one of both.
  slot->phase.store(Phase::kFinal, std::memory_order_release);
  recycle_if_unused(slot);
  lock_.unlock();
}

void SlotPool::drop_handle(Slot* slot) {
  lock_.lock();
  slot->handle_held = false;
  --handles_;
  recycle_if_unused(slot);
  const bool last = orphaned_ && handles_ == 0;
  lock_.unlock();
  if (last) delete this;
}

void SlotPool::orphan() {
  lock_.lock();
  orphaned_ = true;
  const bool last = handles_ == 0;
  lock_.unlock();
  if (last) delete this;
}

}  // namespace hawser::agent
