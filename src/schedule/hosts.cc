#include "schedule/hosts.h"

#include <algorithm>
#include <map>
#include <set>

namespace hawser::schedule {
namespace {

std::size_t place_of(const std::vector<std::uint32_t>& ranks, std::uint32_t rank) {
  return static_cast<std::size_t>(std::ranges::find(ranks, rank) - ranks.begin());
}

}  // namespace

Hosts::Hosts(std::span<const std::uint32_t> hosts, std::uint32_t rank, std::uint32_t root) {
  std::map<std::uint32_t, std::vector<std::uint32_t>> ranks;
  for (std::uint32_t each = 0; each < hosts.size(); ++each) ranks[hosts[each]].push_back(each);
  std::vector<std::uint32_t>& roots = ranks[hosts[root]];
  std::rotate(roots.begin(), std::ranges::find(roots, root), roots.end());  // clang 14 cannot parse ranges::rotate.
  leaders_.push_back(root);
  for (const auto& [host, its] : ranks) {
    if (host != hosts[root]) leaders_.push_back(its.front());
    ranks_max_ = std::max(ranks_max_, static_cast<std::uint32_t>(its.size()));
    is_even_ = is_even_ && its.size() == ranks.begin()->second.size();
  }
  mates_ = ranks[hosts[rank]];
  mates_place_ = place_of(mates_, rank);
  if (is_leader()) leaders_place_ = place_of(leaders_, rank);
  if (!is_even_) return;
  for (const std::uint32_t leader : leaders_) column_.push_back(ranks[hosts[leader]][mates_place_]);
  column_place_ = place_of(column_, rank);
}

bool Hosts::are_several(std::span<const std::uint32_t> hosts) {
  return std::ranges::any_of(hosts, [&](std::uint32_t each) { return each != hosts.front(); });
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
