#include "directory/etcd/tied.h"

#include <algorithm>

#include "base/format.h"

namespace hawser::directory::etcd {
namespace {

/// One step of upkeep waits no longer, so that requests get their turn.
constexpr Duration kUpkeepMax = std::chrono::seconds(1);
constexpr Duration kTryAgain = std::chrono::milliseconds(300);

}  // namespace

Result<std::int64_t> TiedValues::lease(Instant deadline) {
  if (lease_ != 0) return lease_;
  const Outcome<LeaseAnswer> granted = operations_.grant(ttl_, deadline);
  if (!granted.ok()) return granted.reply.status;
  if (granted.answer.id == 0 || granted.answer.ttl == 0) return Status(Code::kCorrupt, "etcd: a grant without a lease");
  lease_ = granted.answer.id;
  keep_at_ = Clock::steady().now() + std::chrono::seconds(granted.answer.ttl) / 3;
  return lease_;
}

void TiedValues::lost() {
  lease_ = 0;
  keep_at_ = Instant::max();
  for (auto& [key, value] : values_) {
    if (value.state == State::kThere) value.state = State::kLost;
  }
}

Status TiedValues::check_room(const std::string& key, std::size_t bytes) const {
  const auto old = values_.find(key);
  const std::size_t count = values_.size() + (old == values_.end() ? 1 : 0);
  const std::size_t sum = bytes_ + bytes - (old == values_.end() ? 0 : old->second.bytes.size());
  if (count <= kTiedMax && sum <= kTiedBytesMax) return {};
  return Status(Code::kBusy,
                base::format("etcd: {} tied values of {} bytes; at most {} of {}", count, sum, kTiedMax, kTiedBytesMax))
      .with_advice("erase some, or put them with a lease of their own");
}

void TiedValues::hold(const std::string& key, std::string value, bool is_there) {
  Value& held = values_[key];
  bytes_ = bytes_ - held.bytes.size() + value.size();
  held = {std::move(value), is_there ? State::kThere : State::kWanted};
}

void TiedValues::hold_for_free_key(const std::string& key, std::string value) {
  hold(key, std::move(value), false);
  values_[key].state = State::kLost;
}

void TiedValues::release(const std::string& key) {
  const auto at = values_.find(key);
  if (at == values_.end()) return;
  bytes_ -= at->second.bytes.size();
  values_.erase(at);
}

bool TiedValues::is_complete() const {
  return std::all_of(values_.begin(), values_.end(), [](const auto& one) { return one.second.state == State::kThere; });
}

Instant TiedValues::upkeep(Instant now) {
  if (lease_ != 0 && now >= keep_at_) keep_alive(now);
  if (is_complete()) return keep_at_;
  if (now >= again_at_) put_again(now);
  return is_complete() ? keep_at_ : std::min(keep_at_, again_at_);
}

void TiedValues::keep_alive(Instant now) {
  const Outcome<LeaseAnswer> kept = operations_.keep_alive(lease_, now + kUpkeepMax);
  if (!kept.ok()) {
    keep_at_ = Clock::steady().now() + kTryAgain;
    warn_("lease", base::format("the lease is not kept alive: {}", kept.reply.status.message()));
  } else if (kept.answer.ttl == 0) {
    warn_("lease", "the lease was lost; a new one is taken and all tied values are put again");
    lost();
  } else {
    keep_at_ = now + std::chrono::seconds(kept.answer.ttl) / 3;
  }
}

void TiedValues::put_again(Instant now) {
  const Instant deadline = now + kUpkeepMax;
  bool is_done = lease(deadline).has_value();
  for (auto at = values_.begin(); is_done && at != values_.end();) {
    const auto one = at++;
    if (one->second.state == State::kThere) continue;
    bool is_others = false;
    is_done = restore(one->first, one->second, deadline, &is_others);
    if (!is_others) continue;
    warn_(one->first, base::format("\"{}\" was lost and is another's now", one->first));
    release(one->first);
  }
  again_at_ = Clock::steady().now() + kTryAgain;
}

bool TiedValues::restore(const std::string& key, Value& value, Instant deadline, bool* is_others) {
  PutRequest put{.key = key, .value = value.bytes, .lease = lease_, .only_new = value.state == State::kLost};
  Outcome<PutAnswer> answer = operations_.put(put, deadline);
  const std::optional<KeyValue>& holder = answer.answer.holder;
  if (answer.ok() && !answer.answer.is_put && holder && holder->value == value.bytes && holder->lease != lease_) {
    // Still ours, from a store that came back without its leases.
    put.only_new = false;
    put.if_revision = holder->revision;
    answer = operations_.put(put, deadline);
  }
  if (answer.reply.fault == Fault::kNoSuchLease) lost();
  if (!answer.ok()) return false;
  const bool is_ours = answer.answer.is_put || (holder && holder->value == value.bytes && holder->lease == lease_);
  if (is_ours) value.state = State::kThere;
  *is_others = !is_ours;
  return true;
}

void TiedValues::farewell(Instant deadline) {
  if (lease_ != 0) operations_.revoke(lease_, deadline);
}

}  // namespace hawser::directory::etcd
