#include "runtime/seed_table.h"

#include <utility>

namespace hawser::runtime {

Status SeedTable::set(std::string_view key, std::string_view value, std::vector<SeedWaiter>* waiters) {
  const auto known = values_.find(key);
  const std::size_t before = known == values_.end() ? 0 : known->first.size() + known->second.size();
  if (known == values_.end() && values_.size() == kSeedKeysMax) {
    return Status(Code::kBusy, "the seed keeps " + std::to_string(kSeedKeysMax) + " keys already");
  }
  if (bytes_ - before + key.size() + value.size() > kSeedBytesMax) {
    return Status(Code::kBusy, "the seed keeps " + std::to_string(kSeedBytesMax) + " bytes already");
  }
  bytes_ = bytes_ - before + key.size() + value.size();
  if (known == values_.end()) {
    values_.emplace(key, value);
  } else {
    known->second = value;
  }
  const auto waited = waiters_.find(key);
  if (waited == waiters_.end()) return {};
  *waiters = std::move(waited->second);
  waiters_.erase(waited);
  for (const SeedWaiter& each : *waiters) release(each);
  return {};
}

Result<std::optional<std::string>> SeedTable::get(std::string_view key, const SeedWaiter& waiter) {
  if (const auto known = values_.find(key); known != values_.end()) return std::optional<std::string>(known->second);
  const auto its = waiting_of_.find(waiter.peer);
  if (waiting_ == kSeedWaitersMax || (its != waiting_of_.end() && its->second == kSeedWaitersOfPeerMax)) {
    return Status(Code::kBusy, "too many wait for values of the seed");
  }
  waiters_[std::string(key)].push_back(waiter);
  ++waiting_of_[waiter.peer];
  ++waiting_;
  return std::optional<std::string>();
}

void SeedTable::release(const SeedWaiter& waiter) {
  --waiting_;
  const auto its = waiting_of_.find(waiter.peer);
  if (--its->second == 0) waiting_of_.erase(its);
}

void SeedTable::forget(const Incarnation& peer) {
  if (!waiting_of_.contains(peer)) return;
  for (auto at = waiters_.begin(); at != waiters_.end();) {
    waiting_ -= std::erase_if(at->second, [&](const SeedWaiter& each) { return each.peer == peer; });
    at = at->second.empty() ? waiters_.erase(at) : std::next(at);
  }
  waiting_of_.erase(peer);
}

}  // namespace hawser::runtime
