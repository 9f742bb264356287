#include "runtime/court.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "base/planted.h"

namespace hawser::runtime {

using base::planted;
using base::Planted;

std::vector<std::uint32_t> ranks_to_leave_out(std::uint32_t size, std::vector<Loss> losses) {
  std::vector<std::uint32_t> out;
  for (auto& [one, other] : losses) {
    if (one > other) std::swap(one, other);
  }
  std::ranges::sort(losses);
  losses.erase(std::unique(losses.begin(), losses.end()), losses.end());  // Not of ranges: clang 14 cannot parse it.
  while (!losses.empty()) {
    std::vector<std::uint32_t> counts(size);
    for (const auto& [one, other] : losses) {
      ++counts[one];
      ++counts[other];
    }
    std::uint32_t worst = 0;
    for (std::uint32_t rank = 0; rank < size; ++rank) {
      const bool is_tied = counts[rank] == counts[worst] && !planted(Planted::kCourtKeepsHigher);
      if (counts[rank] > counts[worst] || is_tied) worst = rank;
    }
    out.push_back(worst);
    std::erase_if(losses, [&](const Loss& each) { return each.first == worst || each.second == worst; });
  }
  return out;
}

Court::Court(std::uint32_t rank, std::uint32_t size, Hooks hooks)
    : rank_(rank), size_(size), hooks_(std::move(hooks)), lost_(size), gone_(size) {}

std::vector<std::uint32_t> Court::others() const {
  std::vector<std::uint32_t> all;
  for (std::uint32_t other = 0; other < size_; ++other) {
    if (other != rank_ && !gone_[other]) all.push_back(other);
  }
  return all;
}

std::vector<std::uint32_t> Court::lost() const {
  std::vector<std::uint32_t> all = others();
  std::erase_if(all, [this](std::uint32_t other) { return !lost_[other]; });
  return all;
}

std::vector<Loss> Court::losses() const {
  std::vector<Loss> all;
  for (const std::uint32_t other : lost()) all.emplace_back(rank_, other);
  for (const auto& [from, its] : heard_) {
    for (std::uint32_t other = 0; other < size_; ++other) {
      if (its[other] && !gone_[other] && !gone_[from]) all.emplace_back(from, other);
    }
  }
  return all;
}

void Court::tell_all(bool asks) {
  has_asked_ = has_asked_ || asks;
  for (const std::uint32_t other : others()) {
    if (!lost_[other]) hooks_.tell(other, lost_, asks);
  }
}

void Court::note_lost(std::uint32_t rank) {
  HAWSER_ASSERT(rank < size_ && rank != rank_, "not a rank that can be lost");
  if (lost_[rank] || gone_[rank]) return;
  lost_[rank] = true;
  tell_all(true);
  decide();
}

void Court::note_gone(std::uint32_t rank) {
  HAWSER_ASSERT(rank < size_ && rank != rank_, "not a rank that can go");
  if (gone_[rank]) return;
  gone_[rank] = true;
  heard_.erase(rank);
  if (!is_convicting_) decide();
}

void Court::hear(std::uint32_t from, const std::vector<bool>& lost, bool asks) {
  if (from >= size_ || from == rank_ || gone_[from] || lost.size() != size_) return;
  heard_[from] = lost;
  heard_[from][from] = false;  // A rank cannot lose itself.
  if (asks && !lost_[from]) hooks_.tell(from, lost_, false);
  if (!has_asked_ && is_open()) tell_all(true);
  decide();
}

void Court::settle() {
  is_settled_ = true;
  decide();
}

void Court::give_up() {
  const std::vector<std::uint32_t> out = ranks_to_leave_out(size_, losses());
  const bool may_fail = std::ranges::find(out, rank_) != out.end();
  if (may_fail && !std::exchange(has_waited_, true)) return;
  convict(lost());
}

bool Court::is_lost_by_all(std::uint32_t rank, const std::vector<std::uint32_t>& out) const {
  for (std::uint32_t other = 0; other < size_; ++other) {
    const bool counts = !gone_[other] && std::ranges::find(out, other) == out.end();
    if (!counts) continue;
    const auto its = heard_.find(other);
    const bool has_lost = other == rank_ ? lost_[rank] : its != heard_.end() && its->second[rank];
    if (!has_lost) return false;
  }
  return true;
}

void Court::decide() {
  const std::vector<Loss> all = losses();
  if (all.empty()) {  // What comes up later is another case.
    heard_.clear();
    has_asked_ = is_settled_ = has_waited_ = false;
    return;
  }
  const std::vector<std::uint32_t> rest = others();
  if (std::ranges::all_of(rest, [this](std::uint32_t other) { return lost_[other]; })) return convict(rest);
  const bool has_heard_all =
      std::ranges::all_of(rest, [this](std::uint32_t other) { return lost_[other] || heard_.contains(other); });
  if (!has_heard_all) return;
  const std::vector<std::uint32_t> out = ranks_to_leave_out(size_, all);
  const bool is_plain = std::ranges::all_of(out, [&](std::uint32_t rank) { return is_lost_by_all(rank, out); });
  if (!is_plain && !is_settled_) return;
  const auto stays = [&](std::uint32_t rank) { return std::ranges::find(out, rank) == out.end(); };
  const bool is_lowest = std::ranges::none_of(rest, [&](std::uint32_t other) { return other < rank_ && stays(other); });
  if (stays(rank_) && is_lowest) convict(out);
}

void Court::convict(const std::vector<std::uint32_t>& ranks) {
  if (is_convicting_) return;
  is_convicting_ = true;
  for (const std::uint32_t rank : ranks) {
    if (!gone_[rank]) hooks_.convict(rank);
    note_gone(rank);
  }
  is_convicting_ = false;
  if (!ranks.empty()) decide();
}

}  // namespace hawser::runtime
