#include "schedule/hosts.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

namespace hawser::schedule {
namespace {

std::size_t place_of(const std::vector<std::uint32_t>& ranks, std::uint32_t rank) {
  return static_cast<std::size_t>(std::ranges::find(ranks, rank) - ranks.begin());
}

}  // namespace

Hosts::Hosts(std::span<const std::uint32_t> hosts, std::uint32_t rank, std::uint32_t root) {
  std::map<std::uint32_t, std::vector<std::uint32_t>> by_host;
  for (std::uint32_t each = 0; each < hosts.size(); ++each) by_host[hosts[each]].push_back(each);
  ranks_.push_back(std::move(by_host[hosts[root]]));
  by_host.erase(hosts[root]);
  for (auto& [host, its] : by_host) ranks_.push_back(std::move(its));
  const auto has_more = [](const auto& one, const auto& other) { return one.size() < other.size(); };
  ranks_max_ = static_cast<std::uint32_t>(std::ranges::max_element(ranks_, has_more)->size());
  lanes_ = static_cast<std::uint32_t>(std::ranges::min_element(ranks_, has_more)->size());
  for (const auto& its : ranks_) {
    leaders_.push_back(leaders_.empty() ? root : its.front());
    if (hosts[its.front()] == hosts[rank]) host_ = static_cast<std::uint32_t>(leaders_.size() - 1);
  }
  // The root's host counts from the root.
  std::vector<std::uint32_t> firsts = ranks_[0];
  std::rotate(firsts.begin(), std::ranges::find(firsts, root), firsts.end());  // clang 14: no ranges::rotate.
  mates_ = host_ == 0 ? firsts : ranks_[host_];
  mates_place_ = place_of(mates_, rank);
  if (is_leader()) leaders_place_ = host_;
  if (!has_lane()) return;
  column_.push_back(firsts[mates_place_]);
  for (std::size_t host = 1; host < ranks_.size(); ++host) column_.push_back(ranks_[host][mates_place_]);
  column_place_ = host_;
}

bool Hosts::are_several(std::span<const std::uint32_t> hosts) {
  return std::ranges::any_of(hosts, [&](std::uint32_t each) { return each != hosts.front(); });
}

bool Hosts::are_runs(std::span<const std::uint32_t> hosts) {
  std::set<std::uint32_t> ended;
  for (std::size_t rank = 1; rank < hosts.size(); ++rank) {
    if (hosts[rank] == hosts[rank - 1]) continue;
    ended.insert(hosts[rank - 1]);
    if (ended.contains(hosts[rank])) return false;
  }
  return true;
}

std::vector<std::uint32_t> Hosts::sharing(std::span<const std::uint32_t> hosts, std::uint32_t rank,
                                          std::uint32_t size) {
  std::vector<std::uint32_t> all;
  for (std::uint32_t each = 0; each < size; ++each) {
    if (hosts.empty() || hosts[each] == hosts[rank]) all.push_back(each);
  }
  return all;
}

bool Hosts::has_levels(std::span<const std::uint32_t> hosts) {
  const std::size_t different = std::set<std::uint32_t>(hosts.begin(), hosts.end()).size();
  return different > 1 && different < hosts.size();
}

}  // namespace hawser::schedule
