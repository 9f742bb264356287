// Collectives of several hosts, in one process, whose ranks write for each other on boards or read each other's memory
// within each host. Which ranks share a host is what the test says.

#include <gtest/gtest.h>

#include <hawser/world.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "local_worlds.h"

namespace hawser {
namespace {

using namespace std::chrono_literals;

using Hosts = std::vector<std::uint64_t>;

class HostBoards : public LocalWorlds {
 protected:
  bool are_on_boards() {
    for (const World& world : worlds_) {
      const bool has_mates = world.local_size() > 1;
      if (has_mates && algorithm_of(world.rank()) != "boards in hosts") return false;
    }
    return true;
  }
  void until_on_boards() {
    int tries = 0;
    while (!are_on_boards() && ++tries < kTriesMax) meet(worlds_);
    ASSERT_TRUE(are_on_boards());
  }
  /// Of a large one in memory that nobody maps.
  std::string way_of(std::size_t rank) const {
    return worlds_[rank].local_size() > 1 ? "staged in hosts" : "two levels";
  }
  /// Of uneven counts.
  void check_blocks(std::size_t rank, int round, std::size_t most, std::uint32_t root) {
    World& world = worlds_[rank];
    std::vector<std::uint64_t> counts;
    std::vector<std::size_t> begins = {0};
    for (std::size_t other = 0; other < worlds_.size(); ++other) {
      counts.push_back((most / worlds_.size() + other * 3) % (most + 2));
      begins.push_back(begins.back() + counts.back());
    }
    const std::size_t all = begins.back(), own = counts[rank];
    const auto block = [&](std::size_t of, std::size_t i) { return value(i, of, round); };
    std::vector<float> in(own), whole(all), gathered(all), got(own), told(own), sums(own);
    for (std::size_t i = 0; i < own; ++i) in[i] = block(rank, i);
    for (std::size_t i = 0; i < all; ++i) whole[i] = value(i, rank, round);
    ASSERT_TRUE(world.all_gather(in.data(), gathered.data(), counts, DataType::kFloat32).ok());
    for (std::size_t of = 0; of < counts.size(); ++of) {
      for (std::size_t i = 0; i < counts[of]; ++i) ASSERT_EQ(gathered[begins[of] + i], block(of, i)) << of << " " << i;
    }
    std::vector<float> in_place(all);
    std::copy(in.begin(), in.end(), in_place.begin() + static_cast<std::ptrdiff_t>(begins[rank]));
    ASSERT_TRUE(world.all_gather(in_place.data() + begins[rank], in_place.data(), counts, DataType::kFloat32).ok());
    ASSERT_EQ(in_place, gathered);
    ASSERT_TRUE(world.reduce_scatter(whole.data(), sums.data(), counts, DataType::kFloat32, ReduceOp::kSum).ok());
    for (std::size_t i = 0; i < own; ++i) ASSERT_EQ(sums[i], sum(begins[rank] + i, round)) << i;
    std::fill(gathered.begin(), gathered.end(), -1.0F);
    ASSERT_TRUE(world.gather(in.data(), gathered.data(), counts, DataType::kFloat32, root).ok());
    for (std::size_t of = 0; rank == root && of < counts.size(); ++of) {
      for (std::size_t i = 0; i < counts[of]; ++i) ASSERT_EQ(gathered[begins[of] + i], block(of, i)) << of << " " << i;
    }
    ASSERT_TRUE(world.scatter(whole.data(), told.data(), counts, DataType::kFloat32, root).ok());
    for (std::size_t i = 0; i < own; ++i) ASSERT_EQ(told[i], value(begins[rank] + i, root, round)) << i;
  }
  void check_scans(std::size_t rank, int round, const std::vector<float>& in) {
    World& world = worlds_[rank];
    const auto until = [&](std::size_t end, std::size_t i) {
      float all = 0;
      for (std::size_t of = 0; of < end; ++of) all += value(i, of, round);
      return all;
    };
    std::vector<float> out(in.size());
    ASSERT_TRUE(world.scan(in.data(), out.data(), in.size(), DataType::kFloat32, ReduceOp::kSum).ok());
    for (std::size_t i = 0; i < in.size(); ++i) ASSERT_EQ(out[i], until(rank + 1, i)) << i;
    ASSERT_TRUE(world.scan(in.data(), out.data(), in.size(), DataType::kFloat32, ReduceOp::kSum, true).ok());
    for (std::size_t i = 0; i < in.size(); ++i) ASSERT_EQ(out[i], until(std::max<std::size_t>(rank, 1), i)) << i;
    out = in;
    ASSERT_TRUE(world.scan(out.data(), out.data(), in.size(), DataType::kFloat32, ReduceOp::kSum, true).ok());
    for (std::size_t i = 0; i < in.size(); ++i) ASSERT_EQ(out[i], until(std::max<std::size_t>(rank, 1), i)) << i;
  }
  void check_all_operations(int round) {
    on_all([&](std::size_t rank) {
      World& world = worlds_[rank];
      const std::size_t count = 1 + static_cast<std::size_t>(round) * 1024 / 50;
      std::vector<float> in(count), out(count);
      for (std::size_t i = 0; i < count; ++i) in[i] = value(i, rank, round);
      ASSERT_TRUE(world.all_reduce(in.data(), out.data(), count, DataType::kFloat32, ReduceOp::kSum).ok());
      for (std::size_t i = 0; i < count; ++i) ASSERT_EQ(out[i], sum(i, round)) << i;
      const auto root = static_cast<std::uint32_t>(static_cast<std::size_t>(round) % worlds_.size());
      std::vector<float> told = in;
      ASSERT_TRUE(world.broadcast(told.data(), count, DataType::kFloat32, root).ok());
      for (std::size_t i = 0; i < count; ++i) ASSERT_EQ(told[i], value(i, root, round)) << i;
      ASSERT_TRUE(world.barrier().ok());
      check_blocks(rank, round, count, root);
      check_scans(rank, round, in);
      std::vector<float> reduced(count);
      ASSERT_TRUE(world.reduce(in.data(), reduced.data(), count, DataType::kFloat32, ReduceOp::kSum, root).ok());
      for (std::size_t i = 0; rank == root && i < count; ++i) ASSERT_EQ(reduced[i], sum(i, round)) << i;
      for (std::size_t i = 0; i < count; ++i) ASSERT_EQ(in[i], value(i, rank, round)) << i;
      ASSERT_TRUE(world.all_reduce(in.data(), in.data(), count, DataType::kFloat32, ReduceOp::kAvg).ok());
      const auto ranks = static_cast<float>(worlds_.size());
      for (std::size_t i = 0; i < count; ++i) ASSERT_EQ(in[i], sum(i, round) / ranks) << i;
    });
  }
};

TEST_F(HostBoards, EachOperationGivesWhatItMust) {
  for (const Hosts& hosts :
       {Hosts{0, 0, 1, 1}, Hosts{0, 1, 0, 1, 2, 0}, Hosts{1, 0, 0}, Hosts{0, 0, 0, 1}, Hosts{0, 0, 0, 0, 1, 1}}) {
    open_on(hosts);
    until_on_boards();
    for (int round = 0; round < 50; ++round) {
      check_all_operations(round);
      if (HasFatalFailure()) return;
    }
    EXPECT_TRUE(are_on_boards());
  }
}

// Two hosts exchange one message each way, whatever the number of their ranks is.
TEST_F(HostBoards, SmallBlocksForOtherHostsGoTogether) {
  for (const Hosts& hosts : {Hosts{0, 0, 1, 1}, Hosts{0, 1, 0, 1, 2, 0}, Hosts{1, 0, 0}, Hosts{0, 0, 0, 1, 2, 3}}) {
    open_on(hosts);
    until_on_boards();
    const std::size_t size = worlds_.size();
    for (std::size_t round = 0; round < 30; ++round) {
      const std::size_t count = 1 + round * 5;
      on_all([&](std::size_t rank) {
        const auto at = [&](std::size_t from, std::size_t to, std::size_t i) {
          return value(i + to * count, from, static_cast<int>(round));
        };
        std::vector<float> in(count * size), out(count * size, -1.0F);
        for (std::size_t i = 0; i < in.size(); ++i) in[i] = at(rank, 0, i);
        World& world = worlds_[rank];
        const Status status = round % 2 == 0
                                  ? world.all_to_all(in.data(), out.data(), count, DataType::kFloat32)
                                  : world.iall_to_all(in.data(), out.data(), count, DataType::kFloat32).wait(60s);
        ASSERT_TRUE(status.ok()) << status.to_string();
        for (std::size_t i = 0; i < out.size(); ++i) ASSERT_EQ(out[i], at(i / count, rank, i % count)) << i;
        for (std::size_t i = 0; i < in.size(); ++i) ASSERT_EQ(in[i], at(rank, 0, i)) << i;
      });
      if (HasFatalFailure()) return;
      EXPECT_TRUE(are_on_boards());
    }
  }
}

TEST_F(HostBoards, AnEvenExchangeIsNoOther) {
  open_on({0, 0, 1, 1});
  const std::vector<std::uint64_t> ones(4, 1);
  std::vector<std::vector<float>> in(4, std::vector<float>(4)), out = in;
  std::vector<Request> all;
  for (std::size_t rank = 0; rank < 4; ++rank) {
    World& world = worlds_[rank];
    float *const from = in[rank].data(), *const to = out[rank].data();
    all.push_back(rank == 2 ? world.iall_to_all(from, to, ones, ones, DataType::kFloat32)
                            : world.iall_to_all(from, to, 1, DataType::kFloat32));
  }
  for (Request& each : all) EXPECT_EQ(each.wait(30s).code(), Code::kInvalid);
}

// Above what boards take at once.
TEST_F(HostBoards, LargeOnesGoInPieces) {
  for (const Hosts& hosts : {Hosts{0, 0, 1, 1}, Hosts{0, 1, 0, 0}, Hosts{0, 0, 0, 0, 1, 1}, Hosts{0, 1, 2, 0, 1, 2}}) {
    open_on(hosts);
    until_on_boards();
    constexpr std::size_t kCount = 100'003;
    for (int round = 0; round < 3; ++round) {
      on_all([&](std::size_t rank) {
        World& world = worlds_[rank];
        std::vector<float> in(kCount), out(kCount);
        for (std::size_t i = 0; i < kCount; ++i) in[i] = value(i, rank, round);
        ASSERT_TRUE(world.all_reduce(in.data(), out.data(), kCount, DataType::kFloat32, ReduceOp::kSum).ok());
        EXPECT_EQ(algorithm_of(static_cast<std::uint32_t>(rank)), way_of(rank));
        for (std::size_t i = 0; i < kCount; ++i) ASSERT_EQ(out[i], sum(i, round)) << i;
        const auto root = static_cast<std::uint32_t>(static_cast<std::size_t>(round) % worlds_.size());
        out = in;
        ASSERT_TRUE(world.broadcast(out.data(), kCount, DataType::kFloat32, root).ok());
        EXPECT_EQ(algorithm_of(static_cast<std::uint32_t>(rank)), way_of(rank));
        for (std::size_t i = 0; i < kCount; ++i) ASSERT_EQ(out[i], value(i, root, round)) << i;
        ASSERT_TRUE(world.reduce(in.data(), out.data(), kCount, DataType::kFloat32, ReduceOp::kSum, root).ok());
        for (std::size_t i = 0; rank == root && i < kCount; ++i) ASSERT_EQ(out[i], sum(i, round)) << i;
        check_blocks(rank, round, kCount, root);
        for (std::size_t i = 0; i < kCount; ++i) ASSERT_EQ(in[i], value(i, rank, round)) << i;
        ASSERT_TRUE(world.all_reduce(in.data(), in.data(), kCount, DataType::kFloat32, ReduceOp::kSum).ok());
        for (std::size_t i = 0; i < kCount; ++i) ASSERT_EQ(in[i], sum(i, round)) << i;
      });
      if (HasFatalFailure()) return;
    }
  }
}

// The output begins in the middle of the input.
TEST_F(HostBoards, WhatOverlapsIsCopiedAside) {
  open_on({0, 0, 1, 1});
  until_on_boards();
  constexpr std::size_t kCount = 50'000, kApart = 1'000;
  on_all([&](std::size_t rank) {
    std::vector<float> data(kCount + kApart);
    for (std::size_t i = 0; i < data.size(); ++i) data[i] = value(i, rank, 1);
    const Status status =
        worlds_[rank].all_reduce(data.data(), data.data() + kApart, kCount, DataType::kFloat32, ReduceOp::kSum);
    ASSERT_TRUE(status.ok()) << status.to_string();
    for (std::size_t i = 0; i < kCount; ++i) ASSERT_EQ(data[kApart + i], sum(i, 1)) << i;
  });
}

// Ranks of one host cannot map: they send messages within it, and nobody waits for a word about that.
TEST_F(HostBoards, WithoutMappedMemoryTheyGoByMessages) {
  open_on({0, 0, 1, 1}, "tcp");
  for (int round = 0; round < 20; ++round) {
    check_all_operations(round);
    if (HasFatalFailure()) return;
  }
  EXPECT_EQ(last_algorithm(), "two levels");
}

TEST_F(HostBoards, ManyAtOnceAreAllRight) {
  open_on({0, 1, 0, 1});
  until_on_boards();
  check_many_at_once(10);
}

// A rank of either host calls something else: on a board, by messages, or as all of its host do.
TEST_F(HostBoards, AnotherCallIsFoundByAllAndNamed) {
  for (const std::size_t count : {2U, 5000U}) {
    for (const bool is_host : {false, true}) {
      open_on({0, 0, 1, 1});
      until_on_boards();
      on_all([&](std::size_t rank) {
        std::vector<float> data(count);
        const bool errs = rank == 3 || (is_host && rank == 2);
        const Status status = worlds_[rank].all_reduce(data.data(), data.data(), errs ? data.size() : 1,
                                                       DataType::kFloat32, ReduceOp::kSum);
        EXPECT_EQ(status.code(), Code::kInvalid) << status.to_string();
        EXPECT_NE(status.message().find("the ranks differ in what they call"), std::string::npos) << status.to_string();
      });
    }
  }
}

TEST_F(HostBoards, ADeadlineNamesWhoIsMissing) {
  open_on({0, 0, 1, 1});
  until_on_boards();
  std::vector<Request> all;
  for (const std::size_t rank : {0U, 1U, 2U}) all.push_back(worlds_[rank].ibarrier({.timeout = 3s}));
  for (Request& each : all) EXPECT_EQ(each.wait(30s).code(), Code::kTimedOut);
  const Status status = all[2].status();  // That of the rank whose deadline came first.
  EXPECT_NE(status.message().find("rank 3 has not called it"), std::string::npos) << status.to_string();
}

TEST_F(HostBoards, OneThatIsCancelledEndsAllOfThem) {
  for (const std::size_t who : {0U, 1U}) {  // A leader, which waits for another host, and a rank that waits for it.
    open_on({0, 0, 1, 1});
    until_on_boards();
    std::vector<Request> all;
    for (const std::size_t rank : {0U, 1U, 2U}) all.push_back(worlds_[rank].ibarrier());
    all[who].cancel();
    for (Request& each : all) EXPECT_EQ(each.wait(30s).code(), Code::kCancelled);
    EXPECT_EQ(worlds_[3].barrier().code(), Code::kCancelled);
  }
}

TEST_F(HostBoards, ARankThatClosesEndsTheOthersOfBothHosts) {
  for (const std::size_t gone : {0U, 1U, 2U, 3U}) {
    open_on({0, 0, 1, 1});
    until_on_boards();
    std::vector<Request> all;
    for (std::size_t rank = 0; rank < 4; ++rank) {
      if (rank != gone) all.push_back(worlds_[rank].ibarrier());
    }
    worlds_[gone] = World();
    for (Request& each : all) {
      const Status status = each.wait(60s);
      EXPECT_EQ(status.code(), Code::kDisconnected) << gone << " " << status.to_string();
    }
  }
}

// A leader that waits for another host hears it by its session; who waits for that leader's board must hear it, too.
TEST_F(HostBoards, WhoWaitsForARankThatHasLeftHearsIt) {
  for (const std::size_t gone : {2U, 3U}) {
    open_on({0, 0, 1, 1});
    until_on_boards();
    on_all([&](std::size_t rank) {
      if (rank == gone) {
        EXPECT_TRUE(worlds_[rank].leave(5s).ok());
        return;
      }
      const Status status = worlds_[rank].barrier();
      EXPECT_EQ(status.code(), Code::kDisconnected) << gone << " at " << rank << ": " << status.to_string();
      const std::string expected = "rank " + std::to_string(gone) + " has left";
      EXPECT_NE(status.to_string().find(expected), std::string::npos) << status.to_string();
    });
  }
}

TEST_F(HostBoards, GroupsAndWhatIsLeftHaveBoardsOfTheirOwn) {
  open_on({0, 0, 1, 1, 1});
  until_on_boards();
  std::vector<World> group(3);
  on_all([&](std::size_t rank) {
    if (rank > 0 && rank < 4) group[rank - 1] = worlds_[rank].group(std::vector<std::uint32_t>{1, 2, 3}).value();
  });
  for (int round = 0; round < 200; ++round) meet(group);
  on_all(3, [&](std::size_t rank) {
    float one = static_cast<float>(rank + 1);
    ASSERT_TRUE(group[rank].all_reduce(&one, &one, 1, DataType::kFloat32, ReduceOp::kSum).ok());
    EXPECT_EQ(one, 6);
  });
  group.clear();
  worlds_.pop_back();
  std::vector<World> less(4);
  on_all([&](std::size_t rank) {
    while (worlds_[rank].barrier().ok()) {
    }
    Result<World> made = worlds_[rank].shrink();
    ASSERT_TRUE(made.has_value()) << made.error().to_string();
    less[rank] = std::move(*made);
  });
  if (HasFatalFailure()) return;
  worlds_ = std::move(less);
  until_on_boards();
  check_all_operations(7);
}

class HostMapped : public HostBoards, public testing::WithParamInterface<schedule::Operation> {
 protected:
  using What = schedule::Operation;
  static constexpr std::size_t kRounds = 200;  ///< Tries until all have mapped.
  /// Floats of a rank. A broadcast of fewer goes in pieces.
  static std::size_t each() { return GetParam() == What::kBroadcast ? 100'003 : 25'001; }

  std::size_t ranks() const { return worlds_.size(); }
  std::uint32_t root() const { return static_cast<std::uint32_t>(ranks() - 1); }
  static float* floats(const Region& region) { return reinterpret_cast<float*>(region.bytes().data()); }
  bool are_mapped() const {
    return std::ranges::all_of(worlds_,
                               [&](const World& world) { return algorithm_of(world.rank()) == "mapped in hosts"; });
  }
  Status call(std::size_t rank, const float* in, float* out) {
    World& world = worlds_[rank];
    const std::vector<std::uint64_t> counts(ranks(), each());
    switch (GetParam()) {
      case What::kBroadcast:
        return world.broadcast(out, counts.size() * each(), DataType::kFloat32, root());
      case What::kAllGather:
        return world.all_gather(in, out, counts, DataType::kFloat32);
      case What::kReduceScatter:
        return world.reduce_scatter(in, out, counts, DataType::kFloat32, ReduceOp::kSum);
      default:
        return world.all_reduce(in, out, counts.size() * each(), DataType::kFloat32, ReduceOp::kSum);
    }
  }
  /// The element `i` of that rank's output.
  float expected(std::size_t rank, std::size_t i, int round) const {
    switch (GetParam()) {
      case What::kBroadcast:
        return value(i, root(), round);
      case What::kAllGather:
        return value(i % each(), i / each(), round);
      case What::kReduceScatter:
        return sum(rank * each() + i, round);
      default:
        return sum(i, round);
    }
  }
};

TEST_P(HostMapped, LargeOnesReadWithinEachHost) {
  for (const Hosts& hosts : {Hosts{0, 0, 1, 1}, Hosts{0, 1, 2, 0, 1, 2}}) {
    open_on(hosts);
    std::vector<Region> in, out;
    const std::size_t all = ranks() * each(), got = GetParam() == What::kReduceScatter ? each() : all;
    for (World& world : worlds_) {
      in.push_back(std::move(world.allocate({.size = all * sizeof(float)})).value());
      out.push_back(std::move(world.allocate({.size = all * sizeof(float)})).value());
    }
    int left = 3;
    for (std::size_t tries = 0; tries < kRounds && left > 0; ++tries) {
      const int round = static_cast<int>(tries);
      on_all([&](std::size_t rank) {
        for (std::size_t i = 0; i < all; ++i) {
          floats(in[rank])[i] = floats(out[rank])[i] = value(i, rank, round);
        }
        const Status status = call(rank, floats(in[rank]), floats(out[rank]));
        ASSERT_TRUE(status.ok()) << status.to_string();
        for (std::size_t i = 0; i < got; ++i) ASSERT_EQ(floats(out[rank])[i], expected(rank, i, round)) << i;
        for (std::size_t i = 0; i < all; ++i) ASSERT_EQ(floats(in[rank])[i], value(i, rank, round)) << i;
      });
      if (HasFatalFailure()) return;
      left -= are_mapped() ? 1 : 0;
    }
    EXPECT_EQ(left, 0) << "they were not mapped";
  }
}

INSTANTIATE_TEST_SUITE_P(All, HostMapped,
                         testing::Values(schedule::Operation::kBroadcast, schedule::Operation::kAllReduce,
                                         schedule::Operation::kAllGather, schedule::Operation::kReduceScatter),
                         [](const auto& it) { return std::string(to_string(it.param)); });

}  // namespace
}  // namespace hawser
