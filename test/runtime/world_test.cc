// Worlds in one process: messages, collectives, failure.

#include <gtest/gtest.h>

#include <hawser/world.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <map>
#include <mutex>
#include <numeric>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/rng.h"
#include "with_quic.h"

namespace hawser {
namespace {

using namespace std::chrono_literals;

std::span<const std::byte> bytes_of(const std::string& text) { return std::as_bytes(std::span(text)); }

class WorldTest : public testing::TestWithParam<std::string> {
 protected:
  static WorldOptions options() {
    WorldOptions made;
    made.timeout = 60s;
    if (GetParam() != "any") made.agent.backends = {{.name = GetParam()}};
    return made;
  }
  static std::vector<World> open(std::uint32_t size) {
    Result<std::vector<World>> worlds = World::local(size, options());
    EXPECT_TRUE(worlds.has_value()) << worlds.error().to_string();
    return worlds ? std::move(*worlds) : std::vector<World>();
  }
  /// Runs `call` in a thread for each rank.
  template <typename Call>
  static void on_all(std::vector<World>& worlds, Call call) {
    std::vector<std::thread> threads;
    for (World& world : worlds) threads.emplace_back([&call, &world] { call(world); });
    for (std::thread& thread : threads) thread.join();
  }
};

TEST_P(WorldTest, SendsAndReceives) {
  std::vector<World> worlds = open(2);
  ASSERT_EQ(worlds.size(), 2U);
  const std::string text = "to rank 1";
  Request sent = worlds[0].isend(bytes_of(text), 1, 7);
  std::string got(20, ' ');
  const Result<Received> received = worlds[1].receive(std::as_writable_bytes(std::span(got)), 0, 7);
  ASSERT_TRUE(received.has_value()) << received.error().to_string();
  EXPECT_EQ(received->source, 0U);
  EXPECT_EQ(received->tag, 7U);
  EXPECT_EQ(got.substr(0, received->bytes), text);
  EXPECT_TRUE(sent.wait(10s).ok());
}

TEST_P(WorldTest, MessagesOfAllSizesComeWhole) {
  std::vector<World> worlds = open(2);
  base::Rng rng(3);
  for (const std::size_t size : {0U, 1U, 8U, 4096U, 65471U, 65472U, 65473U, 300'000U, 5'000'000U}) {
    std::vector<std::byte> data(size), got(size);
    for (std::byte& each : data) each = static_cast<std::byte>(rng.u64() >> 20);
    for (const bool posted_first : {true, false}) {
      std::ranges::fill(got, std::byte{0});
      Request receive, send;
      if (posted_first) receive = worlds[1].ireceive(got, 0, 1);
      send = worlds[0].isend(data, 1, 1);
      if (!posted_first) {
        const std::optional<Received> seen = worlds[1].probe(kAnySource, std::nullopt, 10s);
        ASSERT_TRUE(seen.has_value());
        EXPECT_EQ(seen->bytes, size);
        receive = worlds[1].ireceive(got, kAnySource, std::nullopt);
      }
      ASSERT_TRUE(receive.wait(20s).ok()) << size << " " << receive.status().to_string();
      ASSERT_TRUE(send.wait(20s).ok()) << size;
      ASSERT_EQ(receive.received().bytes, size);
      ASSERT_EQ(got, data);
    }
  }
}

TEST_P(WorldTest, MessagesOfOneTagDoNotOvertake) {
  std::vector<World> worlds = open(2);
  constexpr int kCount = 600;
  std::vector<std::vector<std::byte>> sent(kCount), got(kCount);
  std::vector<Request> requests;
  for (int i = 0; i < kCount; ++i) {
    sent[i].resize(i % 10 == 9 ? 200'000 : 100, static_cast<std::byte>(i));
    requests.push_back(worlds[0].isend(sent[i], 1, 5));
  }
  for (int i = 0; i < kCount; ++i) {
    got[i].resize(200'000);
    requests.push_back(worlds[1].ireceive(got[i], 0, 5));
  }
  for (Request& request : requests) ASSERT_TRUE(request.wait(30s).ok()) << request.status().to_string();
  for (int i = 0; i < kCount; ++i) {
    got[i].resize(sent[i].size());
    ASSERT_EQ(got[i], sent[i]) << i;
  }
}

TEST_P(WorldTest, ToOneself) {
  std::vector<World> worlds = open(2);
  std::vector<std::byte> large(300'000, std::byte{5}), got(300'000);
  Request send = worlds[0].isend(large, 0, 1);
  EXPECT_FALSE(send.done());
  ASSERT_TRUE(worlds[0].receive(got, 0, 1).has_value());
  EXPECT_TRUE(send.wait(1s).ok());
  EXPECT_EQ(got, large);
  ASSERT_TRUE(worlds[0].send(bytes_of("small"), 0, 2).ok());
  Request any = worlds[0].ireceive_any_size(kAnySource, std::nullopt);
  ASSERT_TRUE(any.wait(10s).ok());
  EXPECT_EQ(any.bytes().size(), 5U);
  EXPECT_EQ(any.received().source, 0U);
}

TEST_P(WorldTest, AMessageThatDoesNotFitStays) {
  std::vector<World> worlds = open(2);
  std::vector<std::byte> data(100), small(99), larger(101), right(100);
  for (const std::size_t size : {100U, 300'000U}) {
    data.resize(size);
    small.resize(size - 1);
    right.resize(size);
    Request send = worlds[0].isend(data, 1, 1);
    const Result<Received> refused = worlds[1].receive(small, 0, 1);
    ASSERT_FALSE(refused.has_value());
    EXPECT_EQ(refused.error().code(), Code::kInvalid);
    EXPECT_NE(refused.error().to_string().find(std::to_string(size)), std::string::npos);
    EXPECT_TRUE(worlds[1].receive(right, 0, 1).has_value());
    EXPECT_TRUE(send.wait(10s).ok());
  }
  data.resize(100);
  right.resize(100);
  Request send = worlds[0].isend(data, 1, 1);
  EXPECT_EQ(worlds[1].receive(larger, 0, 1, {.exact = true}).error().code(), Code::kInvalid);
  EXPECT_TRUE(worlds[1].receive(right, 0, 1, {.exact = true}).has_value());
}

TEST_P(WorldTest, CallsThatAreWrongSaySo) {
  std::vector<World> worlds = open(2);
  const Status status = worlds[0].send(bytes_of("x"), 2, 1);
  EXPECT_EQ(status.code(), Code::kInvalid);
  EXPECT_NE(status.to_string().find("no rank 2"), std::string::npos) << status.to_string();
  std::uint64_t number = 1;
  EXPECT_EQ(worlds[0].broadcast(&number, 1, DataType::kUInt64, 5).code(), Code::kInvalid);
  EXPECT_EQ(worlds[0].all_reduce(&number, &number, 1, DataType::kBool, ReduceOp::kSum).code(), Code::kInvalid);
  const std::vector<std::uint64_t> one = {1};
  EXPECT_EQ(worlds[0].all_gather(&number, &number, one, DataType::kUInt64).code(), Code::kInvalid);
  EXPECT_EQ(worlds[0].all_reduce(nullptr, &number, 1, DataType::kUInt64, ReduceOp::kSum).code(), Code::kInvalid);
  EXPECT_EQ(worlds[0].broadcast(nullptr, 1, DataType::kUInt64, 0).code(), Code::kInvalid);
  EXPECT_EQ(worlds[0].broadcast(&number, ~std::uint64_t{0}, DataType::kUInt64, 0).code(), Code::kInvalid);
  std::vector<std::uint64_t> both(2), ones(2, 1);
  const Status same = worlds[0].all_to_all(both.data(), both.data(), ones, ones, DataType::kUInt64);
  EXPECT_NE(same.to_string().find("overlap"), std::string::npos) << same.to_string();
  EXPECT_EQ(World::local(0).error().code(), Code::kInvalid);
  EXPECT_EQ(World::open({.size = 2, .rank = 2}).error().code(), Code::kInvalid);
}

TEST_P(WorldTest, ReceivesEndByDeadlineAndCancel) {
  std::vector<World> worlds = open(2);
  std::array<std::byte, 8> buffer;
  EXPECT_EQ(worlds[0].receive(buffer, 1, 1, {.timeout = 20ms}).error().code(), Code::kTimedOut);
  Request receive = worlds[0].ireceive(buffer, 1, 1);
  receive.cancel();
  EXPECT_EQ(receive.wait(1s).code(), Code::kCancelled);
  std::vector<std::byte> large(300'000);
  {
    const Request dropped = worlds[1].isend(large, 0, 1);
    EXPECT_TRUE(worlds[0].probe(1, 1, 10s).has_value());
  }
  ASSERT_TRUE(worlds[1].send(bytes_of("after it was dropped"), 0, 2).ok());
  EXPECT_TRUE(worlds[0].probe(1, 2, 10s).has_value());
  EXPECT_FALSE(worlds[0].probe(1, 1).has_value());
}

/// Every collective once, with numbers whose results are known.
void check_all_collectives(World& world, std::size_t count, const CollectiveOptions& options) {
  const std::uint32_t size = world.size(), rank = world.rank();
  const auto value = [](std::uint32_t of, std::size_t i) { return static_cast<std::int64_t>(of * 1000 + i); };
  const auto sum = [&](std::uint32_t end, std::size_t i) {
    std::int64_t all = 0;
    for (std::uint32_t of = 0; of < end; ++of) all += value(of, i);
    return all;
  };
  std::vector<std::int64_t> mine(count), out(count);
  for (std::size_t i = 0; i < count; ++i) mine[i] = value(rank, i);
  const std::vector<std::int64_t> kept = mine;
  ASSERT_TRUE(world.barrier(options).ok());
  Status status = world.all_reduce(mine.data(), out.data(), count, DataType::kInt64, ReduceOp::kSum, options);
  ASSERT_TRUE(status.ok()) << status.to_string();
  for (std::size_t i = 0; i < count; ++i) ASSERT_EQ(out[i], sum(size, i)) << i;
  ASSERT_EQ(mine, kept);
  ASSERT_TRUE(world.all_reduce(mine.data(), mine.data(), count, DataType::kInt64, ReduceOp::kAvg, options).ok());
  for (std::size_t i = 0; i < count; ++i) ASSERT_EQ(mine[i], sum(size, i) / size) << i;
  mine = kept;
  const std::uint32_t root = size - 1;
  ASSERT_TRUE(world.reduce(mine.data(), out.data(), count, DataType::kInt64, ReduceOp::kMax, root, options).ok());
  for (std::size_t i = 0; rank == root && i < count; ++i) ASSERT_EQ(out[i], value(size - 1, i));
  out = mine;
  ASSERT_TRUE(world.broadcast(out.data(), count, DataType::kInt64, root, options).ok());
  for (std::size_t i = 0; i < count; ++i) ASSERT_EQ(out[i], value(root, i));
  ASSERT_TRUE(world.scan(mine.data(), out.data(), count, DataType::kInt64, ReduceOp::kSum, false, options).ok());
  for (std::size_t i = 0; i < count; ++i) ASSERT_EQ(out[i], sum(rank + 1, i));
  ASSERT_TRUE(world.scan(mine.data(), out.data(), count, DataType::kInt64, ReduceOp::kSum, true, options).ok());
  for (std::size_t i = 0; rank > 0 && i < count; ++i) ASSERT_EQ(out[i], sum(rank, i));

  std::vector<std::uint64_t> counts(size);
  for (std::uint32_t of = 0; of < size; ++of) counts[of] = count + of;
  const std::uint64_t total = std::accumulate(counts.begin(), counts.end(), std::uint64_t{0});
  std::vector<std::int64_t> all(total), block(counts[rank]), from(total);
  for (std::size_t i = 0; i < block.size(); ++i) block[i] = value(rank, i);
  const auto check_gathered = [&] {
    std::size_t at = 0;
    for (std::uint32_t of = 0; of < size; ++of) {
      for (std::size_t i = 0; i < counts[of]; ++i) ASSERT_EQ(all[at++], value(of, i));
    }
  };
  ASSERT_TRUE(world.all_gather(block.data(), all.data(), counts, DataType::kInt64, options).ok());
  check_gathered();
  std::ranges::fill(all, 0);
  ASSERT_TRUE(world.gather(block.data(), all.data(), counts, DataType::kInt64, root, options).ok());
  if (rank == root) check_gathered();
  ASSERT_TRUE(world.scatter(all.data(), block.data(), counts, DataType::kInt64, root, options).ok());
  for (std::size_t i = 0; i < block.size(); ++i) ASSERT_EQ(block[i], value(rank, i));
  for (std::size_t i = 0; i < total; ++i) from[i] = value(rank, i);
  ASSERT_TRUE(world.reduce_scatter(from.data(), block.data(), counts, DataType::kInt64, ReduceOp::kSum, options).ok());
  const std::uint64_t first = std::accumulate(counts.begin(), counts.begin() + rank, std::uint64_t{0});
  for (std::size_t i = 0; i < block.size(); ++i) ASSERT_EQ(block[i], sum(size, first + i));
  const std::vector<std::uint64_t> each(size, count);
  std::vector<std::int64_t> in(count * size), swapped(count * size);
  for (std::size_t i = 0; i < in.size(); ++i) in[i] = value(rank, i);
  ASSERT_TRUE(world.all_to_all(in.data(), swapped.data(), each, each, DataType::kInt64, options).ok());
  for (std::size_t i = 0; i < in.size(); ++i) {
    ASSERT_EQ(swapped[i], value(static_cast<std::uint32_t>(i / count), rank * count + i % count));
  }
}

TEST_P(WorldTest, CollectivesOfAllSizes) {
  for (const std::uint32_t size : {1U, 2U, 3U, 4U, 7U, 16U}) {
    std::vector<World> worlds = open(size);
    ASSERT_EQ(worlds.size(), size);
    on_all(worlds, [&](World& world) {
      for (const std::size_t count : {std::size_t{1}, std::size_t{17}, std::size_t{40'000 / size}}) {
        check_all_collectives(world, count, {});
        check_all_collectives(world, count, {.reproducible = true});
      }
    });
    if (testing::Test::HasFailure()) return;
  }
}

TEST_P(WorldTest, OneThreadRunsAllRanks) {
  std::vector<World> worlds = open(4);
  std::vector<std::array<float, 100>> data(4);
  for (int round = 0; round < 50; ++round) {
    std::vector<Request> requests;
    for (std::size_t rank = 0; rank < 4; ++rank) {
      data[rank].fill(static_cast<float>(rank + 1));
      requests.push_back(
          worlds[rank].iall_reduce(data[rank].data(), data[rank].data(), 100, DataType::kFloat32, ReduceOp::kSum));
    }
    for (Request& request : requests) ASSERT_TRUE(request.wait(20s).ok()) << request.status().to_string();
    for (const auto& each : data) ASSERT_EQ(each[99], 10.0F);
  }
}

TEST_P(WorldTest, RanksThatCallDifferentThingsAreAllTold) {
  std::vector<World> worlds = open(3);
  on_all(worlds, [](World& world) {
    std::uint64_t number = 1;
    const Status status = world.rank() == 1 ? world.all_reduce(&number, &number, 1, DataType::kUInt64, ReduceOp::kMax)
                                            : world.all_reduce(&number, &number, 1, DataType::kUInt64, ReduceOp::kSum);
    EXPECT_EQ(status.code(), Code::kInvalid) << status.to_string();
    EXPECT_NE(status.to_string().find("differ"), std::string::npos) << status.to_string();
    EXPECT_FALSE(world.barrier().ok());
  });
}

// Neither root waits for a word of the other, and a root is done once its messages are on their way.
TEST_P(WorldTest, RanksThatNameDifferentRootsAreAllTold) {
  for (const std::uint32_t size : {2u, 3u, 5u}) {
    for (const std::size_t count : {1u, 100'000u}) {
      std::vector<World> worlds = open(size);
      on_all(worlds, [count](World& world) {
        std::vector<std::uint64_t> numbers(count, world.rank());
        Status status = world.broadcast(numbers.data(), count, DataType::kUInt64, world.rank() == 1 ? 1 : 0);
        if (status.ok()) status = world.barrier({.timeout = 20s});
        EXPECT_EQ(status.code(), Code::kInvalid) << status.to_string();
        EXPECT_NE(status.to_string().find("differ"), std::string::npos) << status.to_string();
      });
    }
  }
}

TEST_P(WorldTest, ADeadlineEndsTheCollectiveOnAllRanks) {
  std::vector<World> worlds = open(3);
  const auto begin = std::chrono::steady_clock::now();
  on_all(worlds, [](World& world) {
    if (world.rank() == 2) return;
    const Status status = world.barrier({.timeout = world.rank() == 0 ? Duration(200ms) : Duration(20s)});
    EXPECT_EQ(status.code(), Code::kTimedOut) << status.to_string();
    EXPECT_NE(status.to_string().find("rank 2"), std::string::npos) << status.to_string();
  });
  EXPECT_LT(std::chrono::steady_clock::now() - begin, 10s);
  EXPECT_FALSE(worlds[2].barrier({.timeout = 5s}).ok());
}

TEST_P(WorldTest, AFailedRankIsNamedByAllOthers) {
  std::vector<World> worlds = open(4);
  std::array<std::byte, 8> buffer;
  Request from_it = worlds[0].ireceive(buffer, 3, 1), from_any = worlds[1].ireceive(buffer, kAnySource, 1);
  on_all(worlds, [](World& world) {
    if (world.rank() == 3) {
      EXPECT_TRUE(world.close(10s).ok());
      return;
    }
    const Status status = world.barrier({.timeout = 20s});
    EXPECT_EQ(status.code(), Code::kDisconnected) << status.to_string();
    EXPECT_NE(status.to_string().find("rank 3"), std::string::npos) << status.to_string();
    EXPECT_EQ(world.failed(), std::vector<std::uint32_t>{3});
    EXPECT_EQ(world.barrier().code(), Code::kDisconnected);
  });
  EXPECT_EQ(from_it.wait(10s).code(), Code::kDisconnected);
  EXPECT_EQ(from_any.wait(10s).code(), Code::kDisconnected);
  EXPECT_EQ(worlds[0].receive(buffer, 3, 1).error().code(), Code::kDisconnected);
  // The others still speak to one another.
  const std::string text = "still";
  Request sent = worlds[0].isend(bytes_of(text), 1, 9);
  EXPECT_TRUE(worlds[1].receive(buffer, 0, 9).has_value());
  EXPECT_TRUE(sent.wait(10s).ok());
}

TEST_P(WorldTest, RanksThatLiveGoOnInASmallerWorld) {
  std::vector<World> worlds = open(5);
  on_all(worlds, [](World& world) { ASSERT_TRUE(world.barrier().ok()); });
  ASSERT_TRUE(worlds[2].close(10s).ok());
  worlds.erase(worlds.begin() + 2);
  std::vector<World> smaller(4);
  on_all(worlds, [&](World& world) {
    std::uint64_t number = 1;
    const Status hit = world.all_reduce(&number, &number, 1, DataType::kUInt64, ReduceOp::kSum);
    EXPECT_EQ(hit.code(), Code::kDisconnected);
    Result<World> made = world.shrink();
    ASSERT_TRUE(made.has_value()) << made.error().to_string();
    EXPECT_EQ(made->size(), 4U);
    EXPECT_EQ(made->epoch(), 1U);
    EXPECT_EQ(made->old_rank(made->rank()), world.rank());
    EXPECT_EQ(made->old_rank(2), 3U);
    EXPECT_EQ(made->last_good(), 1U);
    EXPECT_EQ(world.last_number(), 2U);
    EXPECT_EQ(world.barrier().code(), Code::kDisconnected);
    EXPECT_TRUE(made->failed().empty());
    number = 1;
    ASSERT_TRUE(made->all_reduce(&number, &number, 1, DataType::kUInt64, ReduceOp::kSum).ok());
    EXPECT_EQ(number, 4U);
    smaller[made->rank()] = std::move(*made);
  });
  // Once more, now without the rank that leads.
  ASSERT_TRUE(smaller[0].close(10s).ok());
  smaller.erase(smaller.begin());
  on_all(smaller, [](World& world) {
    Result<World> made = world.shrink();
    ASSERT_TRUE(made.has_value()) << made.error().to_string();
    EXPECT_EQ(made->size(), 3U);
    EXPECT_EQ(made->epoch(), 2U);
    EXPECT_EQ(made->root_rank(0), 1U);
    EXPECT_TRUE(made->barrier().ok());
    EXPECT_TRUE(made->shutdown(10s).ok());
  });
}

TEST_P(WorldTest, ARevokedWorldIsMendedByAShrinkThatLeavesOutNobody) {
  std::vector<World> worlds = open(3);
  worlds[1].revoke(Status(Code::kCancelled, "for a reason"));
  std::vector<World> mended(3);
  on_all(worlds, [&](World& world) {
    const Result<bool> all = world.agree(true);
    ASSERT_TRUE(all.has_value()) << all.error().to_string();
    EXPECT_TRUE(*all);
    Result<World> made = world.shrink();
    ASSERT_TRUE(made.has_value()) << made.error().to_string();
    EXPECT_EQ(made->size(), 3U);
    EXPECT_TRUE(made->barrier().ok());
    EXPECT_EQ(world.barrier().code(), Code::kCancelled);
    mended[made->rank()] = std::move(*made);
  });
  // Old messages do not show in it.
  const std::string old_text = "old";
  Request old = worlds[0].isend(bytes_of(old_text), 1, 1);
  EXPECT_FALSE(mended[1].probe(kAnySource, std::nullopt, 20ms).has_value());
  std::string got(3, ' ');
  EXPECT_TRUE(worlds[1].receive(std::as_writable_bytes(std::span(got)), 0, 1).has_value());
}

TEST_P(WorldTest, AgreesOnTheAndOfAllFlags) {
  std::vector<World> worlds = open(4);
  for (int round = 0; round < 20; ++round) {
    on_all(worlds, [&](World& world) {
      const Result<bool> all = world.agree(round % 2 == 0 || world.rank() != 3);
      ASSERT_TRUE(all.has_value()) << all.error().to_string();
      EXPECT_EQ(*all, round % 2 == 0);
    });
  }
}

TEST_P(WorldTest, AnAgreementThatRunsOutOfTimeNamesTheAbsentAndGoesOn) {
  std::vector<World> worlds = open(3);
  std::vector<std::thread> callers;
  for (const std::size_t rank : {0U, 1U}) {
    callers.emplace_back([&, rank] {
      const Result<bool> none = worlds[rank].agree(rank == 0, 300ms);
      ASSERT_FALSE(none.has_value());
      EXPECT_EQ(none.error().code(), Code::kTimedOut);
      EXPECT_NE(none.error().to_string().find("rank 2"), std::string::npos) << none.error().to_string();
    });
  }
  for (std::thread& caller : callers) caller.join();
  EXPECT_TRUE(worlds[0].failed().empty());
  on_all(worlds, [](World& world) {
    const Result<bool> all = world.agree(true);
    ASSERT_TRUE(all.has_value()) << all.error().to_string();
    EXPECT_FALSE(*all);  // Rank 1 had voted against.
  });
}

TEST_P(WorldTest, ARankThatIsLeftOutIsToldSo) {
  std::vector<World> worlds = open(4);
  const std::vector<std::uint32_t> without = {1};
  std::vector<World> others;
  for (const std::size_t rank : {0U, 2U, 3U}) others.push_back(std::move(worlds[rank]));
  on_all(others, [&](World& world) {
    Result<World> made = world.rank() == 3 ? world.shrink(without) : world.shrink();
    ASSERT_TRUE(made.has_value()) << made.error().to_string();
    EXPECT_EQ(made->size(), 3U);
    EXPECT_TRUE(made->barrier().ok());
    EXPECT_EQ(world.failed(), without);
  });
  World& out = worlds[1];
  const Status status = out.barrier({.timeout = 10s});
  EXPECT_FALSE(status.ok());
  const Result<bool> no = out.agree(true, 10s);
  ASSERT_FALSE(no.has_value());
  EXPECT_EQ(no.error().code(), Code::kDisconnected) << no.error().to_string();
  EXPECT_NE(no.error().to_string().find("this rank"), std::string::npos) << no.error().to_string();
  EXPECT_EQ(out.shrink({}, 10s).error().code(), Code::kDisconnected);
  const std::vector<std::uint32_t> itself = {1}, beyond = {4};
  EXPECT_EQ(out.shrink(itself).error().code(), Code::kInvalid);
  EXPECT_EQ(out.shrink(beyond).error().code(), Code::kInvalid);
}

TEST_P(WorldTest, RanksThatCallAgreeAndShrinkAreToldSo) {
  std::vector<World> worlds = open(2);
  on_all(worlds, [](World& world) {
    const Code code = world.rank() == 0 ? world.agree(true).error().code() : world.shrink().error().code();
    EXPECT_EQ(code, Code::kInvalid);
  });
  on_all(worlds, [](World& world) { EXPECT_TRUE(world.agree(true).has_value()); });
}

TEST_P(WorldTest, ReceivesFromAnySourceGoOnOnceAFailureIsAcknowledged) {
  std::vector<World> worlds = open(3);
  ASSERT_TRUE(worlds[2].close(10s).ok());
  EXPECT_EQ(worlds[0].barrier({.timeout = 20s}).code(), Code::kDisconnected);
  std::array<std::byte, 16> buffer{};
  EXPECT_EQ(worlds[0].receive(buffer, kAnySource, 1).error().code(), Code::kDisconnected);
  EXPECT_EQ(worlds[0].acknowledge(), std::vector<std::uint32_t>{2});
  Request receive = worlds[0].ireceive(buffer, kAnySource, 1);
  EXPECT_FALSE(receive.done());
  ASSERT_TRUE(worlds[1].send(bytes_of("go on"), 0, 1).ok());
  ASSERT_TRUE(receive.wait(10s).ok());
  EXPECT_EQ(receive.received().source, 1U);
  // The next failure ends them again.
  Request next = worlds[0].ireceive(buffer, kAnySource, 1);
  ASSERT_TRUE(worlds[1].close(10s).ok());
  EXPECT_EQ(next.wait(20s).code(), Code::kDisconnected);
}

/// A rank that is first in a group may speak of it before the others have made it.
TEST_P(WorldTest, WordsAboutAGroupWaitForIt) {
  std::vector<World> worlds = open(2);
  for (int round = 0; round < 20; ++round) {
    World first = worlds[1].duplicate().value();
    std::thread caller([&] { EXPECT_TRUE(first.agree(true, 20s).has_value()); });
    if (round % 2 == 0) std::this_thread::sleep_for(5ms);
    World second = worlds[0].duplicate().value();
    EXPECT_TRUE(second.agree(true, 20s).has_value());
    caller.join();
  }
  World group = worlds[1].duplicate().value();
  group.revoke(Status(Code::kCancelled, "early"));
  std::string got(1, ' ');
  const std::string text = "x";
  Request sent = worlds[1].isend(bytes_of(text), 0, 1);
  ASSERT_TRUE(worlds[0].receive(std::as_writable_bytes(std::span(got)), 1, 1).has_value());
  EXPECT_EQ(worlds[0].duplicate().value().barrier({.timeout = 20s}).code(), Code::kCancelled);
}

TEST_P(WorldTest, ADroppedRequestFreesItsBuffer) {
  std::vector<World> worlds = open(2);
  std::vector<std::byte> large(4 << 20, std::byte{1});
  for (int i = 0; i < 20; ++i) {
    std::vector<std::byte> into(large.size());
    Request receive = worlds[1].ireceive(into, 0, 1);
    Request send = worlds[0].isend(large, 1, 1);
    if (i % 2 == 0) {
      const Request gone = std::move(receive);
    } else {
      const Request gone = std::move(send);
    }
  }
  std::vector<std::byte> into(16);
  Request receive = worlds[1].ireceive(into, 0, 2);
  ASSERT_TRUE(worlds[0].send(bytes_of("after"), 1, 2).ok());
  EXPECT_TRUE(receive.wait(10s).ok());
}

TEST_P(WorldTest, UnwantedMessagesAreBoundedAndLoseNothing) {
  std::vector<World> worlds = open(2);
  constexpr int kCount = 400;
  std::vector<std::byte> data(60'000, std::byte{9});
  std::vector<Request> sends;
  for (int i = 0; i < kCount; ++i) sends.push_back(worlds[0].isend(data, 1, i));
  std::vector<std::byte> into(60'000);
  for (int i = kCount; i-- > 0;) {  // In the other order.
    ASSERT_TRUE(worlds[1].receive(into, 0, i).has_value()) << i;
    ASSERT_EQ(into, data);
  }
  for (Request& send : sends) ASSERT_TRUE(send.wait(10s).ok());
}

TEST_P(WorldTest, SplitsIntoGroups) {
  std::vector<World> worlds = open(5);
  on_all(worlds, [](World& world) {
    const std::uint32_t rank = world.rank();
    // Even ones backwards, odd ones forwards, rank 4 in none.
    const std::optional<std::uint32_t> color = rank == 4 ? std::nullopt : std::optional(rank % 2);
    Result<World> half = world.split(color, rank % 2 == 0 ? -std::int64_t{rank} : std::int64_t{rank});
    ASSERT_TRUE(half.has_value()) << half.error().to_string();
    ASSERT_EQ(half->valid(), rank != 4);
    if (rank != 4) {
      EXPECT_EQ(half->size(), 2U);
      EXPECT_EQ(half->rank(), rank % 2 == 0 ? (rank == 2 ? 0U : 1U) : rank / 2);
      EXPECT_EQ(half->root_rank(half->rank()), rank);
      std::uint64_t sum = rank;
      ASSERT_TRUE(half->all_reduce(&sum, &sum, 1, DataType::kUInt64, ReduceOp::kSum).ok());
      EXPECT_EQ(sum, rank % 2 == 0 ? 2U : 4U);
      // The same tag in both worlds does not mix.
      const std::uint32_t other = 1 - half->rank();
      std::uint64_t in_half = 0, in_all = 0;
      Request first = half->ireceive(std::as_writable_bytes(std::span(&in_half, 1)), other, 1);
      Request second = world.ireceive(std::as_writable_bytes(std::span(&in_all, 1)), half->root_rank(other), 1);
      const std::uint64_t to_all = 100 + rank, to_half = 200 + rank;
      ASSERT_TRUE(world.send(std::as_bytes(std::span(&to_all, 1)), half->root_rank(other), 1).ok());
      ASSERT_TRUE(half->send(std::as_bytes(std::span(&to_half, 1)), other, 1).ok());
      ASSERT_TRUE(first.wait(10s).ok() && second.wait(10s).ok());
      EXPECT_EQ(in_half, 200 + half->root_rank(other));
      EXPECT_EQ(in_all, 100 + half->root_rank(other));
      EXPECT_TRUE(half->close(1s).ok());
    }
    EXPECT_TRUE(world.barrier().ok());  // It goes on without its groups.
  });
}

TEST_P(WorldTest, GroupsAreMadeByTheirMembersAlone) {
  std::vector<World> worlds = open(4);
  on_all(worlds, [](World& world) {
    const std::vector<std::uint32_t> some = {3, 1};
    Result<World> group = world.group(some);
    ASSERT_EQ(group.has_value(), world.rank() % 2 == 1);
    const std::string refusal = group ? "none of them" : group.error().to_string();
    EXPECT_NE(refusal.find("none of them"), std::string::npos) << refusal;
    Result<World> again = group ? world.group(some) : world.duplicate();
    if (group) {
      EXPECT_EQ(group->rank(), world.rank() == 3 ? 0U : 1U);
      std::uint64_t a = world.rank(), b = 10 * world.rank();
      Request first = group->iall_reduce(&a, &a, 1, DataType::kUInt64, ReduceOp::kSum);
      ASSERT_TRUE(again->all_reduce(&b, &b, 1, DataType::kUInt64, ReduceOp::kSum).ok());
      ASSERT_TRUE(first.wait(10s).ok());
      EXPECT_EQ(a, 4U);
      EXPECT_EQ(b, 40U);
    }
    ASSERT_TRUE(world.barrier().ok());
  });
  const std::vector<std::uint32_t> twice = {0, 0}, beyond = {0, 4};
  EXPECT_EQ(worlds[0].group(twice).error().code(), Code::kInvalid);
  EXPECT_EQ(worlds[0].group(beyond).error().code(), Code::kInvalid);
  EXPECT_EQ(worlds[0].group({}).error().code(), Code::kInvalid);
}

TEST_P(WorldTest, AGroupHearsOfItsOwnFailuresOnly) {
  std::vector<World> worlds = open(4);
  std::vector<World> groups;
  const std::vector<std::uint32_t> left = {0, 1}, right = {2, 3};
  for (std::uint32_t rank = 0; rank < 4; ++rank) groups.push_back(worlds[rank].group(rank < 2 ? left : right).value());
  ASSERT_TRUE(worlds[3].close(10s).ok());
  const Status hit = groups[2].barrier({.timeout = 20s});
  EXPECT_EQ(hit.code(), Code::kDisconnected);
  EXPECT_NE(hit.to_string().find("rank 1 of world"), std::string::npos) << hit.to_string();  // By the group's numbers.
  EXPECT_EQ(worlds[0].barrier({.timeout = 20s}).code(), Code::kDisconnected);
  Request other = groups[1].ibarrier();
  EXPECT_TRUE(groups[0].barrier().ok());
  EXPECT_TRUE(other.wait(10s).ok());
  // One that is made later knows at once.
  EXPECT_EQ(worlds[2].group(right).value().barrier().code(), Code::kDisconnected);
}

TEST_P(WorldTest, AClosedGroupEndsWhatIsUnderWayInIt) {
  std::vector<World> worlds = open(2);
  std::vector<World> groups;
  for (World& world : worlds) groups.push_back(world.duplicate().value());
  std::vector<std::byte> large(200'000), buffer(200'000);
  Request to_itself = groups[0].isend(large, 0, 1), to_other = groups[0].isend(large, 1, 2);
  Request from_other = groups[0].ireceive(buffer, 1, 3);
  EXPECT_TRUE(groups[0].close(10s).ok());
  for (Request* const request : {&to_itself, &to_other, &from_other}) {
    EXPECT_TRUE(request->done());
    EXPECT_EQ(request->status().code(), Code::kCancelled);
  }
  EXPECT_FALSE(groups[1].receive(buffer, 0, 2, {.timeout = 50ms}).has_value());
}

TEST_P(WorldTest, ManyGroupsLeaveNothingBehind) {
  std::vector<World> worlds = open(2);
  for (int round = 0; round < 2000; ++round) {
    World a = worlds[0].duplicate().value(), b = worlds[1].duplicate().value();
    if (round % 100 != 0) continue;
    Request first = a.ibarrier();
    ASSERT_TRUE(b.barrier().ok());
    ASSERT_TRUE(first.wait(10s).ok());
  }
}

TEST_P(WorldTest, RanksFindOneAnotherInAStore) {
  std::mutex mutex;
  std::condition_variable news;
  std::map<std::string, std::string> held;
  const auto options_of = [&](std::uint32_t rank, std::uint32_t size) {
    WorldOptions made = options();
    made.name = "stored";
    made.rank = rank;
    made.size = size;
    made.store.set = [&](const std::string& key, const std::string& value) {
      const std::lock_guard<std::mutex> lock(mutex);
      held[key] = value;
      news.notify_all();
      return Status();
    };
    made.store.get = [&](const std::string& key, Duration timeout) -> Result<std::string> {
      std::unique_lock<std::mutex> lock(mutex);
      if (news.wait_for(lock, timeout, [&] { return held.contains(key); })) return held[key];
      return Status(Code::kTimedOut, "nobody set " + key);
    };
    return made;
  };
  std::vector<std::thread> ranks;
  for (std::uint32_t rank = 0; rank < 3; ++rank) {
    ranks.emplace_back([&, rank] {
      Result<World> world = World::open(options_of(rank, 3));
      ASSERT_TRUE(world.has_value()) << world.error().to_string();
      std::uint64_t number = rank;
      EXPECT_TRUE(world->all_reduce(&number, &number, 1, DataType::kUInt64, ReduceOp::kSum).ok());
      EXPECT_EQ(number, 3U);
      EXPECT_TRUE(world->shutdown(10s).ok());
    });
  }
  for (std::thread& rank : ranks) rank.join();
  EXPECT_TRUE(held.contains("hawser/stored/2"));
  // Who does not come is named; a card of somebody else is none.
  held.erase("hawser/stored/1");
  std::swap(held["hawser/stored/0"], held["hawser/stored/2"]);
  WorldOptions alone = options_of(3, 4);
  alone.join_timeout = 100ms;
  const Result<World> none = World::open(alone);
  ASSERT_FALSE(none.has_value());
  EXPECT_NE(none.error().to_string().find("these did not come: 0, 1, 2"), std::string::npos)
      << none.error().to_string();
}

TEST_P(WorldTest, ARankThatLeavesHasNotFailed) {
  for (int round = 0; round < 20; ++round) {
    std::vector<World> worlds = open(3);
    on_all(worlds, [](World& world) {
      std::vector<std::uint64_t> numbers(20'000, 1);
      // The first that is done leaves while the others still take in what it sent.
      ASSERT_TRUE(
          world.all_reduce(numbers.data(), numbers.data(), numbers.size(), DataType::kUInt64, ReduceOp::kSum).ok());
      EXPECT_EQ(numbers.back(), 3U);
      EXPECT_TRUE(world.failed().empty());
      const Status status = world.leave(20s);
      EXPECT_TRUE(status.ok()) << status.to_string();
    });
  }
  std::vector<World> worlds = open(2);
  ASSERT_TRUE(worlds[1].leave(10s).ok());
  const Status status = worlds[0].barrier({.timeout = 20s});
  EXPECT_EQ(status.code(), Code::kDisconnected);
  EXPECT_NE(status.to_string().find("has left"), std::string::npos) << status.to_string();
  EXPECT_TRUE(worlds[0].failed().empty());
}

TEST_P(WorldTest, ShutsDownTogether) {
  std::vector<World> worlds = open(3);
  on_all(worlds, [](World& world) {
    EXPECT_TRUE(world.barrier().ok());
    const Status status = world.shutdown(10s);
    EXPECT_TRUE(status.ok()) << status.to_string();
    EXPECT_FALSE(world.barrier().ok());
  });
}

TEST_P(WorldTest, AShutdownThatDoesNotEndNamesThoseThatHaveNotCalledIt) {
  std::vector<World> worlds = open(6);
  on_all(worlds, [](World& world) { EXPECT_TRUE(world.barrier().ok()); });
  on_all(worlds, [](World& world) {
    if (world.rank() == 2 || world.rank() == 5) return;
    const Status status = world.shutdown(800ms);
    EXPECT_EQ(status.code(), Code::kTimedOut) << status.to_string();
    EXPECT_NE(status.message().find("; ranks 2, 5 have not called it"), std::string::npos) << status.to_string();
  });
  for (const std::uint32_t rank : {2, 5}) EXPECT_FALSE(worlds[rank].barrier().ok()) << "the others are gone";
}

INSTANTIATE_TEST_SUITE_P(Over, WorldTest, testing::ValuesIn(with_quic<std::string>({"any", "shm", "tcp"}, "quic")),
                         [](const auto& it) { return it.param; });

}  // namespace
}  // namespace hawser
