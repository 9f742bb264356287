#include "rdma/posted_ops.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <optional>
#include <span>
#include <string>

#include "agent/inner.h"

HAWSER_NAMESPACE_BEGIN
namespace rdma {
namespace {

constexpr std::size_t kCompletionsPerRound = 256;
constexpr std::size_t kWatchedPerRound = 256;

Status unposted(Code code, std::string text) {
  return Status(code, std::move(text)).with_buffer(BufferState::kUntouched);
}

}  // namespace

void PostedOps::post(const std::shared_ptr<BatchCore>& batch, std::size_t index, bool is_near) {
  Status failure;
  RemoteBuffer remote;
  bool is_over = false;
  batch->with(index, [&](Item& item) {
    remote = item.op.remote;
    const Duration left = batch->deadline - Clock::steady().now();
    if (item.cancelled) {
      failure = unposted(Code::kCancelled, "submit: cancelled before it was posted");
    } else if (left <= Duration::zero()) {
      failure = unposted(Code::kTimedOut, "submit: there was no room until the timeout; nothing was posted")
                    .because(item.busy);
    } else {
      SubmitOptions options{.deadline = left, .queue = is_near ? nullptr : &uses_.queue};
      options.cookie = batch->serial << kIndexBits | index;
      if (item.notify) options.notify = *item.notify;
      Result<Transfer> sent = item.plan.submit(options);
      item.posted = sent.has_value();
      if (sent) item.transfer = std::move(*sent);
      failure = sent.error();
      if (failure.code() == Code::kBusy) item.busy = failure;
      is_over = item.posted && item.transfer.done();
    }
  });
  // A turn right here is what a small one lacks, where its turn is ours to take.
  if (is_near && failure.ok() && !is_over && !agent::inner::is_driven(uses_.agent)) {
    (void)uses_.agent.poll();
    is_over = batch->look(index);
  }
  if (is_over) {
    (void)batch->look(index);
  } else if (failure.code() == Code::kBusy) {
    const base::MutexLock lock(mutex_);
    waiting_.emplace_back(batch, index);
  } else if (!failure.ok()) {
    batch->settle(index, {.status = uses_.ways.with_ways(failure, remote)});
  } else if (is_near) {
    const base::MutexLock lock(mutex_);
    watched_.emplace_back(batch, index);
  } else {
    return;
  }
  if (!is_over) uses_.wake.signal();
}

bool PostedOps::drain_queue() {
  std::array<Completion, kCompletionsPerRound> entries;
  const std::size_t count = uses_.queue.poll(entries);
  for (const Completion& entry : std::span(entries).first(count)) {
    if (entry.kind != CompletionKind::kTransfer) continue;  // Messages and room are looked for each round.
    std::shared_ptr<BatchCore> batch = uses_.batches.find(entry.cookie >> kIndexBits);
    const std::size_t index = entry.cookie & (kOpsMax - 1);
    if (!batch || batch->look(index)) continue;
    const base::MutexLock lock(mutex_);  // Reported a moment before it is final: looked at again.
    watched_.emplace_back(std::move(batch), index);
  }
  return count > 0;
}

bool PostedOps::post_waiting() {
  std::size_t count = 0;
  {
    const base::MutexLock lock(mutex_);
    count = waiting_.size();
  }
  bool moved = false;
  for (std::size_t i = 0; i < count; ++i) {
    std::pair<std::shared_ptr<BatchCore>, std::size_t> next;
    {
      const base::MutexLock lock(mutex_);
      if (waiting_.empty()) return moved;
      next = std::move(waiting_.front());
      waiting_.pop_front();
    }
    const std::size_t before = count - i - 1;
    post(next.first, next.second, false);
    const base::MutexLock lock(mutex_);
    if (waiting_.size() > before) return moved;  // Still no room.
    moved = true;
  }
  return moved;
}

bool PostedOps::look_at_watched() {
  std::vector<std::pair<std::shared_ptr<BatchCore>, std::size_t>> some;
  {
    const base::MutexLock lock(mutex_);
    const auto count = static_cast<std::ptrdiff_t>(std::min(watched_.size(), kWatchedPerRound));
    some.assign(std::make_move_iterator(watched_.begin()), std::make_move_iterator(watched_.begin() + count));
    watched_.erase(watched_.begin(), watched_.begin() + count);
  }
  const std::size_t before = some.size();
  std::erase_if(some, [](const auto& each) { return each.first->look(each.second); });
  const base::MutexLock lock(mutex_);
  const bool moved = some.size() != before;
  for (auto& each : some) watched_.push_back(std::move(each));
  return moved;
}

bool PostedOps::has_watched() const {
  const base::MutexLock lock(mutex_);
  return !watched_.empty();
}

bool PostedOps::has_waiting() const {
  const base::MutexLock lock(mutex_);
  return !waiting_.empty();
}

void PostedOps::clear() {
  Ops waiting, watched;  // Dropped without the lock.
  const base::MutexLock lock(mutex_);
  waiting.swap(waiting_);
  watched.swap(watched_);
}

}  // namespace rdma
HAWSER_NAMESPACE_END
