#include "rdma/batch.h"

#include <algorithm>
#include <cstring>

#include "rdma/engine.h"

HAWSER_NAMESPACE_BEGIN
namespace rdma {

void BellCore::ring(std::uint64_t cookie) {
  {
    const base::MutexLock lock(mutex_);
    ended_.push_back(cookie);
  }
  event_.signal();
}

std::vector<std::uint64_t> BellCore::take() {
  (void)event_.drain();
  const base::MutexLock lock(mutex_);
  return std::exchange(ended_, {});
}

BatchCore::BatchCore(std::weak_ptr<Engine> its_engine, std::uint64_t its_serial, std::size_t size, Instant its_deadline)
    : serial(its_serial),
      deadline(its_deadline),
      engine(std::move(its_engine)),
      size_(size),
      items_(size),
      open_(size) {}

BatchCore::~BatchCore() = default;

void BatchCore::settle(std::size_t index, Outcome outcome) {
  Item remains;
  {
    const base::MutexLock lock(mutex_);
    Item& item = items_[index];
    if (item.settled) return;
    item.settled = true;
    item.outcome = std::move(outcome);
    if (item.is_atomic && item.outcome.status.ok() && item.op.local.valid()) {
      std::memcpy(item.op.local.bytes().data(), &item.outcome.previous, sizeof(item.outcome.previous));
    }
    if (item.waiters > 0) return;  // The last of them ends it.
    remains = take_remains(item);
  }
  finish(index, std::move(remains));
}

void BatchCore::finish(std::size_t index, Item remains) {
  remains = {};
  std::vector<std::pair<std::shared_ptr<BellCore>, std::uint64_t>> bells;
  bool is_last = false;
  {
    const base::MutexLock lock(mutex_);
    items_[index].final = true;
    is_last = --open_ == 0;
    if (is_last) bells = std::exchange(bells_, {});
    changed_.notify_all();
  }
  if (!is_last) return;
  if (const auto its = engine.lock()) its->ended(serial);
  for (const auto& [bell, cookie] : bells) bell->ring(cookie);
}

Item BatchCore::take_remains(Item& item) {
  Item remains;
  remains.op = std::exchange(item.op, {});
  remains.plan = std::exchange(item.plan, {});
  remains.transfer = std::move(item.transfer);
  item.posted = false;
  return remains;
}

bool BatchCore::look(std::size_t index) {
  Outcome outcome;
  RemoteBuffer remote;  // Of one that failed.
  {
    const base::MutexLock lock(mutex_);
    const Item& item = items_[index];
    if (item.final) return true;
    if (item.settled || !item.posted || !item.transfer.done()) return false;
    outcome = {.status = item.transfer.status(), .bytes = item.transfer.bytes()};
    if (!outcome.status.ok()) remote = item.op.remote;
  }
  if (const auto its = remote.valid() ? engine.lock() : nullptr)
    outcome.status = its->ways().of_transfer(outcome.status, remote);
  settle(index, std::move(outcome));
  return true;
}

bool BatchCore::done() const {
  const base::MutexLock lock(mutex_);
  return open_ == 0;
}

bool BatchCore::await(std::size_t index, Instant until) {
  const auto its = engine.lock();
  const bool serves_itself = its != nullptr && its->runs_itself();
  while (!look(index)) {
    const Instant now = Clock::steady().now();
    if (now >= until) return false;
    if (its == nullptr) {
      // Its backend is gone: transfers end by the agent alone, and all else was ended by the backend's own end.
      const base::MutexLock lock(mutex_);
      (void)changed_.wait_until(mutex_, std::min(until, now + std::chrono::milliseconds(1)));
      continue;
    }
    if (!serves_itself) {
      if (!its->serve()) (void)its->agent().wait(std::min<Duration>(until - now, std::chrono::milliseconds(1)));
      continue;
    }
    wait_for(index, until);
  }
  return true;
}

void BatchCore::wait_for(std::size_t index, Instant until) {
  Transfer* transfer = nullptr;
  {
    const base::MutexLock lock(mutex_);
    Item& item = items_[index];
    if (item.final) return;
    if (!item.posted) {
      (void)changed_.wait_until(mutex_, until);
      return;
    }
    ++item.waiters;
    transfer = &item.transfer;
  }
  const auto its = engine.lock();
  if (its) its->begin_wait();
  (void)transfer->wait(until - Clock::steady().now());
  if (its) {
    its->end_wait();
    if (!transfer->done()) its->take_over();
  }
  Item remains;
  {
    const base::MutexLock lock(mutex_);
    Item& item = items_[index];
    if (--item.waiters > 0 || !item.settled) return;
    remains = take_remains(item);
  }
  finish(index, std::move(remains));
}

Status BatchCore::wait(Duration timeout) {
  if (!done()) {
    const Instant until = Clock::steady().now() + timeout;
    bool all = true;
    for (std::size_t i = 0; i < size_ && all; ++i) all = await(i, until);
    if (!all) {
      return Status(Code::kTimedOut, "Batch::wait: not all operations have ended; they go on")
          .with_scope(Scope::kRequest);
    }
  }
  return status();
}

Status BatchCore::status() const {
  const base::MutexLock lock(mutex_);
  std::size_t failed = 0;
  std::size_t first = 0;
  for (std::size_t i = 0; i < size_; ++i) {
    if (items_[i].outcome.status.ok()) continue;
    if (failed++ == 0) first = i;
  }
  if (failed == 0) return {};
  const Status& cause = items_[first].outcome.status;
  if (size_ == 1) return cause;
  return Status(cause.code(), std::to_string(failed) + " of " + std::to_string(size_) +
                                  " operations failed; the first of them is number " + std::to_string(first))
      .with_buffer(cause.buffer())
      .with_peer(cause.peer())
      .with_advice("outcomes() tells of each")
      .because(cause);
}

std::vector<Outcome> BatchCore::outcomes() const {
  const base::MutexLock lock(mutex_);
  std::vector<Outcome> all;
  all.reserve(size_);
  for (const Item& item : items_) all.push_back(item.outcome);
  return all;
}

void BatchCore::cancel() {
  {
    const base::MutexLock lock(mutex_);
    for (Item& item : items_) {
      if (item.settled) continue;
      if (item.posted) {
        item.transfer.cancel();
      } else {
        item.cancelled = true;
      }
    }
  }
  if (const auto its = engine.lock()) its->cancelled(*this);
}

bool BatchCore::tell(const std::shared_ptr<BellCore>& bell, std::uint64_t cookie) {
  const base::MutexLock lock(mutex_);
  if (open_ == 0) return false;
  bells_.emplace_back(bell, cookie);
  return true;
}

}  // namespace rdma
HAWSER_NAMESPACE_END
