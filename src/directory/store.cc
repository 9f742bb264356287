#include "directory/store.h"

#include "base/format.h"

namespace hawser::directory {

const Store::Record* Store::find(std::string_view key) const {
  const auto at = records_.find(key);
  return at == records_.end() ? nullptr : &at->second;
}

std::vector<DirectoryEntry> Store::list(std::string_view prefix) const {
  std::vector<DirectoryEntry> entries;
  for (auto at = records_.lower_bound(prefix); at != records_.end() && at->first.starts_with(prefix); ++at) {
    entries.push_back({at->first, at->second.value, at->second.version});
  }
  return entries;
}

Store::Changes Store::changes(std::string_view prefix, std::uint64_t since, std::size_t limit) const {
  Changes result;
  result.through = revision_;
  if (since < forgotten_) {
    result.lost = true;
    return result;
  }
  auto live = by_revision_.upper_bound(since);
  auto dead = erased_by_revision_.upper_bound(since);
  while (live != by_revision_.end() || dead != erased_by_revision_.end()) {
    const bool take_live =
        dead == erased_by_revision_.end() || (live != by_revision_.end() && live->first < dead->first);
    const auto& [revision, key] = take_live ? *live++ : *dead++;
    if (!key.starts_with(prefix)) continue;
    if (result.changed.size() + result.erased.size() == limit) {
      result.through = revision - 1;
      break;
    }
    if (take_live) {
      const Record& record = records_.find(key)->second;
      result.changed.push_back({key, record.value, record.version});
    } else {
      result.erased.push_back({key, {}, 0});
    }
  }
  return result;
}

bool Store::put(std::string_view key, std::string_view value, std::uint64_t version, Instant expiry) {
  auto at = records_.find(key);
  if (at == records_.end()) {
    if (records_.size() >= kKeysMax) return false;
    at = records_.emplace(std::string(key), Record{}).first;
    if (const auto dead = erased_.find(key); dead != erased_.end()) {
      erased_by_revision_.erase(dead->second);
      erased_.erase(dead);
    }
  } else {
    by_revision_.erase(at->second.revision);
    expiries_.erase({at->second.expiry, at->first});
  }
  at->second = {.value = std::string(value), .version = version, .revision = ++revision_, .expiry = expiry};
  by_revision_.emplace(revision_, at->first);
  if (expiry != Instant::max()) expiries_.emplace(expiry, at->first);
  return true;
}

bool Store::erase(std::string_view key) {
  const auto at = records_.find(key);
  if (at == records_.end()) return false;
  by_revision_.erase(at->second.revision);
  expiries_.erase({at->second.expiry, at->first});
  bury(key);
  records_.erase(at);
  return true;
}

void Store::bury(std::string_view key) {
  ++revision_;
  erased_.emplace(std::string(key), revision_);
  erased_by_revision_.emplace(revision_, std::string(key));
  if (erased_.size() <= kTombstonesMax) return;
  const auto oldest = erased_by_revision_.begin();
  forgotten_ = oldest->first;
  erased_.erase(oldest->second);
  erased_by_revision_.erase(oldest);
}

bool Store::expire(Instant now) {
  bool any = false;
  while (!expiries_.empty() && expiries_.begin()->first <= now) {
    const std::string key = expiries_.begin()->second;
    erase(key);
    any = true;
  }
  return any;
}

namespace {

Status other_version(std::string_view key, std::uint64_t version, std::uint64_t meant) {
  return Status(Code::kBusy, base::format("directory: key \"{}\" has version {}, not {}", key, version, meant))
      .with_advice("get it again and decide anew");
}

}  // namespace

Status check_put(std::string_view key, const PutOptions& options, std::uint64_t version) {
  if (options.create_only && version != 0) {
    return Status(Code::kBusy, base::format("directory: key \"{}\" is there already, in version {}", key, version))
        .with_advice("put without create_only to replace it");
  }
  if (options.if_version && *options.if_version != version) return other_version(key, version, *options.if_version);
  return {};
}

Status check_erase(std::string_view key, const EraseOptions& options, std::uint64_t version) {
  if (options.if_version && *options.if_version != version) return other_version(key, version, *options.if_version);
  return {};
}

}  // namespace hawser::directory
