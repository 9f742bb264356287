// What trials of hawser.rdma found: each test is named after its fault.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <optional>
#include <thread>

#include <hawser/directory.h>

#include "agent/core.h"
#include "base/bytes.h"
#include "base/inside.h"
#include "rdma/handle.h"
#include "sides.h"
#include "wire/card.h"

namespace hawser::rdma {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;
using testing::Not;

bool says_driven(const Agent& agent) {
  const std::string card = agent.card().value();
  return wire::decode_card(base::as_bytes(card))->driven;
}

RemoteBuffer sent(const RemoteBuffer& buffer) { return RemoteBuffer::decode(buffer.encode()).value(); }

TEST(Trials, AnAgentThatABackendsThreadRunsSaysThatItIsDriven) {
  AgentOptions options{.name = "a", .backends = {BackendSpec{.name = "tcp", .params = {}}, loopback()}};
  Agent agent = Agent::open(options).value();
  EXPECT_FALSE(says_driven(agent));
  std::optional<Backend> backend(Backend::open(agent).value());
  std::vector<std::byte> bytes(64);
  const RemoteBuffer buffer = backend->request_buffer(1, backend->local_memory(bytes).value()).value();
  EXPECT_TRUE(says_driven(agent)) << "or its death costs its peers the whole time of their operations";
  EXPECT_TRUE(wire::decode_card(base::as_bytes(core_of(buffer)->card))->driven) << "so do its handles";
  backend.reset();
  EXPECT_FALSE(says_driven(agent)) << "nobody runs it any more";
  Backend served = Backend::open(agent, {.thread = false}).value();
  EXPECT_FALSE(says_driven(agent));
}

TEST(Trials, APeerThatMeetsAThreadsAgentJudgesItsSilence) {
  Side owner("owner", {"tcp", true}), user("user", {"tcp", true});
  std::vector<std::byte> theirs(64), ours(64);
  const RemoteBuffer buffer = sent(owner.backend->request_buffer(1, owner.memory(theirs)).value());
  ASSERT_TRUE(
      user.backend->submit({{.type = OpType::kReadIntoLocal, .local = user.memory(ours), .remote = buffer}}, kLong)
          ->wait(kLong)
          .ok());
  for (Agent* agent : {&owner.agent, &user.agent}) EXPECT_TRUE(says_driven(*agent));
  user.backend.reset();
  owner.backend.reset();
}

/// Containers of one host: a process of one may not attach to one of another.
struct Apart : testing::Test {
  Side owner{"owner", {"shm", true}, {{"attach", "false"}}}, user{"user", {"shm", true}, {{"attach", "false"}}};
  Status read(const RemoteBuffer& buffer, std::span<std::byte> into) {
    return user.backend->submit({{.type = OpType::kReadIntoLocal, .local = user.memory(into), .remote = buffer}}, kLong)
        ->wait(kLong);
  }
  Status write(const RemoteBuffer& buffer, std::span<std::byte> from) {
    return user.backend
        ->submit({{.type = OpType::kWriteFromLocal, .local = user.memory(from), .remote = buffer}}, kLong)
        ->wait(kLong);
  }
  void finish() {
    user.backend.reset();
    owner.backend.reset();
  }
};

using TrialsApart = Apart;

TEST_F(TrialsApart, ABufferOfAllocatedMemoryIsMapped) {
  const Region region = owner.agent.allocate({.name = "kv", .size = 64 * 1024}).value();
  const std::span<std::byte> all = region.bytes();
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = static_cast<std::byte>(i / 256);
  const RemoteBuffer part = sent(owner.backend->request_buffer(1, owner.memory(all.subspan(5000, 3000))).value());
  std::vector<std::byte> ours(3000);
  const Status status = read(part, ours);
  ASSERT_TRUE(status.ok()) << status.to_string();
  EXPECT_EQ(std::memcmp(ours.data(), all.data() + 5000, ours.size()), 0);
  auto fresh = filled(3000, 9);
  ASSERT_TRUE(write(part, fresh).ok());
  EXPECT_EQ(std::memcmp(fresh.data(), all.data() + 5000, fresh.size()), 0);
  EXPECT_EQ(all[4999], static_cast<std::byte>(4999 / 256));
  EXPECT_EQ(all[8000], static_cast<std::byte>(8000 / 256));
  finish();
}

TEST_F(TrialsApart, EachBufferOfAnAllocationIsReleasedForItself) {
  const Region region = owner.agent.allocate({.size = 64 * 1024}).value();
  const RemoteBuffer first = sent(owner.backend->request_buffer(1, owner.memory(region.bytes().first(4096))).value());
  const RemoteBuffer same = sent(owner.backend->request_buffer(2, owner.memory(region.bytes().first(4096))).value());
  std::vector<std::byte> ours(4096);
  ASSERT_TRUE(read(first, ours).ok());
  ASSERT_TRUE(read(same, ours).ok());
  ASSERT_TRUE(user.backend->release(first, kLong)->wait(kLong).ok());
  EXPECT_FALSE(read(first, ours).ok()) << "it was taken back";
  EXPECT_TRUE(read(same, ours).ok()) << "the other was not";
  finish();
}

TEST_F(TrialsApart, ALentAllocationOutlivesItsRegion) {
  std::optional<Region> region = owner.agent.allocate({.size = 64 * 1024}).value();
  std::memset(region->bytes().data(), 7, 4096);
  const RemoteBuffer buffer = sent(owner.backend->request_buffer(1, owner.memory(region->bytes().first(4096))).value());
  ASSERT_TRUE(region->close(kLong).ok());
  region.reset();
  std::vector<std::byte> ours(4096);
  ASSERT_TRUE(read(buffer, ours).ok());
  EXPECT_EQ(ours, std::vector<std::byte>(4096, std::byte{7}));
  finish();
}

TEST_F(TrialsApart, AnAllocationThatPeersMayNotWriteIsNotMappedForWriting) {
  const Region region = owner.agent.allocate({.size = 4096, .rights = Rights::kRead}).value();
  const RemoteBuffer buffer = sent(owner.backend->request_buffer(1, owner.memory(region.bytes())).value());
  std::vector<std::byte> ours(4096);
  EXPECT_FALSE(write(buffer, ours).ok());
  const RemoteBuffer readable =
      sent(owner.backend->request_buffer(2, owner.memory(region.bytes()), Rights::kRead).value());
  EXPECT_TRUE(read(readable, ours).ok());
  finish();
}

/// An operation that finds no way says of each way why.
TEST(Trials, AnOperationWithoutAWayTellsEachWay) {
  Side owner("owner", {"tcp", true}), user("user", {"shm", true});
  std::vector<std::byte> theirs(64), ours(64);
  const RemoteBuffer buffer = sent(owner.backend->request_buffer(1, owner.memory(theirs)).value());
  const Batch batch =
      user.backend->submit({{.type = OpType::kReadIntoLocal, .local = user.memory(ours), .remote = buffer}}, kLong)
          .value();
  (void)batch.wait(kLong);
  const std::string text = batch.status().to_string();
  EXPECT_THAT(text, HasSubstr("shm: the owner had not opened it"));
  EXPECT_THAT(text, HasSubstr("tcp: the owner has it, this agent was opened without it"));
  const std::string explained = user.backend->explain(buffer);
  EXPECT_THAT(explained, HasSubstr("tcp: the owner has it, this agent was opened without it"));
  for (const Batch& other :
       {user.backend->release(buffer, kLong).value(),
        user.backend->submit({{.type = OpType::kFetchAdd, .remote = buffer.slice(0, 8).value(), .value = 1}}, kLong)
            .value()}) {
    (void)other.wait(kLong);
    EXPECT_THAT(other.status().to_string(), HasSubstr("tcp: the owner has it"));
  }
  user.backend.reset();
  owner.backend.reset();
}

TEST(Trials, ExplainTellsWhatABufferGoesBy) {
  Side owner("owner", {"tcp", true}), user("user", {"tcp", true});
  std::vector<std::byte> theirs(1 << 20), ours(1 << 20);
  const RemoteBuffer own = owner.backend->request_buffer(1, owner.memory(theirs)).value();
  const RemoteBuffer buffer = sent(own);
  const LocalMemory memory = user.memory(ours);
  ASSERT_TRUE(user.backend->submit({{.type = OpType::kReadIntoLocal, .local = memory, .remote = buffer}}, kLong)
                  ->wait(kLong)
                  .ok());
  EXPECT_THAT(user.backend->explain(buffer, memory), HasSubstr("read from owner: 1 MiB"));
  EXPECT_THAT(user.backend->explain(buffer), HasSubstr("tcp: open at both ends"));
  EXPECT_THAT(owner.backend->explain(own), HasSubstr("this process's own"));
  EXPECT_THAT(user.backend->explain(RemoteBuffer()), HasSubstr("empty handle"));
  user.backend.reset();
  owner.backend.reset();
}

/// What waits for room until its time is over says which bound was full.
TEST(Trials, AnOperationThatFoundNoRoomNamesTheBound) {
  Side owner("owner", {"tcp", false}), user("user", {"tcp", true});  // The owner answers nobody.
  std::vector<std::byte> theirs(64), ours(64);
  const RemoteBuffer buffer = sent(owner.backend->request_buffer(1, owner.memory(theirs)).value());
  const LocalMemory memory = user.memory(ours);
  const std::vector<Op> ops(300, Op{.type = OpType::kReadIntoLocal, .local = memory, .remote = buffer});
  const Batch batch = user.backend->submit(ops, 300ms).value();
  (void)batch.wait(kLong);
  ASSERT_TRUE(batch.done());
  std::string text;
  for (const Outcome& each : batch.outcomes()) text += each.status.to_string() + "\n";
  EXPECT_THAT(text, HasSubstr("there was no room until the timeout"));
  EXPECT_THAT(text, HasSubstr("transfers = 256"));
  user.backend.reset();
  owner.backend.reset();
}

// Names.

struct Named {
  explicit Named(const std::string& name, const std::shared_ptr<Directory>& directory) {
    AgentOptions options{.name = name, .backends = {BackendSpec{.name = "tcp", .params = {}}, loopback()}};
    options.directory = directory;
    agent = Agent::open(options).value();
    backend.emplace(Backend::open(agent).value());
  }
  ~Named() {
    backend.reset();
    EXPECT_TRUE(agent.close(kLong).ok());
  }
  RemoteBuffer lend(std::uint64_t id, std::span<std::byte> bytes, const std::string& name) {
    return backend->request_buffer(id, backend->local_memory(bytes).value(), {.name = name}).value();
  }
  Status read(const RemoteBuffer& from, std::span<std::byte> into) {
    const LocalMemory memory = backend->local_memory(into).value();
    return backend->submit({{.type = OpType::kReadIntoLocal, .local = memory, .remote = from}}, kLong)->wait(kLong);
  }
  Agent agent;
  std::optional<Backend> backend;
};

TEST(Trials, AHandleIsRenewedByNameAfterItsOwnersRestart) {
  const std::shared_ptr<Directory> directory = inproc_directory("renewal");
  Named user("user", directory);
  auto before = filled(4096, 1), after = filled(4096, 2), other = filled(4096, 3);
  std::vector<std::byte> ours(4096), half(1024);
  std::optional<Named> owner(std::in_place, "owner", directory);
  RemoteBuffer buffer = sent(owner->lend(1, before, "weights"));
  EXPECT_EQ(buffer.name(), "weights");
  ASSERT_TRUE(user.read(buffer, ours).ok());
  EXPECT_EQ(ours, before);
  owner.reset();
  ASSERT_FALSE(user.read(buffer, ours).ok());
  // It comes back later, and lends the buffer later still.
  std::thread restart([&] {
    std::this_thread::sleep_for(50ms);
    owner.emplace("owner", directory);
    (void)owner->lend(1, other, "other");
    std::this_thread::sleep_for(50ms);
    (void)owner->lend(2, after, "weights");
  });
  const Result<RemoteBuffer> part = user.backend->renew(buffer.slice(2048, 1024).value(), kLong);
  restart.join();
  ASSERT_TRUE(part.has_value()) << part.error().to_string();
  EXPECT_EQ(part->offset(), 2048u);
  ASSERT_TRUE(user.read(*part, half).ok());
  EXPECT_EQ(std::memcmp(half.data(), after.data() + 2048, half.size()), 0);
  EXPECT_NE(part->owner_incarnation(), buffer.owner_incarnation());
  // One that lives is renewed as well: what it lends under the name now.
  buffer = user.backend->renew(*part, kLong).value();
  EXPECT_EQ(buffer.id(), 2u);
  user.backend.reset();
  owner.reset();
}

TEST(Trials, WhatCannotBeRenewedSaysWhy) {
  const std::shared_ptr<Directory> directory = inproc_directory("no renewal");
  Named user("user", directory), owner("owner", directory);
  auto bytes = filled(4096, 1);
  const RemoteBuffer nameless = sent(owner.lend(1, bytes, ""));
  EXPECT_EQ(user.backend->renew(nameless, 1s).error().code(), Code::kInvalid);
  const RemoteBuffer buffer = sent(owner.lend(2, bytes, "b"));
  EXPECT_EQ(owner.backend->request_buffer(3, owner.backend->local_memory(bytes).value(), {.name = "b"}).error().code(),
            Code::kInvalid)
      << "a name is one buffer's";
  ASSERT_TRUE(owner.backend->release(buffer, kLong)->wait(kLong).ok());
  const Status late = user.backend->renew(buffer, 200ms).error();
  EXPECT_EQ(late.code(), Code::kTimedOut);
  EXPECT_THAT(late.to_string(), HasSubstr("lends no buffer by the name 'b'"));
  const RemoteBuffer small = owner.lend(3, std::span(bytes).first(100), "b");
  EXPECT_EQ(user.backend->renew(buffer, kLong).error().code(), Code::kInvalid) << "it is smaller now";
  Side alone("alone", {"tcp", true});
  EXPECT_EQ(alone.backend->renew(buffer, kLong).error().code(), Code::kUnsupported) << "it has no directory to look in";
  user.backend.reset();
  owner.backend.reset();
}

}  // namespace
}  // namespace hawser::rdma
