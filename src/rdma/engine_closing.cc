// How buffers and memory end: released by any holder, and acknowledged once nobody is inside; or with the backend.

#include <unistd.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "agent/inner.h"
#include "base/inside.h"
#include "rdma/engine.h"

HAWSER_NAMESPACE_BEGIN
namespace rdma {
namespace {

/// For all that is still in use when a backend ends, together.
constexpr Duration kPatience = std::chrono::seconds(5);

Duration left_until(Instant until) { return std::max(Duration::zero(), until - Clock::steady().now()); }

/// Where the region does not close: for good. Somebody may still touch the memory, so its owner must never go.
void keep_for_ever(std::shared_ptr<const void> owner) {
  if (owner) (void)new std::shared_ptr<const void>(std::move(owner));
}

/// A device may take its time to forget a region, and operations on the same memory may go by its key: who lets the
/// memory go does not wait for that.
void end(Region& region, const std::weak_ptr<Engine>& keeper, std::shared_ptr<const void> owner) {
  if (region.close(Duration::zero()).ok()) return;
  const std::shared_ptr<Engine> its = keeper.lock();
  if (its != nullptr && its->let_go_later(region, owner)) return;
  if (!region.close(kPatience).ok()) keep_for_ever(std::move(owner));
}

}  // namespace

// Peers reach this memory as buffers only, which keep it, and operations keep it as well.
MemoryCore::~MemoryCore() {
  if (!bytes.empty() && opener == ::getpid()) end(region, keeper, std::move(owner));
}

Owned::~Owned() {
  if (core_of(region) == nullptr || core_of(memory)->opener != ::getpid()) return;
  end(region, core_of(memory)->keeper, core_of(memory));
}

bool Engine::let_go_later(Region& region, std::shared_ptr<const void> owner) {
  {
    const base::MutexLock lock(mutex_);
    if (is_over_) return false;
    parting_.push_back({.region = std::move(region), .owner = std::move(owner)});
  }
  wake_.signal();
  return true;
}

bool Engine::look_at_parting() {
  std::vector<Parting> some;
  {
    const base::MutexLock lock(mutex_);
    some.swap(parting_);
  }
  if (some.empty()) return false;
  const bool moved = std::erase_if(some, [](Parting& each) { return each.region.close(Duration::zero()).ok(); }) > 0;
  const base::MutexLock lock(mutex_);
  std::ranges::move(some, std::back_inserter(parting_));
  return moved;
}

Result<std::shared_ptr<BatchCore>> Engine::release(const RemoteBuffer& buffer, Duration timeout) {
  if (!buffer.valid()) return Status(Code::kInvalid, "release: the buffer's handle is empty");
  const std::shared_ptr<BatchCore> batch = make_batch(1, timeout);
  if (is_own(*core_of(buffer))) {
    close(core_of(buffer)->token, {.batch = batch, .peer = {}, .number = 0, .deadline = batch->deadline});
    return batch;
  }
  const Result<Found> found = find(buffer);
  if (!found) {
    batch->settle(0, {.status = with_ways(found.error(), buffer)});
    return batch;
  }
  request(batch, 0, buffer, found->peer, {.kind = AskKind::kRelease, .token = core_of(buffer)->token});
  return batch;
}

void Engine::close(const base::Id128& token, Ack ack) {
  std::shared_ptr<Owned> owned;  // Of the first who asks.
  Status refusal;
  {
    const base::MutexLock lock(mutex_);
    if (const auto found = by_token_.find(token); found != by_token_.end()) {
      owned = std::move(found->second);
      by_token_.erase(found);
      owned_.erase(owned->handle.id());
      if (const std::string& name = core_of(owned->handle)->name; !name.empty()) by_name_.erase(name);
      closings_[token].owned = owned;
    }
    // From here until nobody is inside, all who ask find it: to be told that it is gone they would take for an end.
    if (const auto found = closings_.find(token); found == closings_.end()) {
      refusal = Status(Code::kNotFound, "release: the owner has no such buffer; it was released before");
    } else if (found->second.acks.size() >= options_.requests_max) {
      refusal = Status(Code::kBusy, "release: requests_max = " + std::to_string(options_.requests_max) +
                                        " wait for this buffer's release");
    } else {
      found->second.acks.push_back(std::move(ack));
    }
  }
  if (!refusal.ok()) return acknowledge(ack, refusal);
  if (!owned || !look_at_closing(owned)) wake_.signal();
}

// Its region refuses new uses from the first look on.
bool Engine::look_at_closing(const std::shared_ptr<Owned>& owned) {
  const Status status = owned->region.close(Duration::zero());
  const Instant now = Clock::steady().now();
  std::vector<Ack> due;
  {
    const base::MutexLock lock(mutex_);
    const auto found = closings_.find(core_of(owned->handle)->token);
    if (found == closings_.end()) return true;  // Another thread's look ended it.
    std::vector<Ack>& acks = found->second.acks;
    const auto first_due = std::stable_partition(acks.begin(), acks.end(),
                                                 [&](const Ack& ack) { return !status.ok() && now < ack.deadline; });
    due.assign(std::make_move_iterator(first_due), std::make_move_iterator(acks.end()));
    acks.erase(first_due, acks.end());
    if (status.ok()) closings_.erase(found);  // The caller's `owned` is the last: nothing is let go under the lock.
  }
  for (const Ack& ack : due) acknowledge(ack, status);
  return status.ok() || !due.empty();
}

bool Engine::look_at_closings() {
  std::vector<std::shared_ptr<Owned>> all;
  {
    const base::MutexLock lock(mutex_);
    all.reserve(closings_.size());
    for (const auto& [token, closing] : closings_) all.push_back(closing.owned);
  }
  bool moved = false;
  for (const std::shared_ptr<Owned>& each : all) moved = look_at_closing(each) || moved;
  return moved;
}

void Engine::acknowledge(const Ack& ack, const Status& status) {
  if (ack.batch) return ack.batch->settle(0, {.status = status});
  reply(ack.peer, {.number = ack.number, .status = status, .value = 0});
}

void Engine::stop() {
  if (opener_ != ::getpid()) {
    if (thread_.joinable()) thread_.detach();  // It exists in the parent only.
    return;
  }
  stop_.store(true, std::memory_order_release);
  wake_.signal();
  if (thread_.joinable()) thread_.join();
  decltype(batches_) batches;
  decltype(waiting_) waiting;
  decltype(watched_) watched;
  decltype(requests_) requests;
  std::vector<std::shared_ptr<Owned>> buffers;
  {
    const base::MutexLock lock(mutex_);
    batches.swap(batches_);
    waiting.swap(waiting_);
    watched.swap(watched_);
    requests.swap(requests_);
    for (auto& [id, owned] : owned_) buffers.push_back(std::move(owned));
    for (auto& [token, closing] : closings_) buffers.push_back(std::move(closing.owned));
    owned_.clear();
    closings_.clear();
    by_token_.clear();
    by_name_.clear();
    replies_.clear();
  }
  const Instant until = Clock::steady().now() + kPatience;
  end_all(batches, buffers, until);
  for (auto* each : {&waiting, &watched}) each->clear();
  requests.clear();
  batches.clear();
  buffers.clear();
  end_parting(until);
  if (std::exchange(said_driven_, false)) agent::inner::say_driven(agent_, false);
}

// All are told to end before any is waited for, so that many that are held take no longer than one.
void Engine::end_all(const Batches& batches, std::vector<std::shared_ptr<Owned>>& buffers, Instant until) {
  for (const auto& [serial, batch] : batches) {
    batch->cancel();
    for (std::size_t i = 0; i < batch->size(); ++i) {
      bool posted = false;
      batch->with(i, [&](const Item& item) { posted = item.posted; });
      if (!posted) batch->settle(i, {.status = Status(Code::kCancelled, "the rdma backend was closed")});
    }
  }
  std::erase_if(buffers, [](const auto& owned) { return owned->region.close(Duration::zero()).ok(); });
  for (const auto& [serial, batch] : batches) {
    (void)batch->wait(left_until(until));
    if (!batch->done()) (void)new std::shared_ptr<BatchCore>(batch);  // What it uses must never go.
  }
  for (const auto& owned : buffers) (void)owned->region.close(left_until(until));
}

void Engine::end_parting(Instant until) {
  std::vector<Parting> rest;
  {
    const base::MutexLock lock(mutex_);
    is_over_ = true;
    rest.swap(parting_);
  }
  for (Parting& each : rest) {
    if (!each.region.close(left_until(until)).ok()) keep_for_ever(std::move(each.owner));
  }
}

}  // namespace rdma
HAWSER_NAMESPACE_END
