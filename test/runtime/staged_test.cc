// Large collectives of ranks of one host whose buffers the others cannot map: they go over boards in pieces.

#include <gtest/gtest.h>

#include <hawser/world.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "local_worlds.h"

namespace hawser {
namespace {

using namespace std::chrono_literals;
using Floats = std::vector<float>;
using Counts = std::vector<std::uint64_t>;

constexpr std::size_t kCount = 150'001;  ///< Floats: many pieces, and the last one is not whole.
constexpr auto kType = DataType::kFloat32;

class StagedWorld : public LocalWorlds {
 protected:
  /// With the boards open, so that large calls are staged.
  void open_staged(std::uint32_t size) {
    open(size);
    int tries = 0;
    while (last_algorithm() != "boards" && ++tries < kTriesMax) meet(worlds_);
    ASSERT_EQ(last_algorithm(), "boards");
  }
  static Floats values(std::size_t count, std::size_t rank, int round) {
    Floats all(count);
    for (std::size_t i = 0; i < count; ++i) all[i] = value(i, rank, round);
    return all;
  }
  Floats sums(std::size_t count, int round) const {
    Floats all(count);
    for (std::size_t i = 0; i < count; ++i) all[i] = sum(i, round);
    return all;
  }
  /// Uneven ones, of which one is 0.
  Counts counts() const {
    Counts all;
    for (std::size_t rank = 0; rank < worlds_.size(); ++rank) all.push_back(rank == 1 ? 0 : 60'000 + 7'777 * rank);
    return all;
  }
  /// All ranks must get that, and go in pieces.
  template <typename Call>
  void check(Call call) {
    on_all([&](std::size_t rank) {
      const Status status = call(rank);
      ASSERT_TRUE(status.ok()) << status.to_string();
    });
    EXPECT_EQ(last_algorithm(), "staged");
  }
};

TEST_F(StagedWorld, ATensorIsCombined) {
  for (const std::uint32_t size : {2U, 3U, 5U}) {
    open_staged(size);
    for (int round = 0; round < 3; ++round) {
      std::vector<Floats> out(size, Floats(kCount));
      check([&](std::size_t rank) {
        const Floats in = values(kCount, rank, round);
        return worlds_[rank].all_reduce(in.data(), out[rank].data(), kCount, kType, ReduceOp::kSum);
      });
      EXPECT_EQ(out, std::vector<Floats>(size, sums(kCount, round)));
      check([&](std::size_t rank) {
        out[rank] = values(kCount, rank, round);
        return worlds_[rank].all_reduce(out[rank].data(), out[rank].data(), kCount, kType, ReduceOp::kSum);
      });
      EXPECT_EQ(out, std::vector<Floats>(size, sums(kCount, round))) << "in place";
      const std::uint32_t root = static_cast<std::uint32_t>(round) % size;
      Floats whole(kCount);
      check([&](std::size_t rank) {
        const Floats in = values(kCount, rank, round);
        float* const to = rank == root ? whole.data() : nullptr;
        return worlds_[rank].reduce(in.data(), to, kCount, kType, ReduceOp::kSum, root);
      });
      EXPECT_EQ(whole, sums(kCount, round));
      check([&](std::size_t rank) {
        out[rank] = values(kCount, rank, round);
        return worlds_[rank].broadcast(out[rank].data(), kCount, kType, root);
      });
      EXPECT_EQ(out, std::vector<Floats>(size, values(kCount, root, round)));
    }
  }
}

TEST_F(StagedWorld, BlocksComeWhereTheyBelong) {
  for (const std::uint32_t size : {2U, 3U, 5U}) {
    open_staged(size);
    const Counts blocks = counts();
    const std::size_t total = std::accumulate(blocks.begin(), blocks.end(), std::size_t{0});
    const std::uint32_t root = size - 1;
    Floats all;
    for (std::size_t rank = 0; rank < size; ++rank) {
      const Floats its = values(blocks[rank], rank, 4);
      all.insert(all.end(), its.begin(), its.end());
    }
    std::vector<Floats> out(size, Floats(total));
    check([&](std::size_t rank) {
      return worlds_[rank].all_gather(values(blocks[rank], rank, 4).data(), out[rank].data(), blocks, kType);
    });
    EXPECT_EQ(out, std::vector<Floats>(size, all));
    Floats gathered(total);
    check([&](std::size_t rank) {
      float* const to = rank == root ? gathered.data() : nullptr;
      return worlds_[rank].gather(values(blocks[rank], rank, 4).data(), to, blocks, kType, root);
    });
    EXPECT_EQ(gathered, all);
    std::vector<Floats> own(size);
    for (std::size_t rank = 0; rank < size; ++rank) own[rank].resize(blocks[rank]);
    check([&](std::size_t rank) {
      return worlds_[rank].scatter(rank == root ? all.data() : nullptr, own[rank].data(), blocks, kType, root);
    });
    std::size_t at = 0;
    for (std::size_t rank = 0; rank < size; at += blocks[rank++]) EXPECT_EQ(own[rank], values(blocks[rank], rank, 4));
    check([&](std::size_t rank) {
      const Floats in = values(total, rank, 5);
      return worlds_[rank].reduce_scatter(in.data(), own[rank].data(), blocks, kType, ReduceOp::kSum);
    });
    at = 0;
    for (std::size_t rank = 0; rank < size; at += blocks[rank++]) {
      for (std::size_t i = 0; i < blocks[rank]; ++i) ASSERT_EQ(own[rank][i], sum(at + i, 5));
    }
  }
}

TEST_F(StagedWorld, AllToAllOfAnyCounts) {
  for (const std::uint32_t size : {2U, 3U, 5U}) {
    open_staged(size);
    for (const std::size_t scale : {0U, 1U, 5'000U}) {  // None, small ones, and many pieces.
      const auto count = [&](std::size_t from, std::size_t to) { return scale * ((from * 3 + to * 5) % 7); };
      std::vector<Floats> out(size), want(size);
      check([&](std::size_t rank) {
        Counts go, come;
        Floats in;
        for (std::size_t other = 0; other < size; ++other) {
          go.push_back(count(rank, other));
          come.push_back(count(other, rank));
          const Floats to_it = values(go[other], rank, static_cast<int>(other));
          in.insert(in.end(), to_it.begin(), to_it.end());
          const Floats from_it = values(come[other], other, static_cast<int>(rank));
          want[rank].insert(want[rank].end(), from_it.begin(), from_it.end());
        }
        out[rank].resize(want[rank].size());
        return worlds_[rank].all_to_all(in.data(), out[rank].data(), go, come, kType);
      });
      EXPECT_EQ(out, want);
    }
  }
}

TEST_F(StagedWorld, CountsThatDoNotFitTogetherAreNamedByAll) {
  open_staged(3);
  on_all([&](std::size_t rank) {
    Floats in(300), out(300);
    const Counts go(3, 100);
    Counts come = go;
    if (rank == 2) come[1] = 99;
    const Status status = worlds_[rank].all_to_all(in.data(), out.data(), go, come, kType);
    EXPECT_EQ(status.code(), Code::kInvalid) << status.to_string();
    EXPECT_NE(status.message().find("rank 1 sends 100 elements to rank 2, which wants 99"), std::string::npos)
        << status.to_string();
  });
}

// As by messages: what the first pieces write must not be what later ones read.
TEST_F(StagedWorld, ResultsMayLieInTheInput) {
  open_staged(3);
  constexpr std::size_t kMore = 1000;
  std::vector<Floats> data(3, Floats(kCount + kMore));
  check([&](std::size_t rank) {
    const Floats in = values(kCount, rank, 1);
    std::ranges::copy(in, data[rank].begin());
    return worlds_[rank].all_reduce(data[rank].data(), data[rank].data() + kMore, kCount, kType, ReduceOp::kSum);
  });
  for (const Floats& each : data) EXPECT_EQ(Floats(each.begin() + kMore, each.end()), sums(kCount, 1));
}

TEST_F(StagedWorld, ManyAtOnceAreAllRight) {
  open_staged(3);
  constexpr int kAtOnce = 12;
  on_all([&](std::size_t rank) {
    std::vector<Floats> data;
    std::vector<Request> requests;
    for (int k = 0; k < kAtOnce; ++k) data.push_back(values(k % 3 == 2 ? 5 : kCount / 2, rank, k));
    for (Floats& each : data) {
      requests.push_back(worlds_[rank].iall_reduce(each.data(), each.data(), each.size(), kType, ReduceOp::kSum));
    }
    for (int k = 0; k < kAtOnce; ++k) {
      const Status status = requests[static_cast<std::size_t>(k)].wait(60s);
      ASSERT_TRUE(status.ok()) << status.to_string();
      const Floats& its = data[static_cast<std::size_t>(k)];
      ASSERT_EQ(its, sums(its.size(), k));
    }
  });
}

TEST_F(StagedWorld, OfAnAverageTheSumsAreDivided) {
  open_staged(4);
  std::vector<Floats> data(4);
  check([&](std::size_t rank) {
    data[rank] = values(kCount, rank, 2);
    return worlds_[rank].all_reduce(data[rank].data(), data[rank].data(), kCount, kType, ReduceOp::kAvg);
  });
  for (std::size_t i = 0; i < kCount; ++i) ASSERT_EQ(data[0][i], sum(i, 2) / 4);
}

TEST_F(StagedWorld, AnotherCallIsFoundByAllAndNamed) {
  open_staged(3);
  on_all([&](std::size_t rank) {
    Floats data(kCount);
    const std::size_t count = rank == 1 ? kCount - 1 : kCount;
    const Status status = worlds_[rank].all_reduce(data.data(), data.data(), count, kType, ReduceOp::kSum);
    EXPECT_EQ(status.code(), Code::kInvalid) << status.to_string();
    EXPECT_NE(status.message().find("the ranks differ in what they call"), std::string::npos) << status.to_string();
  });
}

TEST_F(StagedWorld, ABufferThatIsNullIsInvalidAtItsRank) {
  open_staged(2);
  Floats data(kCount);
  const Status status = worlds_[0].reduce(nullptr, data.data(), kCount, kType, ReduceOp::kSum, 0);
  EXPECT_EQ(status.code(), Code::kInvalid) << status.to_string();
  const Status in_place = worlds_[1].reduce(nullptr, nullptr, kCount, kType, ReduceOp::kSum, 0);
  EXPECT_EQ(in_place.code(), Code::kInvalid) << in_place.to_string();
  EXPECT_EQ(worlds_[0].broadcast(nullptr, kCount, kType, 0).code(), Code::kInvalid);
}

TEST_F(StagedWorld, ADeadlineNamesWhoIsMissing) {
  open_staged(3);
  std::vector<Floats> data(3, Floats(kCount));
  std::vector<Request> all;
  for (const std::size_t rank : {0U, 2U}) {
    all.push_back(worlds_[rank].iall_reduce(data[rank].data(), data[rank].data(), kCount, kType, ReduceOp::kSum,
                                            {.timeout = 50ms}));
  }
  const Status status = all[0].wait(30s);
  EXPECT_EQ(status.code(), Code::kTimedOut) << status.to_string();
  EXPECT_NE(status.message().find("waits for rank 1"), std::string::npos) << status.to_string();
  EXPECT_EQ(all[1].wait(30s).code(), Code::kTimedOut);
}

TEST_F(StagedWorld, WhenARankFailsTheOthersHearIt) {
  open_staged(3);
  on_all([&](std::size_t rank) {
    Floats data(kCount);
    if (rank == 2) {  // It is in the midst of one.
      const Request begun = worlds_[2].iall_reduce(data.data(), data.data(), kCount, kType, ReduceOp::kSum);
      EXPECT_TRUE(worlds_[2].close(5s).ok());
      return;
    }
    if (rank == 1) {
      EXPECT_FALSE(worlds_[1].probe(kAnySource, 999, 20ms).has_value()) << "nobody sends this: it is late";
    }
    Status status;
    for (int i = 0; i < 3 && status.ok(); ++i) {
      status = worlds_[rank].all_reduce(data.data(), data.data(), kCount, kType, ReduceOp::kSum);
    }
    EXPECT_EQ(status.code(), Code::kDisconnected) << status.to_string();
  });
  const auto start = std::chrono::steady_clock::now();
  EXPECT_TRUE(worlds_[0].close(5s).ok());
  EXPECT_LT(std::chrono::steady_clock::now() - start, 3s);
}

TEST_F(StagedWorld, WhatIsCancelledEndsForAll) {
  open_staged(2);
  std::vector<Floats> data(2, Floats(kCount));
  Request first = worlds_[0].iall_reduce(data[0].data(), data[0].data(), kCount, kType, ReduceOp::kSum);
  first.cancel();
  EXPECT_EQ(first.wait(30s).code(), Code::kCancelled);
  const Status other = worlds_[1].all_reduce(data[1].data(), data[1].data(), kCount, kType, ReduceOp::kSum);
  EXPECT_EQ(other.code(), Code::kCancelled) << other.to_string();
}

TEST_F(StagedWorld, WhatCannotBeSharedIsNot) {
  open_staged(2);
  std::vector<Floats> data(2, Floats(kCount));
  on_all([&](std::size_t rank) {
    ASSERT_TRUE(
        worlds_[rank]
            .all_reduce(data[rank].data(), data[rank].data(), kCount, kType, ReduceOp::kSum, {.reproducible = true})
            .ok());
  });
  EXPECT_EQ(last_algorithm(), "fixed tree");
  open(2, "tcp");
  for (int round = 0; round < 20; ++round) meet(worlds_);
  on_all([&](std::size_t rank) { ASSERT_TRUE(worlds_[rank].broadcast(data[rank].data(), kCount, kType, 0).ok()); });
  EXPECT_NE(last_algorithm(), "staged");
}

}  // namespace
}  // namespace hawser
