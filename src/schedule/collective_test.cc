// Every operation by every algorithm for worlds of 1 to 65 ranks, run in memory against a plain reference.

#include "schedule/collective.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <map>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "base/rng.h"
#include "schedule/hosts.h"
#include "schedule/play_phases.h"
#include "schedule/run_in_memory.h"

namespace hawser::schedule {
namespace {

#if defined(__SANITIZE_THREAD__) || defined(HAWSER_SANITIZE_THREAD) || defined(HAWSER_EMULATED)
constexpr std::uint32_t kSizes = 17;  // There is one thread, and it takes ten times as long.
#else
constexpr std::uint32_t kSizes = 65;
#endif

/// What all ranks call, but for the rank.
struct Case {
  Call call;
  Algorithm algorithm = Algorithm::kDirect;
  bool is_mixed = false;    ///< On every second host the ranks cannot map, and go by messages.
  bool has_boards = false;  ///< Ranks of one host meet by steps, if they can map.
  bool is_played = false;   ///< Ranks of one host write on boards, if they can map.
  std::string name() const {
    return std::string(to_string(call.operation)) + " by " + std::string(to_string(algorithm)) + ", " +
           std::to_string(call.size) + " ranks, root " + std::to_string(call.root) + ", " + std::to_string(call.count) +
           " elements" + (call.commutes ? "" : ", ordered") + (call.has_input_in_output ? ", in place" : "") +
           (call.is_even ? ", even" : "") + (has_boards ? ", with boards" : "") + (is_played ? ", on boards" : "") +
           (is_mixed ? ", mixed" : "");
  }
};

/// Blocks of some sizes, some of them empty.
std::vector<std::uint64_t> uneven(std::uint32_t size, std::uint64_t seed) {
  std::vector<std::uint64_t> counts(size);
  for (std::uint32_t i = 0; i < size; ++i) counts[i] = (i * 7 + seed) % 5;
  return counts;
}

/// What `from` sends to `to` in an all-to-all.
std::uint64_t pair_count(const Call& call, std::uint32_t from, std::uint32_t to) {
  return call.is_even ? call.count : (from * 3 + to * 5) % 4;
}

Call for_rank(const Case& all, std::uint32_t rank) {
  Call call = all.call;
  call.rank = rank;
  if (call.operation == Operation::kAllToAll) {
    call.counts.clear();
    call.in_counts.clear();
    for (std::uint32_t other = 0; other < call.size; ++other) {
      call.counts.push_back(pair_count(all.call, rank, other));
      call.in_counts.push_back(pair_count(all.call, other, rank));
    }
  }
  return call;
}

std::uint64_t sum(const std::vector<std::uint64_t>& counts) {
  return std::accumulate(counts.begin(), counts.end(), std::uint64_t{0});
}

std::uint64_t meetings_in(const Schedule& schedule) {
  std::uint64_t meetings = 0;
  for (std::size_t i = 0; i < schedule.rounds(); ++i) meetings += schedule.round(i)[0].action == Action::kMeet ? 1 : 0;
  return meetings;
}

class Reference {
 public:
  explicit Reference(const Case& all) : all_(all), call_(all.call) {}

  std::uint64_t input_size(std::uint32_t rank) const {
    switch (call_.operation) {
      case Operation::kBarrier:
      case Operation::kBroadcast:
        return 0;
      case Operation::kAllGather:
      case Operation::kGather:
        return call_.counts[rank];
      case Operation::kReduceScatter:
        return sum(call_.counts);
      case Operation::kScatter:
        return rank == call_.root ? sum(call_.counts) : 0;
      case Operation::kAllToAll:
        return sum(for_rank(all_, rank).counts);
      default:
        return call_.count;
    }
  }
  Array input(std::uint32_t rank) const { return contribution(rank, input_size(rank)); }

  /// Empty where the rank gets nothing.
  Array output(std::uint32_t rank) const {
    switch (call_.operation) {
      case Operation::kBarrier:
        return {};
      case Operation::kBroadcast:
        return contribution(call_.root, call_.count);
      case Operation::kReduce:
        return rank == call_.root ? combined(call_.size, call_.count) : Array();
      case Operation::kAllReduce:
        return combined(call_.size, call_.count);
      case Operation::kScan:
        return combined(rank + 1, call_.count);
      case Operation::kExclusiveScan:
        return rank == 0 ? input(0) : combined(rank, call_.count);
      case Operation::kReduceScatter:
        return block(combined(call_.size, sum(call_.counts)), call_.counts, rank);
      case Operation::kAllGather:
        return gathered();
      case Operation::kGather:
        return rank == call_.root ? gathered() : Array();
      case Operation::kScatter:
        return block(contribution(call_.root, sum(call_.counts)), call_.counts, rank);
      case Operation::kAllToAll:
        return exchanged(rank);
    }
    return {};
  }

 private:
  static Array contribution(std::uint32_t rank, std::uint64_t count) {
    Array all(count);
    for (std::uint64_t i = 0; i < count; ++i) all[i] = Element::of(rank, i);
    return all;
  }
  /// Of ranks 0 to `end`. Kept, because many ranks ask for the same, or for one more.
  const Array& combined(std::uint32_t end, std::uint64_t count) const {
    if (known_end_ == 0 || known_end_ > end) {
      known_ = contribution(0, count);
      known_end_ = 1;
    }
    Array& all = known_;
    for (std::uint32_t rank = std::exchange(known_end_, end); rank < end; ++rank) {
      const Array next = contribution(rank, count);
      for (std::uint64_t i = 0; i < count; ++i) all[i] = call_.commutes ? add(all[i], next[i]) : join(all[i], next[i]);
    }
    return all;
  }
  static Array block(const Array& all, const std::vector<std::uint64_t>& counts, std::uint32_t rank) {
    const auto at =
        static_cast<std::ptrdiff_t>(std::accumulate(counts.begin(), counts.begin() + rank, std::uint64_t{0}));
    return {all.begin() + at, all.begin() + at + static_cast<std::ptrdiff_t>(counts[rank])};
  }
  Array gathered() const {
    Array all;
    for (std::uint32_t rank = 0; rank < call_.size; ++rank) {
      const Array own = contribution(rank, call_.counts[rank]);
      all.insert(all.end(), own.begin(), own.end());
    }
    return all;
  }
  Array exchanged(std::uint32_t rank) const {
    Array all;
    for (std::uint32_t from = 0; from < call_.size; ++from) {
      std::uint64_t at = 0;
      for (std::uint32_t to = 0; to < rank; ++to) at += pair_count(call_, from, to);
      for (std::uint64_t i = 0; i < pair_count(call_, from, rank); ++i) all.push_back(Element::of(from, at + i));
    }
    return all;
  }

  const Case& all_;
  const Call& call_;
  mutable Array known_;
  mutable std::uint32_t known_end_ = 0;
};

/// One sum of many keeps the weight that `add` gives; a single contribution has its own.
bool same(const Array& got, const Array& expected, bool commutes) {
  if (got.size() != expected.size()) return false;
  for (std::size_t i = 0; i < got.size(); ++i) {
    if (got[i].hash != expected[i].hash || (!commutes && got[i].weight != expected[i].weight)) return false;
  }
  return true;
}

void check(const Case& all, std::uint64_t seed) {
  const Reference reference(all);
  const Call& call = all.call;
  std::vector<Array> expected;
  for (std::uint32_t rank = 0; rank < call.size; ++rank) expected.push_back(reference.output(rank));
  std::vector<RankState> ranks(call.size);
  for (std::uint32_t rank = 0; rank < call.size; ++rank) {
    RankState& state = ranks[rank];
    const bool cannot_map = all.is_mixed && call.hosts[rank] % 2 == 0;
    const Meetings meetings = all.has_boards ? Meetings::kBySteps : Meetings::kByMessages;
    if (cannot_map) {
      state.schedule = by_messages(for_rank(all, rank), all.algorithm, {}).schedule;
    } else if (all.is_played) {
      state.schedule = played(for_rank(all, rank), all.algorithm);
    } else {
      state.schedule = make_schedule(for_rank(all, rank), all.algorithm, {}, meetings);
    }
    if (!call.hosts.empty()) state.host = call.hosts[rank];
    ASSERT_LE(meetings_in(state.schedule), kMeetingsMax) << all.name();
    state.input = reference.input(rank);
    state.output.resize(expected[rank].size());
    if (call.operation == Operation::kBroadcast && rank == call.root) state.output = expected[rank];
    if (!call.has_input_in_output) continue;
    if (call.operation == Operation::kAllGather || call.operation == Operation::kGather) {
      const auto at = std::accumulate(call.counts.begin(), call.counts.begin() + rank, std::uint64_t{0});
      if (!state.output.empty()) std::ranges::copy(state.input, state.output.begin() + static_cast<std::ptrdiff_t>(at));
      if (call.operation == Operation::kAllGather || rank == call.root) state.input.clear();
      state.input_at = at;
    } else if (!state.output.empty()) {
      state.output = std::move(state.input);
      state.input_is_output = true;
    }
  }
  InMemory memory(std::move(ranks), call.commutes, seed);
  ASSERT_TRUE(memory.run()) << all.name();
  for (std::uint32_t rank = 0; rank < call.size; ++rank) {
    ASSERT_TRUE(same(memory.ranks()[rank].output, expected[rank], call.commutes)) << all.name() << ", rank " << rank;
    if (call.has_input_in_output) continue;
    ASSERT_EQ(memory.ranks()[rank].input, reference.input(rank)) << "the input is the caller's to keep: " << all.name();
  }
}

void check_all_algorithms(Call call) {
  for (const bool commutes : {true, false}) {
    call.commutes = commutes;
    std::vector<Choice> all = choices(call, CostModel());
    ASSERT_FALSE(all.empty());
    call.may_be_mapped = true;
    for (const Choice& choice : choices(call, CostModel())) {
      if (choice.algorithm != Algorithm::kMapped) continue;
      for (const bool has_boards : {false, true}) {
        check({.call = call, .algorithm = choice.algorithm, .has_boards = has_boards}, call.size);
      }
    }
    call.may_be_mapped = false;
    for (const Choice& choice : all) check({call, choice.algorithm}, call.size);
  }
}

/// Larger worlds with one odd count each.
constexpr std::uint32_t kSmallWorld = 20;
std::vector<std::uint64_t> counts_for(Operation operation, std::uint32_t size) {
  if (operation == Operation::kBarrier) return {0};
  if (size > kSmallWorld) return {3 * size + 2};
  return {0, 1, size - 1, 3 * size + 2};
}

/// Ranks on hosts: as many on each, in turn; the first host has one; random ones.
std::vector<std::vector<std::uint32_t>> placements(std::uint32_t size) {
  std::vector<std::vector<std::uint32_t>> all(4, std::vector<std::uint32_t>(size));
  base::Rng rng(size);
  for (std::uint32_t rank = 0; rank < size; ++rank) {
    all[0][rank] = rank / 4;
    all[1][rank] = rank % 3;
    all[2][rank] = rank == 0 ? 9 : 2;
    all[3][rank] = static_cast<std::uint32_t>(rng.u64() % 5);
  }
  return all;
}

void check_mapped_in_hosts(const Call& call) {
  for (const bool is_mixed : {false, true}) {
    for (const bool has_boards : {false, true}) {
      check({call, Algorithm::kMappedInHosts, is_mixed, has_boards}, call.size);
    }
  }
}

void check_two_levels(Call call) {
  const bool is_scan = call.operation == Operation::kScan || call.operation == Operation::kExclusiveScan;
  call.commutes = !is_scan;  // The order of ranks shows.
  for (call.hosts = {}; auto& hosts : placements(call.size)) {
    call.hosts = std::move(hosts);
    if (!has_host_phases(call)) continue;
    check({call, Algorithm::kTwoLevels}, call.size);
    for (const Algorithm algorithm : {Algorithm::kBoardsInHosts, Algorithm::kStagedInHosts}) {
      const bool has_own_steps = call.operation == Operation::kAllReduce || algorithm == Algorithm::kBoardsInHosts;
      const bool is_turn = call.size <= kSmallWorld || (call.size % 2 == 0) == (algorithm == Algorithm::kStagedInHosts);
      if (!has_own_steps || !is_turn) continue;
      if (call.size <= kSmallWorld) check({call, algorithm}, call.size);  // As where no boards are open.
      for (const bool is_mixed : {false, true}) {
        if (!is_mixed && call.size > kSmallWorld) continue;
        check({.call = call, .algorithm = algorithm, .is_mixed = is_mixed, .is_played = true}, call.size);
      }
    }
    call.may_be_mapped = true;
    for (const Choice& choice : choices(call, CostModel())) {
      if (choice.algorithm == Algorithm::kMappedInHosts) check_mapped_in_hosts(call);
    }
    call.may_be_mapped = false;
  }
}

/// On one host, and on hosts with as many ranks each where the size allows it. In one message, several, or each block
/// alone, by the size of an element.
void check_pat(Call call) {
  std::vector<std::vector<std::uint32_t>> all = {{}};
  for (const bool in_turn : {false, true}) {
    for (const std::uint32_t ranks : {2U, 3U, 4U, 5U, 8U}) {
      if (call.size % ranks != 0 || call.size == ranks || (call.size > 20 && ranks < 4)) continue;
      std::vector<std::uint32_t> hosts(call.size);
      for (std::uint32_t rank = 0; rank < call.size; ++rank) {
        hosts[rank] = in_turn ? rank % (call.size / ranks) : rank / ranks;
      }
      all.push_back(std::move(hosts));
    }
  }
  for (call.hosts = {}; const auto& hosts : all) {
    call.hosts = hosts;
    for (const std::uint64_t bytes : {1, 3'000, 20'000}) {
      call.element_bytes = bytes;
      check({call, Algorithm::kPat}, call.size);
      if (hosts.empty()) continue;
      check_mapped_in_hosts(call);
    }
  }
}

class CollectiveOf : public testing::TestWithParam<Operation> {};

TEST_P(CollectiveOf, EverySizeAndAlgorithm) {
  const Operation operation = GetParam();
  for (std::uint32_t size = 1; size <= kSizes; ++size) {
    for (const std::uint64_t count : counts_for(operation, size)) {
      Call call{.operation = operation, .size = size, .root = static_cast<std::uint32_t>(count % size), .count = count};
      call.counts = uneven(size, count);
      check_all_algorithms(call);
      if (operation == Operation::kAllToAll) {
        call.is_even = true;
        call.count = count % 4;
      }
      check_two_levels(call);
      const bool has_pat = operation == Operation::kAllGather || operation == Operation::kReduceScatter;
      if (has_pat) check_pat(call);
      const bool may_be_one = operation == Operation::kAllReduce || operation == Operation::kReduce ||
                              operation == Operation::kScan || operation == Operation::kExclusiveScan ||
                              operation == Operation::kAllGather || operation == Operation::kGather;
      if (!may_be_one) continue;
      call.has_input_in_output = true;
      check_all_algorithms(call);
      check_two_levels(call);
      if (has_pat) check_pat(call);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, CollectiveOf,
                         testing::Values(Operation::kBarrier, Operation::kBroadcast, Operation::kReduce,
                                         Operation::kAllReduce, Operation::kAllGather, Operation::kReduceScatter,
                                         Operation::kGather, Operation::kScatter, Operation::kAllToAll,
                                         Operation::kScan, Operation::kExclusiveScan),
                         [](const auto& it) { return std::string(to_string(it.param)); });

/// The most that one rank sends, in elements, and its rounds.
std::pair<std::uint64_t, std::size_t> most_sent(const Case& all) {
  std::uint64_t most = 0;
  std::size_t rounds = 0;
  for (std::uint32_t rank = 0; rank < all.call.size; ++rank) {
    const Schedule schedule = make_schedule(for_rank(all, rank), all.algorithm);
    std::uint64_t sent = 0;
    std::size_t talking = 0;
    for (std::size_t i = 0; i < schedule.rounds(); ++i) {
      bool talks = false;
      for (const Step& step : schedule.round(i)) {
        if (step.action == Action::kSend) sent += step.from.count;
        talks = talks || step.action == Action::kSend || step.action == Action::kReceive;
      }
      talking += talks ? 1 : 0;
    }
    most = std::max(most, sent);
    rounds = std::max(rounds, talking);
  }
  return {most, rounds};
}

// What the sources promise.
TEST(Collective, RoundsAndBytesAreTheFewestThereCanBe) {
  for (std::uint32_t size = 2; size <= kSizes; ++size) {
    const auto log = static_cast<std::size_t>(std::bit_width(size - 1));
    const std::uint64_t count = 10 * size;
    Case all{{.operation = Operation::kAllReduce, .size = size, .count = count}, Algorithm::kCirculant};
    EXPECT_EQ(most_sent(all), std::pair(2 * 10 * std::uint64_t{size - 1}, 2 * log));
    all = {{.operation = Operation::kReduceScatter, .size = size}, Algorithm::kCirculant};
    all.call.counts.assign(size, 10);
    EXPECT_EQ(most_sent(all), std::pair(10 * std::uint64_t{size - 1}, log));
    all.call.operation = Operation::kAllGather;
    EXPECT_EQ(most_sent(all), std::pair(10 * std::uint64_t{size - 1}, log));
    all = {{.operation = Operation::kBarrier, .size = size}, Algorithm::kDissemination};
    EXPECT_EQ(most_sent(all).second, log);
    all = {{.operation = Operation::kScan, .size = size, .count = count}, Algorithm::kDoubling};
    EXPECT_EQ(most_sent(all).second, log);
    all.call.operation = Operation::kExclusiveScan;
    EXPECT_EQ(most_sent(all).second, 1 + static_cast<std::size_t>(std::bit_width(size - 2)));
    all = {{.operation = Operation::kBroadcast, .size = size, .count = count}, Algorithm::kTree};
    EXPECT_EQ(most_sent(all).second, log);
  }
}

TEST(Collective, SmallOnesGoByRoundsAndLargeOnesByBytes) {
  Call call{.operation = Operation::kAllReduce, .size = 16, .count = 1, .element_bytes = 4};
  EXPECT_EQ(choices(call, CostModel())[0].algorithm, Algorithm::kDoubling);
  call.count = 1 << 20;
  EXPECT_EQ(choices(call, CostModel())[0].algorithm, Algorithm::kCirculant);
  call.operation = Operation::kBroadcast;
  EXPECT_EQ(choices(call, CostModel())[0].algorithm, Algorithm::kScatterGather);
  call.count = 1;
  EXPECT_EQ(choices(call, CostModel())[0].algorithm, Algorithm::kTree);
  call = {.operation = Operation::kAllReduce, .size = 16, .count = 1, .reproducible = true};
  call.may_be_mapped = true;
  ASSERT_EQ(choices(call, CostModel()).size(), 1U);
  EXPECT_EQ(choices(call, CostModel())[0].algorithm, Algorithm::kFixedTree);
}

TEST(Collective, RanksAloneOnTheirHostsPayForMessagesBetweenHosts) {
  const CostModel model{.message_ns = 10, .far_message_ns = 1'000};
  const Call near{.operation = Operation::kBarrier, .size = 4},
      far{.operation = Operation::kBarrier, .size = 4, .hosts = {0, 1, 2, 3}};
  EXPECT_EQ(choices(near, model)[0].cost_ns, 20);
  EXPECT_EQ(choices(far, model)[0].cost_ns, 2'000);
}

TEST(Collective, AlgorithmsAreFoundByTheirNames) {
  for (std::size_t number = 0; number < kAlgorithms; ++number) {
    const auto each = static_cast<Algorithm>(number);
    EXPECT_EQ(algorithm_named(to_string(each)), each);
  }
  EXPECT_FALSE(algorithm_named("unknown"));
  EXPECT_FALSE(algorithm_named(""));
}

TEST(Collective, LargeOnesOfOneHostReadEachOthersBuffers) {
  for (const Operation operation : {Operation::kAllReduce, Operation::kBroadcast}) {
    Call call{.operation = operation, .size = 4, .count = 1 << 20, .element_bytes = 4, .may_be_mapped = true};
    EXPECT_EQ(choices(call, CostModel())[0].algorithm, Algorithm::kMapped);
    for (const Choice& choice : unmapped_choices(call, CostModel())) EXPECT_NE(choice.algorithm, Algorithm::kMapped);
    call.count = 1;
    EXPECT_NE(choices(call, CostModel())[0].algorithm, Algorithm::kMapped);
    call.count = 1 << 20;
    call.may_be_mapped = false;
    EXPECT_NE(choices(call, CostModel())[0].algorithm, Algorithm::kMapped);
  }
}

TEST(Collective, LargeOnesOfSeveralHostsReadWithinEachHost) {
  for (const Operation operation : {Operation::kAllReduce, Operation::kBroadcast}) {
    Call call{.operation = operation, .size = 4, .count = 1 << 20, .element_bytes = 4, .hosts = {0, 0, 1, 1}};
    call.may_be_mapped = true;
    EXPECT_EQ(choices(call, CostModel())[0].algorithm, Algorithm::kMappedInHosts);
    EXPECT_EQ(unmapped_choices(call, CostModel())[0].algorithm, Algorithm::kTwoLevels);
    call.may_be_mapped = false;
    EXPECT_EQ(choices(call, CostModel())[0].algorithm, Algorithm::kTwoLevels);
  }
  const auto has_it = [](const Call& call) {
    const std::vector<Choice> all = choices(call, CostModel());
    return std::ranges::find(all, Algorithm::kMappedInHosts, &Choice::algorithm) != all.end();
  };
  Call call{.operation = Operation::kAllReduce, .size = 4, .count = 1 << 20, .hosts = {0, 0, 1, 1}};
  call.may_be_mapped = true;
  EXPECT_TRUE(has_it(call));
  call.hosts = {0, 0, 0, 1};
  EXPECT_FALSE(has_it(call)) << "hosts whose ranks cannot map would send others between hosts";
  call.hosts = {0, 0, 1, 1};
  call.count = 1;
  EXPECT_FALSE(has_it(call)) << "not each rank has a slice";
}

TEST(Collective, WhatIsSmallGoesByBoardsWithinEachHost) {
  constexpr CostModel kModel;
  const auto first = [&](const Call& call) { return choices(call, kModel)[0].algorithm; };
  for (const auto& hosts : {std::vector<std::uint32_t>{0, 0, 1, 1}, std::vector<std::uint32_t>{0, 1, 1, 1, 0}}) {
    const auto size = static_cast<std::uint32_t>(hosts.size());
    Call call{.operation = Operation::kBarrier, .size = size, .hosts = hosts, .may_use_boards = true};
    EXPECT_EQ(first(call), Algorithm::kBoardsInHosts);
    for (const Operation operation : {Operation::kBroadcast, Operation::kReduce, Operation::kAllReduce}) {
      call.operation = operation;
      call.element_bytes = 4;
      call.count = 1024;
      EXPECT_EQ(first(call), Algorithm::kBoardsInHosts) << to_string(operation);
      EXPECT_EQ(by_messages(call, first(call), kModel).algorithm, Algorithm::kTwoLevels);
      call.count = 1025;
      EXPECT_EQ(first(call), Algorithm::kStagedInHosts);
      call.count = 0;
      EXPECT_NE(first(call), Algorithm::kBoardsInHosts) << "nobody waits for nothing";
    }
    call.count = 1;
    call.reproducible = true;
    EXPECT_EQ(first(call), Algorithm::kFixedTree);
    call.reproducible = call.may_use_boards = false;
    EXPECT_NE(first(call), Algorithm::kBoardsInHosts);
  }
  Call many{.operation = Operation::kBarrier, .size = 132, .may_use_boards = true};
  for (std::uint32_t rank = 0; rank < many.size; ++rank) many.hosts.push_back(rank / 66);
  EXPECT_EQ(first(many), Algorithm::kTwoLevels) << "each reads the board of each";
}

// Of few ranks a circulant graph sends over the link of a host hardly more than there must be.
TEST(Collective, BlocksOfUnevenHostsGoByLeadersWhereManyRanksShareALink) {
  const auto first = [](std::vector<std::uint32_t> hosts, std::uint64_t each) {
    const auto size = static_cast<std::uint32_t>(hosts.size());
    Call call{.operation = Operation::kAllGather, .size = size, .hosts = std::move(hosts), .may_use_boards = true};
    call.counts.assign(size, each);
    return choices(call, CostModel())[0].algorithm;
  };
  EXPECT_EQ(first({0, 0, 0, 1}, 16), Algorithm::kBoardsInHosts);
  EXPECT_EQ(first({0, 0, 0, 1}, 1 << 20), Algorithm::kCirculant);
  std::vector<std::uint32_t> many(15);
  for (std::uint32_t rank = 8; rank < many.size(); ++rank) many[rank] = 1;
  EXPECT_EQ(first(many, 1 << 20), Algorithm::kStagedInHosts);
}

Call even_exchange(std::vector<std::uint32_t> hosts, std::uint64_t count) {
  Call call{.operation = Operation::kAllToAll, .size = static_cast<std::uint32_t>(hosts.size())};
  call.counts.assign(call.size, count);
  call.in_counts = call.counts;
  call.hosts = std::move(hosts);
  call.is_even = call.may_use_boards = true;
  return call;
}

TEST(Collective, SmallBlocksForOtherHostsGoTogether) {
  const auto first = [](const Call& call) { return choices(call, CostModel())[0].algorithm; };
  const std::vector<std::uint32_t> even = {0, 0, 0, 0, 1, 1, 1, 1}, uneven = {0, 1, 0, 0, 2, 0};
  for (const auto& hosts : {even, uneven}) {
    EXPECT_EQ(first(even_exchange(hosts, 8)), Algorithm::kBoardsInHosts);
    EXPECT_EQ(first(even_exchange(hosts, 1 << 20)), Algorithm::kDirect) << "copies would cost more than messages";
    Call call = even_exchange(hosts, 8);
    EXPECT_EQ(cheapest(call, CostModel()), first(call));
    call.may_use_boards = false;
    if (hosts == even) {
      EXPECT_EQ(first(call), Algorithm::kTwoLevels);
    }
    call.is_even = false;
    EXPECT_EQ(first(call), Algorithm::kDirect) << "no rank knows the counts of others";
  }
  const std::uint64_t most = kPortBytesMax / 8;
  EXPECT_TRUE(has_host_phases(even_exchange(even, most)));
  EXPECT_FALSE(has_host_phases(even_exchange(even, most + 1)));
  EXPECT_EQ(first(even_exchange({0, 1, 2}, 8)), Algorithm::kDirect) << "each is alone on its host";
}

// So two hosts exchange one message each way.
TEST(Collective, PortsOfTwoHostsSendOneMessage) {
  for (const auto& hosts :
       {std::vector<std::uint32_t>{0, 0, 0, 1, 1, 1}, std::vector<std::uint32_t>{0, 1, 2, 3, 2, 0, 1}}) {
    const std::uint32_t many = 1 + *std::ranges::max_element(hosts);
    std::map<std::pair<std::uint32_t, std::uint32_t>, int> messages;
    for (std::uint32_t rank = 0; rank < hosts.size(); ++rank) {
      Call call = even_exchange(hosts, 1);
      call.rank = rank;
      const Schedule schedule = make_schedule(call, Algorithm::kTwoLevels);
      for (std::size_t round = 0; round < schedule.rounds(); ++round) {
        for (const Step& step : schedule.round(round)) {
          const bool is_far = step.action == Action::kSend && hosts[step.peer] != hosts[rank];
          if (is_far) ++messages[{hosts[rank], hosts[step.peer]}];
        }
      }
    }
    EXPECT_EQ(messages.size(), many * (many - 1));
    for (const auto& [pair, count] : messages) EXPECT_EQ(count, 1) << pair.first << " to " << pair.second;
  }
}

TEST(Collective, CountsWhatIsReadAndWritten) {
  const auto counts = [](const Call& call) { return std::pair(input_count(call), output_count(call)); };
  using Both = std::pair<std::uint64_t, std::uint64_t>;
  for (const std::uint32_t rank : {0U, 1U}) {
    const bool is_root = rank == 1;
    const auto of = [&](Operation operation) {
      return counts({.operation = operation,
                     .rank = rank,
                     .size = 2,
                     .root = 1,
                     .count = 9,
                     .counts = {3, 4},
                     .in_counts = {5, 6}});
    };
    EXPECT_EQ(of(Operation::kBroadcast), (Both{0, 9}));
    EXPECT_EQ(of(Operation::kReduce), (Both{9, is_root ? 9 : 0}));
    EXPECT_EQ(of(Operation::kAllReduce), (Both{9, 9}));
    EXPECT_EQ(of(Operation::kScan), (Both{9, 9}));
    EXPECT_EQ(of(Operation::kAllGather), (Both{is_root ? 4 : 3, 7}));
    EXPECT_EQ(of(Operation::kReduceScatter), (Both{7, is_root ? 4 : 3}));
    EXPECT_EQ(of(Operation::kGather), (Both{is_root ? 4 : 3, is_root ? 7 : 0}));
    EXPECT_EQ(of(Operation::kScatter), (Both{is_root ? 7 : 0, is_root ? 4 : 3}));
    EXPECT_EQ(of(Operation::kAllToAll), (Both{7, 11}));
  }
  EXPECT_EQ(counts({.operation = Operation::kBarrier, .size = 2}), (Both{0, 0}));
}

TEST(Collective, WhatIsSmallGoesByBoards) {
  constexpr CostModel kModel;
  const auto first = [&](const Call& call) { return choices(call, kModel)[0].algorithm; };
  for (const std::uint32_t size : {2U, 4U, 8U}) {
    Call call{.operation = Operation::kBarrier, .size = size, .may_use_boards = true};
    EXPECT_EQ(first(call), Algorithm::kBoards);
    for (const Operation operation : {Operation::kBroadcast, Operation::kReduce, Operation::kAllReduce}) {
      call = {.operation = operation, .size = size, .count = 1024, .element_bytes = 4, .may_use_boards = true};
      EXPECT_EQ(first(call), Algorithm::kBoards) << to_string(operation);
      EXPECT_NE(unmapped_choices(call, kModel)[0].algorithm, Algorithm::kBoards);
      call.count = kBoardBytesMax / 4;
      EXPECT_TRUE(fits_boards(call));
      call.count = kBoardBytesMax / 4 + 1;
      EXPECT_FALSE(fits_boards(call)) << "a board has room for less";
      call.count = 0;
      EXPECT_NE(first(call), Algorithm::kBoards) << "nobody waits for nothing";
    }
    call.count = 1;
    call.reproducible = true;
    EXPECT_EQ(first(call), Algorithm::kFixedTree);
    call = {.operation = Operation::kAllGather, .size = size, .element_bytes = 1, .may_use_boards = true};
    call.counts.assign(size, 8);
    EXPECT_EQ(first(call), Algorithm::kBoards);
    call.counts[size - 1] = kBoardBytesMax;
    EXPECT_TRUE(fits_boards(call));
    ++call.counts[size - 1];
    EXPECT_FALSE(fits_boards(call)) << "the largest one counts, at all ranks";
    call.counts[size - 1] = 8;
    call.may_use_boards = false;
    EXPECT_NE(first(call), Algorithm::kBoards);
  }
  Call all{.operation = Operation::kAllReduce, .size = 16, .count = kBoardBytesMax, .may_use_boards = true};
  EXPECT_TRUE(fits_boards(all));
  all.size = 17;
  EXPECT_FALSE(fits_boards(all)) << "each would read more at once than kBoardsBytesMax";
  // What turns out not to be mapped.
  Call fallen{.operation = Operation::kAllReduce, .size = 2, .count = 16'000, .may_use_boards = true};
  fallen.may_be_mapped = true;
  EXPECT_EQ(by_messages(fallen, Algorithm::kMapped, kModel).on_boards, Algorithm::kBoards);
  fallen.count = kBoardBytesMax;
  fallen.size = 8;
  EXPECT_EQ(by_messages(fallen, Algorithm::kMapped, kModel).on_boards, Algorithm::kStaged) << "each reads eight boards";
  fallen.may_use_boards = false;
  EXPECT_EQ(by_messages(fallen, Algorithm::kMapped, kModel).on_boards, std::nullopt);
  // Of many ranks each would wait for each.
  const Call many{.operation = Operation::kBarrier, .size = 256, .may_use_boards = true};
  EXPECT_EQ(first(many), Algorithm::kDissemination);
}

}  // namespace
}  // namespace hawser::schedule
