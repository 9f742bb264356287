// Small collectives of ranks of one host, which write for each other on boards, in one process.

#include <gtest/gtest.h>

#include <hawser/world.h>

#include <chrono>
#include <cstdint>
#include <cstring>
#include <deque>
#include <filesystem>
#include <iterator>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/rng.h"
#include "base/spin.h"
#include "local_worlds.h"

namespace hawser {
namespace {

using namespace std::chrono_literals;

class BoardsWorld : public LocalWorlds {
 protected:
  void until_on_boards() {
    int tries = 0;
    while (last_algorithm() != "boards" && ++tries < kTriesMax) meet(worlds_);
    ASSERT_EQ(last_algorithm(), "boards");
  }
  /// So long that the other rank sleeps meanwhile: nobody sends this.
  static void dawdle(const World& world) { EXPECT_FALSE(world.probe(kAnySource, 999, 20ms).has_value()); }
};

TEST_F(BoardsWorld, EachOperationGivesWhatItMust) {
  for (const std::uint32_t size : {2U, 3U, 5U}) {
    open(size);
    until_on_boards();
    for (int round = 0; round < 100; ++round) {
      const std::size_t count = 1 + static_cast<std::size_t>(round * round) * 1024 / 10'000;
      on_all([&](std::size_t rank) {
        World& world = worlds_[rank];
        std::vector<float> in(count), out(count), all(count * size);
        for (std::size_t i = 0; i < count; ++i) in[i] = value(i, rank, round);
        const auto sum = [&](std::size_t i) {
          float its = 0;
          for (std::size_t each = 0; each < size; ++each) its += value(i, each, round);
          return its;
        };
        ASSERT_TRUE(world.all_reduce(in.data(), out.data(), count, DataType::kFloat32, ReduceOp::kSum).ok());
        for (std::size_t i = 0; i < count; ++i) ASSERT_EQ(out[i], sum(i));
        ASSERT_TRUE(
            world.all_gather(in.data(), all.data(), std::vector<std::uint64_t>(size, count), DataType::kFloat32).ok());
        for (std::size_t i = 0; i < all.size(); ++i) ASSERT_EQ(all[i], value(i % count, i / count, round));
        const std::uint32_t root = static_cast<std::uint32_t>(round) % size;
        std::vector<float> told = in;
        ASSERT_TRUE(world.broadcast(told.data(), count, DataType::kFloat32, root).ok());
        for (std::size_t i = 0; i < count; ++i) ASSERT_EQ(told[i], value(i, root, round));
        ASSERT_TRUE(world.barrier().ok());
        ASSERT_TRUE(world.all_reduce(in.data(), in.data(), count, DataType::kFloat32, ReduceOp::kAvg).ok());
        for (std::size_t i = 0; i < count; ++i) ASSERT_EQ(in[i], sum(i) / static_cast<float>(size));
      });
      if (HasFatalFailure()) return;
    }
    EXPECT_EQ(last_algorithm(), "boards");
  }
}

// Whether such buffers are right is told by the schedule that goes by messages. The call goes by boards all the same.
TEST_F(BoardsWorld, AResultMayLieInTheInputThatIsReadBefore) {
  open(2);
  until_on_boards();
  for (int round = 0; round < 5; ++round) {
    on_all([&](std::size_t rank) {
      std::vector<float> data(8);
      for (std::size_t i = 0; i < data.size(); ++i) data[i] = value(i, rank, round);
      const std::vector<std::uint64_t> counts(2, 4);
      const Status status = worlds_[rank].reduce_scatter(data.data(), data.data() + 2, counts, DataType::kFloat32,
                                                         ReduceOp::kSum, {.timeout = 10s});
      ASSERT_TRUE(status.ok()) << status.to_string();
      for (std::size_t i = 0; i < 4; ++i) {
        const std::size_t at = rank * 4 + i;
        ASSERT_EQ(data[2 + i], value(at, 0, round) + value(at, 1, round));
      }
    });
    if (HasFatalFailure()) return;
  }
  EXPECT_EQ(last_algorithm(), "boards");
}

TEST_F(BoardsWorld, AboveABoardsSizeTheyGoInPiecesAndReproducibleByMessages) {
  open(2);
  until_on_boards();
  std::vector<std::vector<float>> data(2, std::vector<float>(2));
  std::vector<std::vector<std::uint8_t>> bytes(2, std::vector<std::uint8_t>(schedule::kBoardBytesMax + 1));
  for (const std::size_t more : {0, 1}) {
    on_all([&](std::size_t rank) {
      const Status status =
          worlds_[rank].broadcast(bytes[rank].data(), schedule::kBoardBytesMax + more, DataType::kUInt8, 1);
      ASSERT_TRUE(status.ok()) << status.to_string();
    });
    EXPECT_EQ(last_algorithm(), more == 0 ? "boards" : "staged");
  }
  on_all([&](std::size_t rank) {
    ASSERT_TRUE(worlds_[rank]
                    .all_reduce(data[rank].data(), data[rank].data(), 2, DataType::kFloat32, ReduceOp::kSum,
                                {.reproducible = true})
                    .ok());
  });
  EXPECT_EQ(last_algorithm(), "fixed tree");
}

TEST_F(BoardsWorld, WithoutMappedMemoryTheyGoByMessages) {
  open(2, "tcp");
  for (int round = 0; round < 20; ++round) meet(worlds_);
  EXPECT_EQ(last_algorithm(), "dissemination");
}

TEST_F(BoardsWorld, ManyAtOnceAreAllRight) {
  open(3);
  until_on_boards();
  check_many_at_once(20);
}

// Blocking calls end at once where the others are there, and else become like those that are waited for later. All of
// them share turns, slots and numbers.
TEST_F(BoardsWorld, CallsThatWaitAndCallsThatDoNotGoTogether) {
  constexpr int kRounds = 400, kBehindMax = 6;  // More than a board has slots.
  open(3);
  until_on_boards();
  on_all([&](std::size_t rank) {
    World& world = worlds_[rank];
    base::Rng rng(rank + 1), same(9);
    std::deque<std::pair<Request, std::unique_ptr<float>>> behind;
    const auto end_first = [&] {
      ASSERT_TRUE(behind.front().first.wait(10s).ok());
      ASSERT_EQ(*behind.front().second, 6);
      behind.pop_front();
    };
    for (int round = 0; round < kRounds; ++round) {
      for (std::uint64_t spins = rng.below(3) == 0 ? rng.below(20'000) : 0; spins > 0; --spins) base::cpu_relax();
      const float own = static_cast<float>(rank) + 1;
      if (same.below(2) == 0) {
        auto out = std::make_unique<float>(0.0F);
        const bool is_waited_for = rng.below(2) == 0;  // The driver gets it once the wait below was too short.
        Request request = world.iall_reduce(&own, out.get(), 1, DataType::kFloat32, ReduceOp::kSum,
                                            {.timeout = 10s, .is_waited_for = is_waited_for});
        behind.emplace_back(std::move(request), std::move(out));
        const Status status = behind.back().first.wait(rng.below(2) == 0 ? 10s : 0s);
        ASSERT_TRUE(status.ok() || status.code() == Code::kTimedOut) << status.to_string();
      } else {
        float out = 0;
        const Status status = world.all_reduce(&own, &out, 1, DataType::kFloat32, ReduceOp::kAvg, {.timeout = 10s});
        ASSERT_TRUE(status.ok()) << status.to_string();
        ASSERT_EQ(out, 2);
      }
      if (behind.size() > kBehindMax) end_first();
    }
    while (!behind.empty()) end_first();
  });
  EXPECT_EQ(last_algorithm(), "boards");
}

TEST_F(BoardsWorld, RanksThatSleepAreWoken) {
  open(3);
  until_on_boards();
  for (int round = 0; round < 6; ++round) {
    on_all([&](std::size_t rank) {
      for (std::size_t turn = 0; turn < 3; ++turn) {  // Woken for less than all, too.
        if (rank > turn) dawdle(worlds_[rank]);
      }
      const Status status = worlds_[rank].barrier({.timeout = 10s});
      ASSERT_TRUE(status.ok()) << status.to_string();
    });
  }
  EXPECT_EQ(last_algorithm(), "boards");
}

TEST_F(BoardsWorld, AnotherCallIsFoundByAllAndNamed) {
  for (const bool is_on_board : {true, false}) {
    open(3);
    until_on_boards();
    on_all([&](std::size_t rank) {
      std::vector<float> data(is_on_board ? 2 : 5000);
      const std::size_t count = rank == 1 ? data.size() : 1;
      const Status status =
          worlds_[rank].all_reduce(data.data(), data.data(), count, DataType::kFloat32, ReduceOp::kSum);
      EXPECT_EQ(status.code(), Code::kInvalid) << status.to_string();
      EXPECT_NE(status.message().find("the ranks differ in what they call"), std::string::npos) << status.to_string();
    });
  }
}

TEST_F(BoardsWorld, ADeadlineNamesWhoIsMissing) {
  open(3);
  until_on_boards();
  std::vector<Request> all;
  for (const std::size_t rank : {0U, 2U}) all.push_back(worlds_[rank].ibarrier({.timeout = 50ms}));
  const Status status = all[0].wait(30s);
  EXPECT_EQ(status.code(), Code::kTimedOut) << status.to_string();
  EXPECT_NE(status.message().find("waits for rank 1"), std::string::npos) << status.to_string();
  EXPECT_EQ(all[1].wait(30s).code(), Code::kTimedOut);
}

TEST_F(BoardsWorld, WhenARankFailsTheOthersHearIt) {
  open(3);
  until_on_boards();
  on_all([&](std::size_t rank) {
    if (rank == 2) {
      EXPECT_TRUE(worlds_[2].close(5s).ok());
      return;
    }
    const Status status = worlds_[rank].barrier();
    EXPECT_EQ(status.code(), Code::kDisconnected) << status.to_string();
  });
  const auto start = std::chrono::steady_clock::now();
  EXPECT_TRUE(worlds_[0].close(5s).ok());  // Nobody holds its board.
  EXPECT_LT(std::chrono::steady_clock::now() - start, 3s);
}

TEST_F(BoardsWorld, WhoWaitsForARankThatHasLeftHearsIt) {
  open(3);
  until_on_boards();
  on_all([&](std::size_t rank) {
    if (rank == 2) {
      EXPECT_TRUE(worlds_[2].leave(5s).ok());
      return;
    }
    const Status status = worlds_[rank].barrier();
    EXPECT_EQ(status.code(), Code::kDisconnected) << status.to_string();
    EXPECT_NE(status.to_string().find("rank 2 has left"), std::string::npos) << status.to_string();
  });
}

TEST_F(BoardsWorld, ShrunkWorldsAndGroupsHaveBoardsOfTheirOwn) {
  open(4);
  until_on_boards();
  worlds_[3] = World();
  worlds_.pop_back();
  std::vector<World> next(3);
  on_all([&](std::size_t rank) {
    EXPECT_EQ(worlds_[rank].barrier().code(), Code::kDisconnected);
    Result<World> made = worlds_[rank].shrink();
    ASSERT_TRUE(made.has_value()) << made.error().to_string();
    next[rank] = std::move(*made);
  });
  worlds_ = std::move(next);
  meet(worlds_);
  EXPECT_EQ(last_algorithm(), "dissemination");
  until_on_boards();
  std::vector<World> groups(3);
  on_all([&](std::size_t rank) { groups[rank] = std::move(*worlds_[rank].duplicate()); });
  meet(groups);
  EXPECT_EQ(last_algorithm(), "dissemination");
  for (int i = 0; i < 100; ++i) meet(groups);
  EXPECT_EQ(last_algorithm(), "boards");
  meet(worlds_);
}

// What a rank wrote last is read though it goes at once.
TEST_F(BoardsWorld, ARankMayLeaveAfterItsLastCall) {
  for (int round = 0; round < 10; ++round) {
    open(3);
    until_on_boards();
    on_all([&](std::size_t rank) {
      if (rank == 1) dawdle(worlds_[rank]);
      const Status status = worlds_[rank].barrier();
      EXPECT_TRUE(status.ok()) << status.to_string();
      EXPECT_TRUE((round % 2 == 0 ? worlds_[rank].leave(30s) : worlds_[rank].shutdown(30s)).ok());
    });
  }
}

// Each world has boards of its own, but not a region and its descriptors: a rank may be in a thousand of them.
TEST_F(BoardsWorld, ManyGroupsTakeFewDescriptors) {
  constexpr int kGroups = 150;
  const auto descriptors = [] {
    return std::distance(std::filesystem::directory_iterator("/proc/self/fd"), std::filesystem::directory_iterator());
  };
  open(2);
  until_on_boards();
  const auto before = descriptors();
  std::vector<std::vector<World>> groups(2);
  on_all([&](std::size_t rank) {
    for (int number = 0; number < kGroups; ++number) {
      Result<World> made = worlds_[rank].duplicate();
      ASSERT_TRUE(made.has_value()) << made.error().to_string();
      for (int round = 0; round < 5; ++round) {
        const Status status = made->barrier();
        ASSERT_TRUE(status.ok()) << status.to_string();
      }
      groups[rank].push_back(std::move(*made));
    }
  });
  EXPECT_EQ(last_algorithm(), "boards");
  EXPECT_LE(descriptors() - before, 20);
}

}  // namespace
}  // namespace hawser
