#include "runtime/seed_table.h"

#include <algorithm>
#include <utility>

#include "base/shown.h"
#include "base/try.h"

namespace hawser::runtime {
namespace {

std::string_view folder_of(std::string_view key) { return key.substr(0, std::min(key.rfind('/'), key.size())); }

/// "rank 1 of world 'w'" where the key is a rank's.
std::string described(std::string_view key) {
  constexpr std::string_view kWorlds = "hawser/";
  const std::string_view folder = folder_of(key);
  if (!folder.starts_with(kWorlds) || folder.size() == key.size()) return "'" + base::shown(key) + "'";
  return "rank " + base::shown(key.substr(folder.size() + 1)) + " of world '" +
         base::shown(folder.substr(kWorlds.size())) + "'";
}

}  // namespace

Status SeedTable::check_writer(std::string_view key, const SeedWriter& writer) const {
  if (const auto holder = writers_.find(key); holder != writers_.end() && holder->second.peer != writer.peer) {
    return Status(Code::kDenied, described(key) + " is '" + base::shown(holder->second.name) + "' here; '" +
                                     base::shown(writer.name) + "' cannot be it, too")
        .with_advice("start each rank once, and give worlds that share a seed names of their own");
  }
  const auto its = entries_of_.find(writer.peer);
  if (its == entries_of_.end()) return {};
  const auto entry = its->second.find(folder_of(key));
  if (entry == its->second.end() || entry->second == key) return {};
  return Status(Code::kDenied, "'" + base::shown(writer.name) + "' is " + described(entry->second) +
                                   ", and cannot write the entry of " + described(key));
}

Status SeedTable::set(std::string_view key, std::string_view value, const SeedWriter& writer,
                      std::vector<SeedWaiter>* waiters) {
  HAWSER_TRY(check_writer(key, writer));
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
  writers_.insert_or_assign(std::string(key), writer);
  entries_of_[writer.peer].insert_or_assign(std::string(folder_of(key)), std::string(key));
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
  if (const auto its = entries_of_.find(peer); its != entries_of_.end()) {
    for (const auto& [folder, key] : its->second) writers_.erase(key);
    entries_of_.erase(its);
  }
  if (!waiting_of_.contains(peer)) return;
  for (auto at = waiters_.begin(); at != waiters_.end();) {
    waiting_ -= std::erase_if(at->second, [&](const SeedWaiter& each) { return each.peer == peer; });
    at = at->second.empty() ? waiters_.erase(at) : std::next(at);
  }
  waiting_of_.erase(peer);
}

}  // namespace hawser::runtime
