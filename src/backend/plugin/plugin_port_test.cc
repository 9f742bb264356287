#include "backend/plugin/plugin_port.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "backend/plugin/plugin_fake.h"

namespace hawser::backend {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Kind = PortEvent::Kind;

class PluginPortTest : public ::testing::Test {
 protected:
  PluginPortTest() {
    backend_ = plugin_factory("x.so", "fake", FakePlugin::entry)->open(agent_.context(), {}).value();
    port_ = backend_->open_port().value();
    peer_.name = fake_text("b");
    peer_.incarnation = {5, 6};
    peer_.version_min = peer_.version_max = 2;
  }

  Path* open() {
    const PathTarget target{.peer = "b", .incarnation = {}, .address = "x", .supersedes = {}, .deadline = {}};
    return port_->open_path(target, Instant()).value();
  }
  hawser_plugin_event event(std::uint32_t kind, std::size_t path = 0) {
    hawser_plugin_event made{};
    made.kind = kind;
    made.path = &fake_.paths[path];
    made.peer = kind == HAWSER_PLUGIN_PATH_UP ? &peer_ : nullptr;
    made.session = {7, 8};
    return made;
  }
  std::vector<PortEvent> poll() {
    port_->turn(Instant(), {});
    std::vector<PortEvent> events(8);
    events.resize(port_->poll(events));
    return events;
  }
  Path* open_up() {
    Path* path = open();
    fake_.events.push_back(event(HAWSER_PLUGIN_PATH_UP));
    EXPECT_EQ(poll().size(), 1U);
    return path;
  }
  /// Puts chunks with cookies 100, 101 ... under way.
  void submit(Path* path, std::uint32_t count, hawser_plugin_submitted answer) {
    Binding* target = path->bind({}).value();
    std::vector<Chunk> chunks(count);
    for (std::uint32_t i = 0; i < count; ++i) {
      chunks[i].cookie = 100 + i;
      chunks[i].target = target;
      chunks[i].pieces = {&piece_, 1};
      chunks[i].bytes = piece_.size;
    }
    fake_.submitted = answer;
    result_ = path->submit(chunks, Instant());
  }
  hawser_plugin_event done(std::size_t chunk) {
    hawser_plugin_event made = event(HAWSER_PLUGIN_CHUNK_DONE);
    made.cookie = fake_.chunks.at(chunk).cookie;
    return made;
  }

  FakePlugin fake_;
  FakeAgent agent_;
  std::unique_ptr<Backend> backend_;
  std::unique_ptr<Port> port_;
  hawser_plugin_identity peer_{};
  std::byte memory_[4]{};
  Piece piece_{memory_, 3, 4};
  Submitted result_;
};

TEST_F(PluginPortTest, PathsComeAndGo) {
  Path* path = open();
  EXPECT_NE(path->state(), PathState::kUp);
  fake_.events.push_back(event(HAWSER_PLUGIN_PATH_UP));
  hawser_plugin_event inbound = event(HAWSER_PLUGIN_PATH_UP, 3);
  inbound.inbound = 1;
  fake_.events.push_back(inbound);
  auto events = poll();
  ASSERT_EQ(events.size(), 2U);
  EXPECT_EQ(events[0].kind, Kind::kPathUp);
  EXPECT_EQ(events[0].path, path);
  EXPECT_FALSE(events[0].inbound);
  EXPECT_EQ(events[0].peer->name, "b");
  EXPECT_EQ(events[0].session, (base::Id128{7, 8}));
  EXPECT_TRUE(events[1].inbound);
  EXPECT_NE(events[1].path, path);
  EXPECT_EQ(path->state(), PathState::kUp);
  EXPECT_EQ(path->counters().chunks, 7U);
  EXPECT_EQ(path->counters().peer, "b");
  EXPECT_EQ(path->describe(), "fake: a fake");
  const std::string head = "he", body = "llo";
  EXPECT_TRUE(path->send(Priority::kBulk, std::as_bytes(std::span(head)), std::as_bytes(std::span(body))));
  EXPECT_EQ(fake_.sent, "hello");
  EXPECT_EQ(port_->next_deadline(), Instant::from_ns(5));
  fake_.next_deadline = INT64_MIN;
  EXPECT_EQ(port_->next_deadline(), Instant());
  fake_.events.push_back(event(HAWSER_PLUGIN_PATH_DOWN));
  events = poll();
  ASSERT_EQ(events.size(), 1U);
  EXPECT_EQ(events[0].kind, Kind::kPathDown);
  EXPECT_EQ(events[0].status.code(), Code::kDisconnected);
  port_->release_path(path);
  EXPECT_THAT(fake_.calls, ElementsAre("release_path"));
  port_.reset();
  EXPECT_EQ(fake_.calls.back(), "port.close");
}

TEST_F(PluginPortTest, ChunksEndUnderTheirOwnCookies) {
  Path* path = open_up();
  submit(path, 4, {.taken = 3, .done = 1});
  EXPECT_EQ(result_.taken, 3U);
  EXPECT_EQ(result_.done, 1U);
  ASSERT_EQ(fake_.chunks.size(), 4U);
  EXPECT_EQ(fake_.chunks[0].pieces->local, memory_);
  EXPECT_EQ(fake_.chunks[0].pieces->remote, 3U);
  EXPECT_EQ(fake_.chunks[0].target, &fake_.binding);
  hawser_plugin_event failed = done(1);
  failed.code = HAWSER_PLUGIN_CANCELLED;
  fake_.events = {done(2), failed};
  auto events = poll();
  ASSERT_EQ(events.size(), 2U);
  EXPECT_EQ(events[0].cookie, 102U);
  EXPECT_TRUE(events[0].status.ok());
  EXPECT_EQ(events[1].cookie, 101U);
  EXPECT_EQ(events[1].status.code(), Code::kCancelled);
  EXPECT_EQ(path->bind({}).value(), path->bind({}).value());
  path->unbind(0, 0);
  path->unbind(0, 0);
  path->cancel(9);
  EXPECT_THAT(fake_.calls, ElementsAre("bind", "unbind", "cancel 9"));
}

TEST_F(PluginPortTest, ReleasedPathsLeaveNothing) {
  Path* path = open_up();
  submit(path, 2, {.taken = 2, .done = 0});
  port_->release_path(path);
  EXPECT_TRUE(poll().empty());
  // Not even a wrong end of one of its chunks.
  fake_.events = {done(0)};
  EXPECT_TRUE(poll().empty());
  EXPECT_THAT(agent_.lines.at(0), HasSubstr("an event of kind 1 is of an unknown path"));
}

TEST_F(PluginPortTest, MessagesAndArrivals) {
  open_up();
  hawser_plugin_event message = event(HAWSER_PLUGIN_MESSAGE);
  message.bytes = fake_text("hi");
  hawser_plugin_event arrival = event(HAWSER_PLUGIN_ARRIVAL);
  arrival.transfer = 11;
  arrival.chunk = 12;
  fake_.events = {message, arrival};
  const auto events = poll();
  ASSERT_EQ(events.size(), 2U);
  EXPECT_EQ(events[0].kind, Kind::kMessage);
  EXPECT_EQ(events[0].bytes.size(), 2U);
  EXPECT_EQ(events[1].kind, Kind::kArrival);
  EXPECT_EQ(events[1].transfer, 11U);
  EXPECT_EQ(events[1].chunk, 12U);
  std::string holder;
  EXPECT_TRUE(port_->region_quiet(0, 1, &holder));
  fake_.quiet = false;
  EXPECT_FALSE(port_->region_quiet(0, 1, &holder));
  EXPECT_EQ(holder, "a copy");
}

TEST_F(PluginPortTest, WhatAPeerMayHaveDoneEndsItsPathOnly) {
  Path* path = open();
  Path* other = open();
  peer_.name = fake_text("b\n");
  fake_.events = {event(HAWSER_PLUGIN_PATH_UP)};
  EXPECT_TRUE(poll().empty());
  auto events = poll();
  ASSERT_EQ(events.size(), 1U);
  EXPECT_EQ(events[0].kind, Kind::kPathDown);
  EXPECT_EQ(events[0].path, path);
  EXPECT_EQ(events[0].status.code(), Code::kCorrupt);
  port_->release_path(path);
  EXPECT_THAT(fake_.calls, ElementsAre("release_path"));

  peer_.name = fake_text("b");
  peer_.version_min = peer_.version_max = 9;
  fake_.events = {event(HAWSER_PLUGIN_PATH_UP, 1)};
  EXPECT_TRUE(poll().empty());
  events = poll();
  ASSERT_EQ(events.size(), 1U);
  EXPECT_EQ(events[0].path, other);
  EXPECT_EQ(events[0].status.code(), Code::kUnsupported);

  // Of an inbound one the agent hears nothing.
  hawser_plugin_event inbound = event(HAWSER_PLUGIN_PATH_UP, 2);
  inbound.inbound = 1;
  fake_.events = {inbound};
  EXPECT_TRUE(poll().empty());
  EXPECT_TRUE(poll().empty());
  EXPECT_THAT(fake_.calls, ElementsAre("release_path", "release_path", "release_path"));

  peer_.version_min = 2;
  Path* third = open();
  fake_.events = {event(HAWSER_PLUGIN_PATH_UP, 2)};
  EXPECT_EQ(poll().size(), 1U);
  submit(third, 1, {.taken = 1, .done = 0});
  const std::string large(HAWSER_PLUGIN_MESSAGE_MAX + 1, 'x');
  hawser_plugin_event message = event(HAWSER_PLUGIN_MESSAGE, 2);
  message.bytes = fake_text(large);
  fake_.events = {message};
  EXPECT_TRUE(poll().empty());
  events = poll();
  ASSERT_EQ(events.size(), 2U);
  EXPECT_EQ(events[0].cookie, 100U);
  EXPECT_EQ(events[0].status.code(), Code::kCorrupt);
  EXPECT_EQ(events[1].kind, Kind::kPathDown);
}

// What no honest plug-in does, with a chunk in flight.
struct Lie {
  const char* name;
  const char* text;
  std::function<void(FakePlugin&, std::deque<hawser_plugin_event>&, hawser_plugin_event)> tell;
};
const Lie kLies[] = {
    {"Kind", "the unknown kind 9", [](auto&, auto& out, auto event) { event.kind = 9, out.push_back(event); }},
    {"NullPath", "of an unknown path",
     [](auto&, auto& out, auto event) { event.path = nullptr, out.push_back(event); }},
    {"WildPath", "of an unknown path",
     [](auto& fake, auto& out, auto event) { event.path = &fake.paths[3], out.push_back(event); }},
    {"Cookie", "which is not in flight", [](auto&, auto& out, auto event) { event.cookie ^= 1, out.push_back(event); }},
    {"EndedTwice", "which is not in flight",
     [](auto&, auto& out, auto event) { out.push_back(event), out.push_back(event); }},
    {"DownTooEarly", "1 chunks that have not ended",
     [](auto&, auto& out, auto event) { event.kind = HAWSER_PLUGIN_PATH_DOWN, out.push_back(event); }},
    {"UpTwice", "came up twice",
     [](auto&, auto& out, auto event) { event.kind = HAWSER_PLUGIN_PATH_UP, out.push_back(event); }},
    {"NullMessage", "is at null",
     [](auto&, auto& out, auto event) {
       event.kind = HAWSER_PLUGIN_MESSAGE, event.bytes = {nullptr, 3}, out.push_back(event);
     }},
    {"TooMany", "poll gave 1000 events for room of 8", [](auto& fake, auto&, auto) { fake.poll_lies = 1000; }},
};

class PluginLies : public PluginPortTest, public ::testing::WithParamInterface<Lie> {};

TEST_P(PluginLies, EndThePort) {
  Path* path = open_up();
  submit(path, 1, {.taken = 1, .done = 0});
  GetParam().tell(fake_, fake_.events, done(0));
  std::vector<PortEvent> events = poll();
  const bool ended_well = !events.empty() && events[0].status.ok();  // The first of two ends is believed.
  events = poll();
  ASSERT_EQ(events.size(), ended_well ? 1U : 2U);
  if (!ended_well) {
    EXPECT_EQ(events[0].kind, Kind::kChunkDone);
    EXPECT_EQ(events[0].cookie, 100U);
    EXPECT_EQ(events[0].status.code(), Code::kFailed);
  }
  EXPECT_EQ(events.back().kind, Kind::kPathDown);
  EXPECT_THAT(events.back().status.to_string(), HasSubstr("plug-in fake (x.so) broke the contract"));
  EXPECT_THAT(events.back().status.to_string(), HasSubstr(GetParam().text));
  EXPECT_EQ(fake_.calls.back(), "release_path");
  ASSERT_EQ(agent_.lines.size(), 1U);

  EXPECT_EQ(path->state(), PathState::kDown);
  EXPECT_EQ(path->submit({}, Instant()).taken, 0U);
  EXPECT_FALSE(path->send(Priority::kBulk, {}, {}));
  EXPECT_EQ(path->counters().state, "down");
  EXPECT_EQ(path->bind({}).error().code(), Code::kFailed);
  path->unbind(0, 0);
  path->cancel(9);
  EXPECT_EQ(fake_.calls.back(), "release_path");  // The dead handle is never passed in again.
  port_->release_path(path);
  EXPECT_TRUE(poll().empty());
  EXPECT_TRUE(port_->prepare_sleep());
  EXPECT_TRUE(port_->idle());
  EXPECT_EQ(port_->next_deadline(), Instant::max());
  EXPECT_EQ(port_->open_path({}, Instant()).error().code(), Code::kFailed);
}
INSTANTIATE_TEST_SUITE_P(All, PluginLies, ::testing::ValuesIn(kLies), [](const auto& lie) { return lie.param.name; });

TEST_F(PluginPortTest, WrongCountsOfSubmitEndThePort) {
  Path* path = open_up();
  submit(path, 2, {.taken = 1, .done = 2});
  EXPECT_EQ(result_.taken, 2U);
  EXPECT_EQ(result_.done, 0U);
  EXPECT_FALSE(port_->prepare_sleep());
  const auto events = poll();
  ASSERT_EQ(events.size(), 3U);
  EXPECT_EQ(events[1].status.code(), Code::kFailed);
  EXPECT_THAT(events[2].status.to_string(), HasSubstr("submit of 2 chunks took 1 and did 2"));
}

TEST_F(PluginPortTest, NullAndSecondHandlesEndThePort) {
  open();
  fake_.next_path = 0;
  const PathTarget target{.peer = "b", .incarnation = {}, .address = {}, .supersedes = {}, .deadline = {}};
  EXPECT_THAT(port_->open_path(target, Instant()).error().to_string(), HasSubstr("given before"));
  const auto events = poll();
  ASSERT_EQ(events.size(), 1U);
  EXPECT_EQ(events[0].kind, Kind::kPathDown);
}

}  // namespace
}  // namespace hawser::backend
