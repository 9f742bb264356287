#include "runtime/link_court.h"

#include <algorithm>
#include <deque>
#include <set>
#include <tuple>

#include "base/planted.h"

namespace hawser::runtime {
namespace {

using base::planted;
using base::Planted;
using Ranks = std::set<std::uint32_t>;

bool is_reached_pair(const Routes& routes, const Link& link) {
  const auto [one, other] = link;
  return routes.have_session(one, other) && routes.reaches(one) && routes.reaches(other);
}

/// Those that lost each other though others still join them.
std::vector<Link> disputes_of(const Routes& routes) {
  std::vector<Link> all;
  for (const Link& link : routes.lost_links()) {
    if (is_reached_pair(routes, link)) all.push_back(link);
  }
  return all;
}

/// Takes what is joined with the first of `ranks` out of them.
Ranks take_part(const Routes& routes, Ranks& ranks) {
  Ranks part;
  std::deque<std::uint32_t> reached;
  const auto reach = [&](std::uint32_t rank) {
    if (ranks.erase(rank) == 0) return;
    part.insert(rank);
    reached.push_back(rank);
  };
  reach(*ranks.begin());
  for (; !reached.empty(); reached.pop_front()) {
    const std::uint32_t rank = reached.front();
    for (const std::uint32_t next : routes.graph().neighbours(rank)) {
      if (!routes.lost_links().contains(link_of(rank, next))) reach(next);
    }
  }
  return part;
}

Ranks largest_part(const Routes& routes, Ranks ranks) {
  Ranks largest;
  while (!ranks.empty()) {
    Ranks part = take_part(routes, ranks);
    if (part.size() > largest.size()) largest = std::move(part);
  }
  return largest;
}

std::uint32_t worst_of(const Routes& routes, const std::vector<Link>& disputes, const Ranks& left) {
  Ranks parties;
  for (const auto& [one, other] : disputes) parties.insert({one, other});
  const auto badness = [&](std::uint32_t rank) {
    const auto losses =
        std::ranges::count_if(disputes, [rank](const Link& each) { return each.first == rank || each.second == rank; });
    const auto unanswered = std::ranges::count_if(disputes, [&](const Link& each) {
      const bool is_party = each.first == rank || each.second == rank;
      return is_party && !planted(Planted::kAnswerUnawaited) &&
             !routes.has_said_lost(rank, each.first == rank ? each.second : each.first);
    });
    Ranks rest = left;
    rest.erase(rank);
    const std::size_t joined = planted(Planted::kCourtParts) ? 0 : largest_part(routes, std::move(rest)).size();
    return std::tuple(unanswered, losses, joined, rank);
  };
  return *std::ranges::max_element(parties, {}, badness);
}

}  // namespace

std::vector<std::uint32_t> ranks_to_leave_out(const Routes& routes) {
  std::vector<Link> disputes = disputes_of(routes);
  if (disputes.empty()) return {};
  Ranks left;
  for (std::uint32_t rank = 0; rank < routes.size(); ++rank) {
    if (routes.reaches(rank)) left.insert(rank);
  }
  std::vector<std::uint32_t> out;
  while (!disputes.empty()) {
    const std::uint32_t worst = worst_of(routes, disputes, left);
    out.push_back(worst);
    left.erase(worst);
    std::erase_if(disputes, [worst](const Link& each) { return each.first == worst || each.second == worst; });
  }
  const Ranks stays = largest_part(routes, left);
  std::erase_if(left, [&](std::uint32_t rank) { return stays.contains(rank); });
  out.insert(out.begin(), left.begin(), left.end());
  return out;
}

bool LinkCourt::is_open() const {
  return std::ranges::any_of(routes_.lost_links(), [this](const Link& each) { return is_reached_pair(routes_, each); });
}

std::vector<std::uint32_t> LinkCourt::lost_with(std::uint32_t rank) const {
  std::vector<std::uint32_t> all;
  for (const auto& [one, other] : disputes_of(routes_)) {
    if (one == rank || other == rank) all.push_back(one == rank ? other : one);
  }
  return all;
}

/// All that were lost have said that they live.
bool LinkCourt::has_answers() const {
  if (planted(Planted::kAnswerUnawaited)) return true;
  return std::ranges::all_of(disputes_of(routes_), [this](const Link& each) {
    return routes_.has_said_lost(each.first, each.second) && routes_.has_said_lost(each.second, each.first);
  });
}

void LinkCourt::look() {
  if (!is_open()) is_settled_ = false;  // What comes up later is another case.
  if (!is_settled_ || is_convicting_ || !has_answers()) return;
  const std::vector<std::uint32_t> out = ranks_to_leave_out(routes_);
  const auto stays = [&](std::uint32_t rank) { return std::ranges::find(out, rank) == out.end(); };
  for (std::uint32_t lower = 0; lower < routes_.rank(); ++lower) {
    if (routes_.reaches(lower) && stays(lower)) return;
  }
  if (stays(routes_.rank())) convict(out);
}

void LinkCourt::settle() {
  is_settled_ = true;
  look();
}

void LinkCourt::give_up() { convict(ranks_to_leave_out(routes_)); }

void LinkCourt::convict(const std::vector<std::uint32_t>& ranks) {
  if (is_convicting_) return;
  is_convicting_ = true;
  for (const std::uint32_t rank : ranks) convict_(rank);
  is_convicting_ = false;
  if (!is_open()) is_settled_ = false;
}

}  // namespace hawser::runtime
