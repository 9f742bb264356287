// Sparse worlds in one process: whatever two ranks do together works by way of others, and goes on when one dies.

#include <gtest/gtest.h>

#include <hawser/world.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <cstring>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

namespace hawser {
namespace {

using namespace std::chrono_literals;

struct Shape {
  std::string topology;
  std::uint32_t size;
};

std::string name_of(const testing::TestParamInfo<Shape>& info) {
  std::string name = info.param.topology + "_" + std::to_string(info.param.size);
  std::ranges::replace_if(
      name, [](char each) { return std::isalnum(static_cast<unsigned char>(each)) == 0; }, '_');
  return name;
}

std::vector<World> open_world(const std::string& topology, std::uint32_t size) {
  WorldOptions options;
  options.timeout = 60s;
  options.topology = parse_topology(topology).value();
  Result<std::vector<World>> worlds = World::local(size, options);
  EXPECT_TRUE(worlds.has_value()) << worlds.error().to_string();
  return worlds ? std::move(*worlds) : std::vector<World>();
}

/// Runs `call` in a thread for each rank.
template <typename Call>
void on_all(std::vector<World>& worlds, Call call) {
  std::vector<std::thread> threads;
  for (World& world : worlds) threads.emplace_back([&call, &world] { call(world); });
  for (std::thread& thread : threads) thread.join();
}

std::vector<std::byte> data_of(std::size_t size, std::uint32_t seed) {
  std::vector<std::byte> data(size);
  std::uint32_t state = seed * 2654435761U + 1;
  for (std::byte& each : data) each = static_cast<std::byte>((state = state * 1664525U + 1013904223U) >> 24);
  return data;
}

void expect_all_collectives(World& world, std::size_t count) {
  const std::uint32_t n = world.size(), rank = world.rank();
  const auto ok = [&](const Status& status, const char* what) {
    EXPECT_TRUE(status.ok()) << what << " at " << rank << ": " << status.to_string();
  };
  const std::int64_t sum = static_cast<std::int64_t>(n) * (n + 1) / 2;
  std::vector<std::int64_t> in(count, rank + 1), out(count);
  ok(world.barrier(), "barrier");
  ok(world.all_reduce(in.data(), out.data(), count, DataType::kInt64, ReduceOp::kSum), "all_reduce");
  EXPECT_EQ(out, std::vector<std::int64_t>(count, sum));
  out.assign(count, rank);
  ok(world.broadcast(out.data(), count, DataType::kInt64, n - 1), "broadcast");
  EXPECT_EQ(out, std::vector<std::int64_t>(count, n - 1));
  ok(world.reduce(in.data(), out.data(), count, DataType::kInt64, ReduceOp::kMax, n / 2), "reduce");
  if (rank == n / 2) {
    EXPECT_EQ(out, std::vector<std::int64_t>(count, n));
  }
  ok(world.scan(in.data(), out.data(), count, DataType::kInt64, ReduceOp::kSum), "scan");
  EXPECT_EQ(out, std::vector<std::int64_t>(count, static_cast<std::int64_t>(rank + 1) * (rank + 2) / 2));
  const std::vector<std::uint64_t> counts(n, count);
  std::vector<std::int64_t> all(count * n), mine(count * n);
  ok(world.all_gather(in.data(), all.data(), counts, DataType::kInt64), "all_gather");
  for (std::uint32_t each = 0; each < n; ++each) EXPECT_EQ(all[each * count], each + 1);
  ok(world.reduce_scatter(all.data(), out.data(), counts, DataType::kInt64, ReduceOp::kSum), "reduce_scatter");
  EXPECT_EQ(out, std::vector<std::int64_t>(count, static_cast<std::int64_t>(n) * (rank + 1)));
  std::ranges::fill(all, 0);
  ok(world.gather(in.data(), all.data(), counts, DataType::kInt64, 0), "gather");
  ok(world.scatter(all.data(), out.data(), counts, DataType::kInt64, 0), "scatter");
  EXPECT_EQ(out, in);
  for (std::uint32_t each = 0; each < n; ++each) {
    std::fill_n(mine.begin() + static_cast<std::ptrdiff_t>(each * count), count, rank * 1000 + each);
  }
  ok(world.all_to_all(mine.data(), all.data(), counts, counts, DataType::kInt64), "all_to_all");
  for (std::uint32_t each = 0; each < n; ++each) EXPECT_EQ(all[each * count], each * 1000 + rank);
}

void expect_no_sessions_beyond_neighbours(const std::vector<World>& worlds) {
  for (const World& world : worlds) {
    for (std::uint32_t rank = 0; rank < world.size(); ++rank) {
      if (rank == world.rank()) continue;
      const PeerState state = world.peer(rank).state();
      EXPECT_EQ(state == PeerState::kKnown, !world.has_direct_peer(rank)) << world.rank() << " and " << rank;
    }
  }
}

class SparseWorld : public testing::TestWithParam<Shape> {
 protected:
  static std::vector<World> open() { return open_world(GetParam().topology, GetParam().size); }
};

TEST_P(SparseWorld, AllCollectives) {
  std::vector<World> worlds = open();
  on_all(worlds, [](World& world) {
    EXPECT_TRUE(world.is_sparse());
    expect_all_collectives(world, 3);
    expect_all_collectives(world, 20'000);
  });
  expect_no_sessions_beyond_neighbours(worlds);
  on_all(worlds, [](World& world) {
    const Status status = world.shutdown(20s);
    EXPECT_TRUE(status.ok()) << status.to_string();
  });
}

TEST_P(SparseWorld, MessagesBetweenAllPairs) {
  std::vector<World> worlds = open();
  on_all(worlds, [](World& world) {
    std::vector<std::vector<std::byte>> kept;
    std::vector<Request> requests;
    std::vector<std::size_t> sizes = {0, 10, 70'000};
    for (std::uint32_t to = 0; to < world.size(); ++to) {
      for (const std::size_t size : sizes) {
        kept.push_back(data_of(size, world.rank() * 100 + to));
        requests.push_back(world.isend(kept.back(), to, 4));
      }
    }
    for (std::uint32_t from = 0; from < world.size(); ++from) {
      for (const std::size_t size : sizes) {  // In the order in which they were sent.
        Request got = world.ireceive_any_size(from, 4);
        ASSERT_TRUE(got.wait(30s).ok()) << got.status().to_string();
        const std::vector<std::byte> expected = data_of(size, from * 100 + world.rank());
        EXPECT_TRUE(std::ranges::equal(got.bytes(), expected)) << from << " to " << world.rank() << ", " << size;
      }
    }
    for (Request& request : requests) EXPECT_TRUE(request.wait(30s).ok()) << request.status().to_string();
    const Status status = world.shutdown(20s);
    EXPECT_TRUE(status.ok()) << status.to_string();
  });
}

TEST_P(SparseWorld, CallsAndGroups) {
  std::vector<World> worlds = open();
  on_all(worlds, [](World& world) {
    ASSERT_TRUE(world
                    .register_handler("rank",
                                      [rank = world.rank()](const IncomingCall&) -> Result<CallAnswer> {
                                        return CallAnswer(1, static_cast<std::byte>(rank));
                                      })
                    .ok());
    ASSERT_TRUE(world.barrier().ok());
    for (std::uint32_t to = 0; to < world.size(); ++to) {
      const Result<CallAnswer> answer = world.call(to, "rank", {});
      ASSERT_TRUE(answer.has_value()) << answer.error().to_string();
      EXPECT_EQ(answer->front(), static_cast<std::byte>(to));
    }
    Result<World> group = world.split(world.rank() % 3, -static_cast<std::int64_t>(world.rank()));
    ASSERT_TRUE(group.has_value()) << group.error().to_string();
    expect_all_collectives(*group, 5);
    const Status status = world.shutdown(20s);
    EXPECT_TRUE(status.ok()) << status.to_string();
  });
}

INSTANTIATE_TEST_SUITE_P(Shapes, SparseWorld,
                         testing::Values(Shape{"regular:2", 3}, Shape{"regular:2", 8}, Shape{"regular:4", 9},
                                         Shape{"regular:6", 16}, Shape{"hypercube", 2}, Shape{"hypercube", 5},
                                         Shape{"hypercube", 8}, Shape{"hypercube", 11}, Shape{"hypercube", 16},
                                         Shape{"edges:0-1,1-2,2-3,3-4", 5}),
                         name_of);

// ---- Failure.

std::vector<World> shrunk(std::vector<World>& worlds, const std::vector<std::uint32_t>& alive) {
  std::vector<World> made(alive.size());
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < alive.size(); ++i) {
    threads.emplace_back([&, i] {
      Result<World> smaller = worlds[alive[i]].shrink({}, 30s);
      ASSERT_TRUE(smaller.has_value()) << alive[i] << ": " << smaller.error().to_string();
      made[i] = std::move(*smaller);
    });
  }
  for (std::thread& thread : threads) thread.join();
  return made;
}

std::vector<std::uint32_t> all_but(std::uint32_t size, const std::vector<std::uint32_t>& dead) {
  std::vector<std::uint32_t> alive;
  for (std::uint32_t rank = 0; rank < size; ++rank) {
    if (std::ranges::find(dead, rank) == dead.end()) alive.push_back(rank);
  }
  return alive;
}

/// Shapes that no one rank cuts in two.
class SparseFailures : public SparseWorld {};

TEST_P(SparseFailures, ARelayDiesAndTheOthersGoOn) {
  const std::uint32_t n = GetParam().size;
  std::vector<World> worlds = open();
  ASSERT_TRUE(worlds[1].close(10s).ok());
  const std::vector<std::uint32_t> alive = all_but(n, {1});
  for (const std::uint32_t rank : alive) {
    EXPECT_EQ(worlds[rank].failures(0, 20s), std::vector<std::uint32_t>{1}) << rank;
    const Status status = worlds[rank].barrier();
    EXPECT_EQ(status.code(), Code::kDisconnected) << rank << " " << status.to_string();
  }
  for (const std::uint32_t from : alive) {  // Messages between those that live go on.
    for (const std::uint32_t to : alive) {
      const std::vector<std::byte> data = data_of(100'000, from * 100 + to);
      Request sent = worlds[from].isend(data, to, 9);
      Request got = worlds[to].ireceive_any_size(from, 9);
      ASSERT_TRUE(got.wait(20s).ok()) << from << " to " << to << ": " << got.status().to_string();
      EXPECT_TRUE(std::ranges::equal(got.bytes(), data));
      EXPECT_TRUE(sent.wait(20s).ok());
    }
  }
  for (const std::uint32_t rank : alive) {
    EXPECT_EQ(worlds[rank].send(data_of(100'000, 1), 1, 1).code(), Code::kDisconnected) << rank;
  }
  std::vector<World> smaller = shrunk(worlds, alive);
  on_all(smaller, [](World& world) {
    expect_all_collectives(world, 2000);
    EXPECT_EQ(world.epoch(), 1U);
  });
  std::vector<World> again;  // The graph is that of the smaller world: once more.
  ASSERT_TRUE(smaller[0].close(10s).ok());
  const std::vector<std::uint32_t> left = all_but(n - 1, {0});
  again = shrunk(smaller, left);
  on_all(again, [](World& world) {
    expect_all_collectives(world, 2000);
    const Status status = world.shutdown(20s);
    EXPECT_TRUE(status.ok()) << status.to_string();
  });
}

/// A stream of messages of one tag goes on while relays die under it: each comes once, in order.
TEST_P(SparseFailures, NothingIsLostDoubledOrOvertakenWhenRelaysDie) {
  const std::uint32_t n = GetParam().size;
  std::vector<World> worlds = open();
  const std::uint32_t from = 0, to = GetParam().topology == "hypercube" ? 7 : n / 2;
  constexpr std::uint32_t kCount = 3000;
  std::atomic<std::uint32_t> got{0};
  std::thread sender([&] {
    for (std::uint32_t i = 0; i < kCount; ++i) {
      std::vector<std::byte> data(i % 50 == 49 ? 150'000 : 8 + i % 3000);
      std::memcpy(data.data(), &i, sizeof i);
      const Status status = worlds[from].send(data, to, 3, {.timeout = 30s});
      ASSERT_TRUE(status.ok()) << i << ": " << status.to_string();
    }
  });
  std::thread receiver([&] {
    for (std::uint32_t i = 0; i < kCount; ++i) {
      Request request = worlds[to].ireceive_any_size(from, 3, {.timeout = 30s});
      ASSERT_TRUE(request.wait(30s).ok()) << i << ": " << request.status().to_string();
      std::uint32_t number = 0;
      std::memcpy(&number, request.bytes().data(), sizeof number);
      ASSERT_EQ(number, i);
      got.store(i + 1);
    }
  });
  // The lowest neighbour is the first hop; the next one that is taken in its place dies, too, where a way is left.
  const std::uint32_t kills = GetParam().topology == "regular:2" ? 1 : 2;
  for (std::uint32_t killed = 1; killed <= kills; ++killed) {
    while (got.load() < killed * kCount / 4) std::this_thread::yield();
    EXPECT_TRUE(worlds[killed].close(10s).ok());
  }
  sender.join();
  receiver.join();
  EXPECT_EQ(got.load(), kCount);
}

INSTANTIATE_TEST_SUITE_P(Shapes, SparseFailures,
                         testing::Values(Shape{"regular:2", 8}, Shape{"regular:4", 9}, Shape{"regular:6", 16},
                                         Shape{"hypercube", 8}, Shape{"hypercube", 11}, Shape{"hypercube", 16}),
                         name_of);

TEST(SparseFailure, RanksThatNoWayLeadsToHaveFailed) {
  std::vector<World> worlds = open_world("edges:0-1,1-2,2-3,3-4", 5);
  Request waiting = worlds[0].ireceive_any_size(4, 1);
  const std::vector<std::byte> large = data_of(300'000, 1);
  Request sending = worlds[4].isend(large, 1, 1);
  ASSERT_TRUE(worlds[2].close(10s).ok());
  EXPECT_TRUE(waiting.wait(20s).code() == Code::kDisconnected) << waiting.status().to_string();
  EXPECT_NE(waiting.status().to_string().find("every way"), std::string::npos) << waiting.status().to_string();
  EXPECT_TRUE(sending.wait(20s).code() == Code::kDisconnected) << sending.status().to_string();
  for (const std::uint32_t rank : {0U, 1U}) {
    (void)worlds[rank].failures(2, 20s);
    EXPECT_EQ(worlds[rank].failed(), (std::vector<std::uint32_t>{2, 3, 4}));
  }
  EXPECT_EQ(worlds[0].send(large, 3, 1).code(), Code::kDisconnected);
  std::vector<World> half = shrunk(worlds, {0, 1});
  on_all(half, [](World& world) {
    EXPECT_EQ(world.size(), 2U);
    expect_all_collectives(world, 100);
  });
}

TEST(SparseFailure, ARankThatIsLeftOutIsToldSo) {
  std::vector<World> worlds = open_world("regular:2", 6);
  std::vector<World> made(5);
  std::vector<std::thread> threads;
  for (std::uint32_t i = 0; i < 5; ++i) {
    threads.emplace_back([&, i] {
      Result<World> smaller = worlds[i].shrink(std::vector<std::uint32_t>{5}, 30s);
      ASSERT_TRUE(smaller.has_value()) << smaller.error().to_string();
      made[i] = std::move(*smaller);
    });
  }
  for (std::thread& thread : threads) thread.join();
  on_all(made, [](World& world) { expect_all_collectives(world, 100); });
  EXPECT_TRUE(made[0].has_direct_peer(4)) << "the ring is closed again";
  const Status status = worlds[5].barrier();
  EXPECT_FALSE(status.ok());
  EXPECT_EQ(worlds[5].agree(true, 20s).error().code(), Code::kDisconnected);
  EXPECT_EQ(worlds[5].send(data_of(100'000, 1), 2, 1).code(), Code::kDisconnected);
}

TEST(SparseFailure, ARevokedWorldIsMendedByAShrink) {
  std::vector<World> worlds = open_world("hypercube", 6);
  worlds[3].revoke(Status(Code::kCancelled, "enough"));
  for (World& world : worlds) {
    const Status status = world.barrier({.timeout = 20s});
    EXPECT_EQ(status.code(), Code::kCancelled) << status.to_string();
  }
  std::vector<World> mended = shrunk(worlds, {0, 1, 2, 3, 4, 5});
  on_all(mended, [](World& world) { expect_all_collectives(world, 10); });
}

TEST(SparseFailure, ARankThatLeavesHasNotFailed) {
  std::vector<World> worlds = open_world("regular:2", 5);
  ASSERT_TRUE(worlds[4].send(data_of(1000, 1), 1, 1).ok());
  ASSERT_TRUE(worlds[4].leave(20s).ok());
  std::vector<std::byte> into(1000);
  EXPECT_TRUE(worlds[1].receive(into, 4, 1).has_value()) << "it came before the rank left";
  ASSERT_TRUE(worlds[3].send(data_of(1000, 2), 0, 2).ok()) << "by the other way";
  EXPECT_TRUE(worlds[0].receive(into, 3, 2).has_value());
  for (const std::uint32_t rank : {0U, 1U, 2U, 3U}) EXPECT_TRUE(worlds[rank].failed().empty()) << rank;
}

// ---- Bounds.

TEST(SparseBounds, UnwantedMessagesWaitAtTheirSender) {
  std::vector<World> worlds = open_world("regular:2", 7);
  const std::vector<std::byte> data = data_of(20'000, 1);
  std::vector<Request> sent;
  for (int i = 0; i < 600; ++i) sent.push_back(worlds[0].isend(data, 3, 1));
  ASSERT_TRUE(worlds[0].send(data, 2, 2).ok()) << "others are not held up";
  std::vector<std::byte> into(data.size());
  ASSERT_TRUE(worlds[2].receive(into, 0, 2).has_value());
  EXPECT_FALSE(sent.back().done());
  for (int i = 0; i < 600; ++i) {
    ASSERT_TRUE(worlds[3].receive(into, kAnySource, std::nullopt).has_value());
    ASSERT_EQ(into, data);
  }
  for (Request& request : sent) EXPECT_TRUE(request.wait(20s).ok());
}

/// All to all at once, through few links: nobody waits for another in a circle.
TEST(SparseBounds, FloodsInAllDirectionsEnd) {
  std::vector<World> worlds = open_world("regular:2", 8);
  on_all(worlds, [](World& world) {
    const std::vector<std::byte> data = data_of(60'000, world.rank());
    std::vector<Request> requests;
    std::vector<std::vector<std::byte>> into(world.size() * 20, std::vector<std::byte>(data.size()));
    for (int round = 0; round < 20; ++round) {
      for (std::uint32_t to = 0; to < world.size(); ++to) requests.push_back(world.isend(data, to, 1));
    }
    for (std::size_t i = 0; i < into.size(); ++i) {
      requests.push_back(world.ireceive(into[i], static_cast<std::uint32_t>(i % world.size()), 1));
    }
    for (Request& request : requests) ASSERT_TRUE(request.wait(60s).ok()) << request.status().to_string();
    for (std::size_t i = 0; i < into.size(); ++i) {
      ASSERT_EQ(into[i], data_of(60'000, static_cast<std::uint32_t>(i % world.size())));
    }
    EXPECT_TRUE(world.shutdown(20s).ok());
  });
}

TEST(SparseBounds, LargeMessagesComeWhole) {
  std::vector<World> worlds = open_world("regular:2", 7);
  const std::vector<std::byte> data = data_of(20'000'000, 1);
  std::vector<std::byte> into(data.size());
  Request sent = worlds[0].isend(data, 3, 1);
  Request got = worlds[3].ireceive(into, kAnySource, std::nullopt);
  ASSERT_TRUE(got.wait(60s).ok()) << got.status().to_string();
  EXPECT_TRUE(sent.wait(20s).ok());
  EXPECT_EQ(into, data);
  EXPECT_EQ(got.received().source, 0U);
}

// ---- What is wrong.

TEST(SparseOptions, BadTopologiesAreRefused) {
  const auto why = [](const Topology& topology, std::uint32_t size) {
    WorldOptions options;
    options.topology = topology;
    const Result<std::vector<World>> worlds = World::local(size, options);
    EXPECT_FALSE(worlds.has_value());
    EXPECT_EQ(worlds.error().code(), Code::kInvalid);
    return worlds.error().to_string();
  };
  EXPECT_NE(why(Topology::regular(3), 8).find("even"), std::string::npos);
  EXPECT_NE(why(Topology::regular(4), 4).find("3 others"), std::string::npos);
  EXPECT_NE(why(Topology::of_edges({{0, 1}}), 3).find("rank 2"), std::string::npos);
}

TEST(SparseOptions, NeighboursAreThoseOfTheGraph) {
  const std::vector<World> worlds = open_world("hypercube", 6);
  EXPECT_TRUE(worlds[0].has_direct_peer(4));
  EXPECT_FALSE(worlds[0].has_direct_peer(3));
  EXPECT_FALSE(worlds[0].has_direct_peer(0));
  EXPECT_FALSE(worlds[0].has_direct_peer(6));
  const std::vector<World> full = open_world("full", 2);
  EXPECT_FALSE(full[0].is_sparse());
  EXPECT_TRUE(full[0].has_direct_peer(1));
}

// ---- Formation of ranks that find one another.

/// A store in memory.
struct Shelf {
  WorldStore store() {
    return {.set =
                [this](const std::string& key, const std::string& value) {
                  const std::lock_guard lock(mutex);
                  values[key] = value;
                  news.notify_all();
                  return Status();
                },
            .get = [this](const std::string& key, Duration timeout) -> Result<std::string> {
              std::unique_lock lock(mutex);
              if (!news.wait_for(lock, timeout, [&] { return values.contains(key); })) {
                return Status(Code::kTimedOut, "nobody set it");
              }
              asked.insert(key);
              return values[key];
            }};
  }
  std::mutex mutex;
  std::condition_variable news;
  std::map<std::string, std::string> values;
  std::set<std::string> asked;
};

struct Opened {
  World world;
  Status status;
};

std::vector<Opened> open_each(Shelf& shelf, const std::vector<std::string>& topologies, Duration patience = 20s) {
  const auto size = static_cast<std::uint32_t>(topologies.size());
  std::vector<Opened> made(size);
  std::vector<std::thread> threads;
  for (std::uint32_t rank = 0; rank < size; ++rank) {
    if (topologies[rank].empty()) continue;  // It does not come.
    threads.emplace_back([&, rank] {
      WorldOptions options;
      options.size = size;
      options.rank = rank;
      options.topology = parse_topology(topologies[rank]).value();
      options.store = shelf.store();
      options.join_timeout = patience;
      Result<World> opened = World::open(std::move(options));
      if (opened) made[rank].world = std::move(*opened);
      if (!opened) made[rank].status = opened.error();
    });
  }
  for (std::thread& thread : threads) thread.join();
  return made;
}

TEST(SparseFormation, RanksLearnOfOthersFromTheirNeighbours) {
  Shelf shelf;
  std::vector<World> worlds;
  for (Opened& each : open_each(shelf, std::vector<std::string>(7, "regular:2"))) {
    ASSERT_TRUE(each.status.ok()) << each.status.to_string();
    worlds.push_back(std::move(each.world));
  }
  on_all(worlds, [](World& world) { expect_all_collectives(world, 100); });
  expect_no_sessions_beyond_neighbours(worlds);
  on_all(worlds, [](World& world) { EXPECT_TRUE(world.shutdown(20s).ok()); });
}

TEST(SparseFormation, RanksWithDifferentTopologiesAreAllToldSo) {
  const std::vector<std::vector<std::string>> mixtures = {
      {"hypercube", "hypercube", "hypercube", "regular:2", "hypercube"},
      {"full", "full", "full", "hypercube", "full"},
      {"hypercube", "hypercube", "full", "hypercube"},
      {"edges:0-1,1-2,2-3", "edges:0-1,1-2,2-3", "edges:0-1,1-2,2-3", "edges:0-1,1-2,2-3,3-0"}};
  for (const std::vector<std::string>& topologies : mixtures) {
    Shelf shelf;
    for (const Opened& each : open_each(shelf, topologies)) {
      EXPECT_EQ(each.status.code(), Code::kInvalid) << topologies[0] << ": " << each.status.to_string();
      EXPECT_NE(each.status.to_string().find("topology"), std::string::npos) << each.status.to_string();
    }
  }
}

TEST(SparseFormation, ARankThatDoesNotComeIsNamedByAll) {
  Shelf shelf;
  const std::vector<Opened> made = open_each(shelf, {"regular:2", "regular:2", "regular:2", "regular:2", ""}, 2s);
  for (const std::uint32_t rank : {0U, 1U, 2U, 3U}) {
    EXPECT_FALSE(made[rank].status.ok());
    EXPECT_NE(made[rank].status.to_string().find("these did not come: 4;"), std::string::npos)
        << made[rank].status.to_string();
  }
}

}  // namespace
}  // namespace hawser
