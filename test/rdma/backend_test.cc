// rdma::Backend over shm and tcp, driven by its own thread or by the test. Names begin with the row of the list of
// conformance that they cover.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <memory>
#include <numeric>
#include <optional>
#include <thread>

#include "agent/core.h"
#include "base/bytes.h"
#include "base/inside.h"
#include "rdma/handle.h"
#include "sides.h"
#include "wire/grant.h"

namespace hawser::rdma {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

class RdmaBackend : public testing::TestWithParam<Way> {
 protected:
  /// Ends a batch; where nothing runs by itself, the owner is served, too.
  Status end(const Batch& batch, Duration timeout = kLong) {
    const Instant until = Clock::steady().now() + timeout;
    while (!batch.wait(GetParam().driven ? timeout : Duration(1ms)).ok() && !batch.done()) {
      (void)owner.backend->serve();
      (void)owner.agent.poll();
      if (Clock::steady().now() > until) break;
    }
    return batch.status();
  }
  Status run(const Op& op, Duration timeout = kLong) { return end(user.backend->submit({op}, timeout).value()); }
  /// The last line of each test: what was lent is taken back before its memory goes.
  void finish() {
    user.backend.reset();
    owner.backend.reset();
  }
  /// As another process would have it.
  static RemoteBuffer sent(const RemoteBuffer& buffer) { return RemoteBuffer::decode(buffer.encode()).value(); }

  Side owner{"owner", GetParam()}, user{"user", GetParam()};
};

TEST_P(RdmaBackend, C2_SizesPrefixesAndPartsKeepToTheirBytes) {
  for (const std::size_t size : {1u, 63u, 64u, 65u, 4095u, 4096u, 4097u, 65535u, 65537u, 1048575u, 1048577u}) {
    std::vector<std::byte> theirs = filled(size + 16, 1), ours = filled(size + 32, 2);
    const RemoteBuffer buffer =
        sent(owner.backend->request_buffer(size, owner.memory({theirs.data() + 3, size})).value());
    const auto before = theirs;
    ASSERT_TRUE(run({.type = OpType::kReadIntoLocal, .local = user.memory(ours), .remote = buffer}).ok());
    EXPECT_EQ(std::memcmp(ours.data(), theirs.data() + 3, size), 0) << size;
    EXPECT_EQ(std::memcmp(ours.data() + size, filled(size + 32, 2).data() + size, 32), 0) << size;
    auto more = filled(size, 3);
    const std::size_t part = size / 2;
    ASSERT_TRUE(run({.type = OpType::kWriteFromLocal,
                     .local = user.memory(more).slice(0, size - part).value(),
                     .remote = buffer.slice(part, size - part).value()})
                    .ok());
    EXPECT_EQ(std::memcmp(theirs.data() + 3 + part, more.data(), size - part), 0) << size;
    EXPECT_EQ(std::memcmp(theirs.data(), before.data(), 3 + part), 0) << size;
    EXPECT_EQ(std::memcmp(theirs.data() + 3 + size, before.data() + 3 + size, 13), 0) << size;
  }
  finish();
}

TEST_P(RdmaBackend, C2_ZeroBytesEndWellAndAskNobody) {
  auto theirs = filled(64, 1);
  const RemoteBuffer buffer = sent(owner.backend->request_buffer(1, owner.memory(theirs)).value());
  auto ours = filled(64, 2);
  const LocalMemory memory = user.memory(ours);
  const RemoteBuffer none = buffer.slice(64, 0).value();
  const Batch batch = user.backend
                          ->submit({{.type = OpType::kReadIntoLocal, .local = memory, .remote = none},
                                    {.type = OpType::kWriteFromLocal, .local = *memory.slice(0, 0), .remote = none}},
                                   kLong)
                          .value();
  EXPECT_TRUE(batch.done());
  EXPECT_TRUE(batch.status().ok());
  EXPECT_TRUE(user.agent.peers().empty());
  EXPECT_TRUE(user.backend->submit({}, kLong)->done());
  finish();
}

TEST_P(RdmaBackend, C3_WhatDoesNotFitEndsBeforeAByteMoves) {
  auto theirs = filled(64, 1), ours = filled(63, 2), large = filled(65, 3);
  const RemoteBuffer buffer = sent(owner.backend->request_buffer(1, owner.memory(theirs)).value());
  EXPECT_EQ(run({.type = OpType::kReadIntoLocal, .local = user.memory(ours), .remote = buffer}).code(), Code::kInvalid);
  EXPECT_EQ(run({.type = OpType::kWriteFromLocal, .local = user.memory(large), .remote = buffer}).code(),
            Code::kInvalid);
  EXPECT_EQ(theirs, filled(64, 1));
  EXPECT_EQ(ours, filled(63, 2));
  finish();
}

TEST_P(RdmaBackend, C5_ABufferOfOnesOwnNeedsNoPeer) {
  auto theirs = filled(4096, 1), ours = filled(4096, 2);
  const RemoteBuffer buffer = sent(user.backend->request_buffer(1, user.memory(theirs)).value());
  ASSERT_TRUE(run({.type = OpType::kReadIntoLocal, .local = user.memory(ours), .remote = buffer}).ok());
  EXPECT_EQ(ours, theirs);
  EXPECT_TRUE(user.agent.peers().empty());
  EXPECT_EQ(user.backend->transport_info(buffer)->backend, "self");
  finish();
}

TEST_P(RdmaBackend, C9_OneBadOperationLeavesTheOthersGood) {
  auto theirs = filled(8192, 1), other = filled(4096, 9), ours = filled(8192, 2);
  const RemoteBuffer good = sent(owner.backend->request_buffer(1, owner.memory(theirs)).value());
  const RemoteBuffer gone = sent(owner.backend->request_buffer(2, owner.memory(other)).value());
  ASSERT_TRUE(end(user.backend->release(gone, kLong).value()).ok());
  const LocalMemory memory = user.memory(ours);
  const auto read = [&](std::uint64_t at, const RemoteBuffer& from) {
    return Op{.type = OpType::kReadIntoLocal, .local = *memory.slice(at, 2048), .remote = *from.slice(0, 2048)};
  };
  const Batch batch = user.backend->submit({read(0, good), read(2048, gone), read(4096, good)}, kLong).value();
  EXPECT_FALSE(end(batch).ok());
  const std::vector<Outcome> outcomes = batch.outcomes();
  EXPECT_TRUE(outcomes[0].status.ok()) << outcomes[0].status.to_string();
  EXPECT_FALSE(outcomes[1].status.ok());
  EXPECT_TRUE(outcomes[2].status.ok()) << outcomes[2].status.to_string();
  EXPECT_THAT(batch.status().to_string(), HasSubstr("1 of 3 operations failed; the first of them is number 1"));
  EXPECT_EQ(std::memcmp(ours.data(), theirs.data(), 2048), 0);
  EXPECT_EQ(std::memcmp(ours.data() + 2048, filled(8192, 2).data() + 2048, 2048), 0);
  EXPECT_EQ(std::memcmp(ours.data() + 4096, theirs.data(), 2048), 0);
  finish();
}

TEST_P(RdmaBackend, C10_NoTimeMeansATimeoutAndNoByte) {
  auto theirs = filled(1 << 20, 1), ours = filled(1 << 20, 2);
  const RemoteBuffer buffer = sent(owner.backend->request_buffer(1, owner.memory(theirs)).value());
  for (const Duration timeout : {Duration(0), Duration(-1s), Duration(1us)}) {
    const Batch batch =
        user.backend->submit({{.type = OpType::kReadIntoLocal, .local = user.memory(ours), .remote = buffer}}, timeout)
            .value();
    const Status status = end(batch);
    if (timeout <= Duration::zero()) {
      EXPECT_TRUE(batch.done());
    }
    if (status.ok()) continue;  // A microsecond may be enough for somebody.
    EXPECT_EQ(status.code(), Code::kTimedOut);
    const auto then = filled(1 << 20, 5);
    ours = then;
    std::this_thread::sleep_for(5ms);
    EXPECT_EQ(ours, then) << "bytes came after the end";
  }
  finish();
}

TEST_P(RdmaBackend, C11_AReleaseByAnyHolderTakesTheBufferFromEverybody) {
  auto theirs = filled(4096, 1), ours = filled(4096, 2);
  const auto alive = std::make_shared<int>(1);
  const LocalMemory memory = owner.backend->local_memory(theirs, alive).value();
  RemoteBuffer mine = owner.backend->request_buffer(1, memory).value();
  const RemoteBuffer buffer = sent(mine), again = sent(mine);
  const Op read{.type = OpType::kReadIntoLocal, .local = user.memory(ours), .remote = buffer};
  ASSERT_TRUE(run(read).ok());
  const Status released = end(user.backend->release(buffer, kLong).value());
  ASSERT_TRUE(released.ok()) << released.to_string();
  EXPECT_EQ(owner.backend->buffer_count(), 0u);
  const Status after = run(read);
  EXPECT_FALSE(after.ok());
  EXPECT_EQ(after.code(), Code::kDenied) << after.to_string();
  EXPECT_EQ(after.buffer(), BufferState::kUntouched);
  EXPECT_THAT(after.to_string(), HasSubstr("buffer 1 of owner is not lent any more: somebody released it"));
  EXPECT_EQ(run({.type = OpType::kWriteFromLocal, .local = user.memory(ours), .remote = again}).code(), Code::kDenied);
  EXPECT_EQ(end(user.backend->release(again, kLong).value()).code(), Code::kNotFound);
  EXPECT_EQ(owner.backend->local_of(mine).error().code(), Code::kNotFound);
  EXPECT_EQ(theirs, filled(4096, 1));
  finish();
}

// Row C11 as well: what nobody uses costs the same with any number of peers.
TEST_P(RdmaBackend, NobodyHearsOfABufferThatItDoesNotUse) {
  auto theirs = filled(4096, 1), ours = filled(4096, 2), more = filled(4096, 3);
  const RemoteBuffer used = sent(owner.backend->request_buffer(1, owner.memory(theirs)).value());
  const LocalMemory into = user.memory(ours);
  ASSERT_TRUE(run({.type = OpType::kReadIntoLocal, .local = into, .remote = used}).ok());
  const Peer owner_there = user.agent.peers().front();
  const std::uint64_t revision = owner.agent.card_revision(), users = user.agent.card_revision();
  const std::string card = owner.agent.card().value();
  for (std::uint64_t id = 2; id < 100; ++id) {
    const RemoteBuffer mine = owner.backend->request_buffer(id, owner.memory(more)).value();
    if (id % 2 == 0) {
      ASSERT_TRUE(end(owner.backend->release(mine, kLong).value()).ok());
    }
  }
  ASSERT_TRUE(run({.type = OpType::kReadIntoLocal, .local = into, .remote = used}).ok());
  EXPECT_EQ(owner.agent.card_revision(), revision) << "a card of another revision goes to every peer";
  EXPECT_EQ(owner.agent.card().value(), card);
  EXPECT_EQ(user.agent.card_revision(), users) << "memory for operations is told to nobody, too";
  EXPECT_TRUE(owner_there.region_names().empty());
  for (const std::uint32_t index : {0u, 1u, 2u}) EXPECT_FALSE(owner_there.region(index)) << index;
  finish();
}

TEST_P(RdmaBackend, WhoOnlyHasTheOwnersCardReachesNoBuffer) {
  auto theirs = filled(4096, 1), ours = filled(4096, 2);
  const RemoteBuffer mine = owner.backend->request_buffer(1, owner.memory(theirs)).value();
  const Peer peer = user.agent.add_peer(owner.agent.card().value()).value();
  const std::uint32_t index = wire::decode_grant(base::as_bytes(core_of(mine)->grant))->index;
  EXPECT_EQ(peer.region(index).error().code(), Code::kNotFound);
  EXPECT_EQ(owner.agent.partial_card({{index}}).error().code(), Code::kNotFound);
  finish();
}

TEST_P(RdmaBackend, ABufferWithoutRightsIsRefused) {
  auto theirs = filled(4096, 1);
  EXPECT_EQ(owner.backend->request_buffer(1, owner.memory(theirs), Rights::kNone).error().code(), Code::kInvalid);
  EXPECT_EQ(owner.backend->buffer_count(), 0u);
  finish();
}

TEST_P(RdmaBackend, AReleasedBuffersMemoryIsLetGo) {
  auto theirs = filled(4096, 1);
  auto alive = std::make_shared<int>(1);
  const std::weak_ptr<int> watch = alive;
  {
    const LocalMemory memory = owner.backend->local_memory(theirs, std::move(alive)).value();
    ASSERT_TRUE(owner.backend->request_buffer(1, memory).has_value());
  }
  EXPECT_FALSE(watch.expired()) << "a buffer that was given out keeps its memory";
  const RemoteBuffer buffer = owner.backend->request_buffer(2, owner.memory(theirs)).value();
  EXPECT_TRUE(owner.backend->release(buffer, kLong)->wait(kLong).ok());
  EXPECT_FALSE(watch.expired());
  finish();
}

TEST_P(RdmaBackend, ARequestIsIdempotentById) {
  auto theirs = filled(4096, 1);
  const LocalMemory memory = owner.memory(theirs);
  const RemoteBuffer first = owner.backend->request_buffer(5, memory).value();
  EXPECT_EQ(owner.backend->request_buffer(5, memory)->encode(), first.encode());
  EXPECT_EQ(owner.backend->buffer_count(), 1u);
  EXPECT_EQ(owner.backend->request_buffer(5, *memory.slice(0, 8)).error().code(), Code::kInvalid);
  EXPECT_EQ(owner.backend->request_buffer(6, *memory.slice(0, 0)).error().code(), Code::kInvalid);
  EXPECT_EQ(owner.backend->request_buffer(6, owner.memory(theirs, false)).error().code(), Code::kDenied);
  EXPECT_TRUE(owner.backend->request_buffer(6, owner.memory(theirs, false), Rights::kRead).has_value());
  finish();
}

TEST_P(RdmaBackend, NoVerbsAndNotInThisProcessAreTwoThings) {
  auto theirs = filled(4096, 1);
  const RemoteBuffer mine = owner.backend->request_buffer(5, owner.memory(theirs)).value();
  const RemoteBuffer buffer = sent(mine);
  EXPECT_EQ(owner.backend->local_of(*buffer.slice(8, 8))->bytes().data(), theirs.data() + 8);
  EXPECT_EQ(user.backend->local_of(buffer).error().code(), Code::kNotFound);
  EXPECT_EQ(user.backend->queue_pair_info(buffer).error().code(), Code::kUnsupported);
  EXPECT_THAT(user.backend->queue_pair_info(buffer).error().to_string(), HasSubstr("no verbs backend"));
  finish();
}

TEST_P(RdmaBackend, C22_TheBackendThatIsReportedIsTheOneThatMoved) {
  auto theirs = filled(1 << 18, 1), ours = filled(1 << 18, 2);
  const RemoteBuffer buffer = sent(owner.backend->request_buffer(1, owner.memory(theirs)).value());
  const Result<TransportInfo> before = user.backend->transport_info(buffer);
  ASSERT_TRUE(before.has_value()) << before.error().to_string();
  EXPECT_EQ(before->backend, GetParam().backend);
  EXPECT_EQ(before->level,
            std::string_view(GetParam().backend) == "shm" ? TransportLevel::kMemory : TransportLevel::kTcp);
  EXPECT_EQ(user.backend->transport_level(), before->level);
  ASSERT_TRUE(run({.type = OpType::kReadIntoLocal, .local = user.memory(ours), .remote = buffer}).ok());
  std::uint64_t moved = 0;
  for (const PathCounters& path : user.agent.counters().paths) {
    if (path.backend == before->backend) moved += path.chunks;
    EXPECT_TRUE(path.backend == before->backend || path.chunks == 0) << path.backend;
  }
  EXPECT_GT(moved, 0u);
  finish();
}

TEST_P(RdmaBackend, AtomicsGiveWhatTheyFound) {
  alignas(8) std::array<std::uint64_t, 4> words = {10, 20, 30, 40};
  const RemoteBuffer buffer =
      sent(owner.backend->request_buffer(1, owner.memory(std::as_writable_bytes(std::span(words)))).value());
  const auto word = [&](std::uint64_t i) { return *buffer.slice(8 * i, 8); };
  const Batch batch = user.backend
                          ->submit({{.type = OpType::kFetchAdd, .remote = word(0), .value = 5},
                                    {.type = OpType::kCompareSwap, .remote = word(1), .value = 21, .expected = 20},
                                    {.type = OpType::kCompareSwap, .remote = word(2), .value = 31, .expected = 29},
                                    {.type = OpType::kFetchAdd, .remote = *buffer.slice(4, 8), .value = 1}},
                                   kLong)
                          .value();
  EXPECT_EQ(end(batch).code(), Code::kInvalid);
  const std::vector<Outcome> outcomes = batch.outcomes();
  EXPECT_EQ(outcomes[0].previous, 10u);
  EXPECT_EQ(outcomes[1].previous, 20u);
  EXPECT_EQ(outcomes[2].previous, 30u);
  EXPECT_TRUE(outcomes[2].status.ok()) << "a value that differs is an answer";
  EXPECT_THAT(outcomes[3].status.to_string(), HasSubstr("aligned"));
  const auto now = [&](std::size_t i) { return std::atomic_ref(words[i]).load(); };
  EXPECT_EQ(now(0), 15u);
  EXPECT_EQ(now(1), 21u);
  EXPECT_EQ(now(2), 30u);
  EXPECT_EQ(now(3), 40u);
  const RemoteBuffer own = owner.backend->request_buffer(1, *owner.backend->local_of(buffer)).value();
  const Batch local =
      owner.backend->submit({{.type = OpType::kFetchAdd, .remote = *own.slice(24, 8), .value = 2}}, kLong).value();
  EXPECT_TRUE(local.done());
  EXPECT_EQ(local.outcomes()[0].previous, 40u);
  EXPECT_EQ(now(3), 42u);
  finish();
}

// Memory without an owner is its user's again then.
TEST_P(RdmaBackend, NoAtomicOfTheOwnersIsAtTheWordOnceTheReleaseIsAcknowledged) {
  constexpr int kRounds = 300;
  constexpr std::uint64_t kMine = 1'000'000'000'000;
  alignas(8) std::array<std::uint64_t, kRounds> words{};
  std::array<RemoteBuffer, kRounds> buffers;
  for (std::size_t i = 0; i < kRounds; ++i) {
    const LocalMemory memory = owner.memory(std::as_writable_bytes(std::span(&words[i], 1)));
    buffers[i] = owner.backend->request_buffer(i, memory).value();
  }
  std::atomic<int> adding = -1;
  std::thread adder([&] {
    for (int i = 0; i < kRounds; ++i) {
      adding = i;
      while (owner.backend->submit({{.type = OpType::kFetchAdd, .remote = buffers[i], .value = 1}}, kLong)
                 ->status()
                 .ok()) {
      }
    }
  });
  for (int i = 0; i < kRounds; ++i) {
    while (adding < i) std::this_thread::yield();
    EXPECT_TRUE(end(owner.backend->release(buffers[i], kLong).value()).ok());
    words[i] = kMine;
  }
  adder.join();
  EXPECT_EQ(std::ranges::count(words, kMine), kRounds);
  finish();
}

TEST_P(RdmaBackend, TheOwnerIsNotifiedAfterTheBytes) {
  auto theirs = filled(4096, 1), ours = filled(4096, 2);
  const RemoteBuffer buffer = sent(owner.backend->request_buffer(1, owner.memory(theirs)).value());
  ASSERT_TRUE(
      run({.type = OpType::kWriteFromLocal, .local = user.memory(ours), .remote = buffer, .notify = "here"}).ok());
  std::optional<Notification> note;
  for (const Instant until = Clock::steady().now() + kLong; !note && Clock::steady().now() < until;) {
    (void)owner.agent.wait(1ms);
    (void)user.agent.poll();
    note = owner.agent.take_notification();
  }
  ASSERT_TRUE(note.has_value());
  EXPECT_EQ(note->text, "here");
  EXPECT_EQ(theirs, ours);
  finish();
}

TEST_P(RdmaBackend, MoreOperationsThanTheAgentTakesAtOnceAllEnd) {
  constexpr std::size_t kOps = 2000;  // Above limits.transfers.
  std::vector<std::uint64_t> theirs(kOps), ours(kOps);
  std::iota(theirs.begin(), theirs.end(), 1);
  const RemoteBuffer buffer =
      sent(owner.backend->request_buffer(1, owner.memory(std::as_writable_bytes(std::span(theirs)))).value());
  const LocalMemory memory = user.memory(std::as_writable_bytes(std::span(ours)));
  std::vector<Op> ops;
  for (std::size_t i = 0; i < kOps; ++i) {
    ops.push_back(
        {.type = OpType::kReadIntoLocal, .local = *memory.slice(8 * i, 8), .remote = *buffer.slice(8 * i, 8)});
  }
  const Status status = end(user.backend->submit(ops, 60s).value(), 60s);
  EXPECT_TRUE(status.ok()) << status.to_string();
  EXPECT_EQ(ours, theirs);
  finish();
}

TEST_P(RdmaBackend, ABellTellsOfEndsOnce) {
  auto theirs = filled(1 << 20, 1), ours = filled(1 << 20, 2);
  const RemoteBuffer buffer = sent(owner.backend->request_buffer(1, owner.memory(theirs)).value());
  Bell bell = Bell::open().value();
  const Batch batch =
      user.backend->submit({{.type = OpType::kReadIntoLocal, .local = user.memory(ours), .remote = buffer}}, kLong)
          .value();
  const bool will_ring = batch.tell(bell, 77);
  EXPECT_TRUE(end(batch).ok());
  EXPECT_EQ(bell.take(), will_ring ? std::vector<std::uint64_t>{77} : std::vector<std::uint64_t>{});
  EXPECT_TRUE(bell.take().empty());
  EXPECT_FALSE(batch.tell(bell, 78));
  finish();
}

TEST_P(RdmaBackend, WhatABatchKeptIsLetGoBeforeItsEndIsTold) {
  auto theirs = filled(64 * 1024, 1), ours = filled(64 * 1024, 2);
  const RemoteBuffer buffer = sent(owner.backend->request_buffer(1, owner.memory(theirs)).value());
  Bell bell = Bell::open().value();
  constexpr int kBatches = 300;
  int kept = 0;
  for (int i = 0; i < kBatches; ++i) {
    auto alive = std::make_shared<int>(1);
    const std::weak_ptr<int> watch = alive;
    const Batch batch = user.backend
                            ->submit({{.type = OpType::kReadIntoLocal,
                                       .local = user.backend->local_memory(ours, std::move(alive)).value(),
                                       .remote = buffer}},
                                     kLong)
                            .value();
    const bool will_ring = i % 2 == 0 && batch.tell(bell, 1);
    for (const Instant until = Clock::steady().now() + kLong; Clock::steady().now() < until;) {
      if (will_ring ? !bell.take().empty() : batch.done()) break;
      if (!user.driver) (void)user.backend->serve();
      (void)user.agent.poll();
      (void)owner.agent.poll();
    }
    ASSERT_TRUE(batch.done());
    kept += watch.expired() ? 0 : 1;
  }
  EXPECT_EQ(kept, 0);
  finish();
}

TEST_P(RdmaBackend, ACancelledBatchEndsAndALostHandleRunsOn) {
  auto theirs = filled(1 << 20, 1), ours = filled(1 << 20, 2);
  const RemoteBuffer buffer = sent(owner.backend->request_buffer(1, owner.memory(theirs)).value());
  const LocalMemory memory = user.memory(ours);
  const Batch batch =
      user.backend->submit({{.type = OpType::kWriteFromLocal, .local = memory, .remote = buffer}}, kLong).value();
  batch.cancel();
  const Status status = end(batch);
  EXPECT_TRUE(batch.done());
  EXPECT_TRUE(status.ok() || status.code() == Code::kCancelled) << status.to_string();
  auto alive = std::make_shared<int>(1);
  const std::weak_ptr<int> watch = alive;
  (void)user.backend->submit({{.type = OpType::kReadIntoLocal,
                               .local = user.backend->local_memory(ours, std::move(alive)).value(),
                               .remote = buffer}},
                             kLong);
  for (const Instant until = Clock::steady().now() + kLong; !watch.expired() && Clock::steady().now() < until;) {
    (void)user.backend->serve();
    (void)user.agent.wait(1ms);
    (void)owner.agent.poll();
  }
  EXPECT_TRUE(watch.expired());
  EXPECT_EQ(ours, theirs);
  finish();
}

TEST_P(RdmaBackend, C12_AnOwnerThatIsGoneIsAnErrorInBoundedTime) {
  auto theirs = filled(4096, 1), ours = filled(4096, 2);
  std::optional<Side> third(std::in_place, "third", GetParam());
  const RemoteBuffer met = sent(third->backend->request_buffer(1, third->memory(theirs)).value());
  const RemoteBuffer unmet = sent(third->backend->request_buffer(2, third->memory(theirs)).value());
  if (GetParam().driven) {
    ASSERT_TRUE(run({.type = OpType::kReadIntoLocal, .local = user.memory(ours), .remote = met}).ok());
  }
  third.reset();
  for (const RemoteBuffer& buffer : {met, unmet}) {
    const Status status = run({.type = OpType::kReadIntoLocal, .local = user.memory(ours), .remote = buffer});
    EXPECT_FALSE(status.ok());
    EXPECT_FALSE(end(user.backend->release(buffer, kLong).value()).ok());
  }
  finish();
}

/// Bytes that go in parallel over streams, whose counts the ends do not agree about; an owner that goes while they move
/// is the trouble of who uses it alone.
TEST(RdmaBackendOverTcp, C21_UnequalStreamsCarryAllAndALostOwnerIsAlone) {
  const Way threaded{"tcp", true};
  Side user("user", threaded, {{"connections", "4"}}), stays("stays", threaded, {{"connections", "2"}});
  std::optional<Side> goes(std::in_place, "goes", threaded, Params{{"connections", "1"}});
  constexpr std::size_t kSize = 8 << 20;
  auto first = filled(kSize, 1), second = filled(kSize, 2);
  std::vector<std::byte> ours(kSize), others(kSize);
  const auto sent = [](const RemoteBuffer& buffer) { return RemoteBuffer::decode(buffer.encode()).value(); };
  const RemoteBuffer near = sent(stays.backend->request_buffer(1, stays.memory(first)).value());
  const RemoteBuffer far = sent(goes->backend->request_buffer(1, goes->memory(second)).value());
  const LocalMemory into = user.memory(ours), into_other = user.memory(others);
  const auto read = [&](const RemoteBuffer& from, const LocalMemory& to) {
    return user.backend->submit({{.type = OpType::kReadIntoLocal, .local = to, .remote = from}}, kLong).value();
  };
  for (const RemoteBuffer& from : {near, far}) ASSERT_TRUE(read(from, into).wait(kLong).ok());
  std::vector<Batch> lost;
  for (int i = 0; i < 4; ++i) lost.push_back(read(far, into_other));
  std::fill(ours.begin(), ours.end(), std::byte{0});
  const Batch kept = read(near, into);
  goes.reset();
  EXPECT_TRUE(kept.wait(kLong).ok()) << kept.status().to_string();
  EXPECT_EQ(ours, first);
  for (const Batch& each : lost) {
    (void)each.wait(kLong);
    EXPECT_TRUE(each.done());
  }
  EXPECT_FALSE(read(far, into_other).wait(kLong).ok());
  EXPECT_TRUE(read(near, into).wait(kLong).ok());
  user.backend.reset();
}

TEST_P(RdmaBackend, C14_PartOfMemoryWhoseOwnerIsHeldIsNotRegisteredAgain) {
  std::vector<std::byte> theirs(4096), ours = filled(65536, 5);
  const RemoteBuffer buffer = sent(owner.backend->request_buffer(1, owner.memory(theirs)).value());
  const auto registered = [&] { return core_of(user.agent)->region_book.open_entries().size(); };
  const std::size_t before = registered();
  auto keeper = std::make_shared<int>(0);
  const std::weak_ptr<int> kept = keeper;
  std::optional<LocalMemory> whole = user.backend->local_memory(ours, std::move(keeper)).value();
  auto part_keeper = std::make_shared<int>(0);
  const std::weak_ptr<int> part_kept = part_keeper;
  const std::span<std::byte> bytes = std::span(ours).subspan(1000, 4096);
  std::optional<LocalMemory> part = user.backend->local_memory(bytes, std::move(part_keeper)).value();
  EXPECT_EQ(registered(), before + 1);
  EXPECT_EQ(part->bytes().data(), bytes.data());
  EXPECT_EQ(part->size(), 4096u);
  whole.reset();
  EXPECT_FALSE(kept.expired()) << "it is of memory that is in use";
  ASSERT_TRUE(run({.type = OpType::kWriteFromLocal, .local = *part, .remote = buffer}).ok());
  EXPECT_TRUE(std::equal(bytes.begin(), bytes.end(), theirs.begin()));
  std::optional<LocalMemory> last = user.memory(std::span(ours).last(1));
  EXPECT_EQ(registered(), before + 1) << "nothing else can be there, as long as its owner is held";
  part.reset();
  EXPECT_TRUE(part_kept.expired());
  EXPECT_FALSE(kept.expired());
  last.reset();
  EXPECT_TRUE(kept.expired());
  EXPECT_EQ(registered(), before);
  const LocalMemory again = user.memory(bytes);
  EXPECT_EQ(registered(), before + 1) << "what is gone serves nobody";
  finish();
}

TEST_P(RdmaBackend, C14_WhatMayHaveBeenMappedAnewIsRegisteredAgain) {
  std::vector<std::byte> ours(65536);
  const auto registered = [&] { return core_of(user.agent)->region_book.open_entries().size(); };
  const auto owner_of = [] { return std::make_shared<int>(0); };
  const std::size_t before = registered();
  const LocalMemory without_owner = user.memory(ours);
  const LocalMemory part = user.memory(std::span(ours).first(10));
  EXPECT_EQ(registered(), before + 2) << "its user alone knows how long it stays";
  const LocalMemory held = user.backend->local_memory(std::span(ours).subspan(100, 1000), owner_of()).value();
  EXPECT_EQ(registered(), before + 3);
  const LocalMemory longer = user.memory(std::span(ours).subspan(100, 1001));
  const LocalMemory earlier = user.memory(std::span(ours).subspan(99, 10));
  EXPECT_EQ(registered(), before + 5) << "not all of it is there";
  const LocalMemory read_only = user.memory(std::span(ours).subspan(100, 10), false);
  EXPECT_EQ(registered(), before + 6);
  const LocalMemory all_of_it = user.memory(std::span(ours).subspan(100, 1000));
  EXPECT_EQ(registered(), before + 6);
  std::vector<std::byte> far(1000);
  for (int i = 0; i < 1000; ++i) {  // Many come and go.
    (void)user.backend->local_memory(std::span(far).subspan(static_cast<std::size_t>(i), 1), owner_of()).value();
  }
  EXPECT_EQ(registered(), before + 6);
  finish();
}

std::string name_of(const testing::TestParamInfo<Way>& test) {
  return std::string(test.param.backend) + (test.param.driver   ? "_driven"
                                            : test.param.driven ? "_threaded"
                                                                : "_polled");
}

INSTANTIATE_TEST_SUITE_P(Ways, RdmaBackend,
                         testing::Values(Way{"shm", true}, Way{"shm", true, true}, Way{"shm", false}), name_of);
/// Row C21: all of it over tcp as well.
INSTANTIATE_TEST_SUITE_P(C21_Tcp, RdmaBackend,
                         testing::Values(Way{"tcp", true}, Way{"tcp", true, true}, Way{"tcp", false}), name_of);

}  // namespace
}  // namespace hawser::rdma
