#include "agent/grant_book.h"

#include <string>

namespace hawser::agent {
namespace {

std::uint64_t grant_key(std::uint32_t index, std::uint32_t generation) {
  return std::uint64_t{generation} << 32 | index;
}

std::uint64_t grant_key(const LocalRegion& region) { return grant_key(region.entry->index, region.entry->generation); }

}  // namespace

Status GrantBook::begin(LocalRegion& parent) {
  if (parent.state.load(std::memory_order_acquire) != RegionState::kOpen) {
    return Status(Code::kInvalid, "grant: region '" + parent.entry->name + "' is closed");
  }
  if (count_ >= limit_) {
    return Status(Code::kBusy, "grant: limits.grants = " + std::to_string(limit_) + " grants are open")
        .with_advice("revoke some, let them expire sooner, or raise limits.grants");
  }
  ++count_;
  ++parent.grants;
  return {};
}

void GrantBook::give_up(LocalRegion& parent) {
  --count_;
  --parent.grants;
}

bool GrantBook::add(const std::shared_ptr<LocalRegion>& parent, const std::shared_ptr<LocalRegion>& grant,
                    Instant expires) {
  const RegionState state = grant->state.load(std::memory_order_acquire);
  if (state == RegionState::kClosed) {  // The agent closes, and found it among its regions.
    give_up(*parent);
    return false;
  }
  grant->parent = parent;
  const Key key = grant_key(*grant);
  given_.emplace(key, Given{.grant = grant, .parent = grant_key(*parent), .expires = expires});
  by_parent_.emplace(grant_key(*parent), key);
  if (expires != Instant::max()) expiries_.emplace(expires, key);
  return state == RegionState::kOpen && parent->state.load(std::memory_order_acquire) == RegionState::kOpen;
}

void GrantBook::remove(const LocalRegion& grant) {
  const auto found = given_.find(grant_key(grant));
  if (found == given_.end()) return;
  by_parent_.erase({found->second.parent, found->first});
  expiries_.erase({found->second.expires, found->first});
  give_up(*grant.parent);
  given_.erase(found);  // The caller refers to the grant still.
}

void GrantBook::clear() {
  given_.clear();
  by_parent_.clear();
  expiries_.clear();
}

GrantBook::Grants GrantBook::of(const LocalRegion& parent) const {
  Grants all;
  if (parent.grants == 0) return all;
  const Key key = grant_key(parent);
  for (auto at = by_parent_.lower_bound({key, 0}); at != by_parent_.end() && at->first == key; ++at) {
    all.push_back(given_.at(at->second).grant);
  }
  return all;
}

std::shared_ptr<LocalRegion> GrantBook::find(const backend::RegionId& id) const {
  const auto found = given_.find(grant_key(id.index, id.generation));
  return found == given_.end() ? nullptr : found->second.grant;
}

GrantBook::Grants GrantBook::take_expired(Instant now) {
  Grants expired;
  while (!expiries_.empty() && expiries_.begin()->first <= now) {
    expired.push_back(given_.at(expiries_.begin()->second).grant);
    expiries_.erase(expiries_.begin());
  }
  return expired;
}

}  // namespace hawser::agent
