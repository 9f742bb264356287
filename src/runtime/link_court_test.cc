// Which ranks of a sparse world fail where neighbours lose sight of one another: the rule by a table, and the court by
// ranks as objects that flood what they know.

#include "runtime/link_court.h"

#include <gtest/gtest.h>

#include <deque>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <variant>

#include "base/rng.h"
#include "runtime/court.h"

namespace hawser::runtime {
namespace {

using Ranks = std::vector<std::uint32_t>;
using RankSet = std::set<std::uint32_t>;

TEST(RanksToLeaveOutOfASparseWorld, TheOneThatLostMoreThenTheOneThatJoinsFewerThenTheHigher) {
  const struct {
    const char* what;
    const char* topology;
    std::uint32_t size;
    std::vector<Link> lost;
    RankSet gone;
    Ranks out;
  } cases[] = {
      {"nobody lost anybody", "regular:2", 5, {}, {}, {}},
      {"two of a ring", "regular:2", 5, {{1, 2}}, {}, {2}},
      {"the ends of its numbers", "regular:2", 5, {{0, 4}}, {}, {4}},
      {"the lower one lost two", "regular:4", 7, {{1, 2}, {1, 3}}, {}, {1}},
      {"two pairs", "hypercube", 8, {{0, 1}, {6, 7}}, {}, {7, 1}},
      {"the higher one has a rank behind it", "edges:0-1,1-2,2-3,3-0,3-4", 5, {{0, 3}}, {}, {0}},
      {"both have a rank behind them, and it goes first", "edges:0-1,1-2,2-3,3-0,3-4,0-5", 6, {{0, 3}}, {}, {4, 3}},
      {"the lower one has more behind it", "edges:0-1,1-2,2-3,3-0,3-4,0-5,5-6", 7, {{0, 3}}, {}, {4, 3}},
      {"the higher one has more behind it", "edges:0-1,1-2,2-3,3-0,3-4,0-5,4-6", 7, {{0, 3}}, {}, {5, 0}},
      {"a bridge: each side for itself", "edges:0-1,1-2,2-3", 4, {{1, 2}}, {}, {}},
      {"one that all neighbours lost", "regular:2", 5, {{1, 2}, {2, 3}}, {}, {}},
      {"of one that is gone", "regular:4", 7, {{1, 2}}, {2}, {}},
  };
  for (const auto& each : cases) {
    Routes routes(parse_topology(each.topology).value(), 0, each.size);
    for (const auto& [one, other] : each.lost) {
      routes.lose_link(one, other);
      routes.lose_link(other, one);
    }
    for (const std::uint32_t rank : each.gone) routes.exclude(rank);
    EXPECT_EQ(ranks_to_leave_out(routes), each.out) << each.what;
  }
}

/// Where all are neighbours, and none lost all others, it is the rule of full worlds.
TEST(RanksToLeaveOutOfASparseWorld, OfACompleteGraphTheSameAsOfAFullWorld) {
  base::Rng rng(5);
  int compared = 0;
  for (int trial = 0; trial < 300; ++trial) {
    const auto size = static_cast<std::uint32_t>(4 + rng.below(5));
    std::vector<Topology::Edge> edges;
    for (std::uint32_t one = 0; one < size; ++one) {
      for (std::uint32_t other = one + 1; other < size; ++other) edges.emplace_back(one, other);
    }
    Routes routes(Topology::of_edges(edges), 0, size);
    std::vector<Loss> losses;
    for (std::uint64_t count = 1 + rng.below(3); count > 0; --count) {
      const Topology::Edge& edge = edges[rng.below(edges.size())];
      if (routes.lose_link(edge.first, edge.second)) losses.emplace_back(edge.first, edge.second);
      routes.lose_link(edge.second, edge.first);
    }
    bool are_joined = true;
    for (std::uint32_t rank = 0; rank < size; ++rank) are_joined = are_joined && routes.reaches(rank);
    if (!are_joined) continue;
    EXPECT_EQ(ranks_to_leave_out(routes), ranks_to_leave_out(size, losses));
    ++compared;
  }
  EXPECT_GT(compared, 250);
}

TEST(RanksToLeaveOutOfASparseWorld, TheOneThatDoesNotAnswer) {
  Routes routes(Topology::regular(4), 0, 7);
  routes.lose_link(2, 1);
  EXPECT_EQ(ranks_to_leave_out(routes), Ranks{1});
  routes.lose_link(2, 3);
  routes.lose_link(3, 2);
  EXPECT_EQ(ranks_to_leave_out(routes), (Ranks{1, 3})) << "though 2 has lost more";
  routes.lose_link(1, 2);
  EXPECT_EQ(ranks_to_leave_out(routes), Ranks{2});
}

TEST(RanksToLeaveOutOfASparseWorld, LinksOfALaterGraphAreNoCase) {
  Routes routes(Topology::regular(2), 0, 6);
  routes.exclude(1);
  const Ranks members = {0, 2, 3, 4, 5};
  ASSERT_TRUE(routes.adopt(1, members));
  ASSERT_TRUE(routes.is_neighbour(2));
  routes.lose_link(0, 2);  // They talk in frames, which go round.
  EXPECT_TRUE(ranks_to_leave_out(routes).empty());
  EXPECT_EQ(routes.hop_to(2), 5U);
}

/// Ranks whose words arrive in order by links, and otherwise in any order; each tells all its neighbours what it hears
/// first, as relays do. A link that is cut loses what is on it, and each of its ends finds out at a moment of its own.
class LinkCourts {
 public:
  LinkCourts(const Topology& topology, std::uint32_t size, std::uint64_t seed) : rng_(seed), size_(size) {
    for (std::uint32_t rank = 0; rank < size; ++rank) {
      routes_.push_back(std::make_unique<Routes>(topology, rank, size));
      courts_.push_back(
          std::make_unique<LinkCourt>(*routes_[rank], [this, rank](std::uint32_t other) { learn(rank, other); }));
    }
  }
  std::uint32_t size() const { return size_; }
  const Routes& routes(std::uint32_t rank) const { return *routes_[rank]; }
  LinkCourt& court(std::uint32_t rank) { return *courts_[rank]; }
  bool is_excluded(std::uint32_t rank) const { return excluded_.contains(rank); }
  bool is_dead(std::uint32_t rank) const { return dead_.contains(rank); }
  /// Whom it takes for failed.
  RankSet failed(std::uint32_t rank) const {
    RankSet all;
    for (std::uint32_t other = 0; other < size_; ++other) {
      if (!routes(rank).reaches(other)) all.insert(other);
    }
    return all;
  }
  bool has_link(std::uint32_t one, std::uint32_t other) const { return routes(0).have_session(one, other); }
  void cut(std::uint32_t one, std::uint32_t other) {
    if (!cut_.insert(link_of(one, other)).second) return;
    for (const auto& [from, to] : {std::pair(one, other), std::pair(other, one)}) {
      lines_[{from, to}].clear();
      finds_out_.emplace_back(from, to);
    }
  }
  /// Silent from now on.
  void kill(std::uint32_t rank) {
    dead_.insert(rank);
    for (const std::uint32_t other : routes(rank).neighbours()) cut(rank, other);
  }
  /// It hears and says nothing for now, and the others do not lose it.
  void hang(std::uint32_t rank) { dead_.insert(rank); }
  bool step() {
    std::erase_if(lines_, [](const auto& line) { return line.second.empty(); });
    const std::size_t choices = lines_.size() + finds_out_.size();
    if (choices == 0) return false;
    const std::size_t choice = rng_.below(choices);
    if (choice >= lines_.size()) {
      const auto at = finds_out_.begin() + static_cast<std::ptrdiff_t>(choice - lines_.size());
      const auto [rank, other] = *at;
      finds_out_.erase(at);
      if (!is_dead(rank)) learn(rank, Loss(rank, other));
      return true;
    }
    const auto line = std::next(lines_.begin(), static_cast<std::ptrdiff_t>(choice));
    const std::uint32_t to = line->first.second;
    const Word word = line->second.front();
    line->second.pop_front();
    if (is_dead(to)) return true;
    if (const auto* const rank = std::get_if<std::uint32_t>(&word)) learn(to, *rank);
    if (const auto* const lost = std::get_if<Loss>(&word)) learn(to, *lost);
    return true;
  }
  /// `late`: ranks whose deadlines do not come.
  void settle(const RankSet& late = {}) {
    run();
    for (std::uint32_t rank = 0; rank < size_; ++rank) {
      if (is_running(rank) && !late.contains(rank) && court(rank).is_open()) court(rank).settle();
    }
    run();
  }
  void give_up(std::uint32_t rank) {
    court(rank).give_up();
    run();
  }
  bool is_running(std::uint32_t rank) const { return !is_dead(rank) && !is_excluded(rank); }
  void run() {
    while (step()) {
    }
  }

 private:
  using Word = std::variant<std::uint32_t, Loss>;  ///< A rank that is gone, or who has lost whom.

  void tell(std::uint32_t rank, const Word& word) {
    for (const std::uint32_t other : routes(rank).neighbours()) {
      if (!cut_.contains(link_of(rank, other))) lines_[{rank, other}].push_back(word);
    }
  }
  void learn(std::uint32_t rank, std::uint32_t gone) {
    if (rank == gone ? !excluded_.insert(rank).second : !routes_[rank]->exclude(gone)) return;
    tell(rank, gone);
    if (!is_excluded(rank)) court(rank).look();
  }
  void learn(std::uint32_t rank, const Loss& lost) {
    if (!routes_[rank]->lose_link(lost.first, lost.second)) return;
    tell(rank, lost);
    if (lost.second == rank) learn(rank, Loss(rank, lost.first));
    if (!is_excluded(rank)) court(rank).look();
  }

  base::Rng rng_;
  const std::uint32_t size_;
  std::vector<std::unique_ptr<Routes>> routes_;
  std::vector<std::unique_ptr<LinkCourt>> courts_;
  RankSet excluded_, dead_;
  Links cut_;
  std::deque<std::pair<std::uint32_t, std::uint32_t>> finds_out_;
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::deque<Word>> lines_;
};

/// Everybody that is left has the same verdicts, and nothing is undecided.
void expect_verdicts(LinkCourts& courts, const RankSet& failed) {
  for (std::uint32_t rank = 0; rank < courts.size(); ++rank) {
    if (courts.is_dead(rank)) continue;
    EXPECT_EQ(courts.is_excluded(rank), failed.contains(rank)) << "rank " << rank;
    if (failed.contains(rank)) continue;
    EXPECT_EQ(courts.failed(rank), failed) << "rank " << rank;
    EXPECT_FALSE(courts.court(rank).is_open()) << "rank " << rank;
  }
}

struct Drawn {
  Topology topology;
  std::uint32_t size;
};

Drawn draw_shape(base::Rng& rng) {
  const auto size = static_cast<std::uint32_t>(5 + rng.below(9));
  if (rng.chance(0.3)) return {Topology::hypercube(), size};
  return {Topology::regular(rng.chance(0.5) ? 2 : 4), size};
}

std::pair<std::uint32_t, std::uint32_t> draw_link(base::Rng& rng, const LinkCourts& courts) {
  const auto one = static_cast<std::uint32_t>(rng.below(courts.size()));
  const Ranks& others = courts.routes(one).neighbours();
  return {one, others[rng.below(others.size())]};
}

TEST(LinkCourt, OfTwoNeighboursThatLostEachOtherTheHigherFailsAndNobodyElse) {
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    SCOPED_TRACE(seed);
    base::Rng rng(seed);
    const Drawn drawn = draw_shape(rng);
    if (drawn.topology.kind == Topology::Kind::kHypercube && drawn.size % 4 != 0) continue;  // Some have one neighbour.
    LinkCourts courts(drawn.topology, drawn.size, seed);
    const auto [one, other] = draw_link(rng, courts);
    courts.cut(one, other);
    courts.run();
    EXPECT_TRUE(courts.court(one).is_open()) << "more may show";
    EXPECT_EQ(courts.court(one).lost_with(one), Ranks{other});
    courts.settle();
    expect_verdicts(courts, {std::max(one, other)});
  }
}

TEST(LinkCourt, OneThatAllNeighboursLostFailsAtOnce) {
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    SCOPED_TRACE(seed);
    base::Rng rng(seed);
    LinkCourts courts(Topology::regular(4), static_cast<std::uint32_t>(6 + rng.below(5)), seed);
    const auto victim = static_cast<std::uint32_t>(rng.below(courts.size()));
    courts.kill(victim);
    courts.run();
    expect_verdicts(courts, {victim});
  }
}

/// Its neighbours find out at different times.
TEST(LinkCourt, OneThatDoesNotAnswerIsNotTakenForOneThatLives) {
  LinkCourts courts(Topology::regular(2), 6, 1);
  courts.kill(3);
  while (!courts.court(4).is_open()) ASSERT_TRUE(courts.step());
  for (const std::uint32_t rank : {4U, 0U}) courts.court(rank).settle();
  EXPECT_TRUE(courts.is_running(4)) << "the higher, and it lives";
  courts.run();
  expect_verdicts(courts, {3});
}

TEST(LinkCourt, OneThatNeverAnswersFailsWhereTheCourtGivesUp) {
  LinkCourts courts(Topology::regular(2), 6, 1);
  courts.hang(2);
  courts.cut(2, 3);
  courts.settle();
  EXPECT_TRUE(courts.court(0).is_open());
  courts.give_up(0);
  for (const std::uint32_t rank : {0U, 1U, 3U, 4U, 5U}) EXPECT_EQ(courts.failed(rank), RankSet{2}) << rank;
}

TEST(LinkCourt, ALaterLossIsACaseOfItsOwn) {
  for (std::uint64_t seed = 1; seed <= 100; ++seed) {
    SCOPED_TRACE(seed);
    LinkCourts courts(Topology::regular(4), 8, seed);
    courts.cut(1, 2);
    courts.settle();
    expect_verdicts(courts, {2});
    courts.cut(4, 6);
    courts.run();
    EXPECT_TRUE(courts.court(0).is_open()) << "all losses are given time to show again";
    courts.settle();
    expect_verdicts(courts, {2, 6});
  }
}

TEST(LinkCourt, WithoutAVerdictAnyRankGivesItEvenOnItself) {
  for (const std::uint32_t giver : {3U, 2U}) {
    LinkCourts courts(Topology::regular(4), 7, 3);
    courts.cut(1, 2);
    courts.settle({0});  // The lowest hangs.
    EXPECT_TRUE(courts.court(giver).is_open());
    courts.give_up(giver);
    expect_verdicts(courts, {2});
  }
}

/// Links are cut and ranks die by chance, also while verdicts spread. Ranks that links still join, and that nobody left
/// out, have the same verdicts in the end; a rank that is left out and still joined knows it; no two are left that lost
/// each other.
TEST(LinkCourt, ThoseThatStayJoinedAgreeWhateverIsLost) {
  std::size_t compared = 0, left_out = 0;
  for (std::uint64_t seed = 1; seed <= 2000; ++seed) {
    SCOPED_TRACE(seed);
    base::Rng rng(seed);
    const Drawn drawn = draw_shape(rng);
    LinkCourts courts(drawn.topology, drawn.size, seed);
    for (std::uint64_t faults = 1 + rng.below(4); faults > 0; --faults) {
      const auto [one, other] = draw_link(rng, courts);
      if (rng.chance(0.2)) courts.kill(one);
      courts.cut(one, other);
      for (std::uint64_t steps = rng.below(20); steps > 0 && courts.step(); --steps) {
      }
      const auto early = static_cast<std::uint32_t>(rng.below(courts.size()));
      if (rng.chance(0.5) && courts.is_running(early) && courts.court(early).is_open()) courts.court(early).settle();
    }
    courts.settle();
    for (std::uint32_t rank = 0; rank < courts.size(); ++rank) {  // Where the lowest found out too late, or hung.
      if (courts.is_running(rank) && courts.court(rank).is_open()) courts.give_up(rank);
    }
    for (std::uint32_t rank = 0; rank < courts.size(); ++rank) {
      if (!courts.is_running(rank)) continue;
      EXPECT_FALSE(courts.court(rank).is_open()) << rank;
      for (std::uint32_t other = 0; other < courts.size(); ++other) {
        if (!courts.routes(rank).reaches(other)) continue;
        ASSERT_TRUE(courts.is_running(other)) << other << " is not left out for " << rank;
        ASSERT_EQ(courts.failed(rank), courts.failed(other)) << rank << " and " << other;
        ++compared;
      }
      left_out += courts.failed(rank).size();
    }
  }
  EXPECT_GT(compared, 50'000U);
  EXPECT_GT(left_out, 10'000U);
}

}  // namespace
}  // namespace hawser::runtime
