#include "backend/sim/mapped_port.h"

#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

#include "base/log.h"

namespace hawser::sim {
namespace {

using backend::Chunk;
using backend::Path;
using backend::Piece;
using backend::PortEvent;
using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::seconds;

/// One process: its port, its regions, and what its port reported.
struct Process {
  Process(World& world, MappedHub& hub, std::uint32_t number)
      : host(Host::create(world, number == 0 ? "a" : "b", number)), regions(16) {
    identity.name = host->name();
    identity.incarnation = {1, number + 1};
    const backend::Context context{identity,           regions,           log, base::Rng(number),
                                   Security::kDefault, milliseconds(250), {},  *world.clock()};
    port = std::make_unique<MappedPort>(context, hub, host);
    EXPECT_TRUE(hub.listen(address(), port.get()).ok());
    host->set_turn([this](Instant now) { return turn(now); });
  }
  std::string address() const { return "sim:" + host->name(); }
  Host::Turned turn(Instant now) {
    const std::size_t work = port->turn(now, {});
    PortEvent event;
    while (port->poll({&event, 1}) == 1) {
      events.push_back(event);
      if (event.kind == PortEvent::Kind::kMessage)
        messages.emplace_back(reinterpret_cast<const char*>(event.bytes.data()), event.bytes.size());
    }
    return {.more = work > 0, .next = port->next_deadline()};
  }
  std::size_t count(PortEvent::Kind kind) const {
    return static_cast<std::size_t>(
        std::count_if(events.begin(), events.end(), [kind](const auto& e) { return e.kind == kind; }));
  }
  const PortEvent* last(PortEvent::Kind kind) const {
    const PortEvent* found = nullptr;
    for (const PortEvent& event : events) found = event.kind == kind ? &event : found;
    return found;
  }
  base::Logger log{LogOptions{}};
  backend::Identity identity;
  std::shared_ptr<Host> host;
  backend::RegionTable regions;
  std::unique_ptr<MappedPort> port;
  std::vector<PortEvent> events;
  std::vector<std::string> messages;
};

struct MappedTest : testing::Test {
  MappedTest()
      : world({.seed = 1}),
        hub(world),
        a(world, hub, 0),
        b(world, hub, 1),
        target(64 * 1024),
        source(64 * 1024, std::byte{7}) {
    backend::RegionEntry entry;
    entry.key = {3, 4};
    entry.base = target.data();
    entry.size = target.size();
    entry.rights = Rights::kWrite;
    region = *b.regions.add(entry);
  }
  void connect(base::Id128 expects = {}, base::Id128 supersedes = {}) {
    path = *a.port->open_path({.peer = "b",
                               .incarnation = expects,
                               .address = "sim:b",
                               .supersedes = supersedes,
                               .deadline = world.now() + seconds(1)},
                              world.now());
    a.host->wake();
    world.run_for(milliseconds(1));
  }
  backend::Binding* bind(base::Id128 key) {
    return *path->bind({.index = region->index,
                        .generation = region->generation,
                        .key = key,
                        .size = region->size,
                        .rights = region->rights,
                        .device = {},
                        .extra = {}});
  }
  Chunk chunk(backend::Binding* binding, Operation op = Operation::kWrite) {
    Chunk made;
    made.op = op;
    made.transfer = 1;
    made.cookie = 42;
    made.target = binding;
    made.pieces = {&piece, 1};
    made.bytes = piece.size;
    return made;
  }
  World world;
  MappedHub hub;
  Process a, b;
  std::vector<std::byte> target, source;
  std::shared_ptr<const backend::RegionEntry> region;
  Path* path = nullptr;
  Piece piece{source.data(), 0, 64 * 1024};
};

TEST_F(MappedTest, ConnectsAndCopiesInSteps) {
  connect();
  ASSERT_EQ(path->state(), backend::PathState::kUp);
  ASSERT_EQ(b.count(PortEvent::Kind::kPathUp), 1U);
  EXPECT_EQ(b.last(PortEvent::Kind::kPathUp)->peer->name, "a");
  EXPECT_TRUE(b.last(PortEvent::Kind::kPathUp)->inbound);
  const Chunk one = chunk(bind({3, 4}));
  EXPECT_EQ(path->submit({&one, 1}, world.now()).taken, 1U);
  world.run_for(microseconds(4));
  EXPECT_EQ(target.front(), std::byte{7});
  EXPECT_EQ(target.back(), std::byte{0});  // In the middle of the copy:
  std::string holder;
  EXPECT_FALSE(b.port->region_quiet(region->index, region->generation, &holder));
  EXPECT_EQ(holder, "a");
  world.run_for(milliseconds(1));
  EXPECT_EQ(target, source);
  EXPECT_TRUE(b.port->region_quiet(region->index, region->generation, nullptr));
  ASSERT_EQ(a.count(PortEvent::Kind::kChunkDone), 1U);
  EXPECT_EQ(a.last(PortEvent::Kind::kChunkDone)->cookie, 42U);
  EXPECT_TRUE(a.last(PortEvent::Kind::kChunkDone)->status.ok());
}

TEST_F(MappedTest, KeyRightAndBoundsAreChecked) {
  connect();
  backend::Binding* const wrong_key = bind({3, 5});
  const Chunk keyed = chunk(wrong_key);
  path->submit({&keyed, 1}, world.now());
  world.run_for(milliseconds(1));
  EXPECT_EQ(a.last(PortEvent::Kind::kChunkDone)->status.code(), Code::kDenied);
  path->unbind(region->index, region->generation);
  backend::Binding* const good = bind({3, 4});
  const Chunk read = chunk(good, Operation::kRead);
  path->submit({&read, 1}, world.now());
  piece.remote = 1;
  const Chunk outside = chunk(good);
  path->submit({&outside, 1}, world.now());
  world.run_for(milliseconds(1));
  EXPECT_EQ(a.count(PortEvent::Kind::kChunkDone), 3U);
  EXPECT_EQ(a.last(PortEvent::Kind::kChunkDone)->status.code(), Code::kDenied);
  EXPECT_EQ(target, std::vector<std::byte>(64 * 1024));
}

TEST_F(MappedTest, AClosedRegionIsNotEntered) {
  connect();
  b.regions.close(region->index, region->generation);
  const Chunk one = chunk(bind({3, 4}));
  path->submit({&one, 1}, world.now());
  world.run_for(milliseconds(1));
  EXPECT_EQ(a.last(PortEvent::Kind::kChunkDone)->status.code(), Code::kDenied);
  EXPECT_EQ(target, std::vector<std::byte>(64 * 1024));
}

TEST_F(MappedTest, AStoppedHolderStaysInside) {
  connect();
  const Chunk one = chunk(bind({3, 4}));
  path->submit({&one, 1}, world.now());
  world.run_for(microseconds(4));
  a.host->stop();
  b.regions.close(region->index, region->generation);
  world.run_for(seconds(10));
  EXPECT_FALSE(b.port->region_quiet(region->index, region->generation, nullptr));
  a.host->resume();
  world.run_for(milliseconds(1));
  EXPECT_TRUE(b.port->region_quiet(region->index, region->generation, nullptr));
}

TEST_F(MappedTest, ADeadHolderIsNoticedAndItsPinCleared) {
  connect();
  const Chunk one = chunk(bind({3, 4}));
  path->submit({&one, 1}, world.now());
  world.run_for(microseconds(4));
  a.host->die();
  hub.died(a.host);
  EXPECT_FALSE(b.port->region_quiet(region->index, region->generation, nullptr));
  world.run_for(milliseconds(25));
  EXPECT_TRUE(b.port->region_quiet(region->index, region->generation, nullptr));
  EXPECT_EQ(b.count(PortEvent::Kind::kPathDown), 1U);
  EXPECT_EQ(target.front(), std::byte{7});
  EXPECT_EQ(target.back(), std::byte{0});  // Torn, as it was left.
}

TEST_F(MappedTest, MessagesComeInOrderAndTheRingPushesBack) {
  hub.options().ring_bytes = 100;
  connect();
  b.host->stop();
  const std::string body(30, 'x');
  int sent = 0;
  while (path->send(Priority::kBulk, {}, std::as_bytes(std::span(body)))) ++sent;
  EXPECT_EQ(sent, 3);
  b.host->resume();
  world.run_for(milliseconds(1));
  EXPECT_EQ(b.messages.size(), 3U);
  EXPECT_TRUE(path->send(Priority::kBulk, {}, std::as_bytes(std::span(body))));
}

TEST_F(MappedTest, WhatWasSaidBeforeTheEndIsHeard) {
  connect();
  const std::string body = "bye";
  path->send(Priority::kBulk, {}, std::as_bytes(std::span(body)));
  a.port->release_path(path);
  world.run_for(milliseconds(1));
  ASSERT_EQ(b.events.size(), 3U);
  EXPECT_EQ(b.events[1].kind, PortEvent::Kind::kMessage);
  EXPECT_EQ(b.events[2].kind, PortEvent::Kind::kPathDown);
}

TEST_F(MappedTest, ConnectsAreRefusedOrTimeOut) {
  connect({9, 9});
  EXPECT_EQ(a.last(PortEvent::Kind::kPathDown)->status.code(), Code::kDisconnected);
  b.host->stop();
  connect();
  EXPECT_EQ(path->state(), backend::PathState::kConnecting);
  world.run_for(seconds(2));
  EXPECT_EQ(path->state(), backend::PathState::kDown);
  EXPECT_EQ(a.last(PortEvent::Kind::kPathDown)->status.code(), Code::kTimedOut);
}

TEST_F(MappedTest, ALaterSessionSupersedesAnEarlierOne) {
  connect();
  const Chunk one = chunk(bind({3, 4}));
  const base::Id128 first = a.last(PortEvent::Kind::kPathUp)->session;
  Path* const old_path = path;
  old_path->submit({&one, 1}, world.now());
  connect({}, first);
  EXPECT_EQ(path->state(), backend::PathState::kUp);
  EXPECT_EQ(old_path->state(), backend::PathState::kDown);
  EXPECT_EQ(a.count(PortEvent::Kind::kChunkDone), 1U);
  EXPECT_EQ(b.count(PortEvent::Kind::kPathDown), 1U);
}

TEST_F(MappedTest, ACancelEndsAtOnce) {
  connect();
  const Chunk one = chunk(bind({3, 4}));
  path->submit({&one, 1}, world.now());
  world.run_for(microseconds(4));
  path->cancel(1);
  EXPECT_TRUE(b.port->region_quiet(region->index, region->generation, nullptr));
  world.run_for(milliseconds(1));
  EXPECT_EQ(a.last(PortEvent::Kind::kChunkDone)->status.code(), Code::kCancelled);
  EXPECT_EQ(target.back(), std::byte{0});
}

}  // namespace
}  // namespace hawser::sim
