// Collectives of ranks that read each other's buffers where they lie, in one process.

#include <gtest/gtest.h>

#include <hawser/world.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/rng.h"
#include "local_worlds.h"

namespace hawser {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t kCount = 150'001;  ///< Floats: far above where ranks begin to read; not a round number.
constexpr int kRoundsMax = 200;          ///< Until all ranks have mapped what the others lend.

using Regions = std::vector<Region>;

class MappedWorld : public LocalWorlds {
 protected:
  /// Memory of each rank that the others can map.
  Regions allocate(std::size_t count, Rights rights = Rights::kReadWrite) {
    Regions all;
    for (World& world : worlds_) {
      all.push_back(std::move(world.allocate({.size = count * sizeof(float), .rights = rights})).value());
    }
    return all;
  }
  static float* floats(const Region& region) { return reinterpret_cast<float*>(region.bytes().data()); }
  static void fill(float* data, std::size_t count, std::size_t rank, int round) {
    for (std::size_t i = 0; i < count; ++i) data[i] = value(i, rank, round);
  }
  /// Calls it with 0, 1, 2 ... until the ranks read each other's memory, and then a few times more.
  template <typename Once>
  void until_mapped(Once once) {
    int round = 0;
    for (; round < kRoundsMax && last_algorithm() != "mapped"; ++round) once(round);
    for (const int last = round + 3; round < last; ++round) once(round);
    EXPECT_EQ(last_algorithm(), "mapped");
  }
};

TEST_F(MappedWorld, AllReduceGivesTheSumAndLeavesTheInput) {
  for (const std::uint32_t size : {2U, 3U, 4U, 11U}) {
    open(size);
    const Regions in = allocate(kCount), out = allocate(kCount);
    until_mapped([&](int round) {
      on_all([&](std::size_t rank) {
        fill(floats(in[rank]), kCount, rank, round);
        const Status status =
            worlds_[rank].all_reduce(floats(in[rank]), floats(out[rank]), kCount, DataType::kFloat32, ReduceOp::kSum);
        ASSERT_TRUE(status.ok()) << status.to_string();
        for (std::size_t i = 0; i < kCount; ++i) {
          ASSERT_EQ(floats(out[rank])[i], sum(i, round)) << i;
          ASSERT_EQ(floats(in[rank])[i], value(i, rank, round)) << i;
        }
      });
    });
  }
}

TEST_F(MappedWorld, InPlaceAndAverageAndPartsOfOneRegion) {
  open(3);
  const Regions both = allocate(2 * kCount);
  until_mapped([&](int round) {
    on_all([&](std::size_t rank) {
      float* const data = floats(both[rank]) + (round % 2) * kCount;
      fill(data, kCount, rank, round);
      const Status status = worlds_[rank].all_reduce(data, data, kCount, DataType::kFloat32, ReduceOp::kAvg);
      ASSERT_TRUE(status.ok()) << status.to_string();
      for (std::size_t i = 0; i < kCount; ++i) ASSERT_EQ(data[i], sum(i, round) / 3) << i;
    });
  });
}

TEST_F(MappedWorld, OneRankInPlaceAndOthersNot) {
  open(3);
  const Regions in = allocate(kCount), out = allocate(kCount);
  until_mapped([&](int round) {
    on_all([&](std::size_t rank) {
      float* const from = floats(rank == 1 ? out[rank] : in[rank]);
      fill(from, kCount, rank, round);
      const Status status =
          worlds_[rank].all_reduce(from, floats(out[rank]), kCount, DataType::kFloat32, ReduceOp::kMax);
      ASSERT_TRUE(status.ok()) << status.to_string();
      for (std::size_t i = 0; i < kCount; ++i) {
        const float most = std::max({value(i, 0, round), value(i, 1, round), value(i, 2, round)});
        ASSERT_EQ(floats(out[rank])[i], most) << i;
      }
    });
  });
}

TEST_F(MappedWorld, AllRanksHaveTheSameBits) {
  open(4);
  const Regions in = allocate(kCount), out = allocate(kCount);
  until_mapped([&](int round) {
    on_all([&](std::size_t rank) {
      base::Rng rng(rank * 1000 + static_cast<std::size_t>(round));
      for (std::size_t i = 0; i < kCount; ++i) floats(in[rank])[i] = static_cast<float>(rng.u64()) / 3.0F;
      const Status status =
          worlds_[rank].all_reduce(floats(in[rank]), floats(out[rank]), kCount, DataType::kFloat32, ReduceOp::kSum);
      ASSERT_TRUE(status.ok()) << status.to_string();
    });
    for (const Region& each : out) ASSERT_EQ(std::memcmp(floats(each), floats(out[0]), kCount * sizeof(float)), 0);
  });
}

TEST_F(MappedWorld, BroadcastNeedsTheRootsMemoryOnly) {
  open(3);
  const Region source = std::move(worlds_[1].allocate({.size = kCount * sizeof(float)})).value();
  std::vector<std::vector<float>> others(3, std::vector<float>(kCount));
  until_mapped([&](int round) {
    on_all([&](std::size_t rank) {
      float* const data = rank == 1 ? floats(source) : others[rank].data();
      if (rank == 1) fill(data, kCount, 1, round);
      const Status status = worlds_[rank].broadcast(data, kCount, DataType::kFloat32, 1);
      ASSERT_TRUE(status.ok()) << status.to_string();
      for (std::size_t i = 0; i < kCount; ++i) ASSERT_EQ(data[i], value(i, 1, round)) << i;
    });
  });
}

TEST_F(MappedWorld, AllGatherAndReduceScatterOfUnevenBlocks) {
  open(3);
  const std::vector<std::uint64_t> counts = {kCount, 0, kCount + 7};
  const std::uint64_t all = 2 * kCount + 7;
  const std::vector<std::uint64_t> starts = {0, kCount, kCount};
  const Regions in = allocate(all), out = allocate(all);
  until_mapped([&](int round) {
    on_all([&](std::size_t rank) {
      fill(floats(in[rank]), counts[rank], rank, round);
      const Status status = worlds_[rank].all_gather(floats(in[rank]), floats(out[rank]), counts, DataType::kFloat32);
      ASSERT_TRUE(status.ok()) << status.to_string();
      for (std::size_t from = 0; from < 3; ++from) {
        for (std::size_t i = 0; i < counts[from]; ++i) {
          ASSERT_EQ(floats(out[rank])[starts[from] + i], value(i, from, round)) << from << " " << i;
        }
      }
    });
  });
  until_mapped([&](int round) {
    on_all([&](std::size_t rank) {
      fill(floats(in[rank]), all, rank, round);
      const Status status =
          worlds_[rank].reduce_scatter(floats(in[rank]), floats(out[rank]), counts, DataType::kFloat32, ReduceOp::kSum);
      ASSERT_TRUE(status.ok()) << status.to_string();
      for (std::size_t i = 0; i < counts[rank]; ++i) ASSERT_EQ(floats(out[rank])[i], sum(starts[rank] + i, round));
    });
  });
}

// ---- Where not all can be mapped, all go another way.

TEST_F(MappedWorld, OneRankOnTheHeapMakesAllGoAnotherWay) {
  open(3);
  const Regions in = allocate(kCount), out = allocate(kCount);
  std::vector<float> heap(kCount);
  for (int round = 0; round < 10; ++round) {
    on_all([&](std::size_t rank) {
      float* const to = rank == 2 ? heap.data() : floats(out[rank]);
      fill(floats(in[rank]), kCount, rank, round);
      const Status status = worlds_[rank].all_reduce(floats(in[rank]), to, kCount, DataType::kFloat32, ReduceOp::kSum);
      ASSERT_TRUE(status.ok()) << status.to_string();
      for (std::size_t i = 0; i < kCount; ++i) ASSERT_EQ(to[i], sum(i, round)) << i;
    });
    EXPECT_NE(last_algorithm(), "mapped");
  }
}

// The model chooses mapped memory, which these buffers are not in. Boards take any memory.
TEST_F(MappedWorld, WhatIsNotMappedGoesOverBoards) {
  constexpr std::size_t kFits = 64 * 1024;
  open(2);
  std::vector<std::vector<float>> in(2, std::vector<float>(kFits)), out = in;
  int round = 0;
  for (; round < kRoundsMax && last_algorithm() != "staged"; ++round) {
    on_all([&](std::size_t rank) {
      fill(in[rank].data(), kFits, rank, round);
      const Status status =
          worlds_[rank].all_reduce(in[rank].data(), out[rank].data(), kFits, DataType::kFloat32, ReduceOp::kSum);
      ASSERT_TRUE(status.ok()) << status.to_string();
      for (std::size_t i = 0; i < kFits; ++i) ASSERT_EQ(out[rank][i], sum(i, round)) << i;
    });
  }
  EXPECT_EQ(last_algorithm(), "staged");
}

TEST_F(MappedWorld, BuffersThatOverlapInPartAreNotRead) {
  open(2);
  const Regions both = allocate(2 * kCount);
  for (int round = 0; round < 10; ++round) {
    on_all([&](std::size_t rank) {
      float* const from = floats(both[rank]);
      float* const to = from + (rank == 0 ? kCount : 100);  // Of rank 1 they overlap.
      fill(from, kCount, rank, round);
      const Status status = worlds_[rank].all_reduce(from, to, kCount, DataType::kFloat32, ReduceOp::kSum);
      ASSERT_TRUE(status.ok()) << status.to_string();
      for (std::size_t i = 0; i < kCount; ++i) ASSERT_EQ(to[i], sum(i, round)) << i;
    });
    EXPECT_NE(last_algorithm(), "mapped");
  }
}

TEST_F(MappedWorld, WhatOthersMayNotReadIsNotRead) {
  open(2);
  const Regions in = allocate(kCount, Rights::kWrite), out = allocate(kCount);
  for (int round = 0; round < 10; ++round) {
    on_all([&](std::size_t rank) {
      fill(floats(in[rank]), kCount, rank, round);
      const Status status =
          worlds_[rank].all_reduce(floats(in[rank]), floats(out[rank]), kCount, DataType::kFloat32, ReduceOp::kSum);
      ASSERT_TRUE(status.ok()) << status.to_string();
    });
    EXPECT_NE(last_algorithm(), "mapped");
  }
}

// Each holds two views of each other rank at most, and a path has a bound for them.
TEST_F(MappedWorld, ManyAtOnceAreAllRight) {
  open(2);
  constexpr std::size_t kAtOnce = 20;
  std::vector<Regions> in, out;
  for (std::size_t k = 0; k < kAtOnce; ++k) in.push_back(allocate(kCount)), out.push_back(allocate(kCount));
  for (int round = 0; round < 6; ++round) {
    on_all([&](std::size_t rank) {
      std::vector<Request> requests;
      for (std::size_t k = 0; k < kAtOnce; ++k) fill(floats(in[k][rank]), kCount, rank, round + static_cast<int>(k));
      for (std::size_t k = 0; k < kAtOnce; ++k) {
        requests.push_back(worlds_[rank].iall_reduce(floats(in[k][rank]), floats(out[k][rank]), kCount,
                                                     DataType::kFloat32, ReduceOp::kSum));
      }
      for (std::size_t k = 0; k < kAtOnce; ++k) {
        const Status status = requests[k].wait(60s);
        ASSERT_TRUE(status.ok()) << status.to_string();
        for (std::size_t i = 0; i < kCount; ++i) {
          ASSERT_EQ(floats(out[k][rank])[i], sum(i, round + static_cast<int>(k))) << k << " " << i;
        }
      }
    });
  }
}

// ---- Regions that go, and ranks that fail.

TEST_F(MappedWorld, ARegionClosesOnceNobodyReadsItAndANewOneTakesItsPlace) {
  open(3);
  for (int again = 0; again < 3; ++again) {
    Regions data = allocate(kCount);
    until_mapped([&](int round) {
      on_all([&](std::size_t rank) {
        fill(floats(data[rank]), kCount, rank, round + again);
        const Status status = worlds_[rank].all_reduce(floats(data[rank]), floats(data[rank]), kCount,
                                                       DataType::kFloat32, ReduceOp::kSum);
        ASSERT_TRUE(status.ok()) << status.to_string();
        for (std::size_t i = 0; i < kCount; ++i) ASSERT_EQ(floats(data[rank])[i], sum(i, round + again)) << i;
      });
    });
    for (Region& each : data) {
      const Status status = each.close(5s);
      EXPECT_TRUE(status.ok()) << status.to_string();
    }
  }
}

TEST_F(MappedWorld, WhenARankFailsTheOthersHearItAndHaveTheirMemoryBack) {
  open(3);
  Regions in = allocate(kCount), out = allocate(kCount);
  const auto once = [&](std::size_t rank, int round) {
    fill(floats(in[rank]), kCount, rank, round);
    return worlds_[rank].all_reduce(floats(in[rank]), floats(out[rank]), kCount, DataType::kFloat32, ReduceOp::kSum);
  };
  until_mapped([&](int round) { on_all([&](std::size_t rank) { ASSERT_TRUE(once(rank, round).ok()); }); });
  on_all([&](std::size_t rank) {
    if (rank == 2) {
      EXPECT_TRUE(worlds_[2].close(5s).ok());
      return;
    }
    const Status status = once(rank, 1);
    EXPECT_EQ(status.code(), Code::kDisconnected) << status.to_string();
    for (std::size_t i = 0; i < kCount; ++i) ASSERT_EQ(floats(in[rank])[i], value(i, rank, 1)) << i;
    EXPECT_TRUE(in[rank].close(5s).ok());
    EXPECT_TRUE(out[rank].close(5s).ok());
  });
}

}  // namespace
}  // namespace hawser
