#include "runtime/rank_fates.h"

namespace hawser::runtime {
namespace {

Status found(const std::map<std::uint32_t, Status>& all, std::uint32_t rank) {
  const auto at = all.find(rank);
  return at == all.end() ? Status() : at->second;
}

}  // namespace

bool RankFates::note_failed(std::uint32_t rank, const Status& cause) {
  if (has_failed(rank) || has_left(rank)) return false;
  const Status status = failure_of(rank, cause);
  failed_.emplace(rank, status);
  failures_.push_back(rank);
  failures_so_far_.fetch_add(1, std::memory_order_release);
  if (first_failure_.ok()) first_failure_ = status;
  if (unacknowledged_.ok()) unacknowledged_ = status;
  return true;
}

bool RankFates::note_lost(std::uint32_t rank, const Status& cause) {
  if (has_failed(rank) || has_left(rank) || is_excluded()) return false;
  return lost_.emplace(rank, failure_of(rank, cause)).second;
}

bool RankFates::exclude(const Status& why) {
  if (is_excluded()) return false;
  excluded_ = why;
  return true;
}

bool RankFates::revoke(const Status& why) {
  if (is_revoked()) return false;
  revoked_ = why;
  return true;
}

Status RankFates::failure(std::uint32_t rank) const { return found(failed_, rank); }

Status RankFates::loss(std::uint32_t rank) const { return found(lost_, rank); }

std::vector<std::uint32_t> RankFates::failed() const {
  std::vector<std::uint32_t> all;
  for (const auto& [rank, why] : failed_) all.push_back(rank);
  return all;
}

std::vector<std::uint32_t> RankFates::unusable() const {
  std::set<std::uint32_t> all;
  for (const auto& [rank, why] : failed_) all.insert(rank);
  for (const auto& [rank, why] : lost_) {
    if (!has_left(rank)) all.insert(rank);
  }
  return {all.begin(), all.end()};
}

std::vector<bool> RankFates::dead() const {
  std::vector<bool> all(site_.size);
  for (const std::uint32_t rank : dead_) all[rank] = true;
  return all;
}

std::uint32_t RankFates::count_left_without(const std::vector<std::uint32_t>& without) const {
  std::set<std::uint32_t> gone(without.begin(), without.end());
  for (const auto& [rank, why] : failed_) gone.insert(rank);
  gone.insert(left_.begin(), left_.end());
  return site_.size - static_cast<std::uint32_t>(gone.size());
}

bool RankFates::have_only_left() const {
  return !left_.empty() && excluded_.ok() && first_failure_.ok() && revoked_.ok() && lost_.empty();
}

Status RankFates::why_not() const {
  if (!excluded_.ok()) return excluded_;
  if (!first_failure_.ok()) return first_failure_;
  if (!revoked_.ok()) return revoked_;
  if (!lost_.empty()) return lost_.begin()->second;
  return left_.empty() ? Status() : departure_of(*left_.begin());
}

Status RankFates::failure_of(std::uint32_t rank, const Status& cause) const {
  return Status(Code::kDisconnected, "rank " + std::to_string(rank) + " of world '" + site_.world + "' failed")
      .with_peer(site_.name_of(rank))
      .because(cause);
}

Status RankFates::departure_of(std::uint32_t rank) const {
  return Status(Code::kDisconnected, "rank " + std::to_string(rank) + " has left world '" + site_.world + "'")
      .with_peer(site_.name_of(rank));
}

Status RankFates::explained(const Status& end) const {
  if (end.code() != Code::kDisconnected) return end;
  Status is = end;
  for (const std::uint32_t rank : left_) {
    if (site_.name_of(rank) == end.peer()) is = departure_of(rank);
  }
  if (!why_not().ok()) return is;
  for (std::uint32_t rank = 0; rank < site_.size; ++rank) {
    if (site_.name_of(rank) == end.peer()) is = failure_of(rank, end);
  }
  return is;
}

}  // namespace hawser::runtime
