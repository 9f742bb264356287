// Two ports over a network in memory: sessions, transfers, messages, and how they end.

#include <gtest/gtest.h>
#include <malloc.h>

#include <algorithm>
#include <array>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "backend/stream/handshake.h"
#include "backend/stream/memory_network.h"
#include "backend/stream/port.h"
#include "backend/stream/stream_port.h"
#include "backend/stream/test_pair.h"
#include "base/bytes.h"

namespace hawser::backend::stream {
namespace {

void fill(std::span<std::byte> bytes, std::uint64_t seed) {
  base::Rng rng(seed);
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(rng.u64());
}

std::vector<Waiting> waits_of(const Port& port) {
  std::vector<Waiting> all;
  port.describe([&all](const Waiting& each) { all.push_back(each); });
  return all;
}

TEST(StreamPort, TellsWhatItWaitsFor) {
  Pair pair;
  const Instant began = pair.now;
  pair.to_b = pair.open("b");
  std::vector<Waiting> waits = waits_of(*pair.a->port);
  ASSERT_EQ(waits.size(), 1U);
  EXPECT_EQ(waits[0].who, "memory");
  EXPECT_EQ(waits[0].what, "the hello");
  EXPECT_EQ(waits[0].since, began);
  EXPECT_GT(waits[0].until, began);
  pair.step();
  bool has_stranger = false;
  ASSERT_TRUE(pair.run([&] {
    for (const Waiting& each : waits_of(*pair.b->port)) has_stranger |= each.what == "proofs by strangers";
    return pair.a->up != nullptr;
  }));
  EXPECT_TRUE(has_stranger);
  ASSERT_TRUE(pair.run([&] { return waits_of(*pair.a->port).empty(); }));
  const std::string message(kMessageMax, 'x');
  while (pair.to_b->send(Priority::kBulk, base::as_bytes(message), {})) continue;
  waits = waits_of(*pair.a->port);
  ASSERT_EQ(waits.size(), 1U);
  EXPECT_EQ(waits[0].what, "room on the connection");
  ASSERT_TRUE(pair.run([&] { return waits_of(*pair.a->port).empty(); }));
}

TEST(StreamPort, ComesUpAtBothEnds) {
  Pair pair;
  pair.connect();
  EXPECT_EQ(pair.a->peer, "b");
  EXPECT_EQ(pair.b->peer, "a");
}

TEST(StreamPort, WritesSmallAndTellsTheArrival) {
  Pair pair;
  pair.connect();
  fill(std::span(pair.a->memory).first(64), 3);
  const Piece piece{pair.a->memory.data(), 1000, 8};
  const Chunk chunk = pair.chunk(Operation::kWrite, {&piece, 1}, 1, true);
  ASSERT_EQ(pair.to_b->submit({&chunk, 1}, pair.now).taken, 1u);
  ASSERT_TRUE(pair.run([&] { return !pair.a->done.empty(); }));
  EXPECT_TRUE(pair.a->done[0].second.ok());
  EXPECT_TRUE(std::equal(piece.local, piece.local + 8, pair.b->memory.data() + 1000));
  EXPECT_EQ(pair.b->memory[999], std::byte{0xee});
  EXPECT_EQ(pair.b->memory[1008], std::byte{0xee});
  ASSERT_EQ(pair.b->arrivals.size(), 1u);
  EXPECT_EQ(pair.b->arrivals[0], std::make_pair(std::uint64_t{101}, 1u));
}

/// Sends messages of random sizes, in the classes of `classes` by turns. Each begins with its number.
void send_numbered(Pair& pair, std::span<const Priority> classes, std::size_t count) {
  base::Rng rng(5);
  for (std::size_t i = 0; i < count; ++i) {
    const std::string text = std::to_string(i) + std::string(i % 50 == 0 ? kMessageMax - 8 : 1 + rng.below(100), ' ');
    const std::string_view view = text;
    const std::size_t cut = rng.below(text.size() + 1);
    const Priority priority = classes[i % classes.size()];
    while (!pair.to_b->send(priority, base::as_bytes(view.substr(0, cut)), base::as_bytes(view.substr(cut)))) {
      pair.step();
    }
  }
}

TEST(StreamPort, MessagesOfAClassKeepTheirOrder) {
  for (const unsigned connections : {1U, 2U, 3U}) {
    Pair pair(connections);
    pair.connect();
    constexpr std::size_t kCount = 600;
    constexpr Priority kClasses[] = {Priority::kBulk, Priority::kCritical, Priority::kBulk};
    send_numbered(pair, kClasses, kCount);
    ASSERT_TRUE(pair.run([&] { return pair.b->messages.size() == kCount; }));
    std::vector<bool> came(kCount + 1);
    std::size_t missing = 0, last_urgent = 0, overtook = 0;  // `missing`: the first that is.
    for (const std::string& message : pair.b->messages) {
      const std::size_t number = std::stoul(message);
      if (number % 3 == 1) {
        EXPECT_GE(number, last_urgent) << "urgent ones keep their order";
        last_urgent = number;
        if (missing < number) ++overtook;
      } else {
        EXPECT_EQ(number, missing) << "bulk overtakes nothing";
      }
      came[number] = true;
      while (came[missing]) ++missing;
    }
    EXPECT_EQ(overtook > 0, connections > 1) << connections << " connections";
  }
}

struct Roughness {
  unsigned connections;
  std::size_t step_max;
  bool holds_references;
  bool places = false;
};
class RandomTransfers : public testing::TestWithParam<std::tuple<Roughness, int>> {};

// Many chunks of all sizes, both ways and both operations at once, over streams of every roughness.
TEST_P(RandomTransfers, AllBytesArriveOnce) {
  const auto [rough, seed] = GetParam();
  Pair pair(rough.connections, static_cast<std::uint64_t>(seed));
  pair.network.holds_references = rough.holds_references;
  pair.network.places = rough.places;
  pair.connect();
  pair.network.step_max = rough.step_max;
  base::Rng rng(static_cast<std::uint64_t>(seed) + 77);
  constexpr std::size_t kHalf = 4 << 20;
  const std::size_t size_max = rough.step_max == 0 ? 1 << 20 : 40000;
  fill(std::span(pair.a->memory).first(kHalf), 1);
  fill(std::span(pair.b->memory).subspan(kHalf), 2);
  std::vector<std::vector<Piece>> pieces;
  std::vector<Chunk> chunks;
  // Writes: a's first half to b's first half; reads: b's second half to a's second half. The same offsets at both ends
  // for writes within their own stretch, so that each byte has one writer.
  std::size_t at = 0;
  while (at + size_max < kHalf && chunks.size() < 60) {
    const Operation op = rng.chance(0.5) ? Operation::kWrite : Operation::kRead;
    const std::size_t base_offset = op == Operation::kWrite ? 0 : kHalf;
    std::vector<Piece> list;
    std::size_t count = 1 + rng.below(rng.chance(0.5) ? 4 : 200);
    std::size_t total = rng.chance(0.3) ? rng.below(200) : rng.below(size_max);
    const bool equal = rng.chance(0.5);
    for (std::size_t i = 0; i < count; ++i) {
      const std::size_t size = equal ? total / count : i + 1 == count ? total : rng.below(total / 2 + 1);
      list.push_back({pair.a->memory.data() + base_offset + at, base_offset + at, size});
      at += size;
      total -= equal ? 0 : size;
    }
    rng.shuffle(list);
    pieces.push_back(std::move(list));
    chunks.push_back(pair.chunk(op, pieces.back(), chunks.size(), rng.chance(0.5)));
  }
  std::size_t taken = 0;
  ASSERT_TRUE(pair.run(
      [&] {
        taken += pair.to_b->submit(std::span(chunks).subspan(taken), pair.now).taken;
        return pair.a->done.size() == chunks.size();
      },
      3000000));
  for (const auto& [cookie, status] : pair.a->done) EXPECT_TRUE(status.ok()) << status.to_string();
  for (const Chunk& chunk : chunks) {
    for (const Piece& piece : chunk.pieces) {
      ASSERT_TRUE(std::equal(piece.local, piece.local + piece.size, pair.b->memory.data() + piece.remote));
    }
  }
  std::size_t covered = 0;
  for (const Chunk& chunk : chunks) covered += chunk.covered ? 1 : 0;
  ASSERT_TRUE(pair.run([&] { return pair.b->arrivals.size() >= covered; }));
  EXPECT_EQ(pair.b->arrivals.size(), covered);
  EXPECT_TRUE(pair.a->down.empty());
}

INSTANTIATE_TEST_SUITE_P(Rough, RandomTransfers,
                         testing::Combine(testing::Values(Roughness{1, 0, false}, Roughness{2, 0, false},
                                                          Roughness{3, 0, true}, Roughness{1, 3000, false},
                                                          Roughness{2, 3000, true}, Roughness{3, 700, false},
                                                          Roughness{3, 0, true, true}, Roughness{2, 3000, true, true},
                                                          Roughness{1, 700, false, true}),
                                          testing::Range(1, 5)));

TEST(StreamPort, RefusesWhatItMust) {
  Pair pair;
  pair.connect();
  const auto read_only = pair.b->add_region(Rights::kRead);
  const Piece inside{pair.a->memory.data(), 0, 100000};
  const Piece outside{pair.a->memory.data(), pair.region->size - 50, 100};
  const Piece wrapped{pair.a->memory.data(), UINT64_MAX - 10, 100};
  Chunk chunk = pair.chunk(Operation::kWrite, {&outside, 1}, 1);
  pair.to_b->submit({&chunk, 1}, pair.now);
  chunk = pair.chunk(Operation::kRead, {&wrapped, 1}, 2);
  pair.to_b->submit({&chunk, 1}, pair.now);
  RegionEntry guessed = *pair.region;
  guessed.generation += 1;
  chunk = pair.chunk(Operation::kWrite, {&inside, 1}, 3);
  chunk.target = pair.bind(guessed);
  pair.to_b->submit({&chunk, 1}, pair.now);
  chunk = pair.chunk(Operation::kWrite, {&inside, 1}, 4);
  chunk.target = pair.bind(*read_only);
  pair.to_b->submit({&chunk, 1}, pair.now);
  chunk = pair.chunk(Operation::kRead, {&inside, 1}, 5);
  chunk.target = pair.bind(*read_only);
  pair.to_b->submit({&chunk, 1}, pair.now);
  ASSERT_TRUE(pair.run([&] { return pair.a->done.size() == 5; }));
  std::sort(pair.a->done.begin(), pair.a->done.end(), [](auto& x, auto& y) { return x.first < y.first; });
  EXPECT_EQ(pair.a->done[0].second.code(), Code::kInvalid);
  EXPECT_EQ(pair.a->done[1].second.code(), Code::kInvalid);
  EXPECT_EQ(pair.a->done[2].second.code(), Code::kDenied);
  EXPECT_EQ(pair.a->done[3].second.code(), Code::kDenied);
  EXPECT_EQ(pair.a->done[3].second.buffer(), BufferState::kUntouched);
  EXPECT_TRUE(pair.a->done[4].second.ok());
  EXPECT_TRUE(pair.a->down.empty());
  EXPECT_TRUE(
      std::all_of(pair.b->memory.begin(), pair.b->memory.end(), [](std::byte b) { return b == std::byte{0xee}; }));
}

// Who is turned away hears why, also with a further stream of a session that is gone.
TEST(StreamPort, AFurtherStreamThatIsRefusedHearsWhy) {
  Pair pair;
  MemoryNetwork network(pair.network, "late");
  auto stream = network.connect("b");
  ASSERT_TRUE(stream.has_value());
  Handshake shake(*std::move(stream), wire::Versions());
  wire::Hello hello;
  hello.stream = 2;
  hello.streams = 3;
  hello.incarnation = hello.session = hello.token = {7, 7};
  hello.admission = wire::Admission::kUser;
  hello.name = "late";
  shake.say(hello);
  Status status;
  ASSERT_TRUE(pair.run([&] { return !(status = shake.turn()).ok() || shake.heard(); }));
  ASSERT_TRUE(status.ok()) << status.to_string();
  EXPECT_EQ(shake.hello().status, Code::kDenied);
  EXPECT_EQ(shake.hello().reason, "no such session");
}

// A region that closes while a write lands and a read is answered: not a byte of it is touched afterwards.
TEST(StreamPort, AClosedRegionIsLeftAlone) {
  Pair pair;
  pair.connect();
  pair.network.capacity = 10000;
  fill(std::span(pair.a->memory).first(1 << 20), 3);
  const Piece written{pair.a->memory.data(), 0, 600000};
  const Piece read{pair.a->memory.data() + (4 << 20), 2 << 20, 600000};
  const Chunk chunks[] = {pair.chunk(Operation::kWrite, {&written, 1}, 1), pair.chunk(Operation::kRead, {&read, 1}, 2),
                          pair.chunk(Operation::kRead, {&read, 1}, 3)};
  ASSERT_EQ(pair.to_b->submit(chunks, pair.now).taken, 3u);
  ASSERT_TRUE(pair.run([&] { return pair.b->memory[50000] != std::byte{0xee}; }));
  pair.b->regions.close(pair.region->index, pair.region->generation);
  std::string holder;
  EXPECT_TRUE(pair.b->port->region_quiet(pair.region->index, pair.region->generation, &holder));
  const std::vector<std::byte> frozen = pair.b->memory;
  // What is read from now on must come from copies.
  std::fill(pair.b->memory.begin() + (2 << 20), pair.b->memory.end(), std::byte{0x55});
  ASSERT_TRUE(pair.run([&] { return pair.a->done.size() == 3; }));
  EXPECT_TRUE(std::equal(frozen.begin(), frozen.begin() + (2 << 20), pair.b->memory.begin()));
  for (const auto& [cookie, status] : pair.a->done) {
    if (cookie == 2) continue;  // Its answer was under way: completed from a copy.
    EXPECT_EQ(status.code(), Code::kDenied) << cookie << status.to_string();
    EXPECT_EQ(status.buffer(), cookie == 1 ? BufferState::kPartlyWritten : BufferState::kUntouched);
  }
  EXPECT_TRUE(pair.a->down.empty());
  EXPECT_EQ(std::count(pair.a->memory.begin() + (4 << 20), pair.a->memory.end(), std::byte{0x55}), 0);
}

/// A read larger than what can be under way, over streams that refer to what was not received. `read` is what it reads:
/// the submitter's, until the chunk ended.
void begin_referred_read(Pair& pair, const Piece& read) {
  pair.connect();
  pair.network.capacity = 10000;
  pair.network.holds_references = true;
  const Chunk chunk = pair.chunk(Operation::kRead, {&read, 1}, 1);
  ASSERT_EQ(pair.to_b->submit({&chunk, 1}, pair.now).taken, 1u);
}

// A stream refers to what its peer has not received. A polled peer that is silent is not judged, but it must not keep
// memory whose region is closed.
TEST(StreamPort, ASilentPeerDoesNotHoldAClosedRegion) {
  Pair pair;
  pair.a->identity.driven = false;
  const Piece read{pair.a->memory.data(), 0, 600000};
  begin_referred_read(pair, read);
  pair.step();
  for (int i = 0; i < 1000; ++i) pair.b->collect(pair.now = pair.now + kStep);  // What fits is on its way.
  pair.b->regions.close(pair.region->index, pair.region->generation);
  std::string holder;
  const auto is_quiet = [&] {
    return pair.b->port->region_quiet(pair.region->index, pair.region->generation, &holder);
  };
  EXPECT_FALSE(is_quiet());
  EXPECT_EQ(holder, "a");
  const Instant end = pair.now + std::chrono::seconds(4);
  while (!is_quiet() && pair.now < end) pair.b->collect(pair.now = pair.now + std::chrono::milliseconds(10));
  EXPECT_TRUE(is_quiet());
  ASSERT_EQ(pair.b->down.size(), 1u);
  EXPECT_EQ(pair.b->down.front().scope(), Scope::kPath) << pair.b->down.front().to_string();
}

// The same while the peer goes on receiving: nothing is dropped.
TEST(StreamPort, AClosedRegionDropsNoPathThatMovesOn) {
  Pair pair;
  const Piece read{pair.a->memory.data(), 0, 600000};
  begin_referred_read(pair, read);
  for (int i = 0; i < 10; ++i) pair.step();
  pair.b->regions.close(pair.region->index, pair.region->generation);
  std::string holder;
  ASSERT_TRUE(
      pair.run([&] { return pair.b->port->region_quiet(pair.region->index, pair.region->generation, &holder); }));
  for (int i = 0; i < 500; ++i) {
    pair.now = pair.now + std::chrono::milliseconds(10);
    pair.step();
  }
  EXPECT_TRUE(pair.a->down.empty() && pair.b->down.empty());
}

// Cancelled in every phase: from the end on, the initiator's memory is neither read nor written.
TEST(StreamPort, CancelFreesMemoryInEveryPhase) {
  for (int turns = 0; turns < 60; ++turns) {
    Pair pair(2, static_cast<std::uint64_t>(turns) + 1);
    pair.connect();
    pair.network.capacity = 20000;
    std::fill_n(pair.a->memory.begin(), 1 << 20, std::byte{0x11});
    std::fill_n(pair.b->memory.begin() + (4 << 20), 1 << 20, std::byte{0x22});
    std::vector<Piece> pieces;
    for (std::size_t i = 0; i < 3; ++i) {
      pieces.push_back({pair.a->memory.data() + i * 100000, i * 100000, 100000});
      pieces.push_back({pair.a->memory.data() + (4 << 20) + i * 100000, (4 << 20) + i * 100000, 100000});
      pieces.push_back({pair.a->memory.data() + (1 << 19) + i * 8, (1 << 19) + i * 8, 8});
      pieces.push_back({pair.a->memory.data() + (1 << 19) + 4096 + i * 8192, (1 << 19) + 4096 + i * 8192, 8000});
    }
    for (std::size_t i = 0; i < pieces.size(); ++i) {
      Chunk chunk = pair.chunk(i % 4 == 1 ? Operation::kRead : Operation::kWrite, {&pieces[i], 1}, i);
      chunk.transfer = 5;
      ASSERT_EQ(pair.to_b->submit({&chunk, 1}, pair.now).taken, 1u);
    }
    for (int i = 0; i < turns; ++i) pair.step();
    pair.to_b->cancel(5);
    // Local memory is free now, although the ends of what is under way come later.
    std::fill_n(pair.a->memory.begin(), pair.a->memory.size(), std::byte{0x99});
    ASSERT_TRUE(pair.run([&] { return pair.a->done.size() == pieces.size(); }));
    for (int i = 0; i < 200; ++i) pair.step();
    EXPECT_EQ(pair.a->done.size(), pieces.size());
    EXPECT_EQ(std::count(pair.b->memory.begin(), pair.b->memory.end(), std::byte{0x99}), 0) << turns;
    EXPECT_EQ(std::count(pair.a->memory.begin(), pair.a->memory.end(), std::byte{0x22}), 0) << turns;
    EXPECT_TRUE(pair.a->down.empty());
    // The path is as good as new.
    const Piece after{pair.a->memory.data(), 0, 300000};
    const Chunk chunk = pair.chunk(Operation::kWrite, {&after, 1}, 99);
    pair.to_b->submit({&chunk, 1}, pair.now);
    ASSERT_TRUE(pair.run([&] { return pair.a->done.size() == pieces.size() + 1; }));
    EXPECT_TRUE(pair.a->done.back().second.ok());
  }
}

TEST(StreamPort, ALostStreamEndsAllChunksThenThePath) {
  for (std::size_t lost = 0; lost < 2; ++lost) {
    Pair pair;
    pair.connect();
    pair.network.capacity = 10000;
    std::vector<Piece> pieces(20, Piece{pair.a->memory.data(), 0, 100000});
    for (std::size_t i = 0; i < pieces.size(); ++i) {
      const Chunk chunk = pair.chunk(i % 2 == 0 ? Operation::kRead : Operation::kWrite, {&pieces[i], 1}, i);
      ASSERT_EQ(pair.to_b->submit({&chunk, 1}, pair.now).taken, 1u);
    }
    for (int i = 0; i < 20; ++i) pair.step();
    pair.network.cut(lost);
    ASSERT_TRUE(pair.run([&] { return !pair.a->down.empty() && !pair.b->down.empty(); }, 10000));
    EXPECT_EQ(pair.a->done.size(), pieces.size());
    EXPECT_EQ(pair.a->done.back().second.code(), Code::kDisconnected);
    EXPECT_EQ(pair.a->done.back().second.peer(), "b");
    EXPECT_EQ(pair.a->down[0].code(), Code::kDisconnected);
    EXPECT_EQ(pair.to_b->state(), PathState::kDown);
    pair.a->port->release_path(pair.to_b);
  }
}

TEST(StreamPort, AReleasedPathSaysGoodbye) {
  Pair pair;
  pair.connect();
  pair.a->port->release_path(pair.to_b);
  ASSERT_TRUE(pair.run([&] { return !pair.b->down.empty(); }));
  EXPECT_EQ(pair.b->down[0].scope(), Scope::kPath);
  EXPECT_NE(pair.b->down[0].message().find("goodbye"), std::string_view::npos);
}

TEST(StreamPort, LastWordsAreHeardThoughAnotherStreamEndsFirst) {
  Pair pair(3);
  pair.connect();
  const std::string_view words = "all is said";
  ASSERT_TRUE(pair.to_b->send(Priority::kRealtime, {}, base::as_bytes(words)));
  pair.a->port->release_path(pair.to_b);
  pair.network.step_max = 5;  // Stream 0 takes many calls, the others show their end at once.
  ASSERT_TRUE(pair.run([&] { return !pair.b->down.empty(); }));
  EXPECT_EQ(pair.b->messages, std::vector<std::string>{std::string(words)});
  EXPECT_NE(pair.b->down[0].message().find("goodbye"), std::string_view::npos) << pair.b->down[0].to_string();
}

TEST(StreamPort, BulkMessagesAreHeardBeforeAGoodbye) {
  for (const bool closes : {true, false}) {
    for (std::uint64_t seed = 1; seed <= 20; ++seed) {
      Pair pair(3, seed);
      pair.connect();
      constexpr Priority kClasses[] = {Priority::kBulk};
      send_numbered(pair, kClasses, 60);  // All connections are up now.
      ASSERT_TRUE(pair.run([&] { return pair.b->messages.size() == 60; }));
      for (int i = 0; i < 40; ++i) {
        ASSERT_TRUE(pair.to_b->send(Priority::kBulk, base::as_bytes(std::string_view("bulk")), {}));
      }
      pair.network.step_max = closes ? 7 : 0;  // The goodbye itself is short, and overtakes.
      if (closes) pair.a->port->begin_close(pair.now);
      if (!closes) pair.a->port->release_path(pair.to_b);
      ASSERT_TRUE(pair.run([&] { return !pair.b->down.empty(); }));
      EXPECT_EQ(pair.b->messages.size(), 100U) << "seed " << seed << (closes ? ", closed" : ", released");
      EXPECT_NE(pair.b->down[0].message().find("goodbye"), std::string_view::npos) << pair.b->down[0].to_string();
    }
  }
}

TEST(StreamPort, AClosingAgentIsGoneForGood) {
  Pair pair;
  pair.connect();
  pair.a->port->begin_close(pair.now);
  ASSERT_TRUE(pair.run([&] { return !pair.b->down.empty() && pair.a->port->idle(); }));
  EXPECT_EQ(pair.b->down[0].scope(), Scope::kPeer);
  pair.open("a");
  ASSERT_TRUE(pair.run([&] { return pair.b->down.size() == 2; }));
  EXPECT_EQ(pair.b->down[1].scope(), Scope::kPeer);
}

TEST(StreamPort, TheAcceptorAsksOnItsHostWhetherTheOpenerOfALostPathLives) {
  for (const auto& [is_dead, is_elsewhere, most_ms] :
       {std::tuple{true, false, 50}, {false, false, 100}, {true, true, 1}}) {
    Pair pair;
    pair.network.is_elsewhere = is_elsewhere;
    pair.connect();
    const Instant lost = pair.now;
    if (is_dead) pair.network.listeners.erase("a");
    for (std::size_t i = 0; i < pair.network.joined.size(); ++i) pair.network.cut(i);
    for (; pair.b->down.empty() && pair.now < lost + std::chrono::seconds(2); pair.now = pair.now + kStep) {
      pair.b->collect(pair.now);
    }
    ASSERT_FALSE(pair.b->down.empty());
    EXPECT_EQ(pair.b->down[0].scope(), is_dead && !is_elsewhere ? Scope::kPeer : Scope::kPath);
    EXPECT_LT(pair.now - lost, std::chrono::milliseconds(most_ms));
  }
}

TEST(StreamPort, ARefusalProvesADeathOnTheSameHostOnly) {
  Pair pair;
  pair.network.listeners.erase("b");
  pair.open("b");
  ASSERT_TRUE(pair.run([&] { return pair.a->down.size() == 1; }));
  EXPECT_EQ(pair.a->down[0].scope(), Scope::kPeer);
  EXPECT_FALSE(pair.a->refused);
  pair.network.is_elsewhere = true;
  pair.open("b");
  ASSERT_TRUE(pair.run([&] { return pair.a->down.size() == 2; }));
  EXPECT_EQ(pair.a->down[1].scope(), Scope::kPath);
  EXPECT_TRUE(pair.a->refused);
}

TEST(StreamPort, ARestartedPeerIsNoticed) {
  Pair pair;
  pair.open("b", {5, 5});
  ASSERT_TRUE(pair.run([&] { return !pair.a->down.empty(); }));
  EXPECT_EQ(pair.a->down[0].code(), Code::kDisconnected);
  EXPECT_EQ(pair.a->down[0].scope(), Scope::kPeer);
  EXPECT_EQ(pair.b->up, nullptr);
}

// A new session that supersedes: when it is up, nothing of the old one lands any more, though bytes of it are under
// way.
TEST(StreamPort, ASupersededSessionIsDead) {
  Pair pair;
  pair.connect();
  pair.network.capacity = 1 << 20;
  std::fill_n(pair.a->memory.begin(), 1 << 20, std::byte{0x11});
  const Piece piece{pair.a->memory.data(), 0, 900000};
  const Chunk chunk = pair.chunk(Operation::kWrite, {&piece, 1}, 1);
  pair.to_b->submit({&chunk, 1}, pair.now);
  pair.a->collect(pair.now);
  ASSERT_TRUE(pair.run([&] { return pair.b->memory[0] == std::byte{0x11}; }));
  const base::Id128 session = pair.a->session;
  Path* old = pair.to_b;
  Path* fresh = pair.open("b", {}, session);
  ASSERT_TRUE(pair.run([&] { return pair.a->up == fresh; }));
  EXPECT_EQ(pair.b->down.size(), 1u);
  const std::vector<std::byte> then = pair.b->memory;
  EXPECT_EQ(then[899999], std::byte{0xee}) << "nothing was under way";
  for (int i = 0; i < 1000; ++i) pair.step();
  EXPECT_EQ(pair.b->memory, then);
  EXPECT_EQ(old->state(), PathState::kDown);
  EXPECT_EQ(pair.a->done.size(), 1u);
}

/// Only `a` is turned, until `done`.
void pass_while_b_stands(Pair& pair, const std::function<bool()>& done) {
  const Instant stopped = pair.now;
  while (!done() && pair.now < stopped + std::chrono::seconds(10)) {
    pair.a->collect(pair.now);
    pair.now = std::max(pair.now + std::chrono::microseconds(100),
                        std::min(pair.a->port->next_deadline(), pair.now + std::chrono::milliseconds(20)));
  }
}

TEST(StreamPort, AStoppedPeerIsReportedWithinThreeHeartbeatsAndItsPathGoesOnWithIt) {
  Pair pair;
  pair.connect();
  const Piece piece{pair.a->memory.data(), 0, 8};
  const Chunk chunk = pair.chunk(Operation::kWrite, {&piece, 1}, 1);
  pair.to_b->submit({&chunk, 1}, pair.now);
  const Instant stopped = pair.now;
  pass_while_b_stands(pair, [&] { return !pair.a->silent.empty(); });
  ASSERT_FALSE(pair.a->silent.empty());
  EXPECT_LE(pair.now - stopped, std::chrono::milliseconds(800));
  EXPECT_EQ(pair.a->silent[0].scope(), Scope::kPath);
  EXPECT_NE(pair.a->silent[0].message().find("b has been silent for"), std::string_view::npos);
  pass_while_b_stands(pair, [&] { return pair.now >= stopped + std::chrono::seconds(4); });
  EXPECT_TRUE(pair.a->down.empty());
  EXPECT_TRUE(pair.a->done.empty());
  EXPECT_EQ(pair.a->silent.size(), 1U) << "it is told once";
  const std::vector<Waiting> waits = waits_of(*pair.a->port);
  ASSERT_EQ(waits.size(), 1U);
  EXPECT_EQ(waits[0].what, "a sign of life");
  EXPECT_EQ(waits[0].peer, "b");
  EXPECT_LE(waits[0].since, stopped + std::chrono::milliseconds(1));
  EXPECT_GE(waits[0].until, waits[0].since + pair.a->context->peer_timeout);
  // b goes on. It has heard nothing meanwhile, but that is one interval.
  EXPECT_TRUE(pair.run([&] { return pair.a->heard == 1 && pair.a->done.size() == 1; }));
  EXPECT_TRUE(pair.a->done.at(0).second.ok());
  EXPECT_TRUE(pair.a->down.empty());
  EXPECT_TRUE(pair.b->down.empty());
}

TEST(StreamPort, AStoppedPeerIsGivenUpAfterPeerTimeout) {
  Pair pair;
  pair.connect();
  const Piece piece{pair.a->memory.data(), 0, 8};
  const Chunk chunk = pair.chunk(Operation::kWrite, {&piece, 1}, 1);
  pair.to_b->submit({&chunk, 1}, pair.now);
  const Instant stopped = pair.now;
  pass_while_b_stands(pair, [&] { return !pair.a->down.empty(); });
  ASSERT_FALSE(pair.a->down.empty());
  EXPECT_GE(pair.now - stopped, pair.a->context->peer_timeout - pair.a->context->heartbeat);
  EXPECT_LE(pair.now - stopped, pair.a->context->peer_timeout + std::chrono::milliseconds(50));
  EXPECT_EQ(pair.a->down[0].scope(), Scope::kPeer);
  EXPECT_EQ(pair.a->down[0].code(), Code::kTimedOut) << "no proof of a death";
  EXPECT_NE(pair.a->down[0].message().find("b has been silent for"), std::string_view::npos);
  EXPECT_EQ(pair.a->done.size(), 1u);
}

// The pings of one that sends much over a slow link wait behind its own bytes. It must hear from its peer all the same.
TEST(StreamPort, OneThatOnlyReceivesSaysEachHeartbeatThatItLives) {
  Pair pair;
  pair.connect();
  const Instant start = pair.now;
  while (pair.now < start + std::chrono::seconds(2)) {  // Nobody waits for b, so the first ping is due after 2.5 s.
    ASSERT_TRUE(pair.to_b->send(Priority::kRealtime, base::as_bytes(std::string_view("more")), {}));
    for (int i = 0; i < 20; ++i) pair.step();
    pair.now = pair.now + std::chrono::milliseconds(50);
  }
  const std::string known(pair.to_b->condition(pair.now).message());
  const std::size_t at = known.find("last word came ");
  ASSERT_NE(at, std::string::npos) << known;
  EXPECT_LE(std::stoi(known.substr(at + std::string_view("last word came ").size())), 350) << known;
}

TEST(StreamPort, IdlePeersArePingedTogether) {
  Pair pair;
  pair.connect();
  const Instant due = pair.a->port->next_deadline();
  pair.now = pair.now + std::chrono::milliseconds(100);
  pair.open("b");  // Its ping would be due 100 ms later.
  ASSERT_TRUE(pair.run([&] { return pair.a->up != pair.to_b; }));
  pair.run([] { return false; }, 1000);
  pair.now = std::max(pair.now, due);
  pair.a->collect(pair.now);
  EXPECT_GE(pair.a->port->next_deadline(), due + std::chrono::milliseconds(250)) << "the pings are out";
  for (int i = 0; i < 100; ++i) pair.step();
  EXPECT_TRUE(pair.a->down.empty());
}

TEST(StreamPort, GlancesFindNothingUntilALookIsDue) {
  Pair pair;
  pair.connect();
  pair.run([] { return false; }, 1000);
  pair.a->collect(pair.now);
  int glances = 0;
  while (glances < 1000 && !pair.a->port->has_news(pair.now)) ++glances;
  EXPECT_GT(glances, 1);
  EXPECT_LE(glances, 64) << "the network is asked after so many, too";
  pair.a->collect(pair.now);
  EXPECT_FALSE(pair.a->port->has_news(pair.now));
  EXPECT_TRUE(pair.a->port->has_news(pair.now + std::chrono::milliseconds(1)));
}

TEST(StreamPort, OneThatIsAwaitedByOthersMeansIsJudgedAsABusyOne) {
  for (const bool awaited : {true, false}) {
    Pair pair;
    pair.connect();
    pair.run([] { return false; }, 1000);
    pair.to_b->set_awaited(true, pair.now);
    pair.to_b->set_awaited(awaited, pair.now);
    const Instant stopped = pair.now;
    for (pair.a->collect(pair.now); pair.a->silent.empty(); pair.a->collect(pair.now)) {  // Asleep but for deadlines.
      pair.now = std::max(pair.now + std::chrono::microseconds(100), pair.a->port->next_deadline());
      ASSERT_LT(pair.now, stopped + std::chrono::seconds(5));
    }
    EXPECT_EQ(pair.now - stopped < std::chrono::milliseconds(800), awaited);
  }
}

// docker0 has the same address on every host: another agent answers there.
TEST(TrialsStreamPort, AnotherAgentAtAPlaceMeansTheNextPlace) {
  Pair pair;
  Side stranger(pair.network, "stranger", 2, 33);
  PathTarget target{
      .peer = "b", .incarnation = {22, 22}, .address = "stranger,nobody,b", .supersedes = {}, .deadline = {}};
  target.deadline = pair.now + std::chrono::seconds(1);
  Path* path = pair.a->port->open_path(target, pair.now).value();
  const auto is_up = [&] {
    stranger.collect(pair.now);
    if (pair.a->up != path) return false;
    (void)path->send(Priority::kRealtime, base::as_bytes(std::string_view("welcome")),
                     {});  // Till then b tells nobody.
    return true;
  };
  ASSERT_TRUE(pair.run(is_up)) << (pair.a->down.empty() ? "nothing" : pair.a->down[0].to_string());
  EXPECT_TRUE(pair.a->down.empty());
  EXPECT_EQ(stranger.up, nullptr);
  EXPECT_TRUE(stranger.down.empty()) << "it was no event there";
  EXPECT_NE(path->describe().find("'stranger'"), std::string::npos) << path->describe();
}

TEST(TrialsStreamPort, AnotherAgentAtTheOnlyPlaceIsNotThePeersEnd) {
  Pair pair;
  Side stranger(pair.network, "stranger", 2, 33);
  PathTarget target{.peer = "b", .incarnation = {22, 22}, .address = "stranger", .supersedes = {}, .deadline = {}};
  target.deadline = pair.now + std::chrono::seconds(1);
  ASSERT_TRUE(pair.a->port->open_path(target, pair.now));
  ASSERT_TRUE(pair.run([&] {
    stranger.collect(pair.now);
    return !pair.a->down.empty();
  }));
  const Status& why = pair.a->down.front();
  EXPECT_EQ(why.scope(), Scope::kPath) << why.to_string();
  EXPECT_NE(why.to_string().find("another agent answers there, 'stranger'"), std::string::npos) << why.to_string();
  EXPECT_EQ(why.to_string().find("restarted"), std::string::npos) << why.to_string();
}

TEST(TrialsStreamPort, ARestartAtOnePlaceIsToldOnlyWhenNoOtherLeadsToThePeer) {
  Pair pair;
  Side restarted(pair.network, "again", 2, 33);
  restarted.identity.name = "b";
  PathTarget target{.peer = "b", .incarnation = {22, 22}, .address = "again,b", .supersedes = {}, .deadline = {}};
  target.deadline = pair.now + std::chrono::seconds(1);
  Path* path = pair.a->port->open_path(target, pair.now).value();
  ASSERT_TRUE(pair.run([&] {
    restarted.collect(pair.now);
    return pair.a->up == path;
  }));
  EXPECT_TRUE(pair.a->down.empty());
}

// Asked for by a deadline: the write ends within 100 ms, whether its peer turns or not, and the path stays. It took the
// peer's answer or two seconds, and then the path.
TEST(Trials, AWriteIsFinalSoonAfterItsDeadlineAndThePathStays) {
  for (const bool answers : {true, false}) {
    Pair pair;
    pair.b->identity.driven = false;
    pair.connect();
    for (int i = 0; i < 100; ++i) pair.step();  // Until the second stream is there, the first one carries bulk.
    pair.network.capacity = 20000;
    const Piece piece{pair.a->memory.data(), 0, 1000000};
    const Chunk chunk = pair.chunk(Operation::kWrite, {&piece, 1}, 1);
    ASSERT_EQ(pair.to_b->submit({&chunk, 1}, pair.now).taken, 1u);
    for (int i = 0; i < 20; ++i) pair.step();
    pair.to_b->cancel(101);
    const Instant asked = pair.now;
    while (pair.a->done.empty() && pair.now < asked + std::chrono::seconds(5)) {
      pair.a->collect(pair.now);
      if (answers) pair.b->collect(pair.now);
      pair.now = pair.now + std::chrono::milliseconds(1);
    }
    ASSERT_EQ(pair.a->done.size(), 1u);
    EXPECT_LE(pair.now - asked, std::chrono::milliseconds(answers ? 20 : 110));
    EXPECT_EQ(pair.a->done[0].second.buffer(), answers ? BufferState::kPartlyWritten : BufferState::kUnknown);
    for (int i = 0; i < 5000; ++i) {
      pair.a->collect(pair.now);
      if (answers) pair.b->collect(pair.now);
      pair.now = pair.now + std::chrono::milliseconds(1);
    }
    EXPECT_TRUE(pair.a->down.empty()) << pair.a->down[0].to_string();
    const Piece small{pair.a->memory.data(), 0, 8};
    const Chunk after = pair.chunk(Operation::kWrite, {&small, 1}, 2);
    const bool taken = pair.to_b->submit({&after, 1}, pair.now).taken == 1;
    EXPECT_EQ(taken, answers) << "late bytes must not land on newer ones";
    if (!taken) {
      ASSERT_TRUE(pair.run([&] { return pair.to_b->submit({&after, 1}, pair.now).taken == 1; }));
    }
    ASSERT_TRUE(pair.run([&] { return pair.a->done.size() == 2; }));
    EXPECT_TRUE(pair.a->done[1].second.ok());
  }
}

TEST(Trials, ATimeOutIsToldWhatThePathKnows) {
  Pair pair;
  pair.connect();
  const Piece piece{pair.a->memory.data(), 0, 1 << 20};
  const Chunk chunk = pair.chunk(Operation::kWrite, {&piece, 1}, 1);
  while (pair.to_b->submit({&chunk, 1}, pair.now).taken == 1) continue;
  const Status known = pair.to_b->condition(pair.now + std::chrono::milliseconds(321));
  EXPECT_NE(known.message().find("64 chunks of 67108864 bytes in flight"), std::string_view::npos) << known.to_string();
  EXPECT_NE(known.message().find("64 MiB of bulk"), std::string_view::npos) << known.to_string();
  EXPECT_NE(known.message().find("the peer's last word came 321 ms ago"), std::string_view::npos) << known.to_string();
}

// 100 stalled readers of 16 MiB each: to close the region took 1.46 s in one turn and 1.34 GB.
TEST(Trials, StalledReadersCostACloseNothing) {
  Pair pair(2, 1, kPlenty);
  pair.network.capacity = 10000;
  constexpr std::size_t kSessions = 100;
  const Piece piece{pair.a->memory.data(), 0, 8 << 20};
  Chunk chunk = pair.chunk(Operation::kRead, {&piece, 1}, 1);
  std::size_t asked = 0;
  open_many(pair, kSessions, [&](Path* path) {
    RemoteRegionRef ref;
    ref.index = pair.region->index;
    ref.generation = pair.region->generation;
    ref.key = pair.region->key;
    chunk.target = *path->bind(ref);
    while (path->submit({&chunk, 1}, pair.now).taken == 1) ++asked;
  });
  for (int i = 0; i < 50; ++i) pair.a->collect(pair.now);
  for (int i = 0; i < 50; ++i) pair.b->collect(pair.now);  // Answers what a never reads.
  const auto used = [] { return mallinfo2().uordblks + mallinfo2().hblkhd; };
  const std::size_t before = used();
  pair.b->regions.close(pair.region->index, pair.region->generation);
  std::string holder;
  EXPECT_TRUE(pair.b->port->region_quiet(pair.region->index, pair.region->generation, &holder)) << holder;
  EXPECT_LE(used(), before + (1u << 20));
  ASSERT_TRUE(pair.run([&] { return pair.a->done.size() == asked; }));
  for (const auto& [cookie, status] : pair.a->done) EXPECT_EQ(status.code(), Code::kDenied) << status.to_string();
  EXPECT_TRUE(pair.a->down.empty() && pair.b->down.empty());
}

// However many sessions have much to say at once, a turn does no more than its bound, and each has its turn.
TEST(Trials, NoTurnIsLongerThanItsBound) {
  Pair pair(2, 1, kPlenty);
  constexpr std::size_t kSessions = 300;
  const Piece piece{pair.a->memory.data(), 0, 16 * 1024};
  Chunk chunk = pair.chunk(Operation::kWrite, {&piece, 1}, 1);
  std::size_t asked = 0;
  open_many(pair, kSessions, [&](Path* path) {
    RemoteRegionRef ref;
    ref.index = pair.region->index;
    ref.generation = pair.region->generation;
    ref.key = pair.region->key;
    chunk.target = *path->bind(ref);
    for (int i = 0; i < 15; ++i) asked += path->submit({&chunk, 1}, pair.now).taken;
  });
  EXPECT_EQ(asked, kSessions * 15);
  ASSERT_TRUE(pair.run([&] { return pair.a->done.size() == asked; }));
  for (const auto* side : {pair.a.get(), pair.b.get()}) {
    const TurnWatch::Work& longest = static_cast<const StreamPort&>(*side->port).longest_turn();
    EXPECT_GT(longest.bytes, 1u << 20);
    EXPECT_LE(longest.bytes, 16u << 20);  // 75 MiB where each path has its share.
    EXPECT_LE(longest.calls, 128u * 4);
  }
}

}  // namespace
}  // namespace hawser::backend::stream
