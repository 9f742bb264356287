// Wrong calls: each error names the call, the value and the remedy, and nothing is lost.

#include <algorithm>

#include "agent_suite.h"

namespace hawser::conformance {
namespace {

TEST_P(Conformance, WrongNamesAreNamed) {
  for (const std::string& name : {std::string(), std::string(256, 'x'), std::string("a\nb"), std::string("a\0b", 3)}) {
    const Status status = env().open(options(name)).error();
    EXPECT_TRUE(says(status, Code::kInvalid, {"Agent::open", "name", std::to_string(name.size()), "1 to 255 bytes"}));
    EXPECT_TRUE(std::ranges::none_of(status.to_string(), [](unsigned char c) { return c < 0x20; }));
  }
  EXPECT_TRUE(env().open(options(std::string(255, 'x'))).error().ok());
  EXPECT_TRUE(env().open(options("\xc3\xa4 ok")).error().ok());
}

TEST_P(Conformance, WrongOptionsAreNamed) {
  AgentOptions wrong = options("a");
  wrong.heartbeat = 0s;
  EXPECT_TRUE(says(env().open(wrong).error(), Code::kInvalid, {"Agent::open", "heartbeat = 0"}));
  wrong = options("a");
  wrong.default_deadline = -1s;
  EXPECT_TRUE(says(env().open(wrong).error(), Code::kInvalid, {"Agent::open", "default_deadline = -1"}));
  wrong = options("a");
  wrong.limits.notification_bytes = 65'536;
  EXPECT_TRUE(
      says(env().open(wrong).error(), Code::kInvalid, {"Agent::open", "limits.notification_bytes = 65536", "65600"}));
  wrong = options("a");
  wrong.limits.notification_bytes_total = 1;
  EXPECT_TRUE(says(env().open(wrong).error(), Code::kInvalid, {"Agent::open", "limits.notification_bytes_total = 1"}));
  wrong = options("a");
  wrong.limits.transfers = 0;
  EXPECT_TRUE(says(env().open(wrong).error(), Code::kInvalid, {"Agent::open", "limits.transfers = 0"}));
}

TEST_P(Conformance, WrongRegionsAreNamed) {
  open_pair();
  std::vector<std::byte> memory(4096);
  const auto add_named = [&](std::string name, std::span<std::byte> bytes) {
    return a().add_region({.name = std::move(name), .bytes = bytes, .device = {}});
  };
  EXPECT_TRUE(says(add_named("none", {}).error(), Code::kInvalid, {"add_region", "none", "no bytes"}));
  EXPECT_TRUE(says(add_named(std::string(256, 'r'), memory).error(), Code::kInvalid, {"add_region", "255"}));
  const Region good = must(add_named("twice", memory));
  EXPECT_TRUE(says(add_named("twice", memory).error(), Code::kInvalid, {"add_region", "twice", "unique"}));
  EXPECT_TRUE(says(a().allocate({.name = "zero", .size = 0}).error(), Code::kInvalid, {"allocate", "zero", "size 0"}));
  EXPECT_TRUE(
      says(a().allocate({.name = "twice", .size = 64}).error(), Code::kInvalid, {"allocate", "twice", "unique"}));
  EXPECT_FALSE(a().allocate({.name = "all", .size = ~std::size_t{0}}).error().ok());
  EXPECT_FALSE(a().allocate({.name = "much", .size = std::size_t{1} << 60}).error().ok());
  EXPECT_TRUE(says(
      a().add_region({.name = "gpu", .bytes = memory, .device = {.kind = DeviceKind::kCuda, .ordinal = 1}}).error(),
      Code::kUnsupported, {"add_region", "cuda:1"}));
  const auto end = std::span<std::byte>(reinterpret_cast<std::byte*>(~std::uintptr_t{0} - 10), 100);
  EXPECT_TRUE(says(add_named("wraps", end).error(), Code::kInvalid, {"add_region", "wraps", "addresses"}));
  EXPECT_EQ(a().counters().regions_gauge, 1U);
  Area again = add(a(), "zero", 64);  // A name of a failed call is free.
}

TEST_P(Conformance, RegionsAreBounded) {
  AgentOptions few = options("a");
  few.limits.regions = 2;
  open_pair(few, few);
  Area one = add(a(), "one", 64), two = add(a(), "two", 64);
  std::vector<std::byte> memory(64);
  EXPECT_TRUE(says(a().add_region({.name = "three", .bytes = memory, .device = {}}).error(), Code::kBusy,
                   {"add_region", "2 regions", "limits.regions"}));
  must(two.region.close(0s));
  EXPECT_TRUE(a().add_region({.name = "three", .bytes = memory, .device = {}}).error().ok());
}

TEST_P(Conformance, WrongRangesAreNamed) {
  open_pair();
  Area ours = add(a(), "ours", 1000), also = add(a(), "also", 1000), theirs = add(b(), "theirs", 1000);
  const Peer peer = a_to_b();
  const auto write = [&](std::vector<LocalRange> from, std::vector<RemoteRange> to) {
    return a().plan_write(peer, from, to).error();
  };
  const auto remote = [&](std::uint64_t offset, std::uint64_t size) { return peer.range("theirs", offset, size); };
  EXPECT_TRUE(says(write({}, {}), Code::kInvalid, {"plan_write", "empty"}));
  EXPECT_TRUE(says(write({ours.range(0, 8)}, {}), Code::kInvalid, {"plan_write", "1 local", "0 remote"}));
  EXPECT_TRUE(
      says(write({ours.range(0, 8), ours.range(8, 8)}, {remote(0, 8)}), Code::kInvalid, {"2 local", "1 remote"}));
  EXPECT_TRUE(says(write({ours.range(0, 0)}, {remote(0, 0)}), Code::kInvalid, {"plan_write", "position 0", "empty"}));
  EXPECT_TRUE(says(write({ours.range(0, 8)}, {remote(0, 9)}), Code::kInvalid, {"position 0", "8 local", "9 remote"}));
  EXPECT_TRUE(says(write({ours.range(0, 8), ours.range(996, 8)}, {remote(0, 8), remote(8, 8)}), Code::kInvalid,
                   {"local", "position 1", "996", "1000"}));
  EXPECT_TRUE(
      says(write({ours.range(0, 8)}, {remote(993, 8)}), Code::kInvalid, {"remote", "position 0", "993", "1000"}));
  const std::uint64_t huge = ~std::uint64_t{0};
  EXPECT_TRUE(says(write({ours.range(huge, 8)}, {remote(0, 8)}), Code::kInvalid, {"local", "leaves its region"}));
  EXPECT_TRUE(says(write({ours.range(8, huge)}, {remote(8, huge)}), Code::kInvalid, {"leaves its region"}));
  // A range never spans two regions, also when their memory lies side by side.
  EXPECT_TRUE(says(write({ours.range(500, 1000)}, {remote(0, 1000)}), Code::kInvalid, {"leaves its region of 1000"}));
  EXPECT_TRUE(says(write({LocalRange{}}, {remote(0, 8)}), Code::kInvalid, {"local range 0", "no region"}));
  EXPECT_TRUE(says(a().plan_read(peer, {{remote(993, 8)}}, {{ours.range(0, 8)}}).error(), Code::kInvalid,
                   {"plan_read", "remote", "993"}));
  if (self()) return;
  // Whose agent another one is counts who uses its regions, and closes them.
  const std::string owner(b().name());
  EXPECT_TRUE(says(write({theirs.range(0, 8)}, {remote(0, 8)}), Code::kInvalid, {"'theirs'", owner, "register"}));
  const RangeTable source = theirs.region.table(8), target = peer.table("theirs", 8);
  const std::vector<std::uint32_t> first = {0};
  EXPECT_TRUE(says(a().plan_write(peer, source, first, target, first).error(), Code::kInvalid, {"'theirs'", owner}));
  const std::vector<LocalRange> from = {ours.range(0, 8)};
  const std::vector<RemoteRange> to = {remote(0, 8)};
  const Plan plan = a().plan_write(peer, from, to).value();
  const SignalWord word{.word = theirs.range(0, 8), .value = 0};
  EXPECT_TRUE(says(plan.submit({.after = &word}).error(), Code::kInvalid, {"'theirs'", owner}));
  EXPECT_TRUE(says(plan.submit({.done = &word}).error(), Code::kInvalid, {"'theirs'", owner}));
}

TEST_P(Conformance, WrongTablesAreNamed) {
  open_pair();
  Area ours = add(a(), "ours", 1000), theirs = add(b(), "theirs", 1000);
  const Peer peer = a_to_b();
  const RangeTable local = ours.region.table(100), remote = peer.table("theirs", 100), odd = peer.table("theirs", 50);
  const auto write = [&](const RangeTable& from, std::vector<std::uint32_t> i, const RangeTable& to,
                         std::vector<std::uint32_t> j) { return a().plan_write(peer, from, i, to, j).error(); };
  EXPECT_TRUE(says(write(local, {0, 10}, remote, {0, 1}), Code::kInvalid,
                   {"plan_write", "local index 10", "position 1", "10 ranges"}));
  EXPECT_TRUE(
      says(write(local, {0, 1}, remote, {4000000000U, 1}), Code::kInvalid, {"remote index 4000000000", "position 0"}));
  EXPECT_TRUE(says(write(local, {0, 1}, remote, {0}), Code::kInvalid, {"2 local", "1 remote"}));
  EXPECT_TRUE(says(write(local, {}, remote, {}), Code::kInvalid, {"empty"}));
  EXPECT_TRUE(says(write(local, {0}, odd, {0}), Code::kInvalid, {"100 local", "50 remote"}));
  EXPECT_TRUE(says(write(remote, {0}, local, {0}), Code::kInvalid, {"plan_write", "table"}));
  EXPECT_TRUE(says(write(local, {0}, local, {0}), Code::kInvalid, {"plan_write", "table"}));
  EXPECT_TRUE(says(write(RangeTable(), {0}, remote, {0}), Code::kInvalid, {"plan_write", "local table"}));
  EXPECT_TRUE(says(write(local, {0}, peer.table("nowhere", 100), {0}), Code::kNotFound, {"remote table", "nowhere"}));
  EXPECT_TRUE(says(ours.region.table(0).status(), Code::kInvalid, {"ours", "0"}));
  EXPECT_TRUE(says(ours.region.table({.offset = 0, .size = 100, .stride = 100, .count = 11}).status(), Code::kInvalid,
                   {"ours", "1000"}));
  EXPECT_TRUE(says(ours.region.table({.offset = 1, .size = 8, .stride = ~std::uint64_t{0}, .count = 3}).status(),
                   Code::kInvalid, {"ours"}));
  EXPECT_FALSE(ours.region.table({.offset = 0, .size = 0, .stride = 8, .count = 3}).status().ok());
  EXPECT_FALSE(ours.region.table({.offset = 0, .size = 8, .stride = 8, .count = 0}).status().ok());
  EXPECT_EQ(ours.region.table(300).size(), 3U);  // What is no whole block is left out.
  EXPECT_FALSE(RangeTable().status().ok());
  EXPECT_EQ(RangeTable().size(), 0U);
}

TEST_P(Conformance, NothingIsLostByWrongCalls) {
  open_pair();
  Area ours = add(a(), "ours", 1000), theirs = add(b(), "theirs", 1000);
  const Peer peer = meet();
  for (int i = 0; i < 200; ++i) {
    (void)a().plan_write(peer, {{ours.range(0, 8)}}, {{peer.range("theirs", 999, 8)}});
    (void)a().plan_write(peer, {{ours.range(0, 8)}}, {{peer.range("nowhere", 0, 8)}});
    (void)peer.send(3, {});
    (void)a().add_peer("garbage");
    (void)a().add_region({.name = "ours", .bytes = ours.bytes, .device = {}});
  }
  EXPECT_EQ(a().counters().regions_gauge, self() ? 2U : 1U);
  EXPECT_EQ(a().counters().total.errors, 0U);
  fill(ours.bytes, 1);
  must(run(must(a().plan_write(peer, {{ours.range(0, 1000)}}, {{peer.range("theirs", 0, 1000)}}))));
  EXPECT_TRUE(holds(theirs.bytes, 1));
}

}  // namespace
}  // namespace hawser::conformance
