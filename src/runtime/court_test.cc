// Which ranks fail where live ranks lose sight of one another: the rule by a table, the court by ranks as objects.

#include "runtime/court.h"

#include <gtest/gtest.h>

#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>

#include "base/rng.h"

namespace hawser::runtime {
namespace {

using Ranks = std::vector<std::uint32_t>;

TEST(RanksToLeaveOut, TheOneThatReachesFewerThenTheHigher) {
  const struct {
    const char* what;
    std::uint32_t size;
    std::vector<Loss> losses;
    Ranks out;
  } cases[] = {
      {"nobody lost anybody", 3, {}, {}},
      {"two that lost each other", 2, {{0, 1}}, {1}},
      {"both say so", 3, {{0, 1}, {1, 0}}, {1}},
      {"only the higher says so", 3, {{2, 1}}, {2}},
      {"the lower reaches fewer", 4, {{0, 1}, {0, 2}}, {0}},
      {"the same, told twice by one and once by the other", 4, {{0, 1}, {1, 0}, {0, 2}}, {0}},
      {"the higher reaches fewer", 4, {{3, 1}, {3, 2}}, {3}},
      {"one is silent to all", 4, {{0, 1}, {2, 1}, {3, 1}}, {1}},
      {"two pairs", 5, {{0, 1}, {2, 3}}, {3, 1}},
      {"a chain", 4, {{0, 1}, {1, 2}, {2, 3}}, {2, 1}},
      {"a triangle", 4, {{0, 1}, {1, 2}, {0, 2}}, {2, 1}},
      {"two halves", 4, {{0, 2}, {0, 3}, {1, 2}, {1, 3}}, {3, 2}},
      {"the larger part stays", 5, {{0, 2}, {0, 3}, {0, 4}, {1, 2}, {1, 3}, {1, 4}}, {1, 0}},
  };
  for (const auto& each : cases) EXPECT_EQ(ranks_to_leave_out(each.size, each.losses), each.out) << each.what;
}

/// Ranks whose words arrive in order between two of them, and otherwise in any order. A link that is cut loses what is
/// on it, and each of its ends finds out at a moment of its own.
class Courts {
 public:
  Courts(std::uint32_t size, std::uint64_t seed) : rng_(seed), failed_(size), dead_(size) {
    for (std::uint32_t rank = 0; rank < size; ++rank) {
      all_.push_back(std::make_unique<Court>(
          rank, size,
          Court::Hooks{.tell = [this, rank](std::uint32_t to, const std::vector<bool>& lost,
                                            bool asks) { say(rank, to, {.lost = lost, .asks = asks}); },
                       .convict = [this, rank](std::uint32_t other) { convict(rank, other); }}));
    }
  }
  std::uint32_t size() const { return static_cast<std::uint32_t>(all_.size()); }
  Court& of(std::uint32_t rank) { return *all_[rank]; }
  /// Whom the rank takes for failed.
  const std::set<std::uint32_t>& failed(std::uint32_t rank) const { return failed_[rank]; }
  bool is_excluded(std::uint32_t rank) const { return failed_[rank].contains(rank); }

  void cut(std::uint32_t one, std::uint32_t other) {
    for (const auto& [from, to] : {std::pair(one, other), std::pair(other, one)}) {
      cut_.insert({from, to});
      lines_[{from, to}].clear();
      if (!dead_[from]) finds_out_.push_back({from, to});
    }
  }
  /// Silent from now on.
  void kill(std::uint32_t rank) {
    dead_[rank] = true;
    for (std::uint32_t other = 0; other < size(); ++other) {
      if (other != rank && !cut_.contains({rank, other})) cut(rank, other);
    }
    std::erase_if(finds_out_, [rank](const auto& each) { return each.first == rank; });
  }
  bool is_dead(std::uint32_t rank) const { return dead_[rank]; }

  void run() {
    while (step()) {
    }
  }
  /// Until all that comes up is decided.
  void settle() {
    run();
    for (std::uint32_t rank = 0; rank < size(); ++rank) {
      if (!dead_[rank] && !is_excluded(rank) && of(rank).is_open()) of(rank).settle();
    }
    run();
  }

 private:
  struct Word {
    std::vector<bool> lost;
    bool asks = false;
    std::optional<std::uint32_t> failed;
  };

  bool step() {
    std::erase_if(lines_, [](const auto& line) { return line.second.empty(); });
    const std::size_t choices = lines_.size() + finds_out_.size();
    if (choices == 0) return false;
    const std::size_t choice = rng_.below(choices);
    if (choice >= lines_.size()) {
      const auto at = finds_out_.begin() + static_cast<std::ptrdiff_t>(choice - lines_.size());
      const auto [rank, other] = *at;
      finds_out_.erase(at);
      if (!is_excluded(rank)) of(rank).note_lost(other);
      return true;
    }
    const auto line = std::next(lines_.begin(), static_cast<std::ptrdiff_t>(choice));
    const auto [from, to] = line->first;
    const Word word = line->second.front();
    line->second.pop_front();
    if (dead_[to] || is_excluded(to) || failed_[to].contains(from)) return true;
    if (word.failed) {
      learn(to, *word.failed);
    } else {
      of(to).hear(from, word.lost, word.asks);
    }
    return true;
  }
  void say(std::uint32_t from, std::uint32_t to, Word word) {
    if (!dead_[from] && !cut_.contains({from, to})) lines_[{from, to}].push_back(std::move(word));
  }
  void convict(std::uint32_t by, std::uint32_t rank) { learn(by, rank); }
  void learn(std::uint32_t rank, std::uint32_t failed) {
    if (!failed_[rank].insert(failed).second) return;
    for (std::uint32_t other = 0; other < size(); ++other) {
      if (other != rank) say(rank, other, {.lost = {}, .asks = false, .failed = failed});
    }
    if (failed != rank) of(rank).note_gone(failed);
  }

  base::Rng rng_;
  std::vector<std::unique_ptr<Court>> all_;
  std::vector<std::set<std::uint32_t>> failed_;
  std::vector<bool> dead_;
  std::set<std::pair<std::uint32_t, std::uint32_t>> cut_;
  std::deque<std::pair<std::uint32_t, std::uint32_t>> finds_out_;
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::deque<Word>> lines_;
};

/// Everybody that is left has the same verdicts, and of the links that are cut none joins two that are left.
void expect_verdicts(Courts& courts, const std::set<std::uint32_t>& failed, std::uint64_t seed) {
  for (std::uint32_t rank = 0; rank < courts.size(); ++rank) {
    if (courts.is_dead(rank)) continue;
    if (failed.contains(rank)) {
      EXPECT_TRUE(courts.is_excluded(rank)) << "rank " << rank << " is not told, seed " << seed;
      continue;
    }
    EXPECT_EQ(courts.failed(rank), failed) << "rank " << rank << ", seed " << seed;
    EXPECT_FALSE(courts.of(rank).is_open()) << "rank " << rank << ", seed " << seed;
  }
}

TEST(Court, OfTwoThatLostEachOtherTheHigherFails) {
  for (std::uint64_t seed = 1; seed <= 500; ++seed) {
    const auto size = static_cast<std::uint32_t>(3 + seed % 5);
    base::Rng rng(seed);
    const auto one = static_cast<std::uint32_t>(rng.below(size));
    const auto other = static_cast<std::uint32_t>((one + 1 + rng.below(size - 1)) % size);
    Courts courts(size, seed);
    courts.cut(one, other);
    courts.run();
    EXPECT_TRUE(courts.of(one).is_open()) << "more may show";
    courts.settle();
    expect_verdicts(courts, {std::max(one, other)}, seed);
  }
}

TEST(Court, TheOneThatReachesFewerFails) {
  for (std::uint64_t seed = 1; seed <= 500; ++seed) {
    Courts courts(5, seed);
    courts.cut(0, 1);
    courts.cut(0, 2);
    courts.settle();
    expect_verdicts(courts, {0}, seed);
  }
}

TEST(Court, OneThatIsSilentToAllFailsWhateverItsNumber) {
  for (std::uint64_t seed = 1; seed <= 500; ++seed) {
    const auto size = static_cast<std::uint32_t>(3 + seed % 5);
    Courts courts(size, seed);
    const auto victim = static_cast<std::uint32_t>(seed / 5 % size);
    courts.kill(victim);
    courts.run();
    expect_verdicts(courts, {victim}, seed);
  }
}

TEST(Court, WithoutAThirdEachDecidesForItself) {
  Courts courts(2, 1);
  courts.cut(0, 1);
  courts.run();
  EXPECT_EQ(courts.failed(0), std::set<std::uint32_t>{1});
  EXPECT_EQ(courts.failed(1), std::set<std::uint32_t>{0});
}

TEST(Court, ThoseThatReachNobodyElseGiveUp) {
  std::set<std::uint32_t> convicted;
  Court court(3, 5,
              {.tell = [](auto, const auto&, bool) {}, .convict = [&](std::uint32_t rank) { convicted.insert(rank); }});
  for (const std::uint32_t rank : {0U, 1U, 2U}) court.note_lost(rank);
  court.hear(4, {true, true, true, false, false}, false);  // Of two halves these two are left out.
  court.settle();
  EXPECT_TRUE(convicted.empty());
  EXPECT_EQ(court.lost(), (Ranks{0, 1, 2}));
  court.give_up();
  EXPECT_EQ(convicted, (std::set<std::uint32_t>{0, 1, 2}));
  EXPECT_FALSE(court.is_open());
}

TEST(Court, NonsenseIsPassedOver) {
  int words = 0;
  Court court(0, 3, {.tell = [&](auto, const auto&, bool) { ++words; }, .convict = [](std::uint32_t) { FAIL(); }});
  court.hear(3, {false, false, false}, true);
  court.hear(0, {false, true, false}, true);
  court.hear(1, {false, false}, true);
  court.hear(1, {false, true, false}, false);  // It says that it has lost itself.
  EXPECT_EQ(words, 0);
  EXPECT_FALSE(court.is_open());
  court.hear(1, {false, false, false}, true);
  EXPECT_EQ(words, 1) << "it asks";
}

TEST(Court, ALaterLossIsACaseOfItsOwn) {
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    Courts courts(6, seed);
    courts.cut(1, 4);
    courts.settle();
    expect_verdicts(courts, {4}, seed);
    courts.cut(0, 3);
    courts.settle();
    expect_verdicts(courts, {3, 4}, seed);
  }
}

}  // namespace
}  // namespace hawser::runtime
