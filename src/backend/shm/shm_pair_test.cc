// Two agents' ports in one process.

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "backend/shm/test_host.h"
#include "proto/detector.h"

namespace hawser::backend::shm {
namespace {

class ShmPair : public ::testing::Test {
 protected:
  TestFolder folder_;
  TestHost a_{"alice", folder_.path()};
  TestHost b_{"bob", folder_.path()};
};

Options small_ring() {
  Options options;
  options.ring_bytes = 4096;
  return options;
}

/// Sends until the ring is full. How many messages it took.
std::size_t fill(Path& path) {
  std::size_t count = 0;
  while (path.send(Priority::kBulk, bytes_of("message"), {})) ++count;
  return count;
}

std::vector<std::byte> pattern(std::size_t size, unsigned seed = 1) {
  std::vector<std::byte> bytes(size);
  base::Rng rng(seed);
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(rng.u64());
  return bytes;
}

TEST_F(ShmPair, ConnectsAndNamesBothEnds) {
  Path* path = connect(a_, b_);
  EXPECT_EQ(path->state(), PathState::kUp);
  EXPECT_EQ(a_.ups[path].peer, "bob");
  EXPECT_FALSE(a_.ups[path].inbound);
  ASSERT_NE(b_.inbound, nullptr);
  EXPECT_EQ(b_.ups[b_.inbound].peer, "alice");
  EXPECT_EQ(b_.ups[b_.inbound].session, a_.ups[path].session);
  EXPECT_NE(path->describe().find("process"), std::string::npos);
}

TEST_F(ShmPair, WritesAndReadsMappedMemory) {
  Path* path = connect(a_, b_);
  auto region = b_.allocate(8 << 20);
  Binding* target = path->bind(b_.ref(*region)).value();
  EXPECT_EQ(path->bind(b_.ref(*region)).value(), target);
  for (const std::size_t size : {1u, 8u, 63u, 64u, 4096u, 65536u, 65537u, 1u << 20, 5u << 20}) {
    auto source = pattern(size, static_cast<unsigned>(size));
    const Piece piece{source.data(), 12345, size};
    ASSERT_TRUE(transfer(a_, b_, path, chunk_of(Operation::kWrite, target, {&piece, 1}, size)).ok());
    EXPECT_EQ(std::memcmp(region->base + 12345, source.data(), size), 0) << size;
    std::vector<std::byte> back(size);
    const Piece reverse{back.data(), 12345, size};
    ASSERT_TRUE(transfer(a_, b_, path, chunk_of(Operation::kRead, target, {&reverse, 1}, size)).ok());
    EXPECT_EQ(back, source) << size;
  }
}

TEST_F(ShmPair, MappedSmallChunksEndInsideSubmit) {
  Path* path = connect(a_, b_);
  auto region = b_.allocate(1 << 20);
  Binding* target = path->bind(b_.ref(*region)).value();
  auto source = pattern(65536);
  std::vector<Piece> pieces;
  for (std::size_t i = 0; i < 1000; ++i) pieces.push_back({source.data() + i * 8, i * 1000, 8});
  ASSERT_TRUE(transfer(a_, b_, path, chunk_of(Operation::kWrite, target, pieces, 1)).ok());  // maps
  const Chunk chunks[] = {chunk_of(Operation::kWrite, target, pieces, 2),
                          chunk_of(Operation::kWrite, target, pieces, 3)};
  const Submitted submitted = path->submit(chunks, Instant());
  EXPECT_EQ(submitted.taken, 2u);
  EXPECT_EQ(submitted.done, 2u);
  for (std::size_t i = 0; i < 1000; ++i) {
    EXPECT_EQ(std::memcmp(region->base + i * 1000, source.data() + i * 8, 8), 0);
  }
}

TEST_F(ShmPair, ForeignMemoryGoesByCrossMemoryAttach) {
  Path* path = connect(a_, b_);
  auto memory = pattern(3 << 20, 5);
  auto region = b_.add_foreign(memory);
  auto bound = path->bind(b_.ref(*region));
  if (!bound) GTEST_SKIP() << bound.error().to_string();
  auto source = pattern(3 << 20, 6);
  std::vector<Piece> pieces;
  for (std::size_t i = 0; i < 3000; ++i) pieces.push_back({source.data() + i * 1000, (2999 - i) * 1000, 1000});
  ASSERT_TRUE(transfer(a_, b_, path, chunk_of(Operation::kWrite, *bound, pieces, 1)).ok());
  for (std::size_t i = 0; i < 3000; ++i) {
    ASSERT_EQ(std::memcmp(memory.data() + (2999 - i) * 1000, source.data() + i * 1000, 1000), 0);
  }
  std::vector<std::byte> back(memory.size());
  const Piece all{back.data(), 0, back.size()};
  ASSERT_TRUE(transfer(a_, b_, path, chunk_of(Operation::kRead, *bound, {&all, 1}, 2)).ok());
  EXPECT_EQ(back, memory);
}

TEST_F(ShmPair, ForeignMemoryThatIsNotThereFails) {
  Path* path = connect(a_, b_);
  auto* nowhere = reinterpret_cast<std::byte*>(0x1000);
  auto region = b_.add_foreign({nowhere, 4096});
  auto bound = path->bind(b_.ref(*region));
  if (!bound) GTEST_SKIP() << bound.error().to_string();
  auto source = pattern(4096);
  const Piece piece{source.data(), 0, source.size()};
  const Status status = transfer(a_, b_, path, chunk_of(Operation::kWrite, *bound, {&piece, 1}, 1));
  EXPECT_EQ(status.code(), Code::kFailed);
  EXPECT_EQ(status.buffer(), BufferState::kUntouched);
}

TEST_F(ShmPair, ForeignMemoryIsMovedAtOnceOrNotAtAll) {
  Path* path = connect(a_, b_);
  auto memory = pattern(1 << 20, 5);
  auto region = b_.add_foreign(memory);
  auto bound = path->bind(b_.ref(*region));
  if (!bound) GTEST_SKIP() << bound.error().to_string();
  auto source = pattern(memory.size(), 6);
  const Piece first{source.data(), 0, 64};  // The peer has to be asked for a region before the first.
  ASSERT_TRUE(transfer(a_, b_, path, chunk_of(Operation::kWrite, *bound, {&first, 1}, 7)).ok());
  std::vector<Piece> pieces;
  for (std::size_t i = 0; i < 1025; ++i) pieces.push_back({source.data() + i * 64, i * 128, 64});
  const std::span<const Piece> all(pieces);
  EXPECT_FALSE(path->move_at_once(chunk_of(Operation::kWrite, *bound, all, 1)));  // More than one call takes.
  EXPECT_TRUE(path->move_at_once(chunk_of(Operation::kWrite, *bound, all.first(1024), 2)));
  for (std::size_t i = 0; i < 1024; ++i) {
    ASSERT_EQ(std::memcmp(memory.data() + i * 128, source.data() + i * 64, 64), 0);
  }
  const Piece whole{source.data(), 0, source.size()};
  EXPECT_TRUE(path->move_at_once(chunk_of(Operation::kRead, *bound, {&whole, 1}, 3)));
  EXPECT_EQ(source, memory);
  const Piece beyond{source.data(), 64, source.size()};
  EXPECT_FALSE(path->move_at_once(chunk_of(Operation::kRead, *bound, {&beyond, 1}, 4)));
  b_.regions().close(region->index, region->generation);
  ASSERT_TRUE(b_.port().region_quiet(region->index, region->generation, nullptr));
  EXPECT_FALSE(path->move_at_once(chunk_of(Operation::kRead, *bound, {&whole, 1}, 5)));
}

TEST_F(ShmPair, WhatWasMovedInPartIsNotCalledUntouched) {
  Path* path = connect(a_, b_);
  const std::size_t page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  void* const pages = ::mmap(nullptr, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(pages, MAP_FAILED);
  auto region = b_.add_foreign({static_cast<std::byte*>(pages), 2 * page});
  auto bound = path->bind(b_.ref(*region));
  if (!bound) GTEST_SKIP() << bound.error().to_string();
  auto source = pattern(2 * page);
  const Piece first{source.data(), 0, 64};
  const Piece both{source.data(), 0, source.size()};
  ASSERT_TRUE(transfer(a_, b_, path, chunk_of(Operation::kWrite, *bound, {&first, 1}, 1)).ok());
  ASSERT_EQ(::munmap(static_cast<std::byte*>(pages) + page, page), 0);
  EXPECT_FALSE(path->move_at_once(chunk_of(Operation::kWrite, *bound, {&both, 1}, 2)));
  // Also where nothing at all can be moved any more.
  ASSERT_EQ(::munmap(pages, page), 0);
  const Status status = transfer(a_, b_, path, chunk_of(Operation::kWrite, *bound, {&both, 1}, 3));
  EXPECT_EQ(status.code(), Code::kFailed);
  EXPECT_EQ(status.buffer(), BufferState::kUnknown);
}

TEST_F(ShmPair, AttachOffIsUnsupportedAndSaysSo) {
  Options options;
  options.attach = false;
  TestHost c{"carol", folder_.path(), options};
  Path* path = connect(c, b_);
  auto memory = pattern(4096);
  auto region = b_.add_foreign(memory);
  EXPECT_EQ(path->bind(b_.ref(*region)).error().code(), Code::kUnsupported);
}

TEST_F(ShmPair, RefusesWrongKeyBoundsAndRights) {
  Path* path = connect(a_, b_);
  auto region = b_.allocate(4096, Rights::kRead);
  auto source = pattern(4096);
  const Piece piece{source.data(), 0, 4096};

  RemoteRegionRef forged = b_.ref(*region);
  forged.key.lo ^= 1;
  Binding* wrong_key = path->bind(forged).value();
  EXPECT_EQ(transfer(a_, b_, path, chunk_of(Operation::kRead, wrong_key, {&piece, 1}, 1)).code(), Code::kDenied);
  EXPECT_EQ(path->bind(forged).error().code(), Code::kDenied);  // final
  path->unbind(forged.index, forged.generation);

  Binding* target = path->bind(b_.ref(*region)).value();
  EXPECT_TRUE(transfer(a_, b_, path, chunk_of(Operation::kRead, target, {&piece, 1}, 2)).ok());
  EXPECT_EQ(transfer(a_, b_, path, chunk_of(Operation::kWrite, target, {&piece, 1}, 3)).code(), Code::kDenied);
  const Piece beyond{source.data(), 1, 4096};
  EXPECT_EQ(transfer(a_, b_, path, chunk_of(Operation::kRead, target, {&beyond, 1}, 4)).code(), Code::kDenied);
  const Piece wild{source.data(), UINT64_MAX - 4, 8};
  EXPECT_EQ(transfer(a_, b_, path, chunk_of(Operation::kRead, target, {&wild, 1}, 5)).code(), Code::kDenied);
}

TEST_F(ShmPair, ClosedRegionTakesNothingMore) {
  Path* path = connect(a_, b_);
  auto region = b_.allocate(1 << 20);
  Binding* target = path->bind(b_.ref(*region)).value();
  auto source = pattern(1 << 20);
  const Piece piece{source.data(), 0, 4096};
  ASSERT_TRUE(transfer(a_, b_, path, chunk_of(Operation::kWrite, target, {&piece, 1}, 1)).ok());

  // One chunk is half done when the region closes.
  const Piece large{source.data(), 0, source.size()};
  const Chunk chunk = chunk_of(Operation::kWrite, target, {&large, 1}, 2);
  ASSERT_EQ(path->submit({&chunk, 1}, Instant()).taken, 1u);
  a_.turn();
  b_.regions().close(region->index, region->generation);
  std::string holder;
  EXPECT_TRUE(b_.port().region_quiet(region->index, region->generation, &holder));
  std::memset(region->base, 0x77, region->size);
  ASSERT_TRUE(turn_until({&a_, &b_}, [&] { return a_.done.contains(2); }));
  EXPECT_EQ(a_.done[2].code(), Code::kDenied);
  EXPECT_EQ(a_.done[2].buffer(), BufferState::kPartlyWritten);
  EXPECT_EQ(transfer(a_, b_, path, chunk_of(Operation::kWrite, target, {&piece, 1}, 3)).code(), Code::kDenied);
  for (std::size_t i = 0; i < region->size; ++i) ASSERT_EQ(region->base[i], std::byte{0x77});
}

TEST_F(ShmPair, ChunksTakeTurnsAndCanBeCancelled) {
  Path* path = connect(a_, b_);
  auto region = b_.allocate(64 << 20);
  Binding* target = path->bind(b_.ref(*region)).value();
  auto source = pattern(1 << 20);
  const Piece piece{source.data(), 0, source.size()};
  std::vector<Chunk> bulk;
  for (std::uint64_t i = 0; i < 32; ++i) bulk.push_back(chunk_of(Operation::kWrite, target, {&piece, 1}, 100 + i, 1));
  const Chunk other = chunk_of(Operation::kWrite, target, {&piece, 1}, 1, 2);
  Chunk critical = chunk_of(Operation::kWrite, target, {&piece, 1}, 2, 3);
  critical.priority = Priority::kCritical;
  ASSERT_EQ(path->submit(bulk, Instant()).taken, 32u);
  ASSERT_EQ(path->submit({&other, 1}, Instant()).taken, 1u);
  ASSERT_EQ(path->submit({&critical, 1}, Instant()).taken, 1u);
  ASSERT_TRUE(turn_until({&a_, &b_}, [&] { return a_.done.contains(1); }));
  EXPECT_TRUE(a_.done.contains(2));
  EXPECT_LE(a_.done.size(), 4u);  // it did not wait for the 32
  path->cancel(1);
  a_.turn();
  a_.turn();
  a_.turn();
  EXPECT_EQ(a_.done.size(), 34u);
  EXPECT_EQ(a_.done[131].code(), Code::kCancelled);
}

TEST_F(ShmPair, MessagesOfAllSizesKeepTheirOrder) {
  for (const std::uint32_t ring_bytes : {4096u, 65536u, 262144u}) {
    Options options;
    options.ring_bytes = ring_bytes;
    TestHost c{"carol", folder_.path(), options};
    Path* path = connect(c, b_);
    b_.messages.clear();
    c.messages.clear();
    std::vector<std::string> sent;
    base::Rng rng(ring_bytes);
    for (int i = 0; i < 3000; ++i) {
      const std::size_t size = rng.chance(0.1) ? rng.below(kMessageMax + 1025) : rng.below(200);
      std::string text(size, static_cast<char>('a' + i % 26));
      if (size >= 4) std::memcpy(text.data(), &i, 4);
      const std::size_t head = size == 0 ? 0 : rng.below(size);
      ASSERT_TRUE(turn_until({&c, &b_}, [&] {
        return path->send(Priority::kBulk, bytes_of(text).first(head), bytes_of(text).subspan(head));
      }));
      sent.push_back(std::move(text));
    }
    ASSERT_TRUE(turn_until({&c, &b_}, [&] { return b_.messages.size() == sent.size(); })) << b_.messages.size();
    EXPECT_TRUE(b_.messages == sent);
    ASSERT_TRUE(b_.inbound->send(Priority::kBulk, bytes_of("back"), {}));
    ASSERT_TRUE(turn_until({&c, &b_}, [&] { return c.messages.size() == 1; }));
  }
}

/// Of each message that the peer's agent is not done with its beginning is shown.
TEST_F(ShmPair, WhatThePeerHasNotTakenIsShown) {
  for (const std::uint32_t ring_bytes : {4096u, 262144u}) {
    Options options;
    options.ring_bytes = ring_bytes;
    TestHost c{"carol", folder_.path(), options};
    Path* const path = connect(c, b_);
    b_.messages.clear();
    const auto untaken = [&] {
      std::vector<std::string> all;
      EXPECT_TRUE(path->each_untaken([&](std::span<const std::byte> begin) {
        EXPECT_GE(begin.size(), std::min<std::size_t>(kMessageBegin, begin.size()));
        all.emplace_back(reinterpret_cast<const char*>(begin.data()), 4);
      }));
      std::ranges::sort(all);
      return all;
    };
    EXPECT_TRUE(untaken().empty());
    std::vector<std::string> sent;
    base::Rng rng(ring_bytes);
    for (int i = 0; i < 400; ++i) {
      std::string text(rng.chance(0.2) ? 4 + rng.below(kMessageMax) : 4 + rng.below(300), 'x');
      std::snprintf(text.data(), 5, "%04d", i);
      const std::size_t head = 4 + rng.below(text.size() - 3);
      ASSERT_TRUE(turn_until({&c, &b_}, [&] {
        return path->send(Priority::kBulk, bytes_of(text).first(head), bytes_of(text).subspan(head));
      }));
      sent.push_back(text.substr(0, 4));
      const std::vector<std::string> shown = untaken();
      ASSERT_LE(shown.size(), sent.size());
      // They are the last ones, and none that came is missing among those before.
      EXPECT_EQ(shown, std::vector<std::string>(sent.end() - static_cast<std::ptrdiff_t>(shown.size()), sent.end()));
      ASSERT_GE(b_.messages.size(), sent.size() - shown.size()) << "more is taken than came";
    }
    ASSERT_TRUE(turn_until({&c, &b_}, [&] { return b_.messages.size() == sent.size(); }));
    EXPECT_FALSE(untaken().empty()) << "what was given out last is not known to be dealt with";
    ASSERT_TRUE(turn_until({&c, &b_}, [&] { return untaken().empty(); }));
  }
}

TEST_F(ShmPair, AnEndThatStopsTakingLeavesTheRestUntaken) {
  Path* const path = connect(a_, b_);
  const auto count = [&] {
    std::size_t untaken = 0;
    EXPECT_TRUE(path->each_untaken([&](std::span<const std::byte>) { ++untaken; }));
    return untaken;
  };
  ASSERT_TRUE(path->send(Priority::kBulk, bytes_of("one"), {}));
  ASSERT_TRUE(turn_until({&b_}, [&] { return b_.messages.size() == 1; }));
  ASSERT_TRUE(turn_until({&b_}, [&] { return count() == 0; }));
  ASSERT_TRUE(path->send(Priority::kBulk, bytes_of("two"), {}));
  ASSERT_TRUE(turn_until({&b_}, [&] { return b_.messages.size() == 2; }));
  ASSERT_TRUE(path->send(Priority::kBulk, bytes_of("three"), {}));
  b_.inbound->stop_taking();  // It was given "two", and did nothing with it.
  for (int i = 0; i < 100; ++i) b_.turn();
  EXPECT_EQ(b_.messages.size(), 2u);
  EXPECT_EQ(count(), 2u);
  b_.port().release_path(b_.inbound);
  ASSERT_TRUE(turn_until({&a_, &b_}, [&] { return a_.downs.contains(path); }));
  EXPECT_EQ(count(), 2u) << "also when the path is down";
}

TEST_F(ShmPair, ASleeperHasGivenBackWhatItTook) {
  Path* const path = connect(a_, b_);
  ASSERT_TRUE(path->send(Priority::kBulk, bytes_of("one"), {}));
  ASSERT_TRUE(turn_until({&b_}, [&] { return b_.messages.size() == 1; }));
  ASSERT_TRUE(b_.port().prepare_sleep());
  std::size_t untaken = 0;
  EXPECT_TRUE(path->each_untaken([&](std::span<const std::byte>) { ++untaken; }));
  EXPECT_EQ(untaken, 0u);
}

/// "what of peer", a line each. Each since that is told lies between the two.
std::string waits_of(const Port& port, Instant from) {
  std::string all;
  port.describe([&](const Waiting& each) {
    all += std::string(each.what) + " of " + std::string(each.peer) + "\n";
    EXPECT_EQ(each.who, "shm");
    EXPECT_GE(each.since, from);
    EXPECT_LE(each.since, Clock::steady().now());
    EXPECT_GT(each.until, each.since);
  });
  return all;
}

TEST_F(ShmPair, APortTellsWhatItsPathsWaitFor) {
  TestHost c{"carol", folder_.path(), small_ring()};
  Instant from = Clock::steady().now();
  c.turn();
  PathTarget target = c.target(b_);
  target.deadline = from + std::chrono::seconds(60);
  Path* const path = c.open(target);
  EXPECT_EQ(waits_of(c.port(), from), "the hello of bob\n");
  ASSERT_TRUE(turn_until({&c, &b_}, [&] { return c.ups.contains(path); }));
  EXPECT_EQ(waits_of(c.port(), from), "");
  from = Clock::steady().now();
  c.turn();
  fill(*path);
  c.turn();
  EXPECT_EQ(waits_of(c.port(), from), "room in the ring of bob\n");
  ASSERT_TRUE(turn_until({&c, &b_}, [&] { return waits_of(c.port(), from).empty(); }));
  // The ring takes messages again, and is full again: that is another time.
  from = Clock::steady().now();
  c.turn();
  fill(*path);
  EXPECT_EQ(waits_of(c.port(), from), "room in the ring of bob\n");
  ASSERT_TRUE(turn_until({&c, &b_}, [&] { return waits_of(c.port(), from).empty(); }));

  auto region = b_.allocate(8 << 20);
  std::vector<std::byte> bytes(8);
  Binding* const binding = path->bind(b_.ref(*region)).value();
  const Piece piece{bytes.data(), 0, bytes.size()};
  const Chunk chunk = chunk_of(Operation::kWrite, binding, {&piece, 1}, 1);
  ASSERT_EQ(path->submit({&chunk, 1}, Clock::steady().now()).taken, 1u);
  EXPECT_EQ(waits_of(c.port(), from), "the place of a region of bob\n");
  ASSERT_TRUE(turn_until({&c, &b_}, [&] { return c.done.contains(1); }));
  EXPECT_EQ(waits_of(c.port(), from), "");

  c.port().release_path(path);
  EXPECT_EQ(waits_of(c.port(), from), "the last access to this agent's memory of bob\n");
  ASSERT_TRUE(turn_until({&c, &b_}, [&] { return waits_of(c.port(), from).empty(); }));
}

TEST_F(ShmPair, APortTellsOfSilence) {
  TestHost driven{"dave", folder_.path(), {}, true};
  const Instant from = Clock::steady().now();
  Path* const path = connect(a_, driven);
  ASSERT_TRUE(turn_until({&a_}, [&] { return a_.silent.contains(path); }));
  EXPECT_EQ(waits_of(a_.port(), from), "a sign of life of dave\n");
  ASSERT_TRUE(turn_until({&a_, &driven}, [&] { return !a_.silent.contains(path); }));
  EXPECT_EQ(waits_of(a_.port(), from), "");
}

TEST_F(ShmPair, SleepersAreWoken) {
  Path* path = connect(a_, b_);
  const auto is_readable = [](TestHost& host) {
    pollfd watched{host.port().wait_fd(), POLLIN, 0};
    return ::poll(&watched, 1, 0) == 1;
  };
  for (int i = 0; i < 100; ++i) {
    ASSERT_TRUE(turn_until({&b_}, [&] { return b_.port().prepare_sleep(); }));
    ASSERT_FALSE(is_readable(b_));
    ASSERT_TRUE(path->send(Priority::kBulk, bytes_of("wake"), {}));
    ASSERT_TRUE(is_readable(b_)) << i;
    ASSERT_TRUE(turn_until({&b_}, [&] { return b_.messages.size() == static_cast<std::size_t>(i) + 1; }));
  }
  // Sent before: there is nothing to sleep for.
  ASSERT_TRUE(path->send(Priority::kBulk, bytes_of("early"), {}));
  EXPECT_FALSE(b_.port().prepare_sleep());
}

TEST_F(ShmPair, RefusedSenderIsWokenByRoom) {
  TestHost c{"carol", folder_.path(), small_ring()};
  Path* path = connect(c, b_);
  const std::size_t count = fill(*path);
  EXPECT_EQ(count, 64u);
  ASSERT_TRUE(turn_until({&c}, [&] { return c.port().prepare_sleep(); }));
  pollfd watched{c.port().wait_fd(), POLLIN, 0};
  ASSERT_EQ(::poll(&watched, 1, 0), 0);
  ASSERT_TRUE(turn_until({&b_}, [&] { return b_.messages.size() == count; }));
  EXPECT_EQ(::poll(&watched, 1, 0), 1);
  c.turn();
  EXPECT_TRUE(path->send(Priority::kBulk, bytes_of("message"), {}));
}

TEST_F(ShmPair, ARefusedSenderThatDoesNotSleepSeesTheRoom) {
  TestHost c{"carol", folder_.path(), small_ring()};
  Path* path = connect(c, b_);
  const std::size_t count = fill(*path);
  const auto turn = [&] { return c.port().turn(Clock::steady().now(), {}); };
  static_cast<void>(turn());
  EXPECT_EQ(turn(), 0u) << "there is no room yet";
  ASSERT_TRUE(turn_until({&b_}, [&] { return b_.messages.size() == count && b_.port().prepare_sleep(); }));
  EXPECT_EQ(turn(), 1u) << "it would wait for a bell that rings for sleepers only";
  EXPECT_EQ(turn(), 0u) << "it was told once";
  EXPECT_TRUE(path->send(Priority::kBulk, bytes_of("message"), {}));
}

TEST_F(ShmPair, ManyPathsBeyondTheHotOnesStillDeliver) {
  Options options;
  options.hot_paths = 2;
  TestHost hub{"hub", folder_.path(), options};
  std::vector<std::unique_ptr<TestHost>> spokes;
  std::vector<Path*> paths;
  std::vector<Path*> back;
  for (int i = 0; i < 12; ++i) {
    spokes.push_back(std::make_unique<TestHost>(base::format("spoke-{}", i), folder_.path()));
    paths.push_back(connect(*spokes.back(), hub));
    back.push_back(hub.inbound);
  }
  for (int round = 0; round < 20; ++round) {
    hub.messages.clear();
    for (Path* path : paths) ASSERT_TRUE(path->send(Priority::kBulk, bytes_of("hi"), {}));
    ASSERT_TRUE(turn_until({&hub}, [&] { return hub.messages.size() == paths.size(); })) << hub.messages.size();
    for (std::size_t i = 0; i < back.size(); ++i) {
      ASSERT_TRUE(back[i]->send(Priority::kBulk, bytes_of("ho"), {}));
      TestHost& spoke = *spokes[i];
      ASSERT_TRUE(turn_until({&spoke}, [&] { return spoke.messages.size() == static_cast<std::size_t>(round) + 1; }));
    }
  }
}

TEST_F(ShmPair, AWrongIncarnationMeansRestarted) {
  PathTarget target = a_.target(b_);
  target.incarnation = base::random_id128();
  Path* path = a_.open(target);
  ASSERT_TRUE(turn_until({&a_, &b_}, [&] { return a_.downs.contains(path); }));
  EXPECT_EQ(a_.downs[path].code(), Code::kDisconnected);
  EXPECT_EQ(a_.downs[path].scope(), Scope::kPeer);
  EXPECT_NE(a_.downs[path].message().find("restarted"), std::string_view::npos);
  EXPECT_EQ(b_.inbound, nullptr);
  a_.port().release_path(path);
  a_.downs.clear();

  target = a_.target(b_);
  target.peer = "bertha";
  path = a_.open(target);
  ASSERT_TRUE(turn_until({&a_, &b_}, [&] { return a_.downs.contains(path); }));
  EXPECT_NE(a_.downs[path].message().find("called 'bob'"), std::string_view::npos);
}

TEST_F(ShmPair, NobodyThereIsSaidAtOnceAndIsNoDeath) {
  TestHost gone{"gone", folder_.path()};
  const PathTarget target = a_.target(gone);
  gone.close();
  Path* path = a_.open(target);
  a_.turn();
  ASSERT_TRUE(a_.downs.contains(path));
  EXPECT_EQ(a_.downs[path].code(), Code::kUnsupported);
  EXPECT_EQ(a_.downs[path].scope(), Scope::kPath);
  EXPECT_FALSE(a_.port().open_path(
      {.peer = "x", .incarnation = {}, .address = "garbage", .supersedes = {}, .deadline = {}}, Instant()));
  EXPECT_FALSE(a_.backend().reachable("").ok());
  EXPECT_TRUE(a_.backend().reachable(b_.backend().address()).ok());
  Address elsewhere = decode_address(b_.backend().address()).value();
  elsewhere.boot.lo ^= 1;
  EXPECT_EQ(a_.backend().reachable(encode(elsewhere)).code(), Code::kUnsupported);
  elsewhere.boot.lo ^= 1;
  elsewhere.user += 1;
  EXPECT_EQ(a_.backend().reachable(encode(elsewhere)).code(), Code::kDenied);
}

TEST_F(ShmPair, ASilentPeerIsGivenUpAtTheDeadline) {
  PathTarget target = a_.target(b_);
  const Instant start = Clock::steady().now();
  target.deadline = start + std::chrono::milliseconds(20);
  Path* path = a_.open(target);
  ASSERT_TRUE(turn_until({&a_}, [&] { return a_.downs.contains(path); }));  // bob is never turned
  EXPECT_EQ(a_.downs[path].code(), Code::kTimedOut);
  EXPECT_GE(Clock::steady().now() - start, std::chrono::milliseconds(20));
}

TEST_F(ShmPair, ADrivenPeerThatDoesNotTurnIsSilentAndThenGivenUp) {
  TestHost driven{"driven", folder_.path(), {}, true};
  Path* path = connect(a_, driven);
  // Idle, it answers.
  const Instant idle_until = Clock::steady().now() + 12 * kTestHeartbeat;
  ASSERT_TRUE(turn_until({&a_, &driven}, [&] { return Clock::steady().now() >= idle_until; }));
  ASSERT_FALSE(a_.downs.contains(path));
  ASSERT_TRUE(path->send(Priority::kBulk, bytes_of("unread"), {}));
  const Instant start = Clock::steady().now();
  ASSERT_TRUE(turn_until({&a_}, [&] { return a_.silent.contains(path); }));  // The other is not turned.
  EXPECT_GE(Clock::steady().now() - start, 2 * kTestHeartbeat);
  EXPECT_EQ(a_.silent[path].code(), Code::kTimedOut);
  EXPECT_EQ(a_.silent[path].scope(), Scope::kPath) << "its path stays";
  EXPECT_FALSE(a_.downs.contains(path));
  ASSERT_TRUE(path->send(Priority::kBulk, bytes_of("while it is silent"), {}));
  // It goes on, and so does the path.
  ASSERT_TRUE(turn_until({&a_, &driven}, [&] { return !a_.silent.contains(path) && driven.messages.size() == 2; }));
  EXPECT_EQ(driven.messages.back(), "while it is silent");
  EXPECT_FALSE(a_.downs.contains(path));
  ASSERT_TRUE(path->send(Priority::kBulk, bytes_of("never read"), {}));
  const Instant again = Clock::steady().now();
  ASSERT_TRUE(turn_until({&a_}, [&] { return a_.downs.contains(path); }));
  EXPECT_GE(Clock::steady().now() - again, kTestPeerTimeout - kTestHeartbeat);
  EXPECT_EQ(a_.downs[path].code(), Code::kTimedOut);
  EXPECT_EQ(a_.downs[path].scope(), Scope::kPeer);
  EXPECT_NE(a_.downs[path].message().find("driven has been silent"), std::string_view::npos);
}

/// Connects them while the clock stands at `now`.
void connect_at(Instant now, TestHost& from, TestHost& to) {
  Path* const path = from.port().open_path(from.target(to), now).value();
  to.inbound = nullptr;
  ASSERT_TRUE(turn_until({}, [&] {
    from.turn_at(now);
    to.turn_at(now);
    return from.ups.contains(path) && to.inbound != nullptr;
  }));
}

TEST_F(ShmPair, IdlePeersAreAskedTogether) {
  TestHost first{"first", folder_.path(), {}, true};
  TestHost second{"second", folder_.path(), {}, true};
  TestHost asking{"asking", folder_.path()};
  const Instant start = Clock::steady().now();
  connect_at(start, asking, first);
  connect_at(start + kTestHeartbeat / 2, asking, second);
  const Instant due = start + 10 * kTestHeartbeat;
  EXPECT_EQ(asking.port().next_deadline(), due);
  asking.turn_at(due);
  EXPECT_EQ(asking.port().next_deadline(), due + kTestHeartbeat) << "the second one was asked, too";
}

TEST_F(ShmPair, OneTurnAsksNoMorePeersThanItsBound) {
  constexpr Duration kBetween = std::chrono::microseconds(100);
  TestHost asking{"asking", folder_.path()};
  const Instant start = Clock::steady().now();
  std::vector<std::unique_ptr<TestHost>> peers;
  for (std::size_t i = 0; i < proto::kHastenedMax + 2; ++i) {
    peers.push_back(std::make_unique<TestHost>("peer" + std::to_string(i), folder_.path(), Options{}, true));
    connect_at(start + i * kBetween, asking, *peers.back());
  }
  const Instant due = start + 10 * kTestHeartbeat;
  asking.turn_at(due);
  const Instant next = due + proto::kHastenedMax * kBetween;
  EXPECT_EQ(asking.port().next_deadline(), next) << "the first one beyond the bound";
  asking.turn_at(next);
  EXPECT_EQ(asking.port().next_deadline(), due + kTestHeartbeat);
}

TEST_F(ShmPair, APeerThatAsksNeedNotBeAsked) {
  TestHost asking{"asking", folder_.path(), {}, true};
  TestHost asked{"asked", folder_.path(), {}, true};
  const Instant start = Clock::steady().now();
  connect_at(start, asking, asked);
  const Instant due = start + 10 * kTestHeartbeat;
  asking.turn_at(due);
  asked.turn_at(due);
  EXPECT_EQ(asked.port().next_deadline(), due + 10 * kTestHeartbeat);
}

TEST_F(ShmPair, ClosingDeliversWhatWasSentAndTellsThePeer) {
  Path* path = connect(a_, b_);
  ASSERT_TRUE(path->send(Priority::kBulk, bytes_of("last words"), {}));
  a_.port().begin_close(Clock::steady().now());
  ASSERT_TRUE(turn_until({&a_, &b_}, [&] { return b_.downs.contains(b_.inbound) && a_.downs.contains(path); }));
  EXPECT_EQ(b_.messages.back(), "last words");
  EXPECT_EQ(b_.downs[b_.inbound].scope(), Scope::kPeer);
  EXPECT_TRUE(a_.port().idle());
  a_.port().release_path(path);
  b_.port().release_path(b_.inbound);
  ASSERT_TRUE(turn_until({&a_, &b_}, [&] { return a_.port().idle(); }));
}

TEST_F(ShmPair, ManyPathsEndAtOnceWithTheirLastMessages) {
  Options options;
  options.hot_paths = 2;
  TestHost hub{"hub", folder_.path(), options};
  std::vector<std::unique_ptr<TestHost>> spokes;
  for (int i = 0; i < 12; ++i) {
    spokes.push_back(std::make_unique<TestHost>(base::format("spoke-{}", i), folder_.path()));
    Path* path = connect(*spokes.back(), hub);
    for (int j = 0; j < 100; ++j) ASSERT_TRUE(path->send(Priority::kBulk, bytes_of("last"), {}));
  }
  for (auto& spoke : spokes) spoke->port().begin_close(Clock::steady().now());
  ASSERT_TRUE(turn_until({&hub}, [&] { return hub.downs.size() == spokes.size(); })) << hub.downs.size();
  EXPECT_EQ(hub.messages.size(), spokes.size() * 100);
  EXPECT_TRUE(turn_until({&hub}, [&] { return hub.port().prepare_sleep(); }));
}

TEST_F(ShmPair, ReleasingAPathEndsItsChunksSilently) {
  Path* path = connect(a_, b_);
  auto region = b_.allocate(8 << 20);
  Binding* target = path->bind(b_.ref(*region)).value();
  auto source = pattern(1 << 20);
  const Piece piece{source.data(), 0, source.size()};
  const Chunk chunk = chunk_of(Operation::kWrite, target, {&piece, 1}, 1);
  ASSERT_EQ(path->submit({&chunk, 1}, Instant()).taken, 1u);
  a_.port().release_path(path);
  ASSERT_TRUE(turn_until({&a_, &b_}, [&] { return b_.downs.contains(b_.inbound); }));
  EXPECT_EQ(b_.downs[b_.inbound].scope(), Scope::kPath);
  EXPECT_TRUE(a_.done.empty());
  EXPECT_TRUE(a_.downs.empty());
  b_.port().release_path(b_.inbound);
  connect(a_, b_);
}

TEST_F(ShmPair, ANewSessionReplacesTheOld) {
  Path* first = connect(a_, b_);
  Path* first_inbound = b_.inbound;
  PathTarget target = a_.target(b_);
  target.supersedes = a_.ups[first].session;
  Path* second = a_.open(target);
  ASSERT_TRUE(turn_until({&a_, &b_}, [&] { return a_.ups.contains(second) && b_.downs.contains(first_inbound); }));
  EXPECT_TRUE(b_.ups.contains(b_.inbound));
  EXPECT_NE(b_.inbound, first_inbound);
  ASSERT_TRUE(turn_until({&a_, &b_}, [&] { return a_.downs.contains(first); }));
  EXPECT_EQ(a_.downs[first].scope(), Scope::kPath);
}

TEST_F(ShmPair, AnAgentMayReachItself) {
  Path* path = a_.open(a_.target(a_));
  ASSERT_TRUE(turn_until({&a_}, [&] { return a_.ups.size() == 2; }));
  auto region = a_.allocate(4096);
  Binding* target = path->bind(a_.ref(*region)).value();
  auto source = pattern(4096);
  const Piece piece{source.data(), 0, 4096};
  EXPECT_TRUE(transfer(a_, a_, path, chunk_of(Operation::kWrite, target, {&piece, 1}, 1)).ok());
  EXPECT_EQ(std::memcmp(region->base, source.data(), 4096), 0);
}

/// Takes all descriptors that this process may have but `left`.
std::vector<base::Fd> take_descriptors(std::size_t left) {
  std::vector<base::Fd> taken;
  for (base::Fd fd(::open("/dev/null", O_RDONLY | O_CLOEXEC)); fd;
       fd.reset(::open("/dev/null", O_RDONLY | O_CLOEXEC))) {
    taken.push_back(std::move(fd));
  }
  taken.resize(taken.size() - std::min(left, taken.size()));
  return taken;
}

class TrialsShmPair : public ShmPair {
 protected:
  void SetUp() override {
    ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &limit_), 0);
    const rlimit few = {.rlim_cur = 256, .rlim_max = limit_.rlim_max};
    ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &few), 0);
  }
  void TearDown() override { (void)::setrlimit(RLIMIT_NOFILE, &limit_); }

  /// What became of connecting with so many descriptors; good when it came up.
  Status connect_with(std::size_t descriptors) {
    const PathTarget target = a_.target(b_);
    std::vector<base::Fd> taken = take_descriptors(descriptors);
    const Result<Path*> path = a_.port().open_path(target, Clock::steady().now());
    const auto is_over = [&] { return !path || a_.ups.contains(*path) || a_.downs.contains(*path); };
    const bool is_in_time = turn_until({&a_, &b_}, is_over);
    taken.clear();
    if (!path) return path.error();
    const Status down = a_.downs.contains(*path) ? a_.downs[*path] : Status();
    a_.ups.erase(*path);
    a_.downs.erase(*path);
    a_.port().release_path(*path);
    for (int i = 0; i < 100; ++i) b_.turn();
    return is_in_time ? down : Status(Code::kTimedOut, "neither up nor down");
  }

  rlimit limit_ = {};
};

// At whichever step they run out, and at whichever end.
TEST_F(TrialsShmPair, AShortageOfDescriptorsIsBusyByName) {
  constexpr std::size_t kEnough = 40;
  for (std::size_t descriptors = 0; descriptors < kEnough; ++descriptors) {
    const Status status = connect_with(descriptors);
    if (status.ok()) {
      EXPECT_GT(descriptors, 2u);
      continue;
    }
    EXPECT_EQ(status.code(), Code::kBusy) << "with " << descriptors << ": " << status.to_string();
    EXPECT_NE(status.to_string().find("RLIMIT_NOFILE"), std::string::npos) << status.to_string();
  }
  EXPECT_TRUE(connect_with(kEnough).ok());
}

}  // namespace
}  // namespace hawser::backend::shm
