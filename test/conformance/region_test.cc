// Regions: closed for good, opened by their key only, within their rights and bounds.

#include <malloc.h>

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <fstream>
#include <iterator>

#include "../sanitized.h"
#include "agent_suite.h"
#include "base/bytes.h"
#include "wire/card.h"

namespace hawser::conformance {
namespace {

constexpr std::byte kRegionCanary{0xca};

/// The card of `agent` with its regions changed; only an agent that knows no other card of it takes it.
std::string forged(Agent& agent, const std::function<void(wire::CardRegion&)>& change) {
  wire::Card card = must(wire::decode_card(base::as_bytes(must(agent.card()))));
  for (wire::CardRegion& region : card.regions) change(region);
  return must(wire::encode(card));
}

TEST_P(Conformance, AClosedRegionIsUntouched) {
  open_pair();
  constexpr std::size_t kSize = 4 << 20;
  Area source = add(a(), "source", kSize);
  for (int moments : {0, 1, 2, 4, 7, 11}) {
    Area target = add(b(), "target", kSize);
    const Peer peer = meet();
    const Plan plan = must(a().plan_write(peer, {{source.range(0, kSize)}}, {{peer.range("target", 0, kSize)}}));
    std::vector<Transfer> all;
    for (int i = 0; i < 3; ++i) all.push_back(must(plan.submit()));
    pass(moments);
    Status closed;
    env().blocking(b(), [&] { closed = target.region.close(kPatience); });
    must(closed);
    std::ranges::fill(target.bytes, kRegionCanary);
    for (Transfer& each : all) {
      const Status status = finish(each);
      const bool fits = status.ok() || status.code() == Code::kDenied || (self() && status.code() == Code::kCancelled);
      EXPECT_TRUE(fits) << status.to_string();
    }
    EXPECT_EQ(run(plan).code(), Code::kDenied);
    pass(10);
    ASSERT_TRUE(all_are(target.bytes, kRegionCanary)) << moments;
  }
}

TEST_P(Conformance, ClosingASourceCancelsItsTransfers) {
  open_pair();
  constexpr std::size_t kSize = 4 << 20;
  Area target = add(b(), "target", kSize);
  for (int moments : {0, 1, 3, 6}) {
    Area source = add(a(), "source", kSize);
    const Peer peer = meet();
    const Plan plan = must(a().plan_write(peer, {{source.range(0, kSize)}}, {{peer.range("target", 0, kSize)}}));
    std::ranges::fill(source.bytes, std::byte{1});
    Transfer sent = must(plan.submit());
    pass(moments);
    Status closed;
    env().blocking(a(), [&] { closed = source.region.close(kPatience); });
    must(closed);
    std::ranges::fill(source.bytes, kRegionCanary);
    // What the lane had not begun is refused, else cancelled.
    const Status ended = finish(sent);
    EXPECT_TRUE(ended.ok() || says(ended, Code::kCancelled, {"source", "closed"}) ||
                says(ended, Code::kInvalid, {"source", "closed"}))
        << ended.to_string();
    pass(10);
    EXPECT_EQ(count_while_landing(target.bytes, kRegionCanary), 0);
    EXPECT_TRUE(says(plan.submit().error(), Code::kInvalid, {"submit", "source", "closed"}));
    EXPECT_TRUE(says(a().plan_write(peer, {{source.range(0, 8)}}, {{peer.range("target", 0, 8)}}).error(),
                     Code::kInvalid, {"plan_write", "source", "closed"}));
  }
}

TEST_P(Conformance, ClosingTwiceIsNoError) {
  open_pair();
  Area area = add(a(), "area", 4096);
  env().blocking(a(), [&] {
    EXPECT_TRUE(area.region.close(kPatience).ok());
    EXPECT_TRUE(area.region.close(0s).ok());
  });
  EXPECT_TRUE(says(Region().close(0s), Code::kInvalid, {"Region::close", "empty"}));
  EXPECT_EQ(a().counters().regions_gauge, 0U);
  Area again = add(a(), "area", 4096);  // The name is free again.
  EXPECT_EQ(a().counters().regions_gauge, 1U);
}

TEST_P(Conformance, AStoppedInitiatorIsWaitedFor) {
  HAWSER_NEEDS_TWO_AGENTS();
  open_pair();
  constexpr std::size_t kSize = 4 << 20;
  Area source = add(a(), "source", kSize), target = add(b(), "target", kSize);
  const Peer peer = meet();
  const Plan plan = must(a().plan_write(peer, {{source.range(0, kSize)}}, {{peer.range("target", 0, kSize)}}));
  std::ranges::fill(source.bytes, std::byte{1});
  Transfer sent = must(plan.submit());
  pass(2);
  env().freeze(a_);
  Status closed;
  env().blocking(b(), [&] { closed = target.region.close(50ms); });
  EXPECT_TRUE(closed.ok() || says(closed, Code::kTimedOut, {"target", "used by", "a"})) << closed.to_string();
  const bool quiet = closed.ok();
  if (quiet) std::ranges::fill(target.bytes, kRegionCanary);
  env().thaw(a_);
  env().blocking(b(), [&] { closed = target.region.close(kPatience); });
  must(closed);
  if (!quiet) std::ranges::fill(target.bytes, kRegionCanary);
  (void)finish(sent);
  pass(20);
  EXPECT_TRUE(all_are(target.bytes, kRegionCanary));
}

TEST_P(Conformance, AWrongKeyOpensNothing) {
  HAWSER_NEEDS_TWO_AGENTS();
  open_pair();
  Area target = add(b(), "target", 64 * 1024);
  std::ranges::fill(target.bytes, kRegionCanary);
  Agent* const thief = open(options("thief"));
  Area source = add(*thief, "source", 64 * 1024), good_source = add(a(), "source", 64 * 1024);
  const Peer peer = must(thief->add_peer(forged(b(), [](wire::CardRegion& region) { region.key.lo ^= 1; })));
  const std::vector<LocalRange> ours = {source.range(0, 64 * 1024)};
  const std::vector<RemoteRange> theirs = {peer.range("target", 0, 64 * 1024)};
  const Status written = run(must(thief->plan_write(peer, ours, theirs)), {.notify = "never"});
  EXPECT_EQ(written.code(), Code::kDenied) << written.to_string();
  fill(source.bytes, 1);
  EXPECT_EQ(run(must(thief->plan_read(peer, theirs, ours))).code(), Code::kDenied);
  EXPECT_TRUE(holds(source.bytes, 1));
  EXPECT_TRUE(all_are(target.bytes, kRegionCanary));
  EXPECT_FALSE(b().take_notification());
  // Nobody else is hurt.
  const Peer good = a_to_b();
  must(run(must(a().plan_write(good, {{good_source.range(0, 100)}}, {{good.range("target", 0, 100)}}))));
}

TEST_P(Conformance, RightsAreCheckedWherePlansAreMade) {
  open_pair();
  Area ours = add(a(), "ours", 4096, Rights::kNone);  // The owner itself may do all.
  Area read = add(b(), "read", 4096, Rights::kRead), write = add(b(), "write", 4096, Rights::kWrite);
  Area none = add_memory(b(), "none", 4096, Rights::kNone);
  const Peer peer = a_to_b();
  const std::vector<LocalRange> local = {ours.range(0, 4096)};
  const auto remote = [&](std::string_view name) { return std::vector<RemoteRange>{peer.range(name, 0, 4096)}; };
  EXPECT_TRUE(says(a().plan_write(peer, local, remote("read")).error(), Code::kDenied,
                   {"plan_write", "read", "no right to write"}));
  EXPECT_TRUE(says(a().plan_read(peer, remote("write"), local).error(), Code::kDenied,
                   {"plan_read", "write", "no right to read"}));
  EXPECT_EQ(a().plan_write(peer, local, remote("none")).error().code(), Code::kDenied);
  EXPECT_EQ(a().plan_read(peer, remote("none"), local).error().code(), Code::kDenied);
  fill(ours.bytes, 1);
  must(run(must(a().plan_write(peer, local, remote("write")))));
  EXPECT_TRUE(holds(write.bytes, 1));
  must(run(must(a().plan_read(peer, remote("read"), local))));
}

TEST_P(Conformance, ForgedRightsOpenNothing) {
  HAWSER_NEEDS_TWO_AGENTS();
  open_pair();
  Area read = add(b(), "read", 4096, Rights::kRead), write = add(b(), "write", 4096, Rights::kWrite);
  std::ranges::fill(read.bytes, kRegionCanary);
  std::ranges::fill(write.bytes, kRegionCanary);
  Area ours = add(a(), "ours", 4096);
  const Peer peer =
      must(a().add_peer(forged(b(), [](wire::CardRegion& region) { region.rights = Rights::kReadWrite; })));
  const std::vector<LocalRange> local = {ours.range(0, 4096)};
  fill(ours.bytes, 1);
  const Status written = run(must(a().plan_write(peer, local, {{peer.range("read", 0, 4096)}})));
  EXPECT_EQ(written.code(), Code::kDenied) << written.to_string();
  EXPECT_TRUE(all_are(read.bytes, kRegionCanary));
  EXPECT_EQ(run(must(a().plan_read(peer, {{peer.range("write", 0, 4096)}}, local))).code(), Code::kDenied);
  EXPECT_TRUE(holds(ours.bytes, 1));
}

/// Who refuses decides on the code: a target that places bytes sees a wrong call, an initiator that maps a wrong card.
bool refused_bounds(const Status& status) {
  return status.code() == Code::kDenied || status.code() == Code::kInvalid || status.code() == Code::kCorrupt;
}

TEST_P(Conformance, ForgedBoundsOpenNothing) {
  HAWSER_NEEDS_TWO_AGENTS();
  open_pair();
  constexpr std::size_t kSize = 8192;
  std::vector<std::byte> memory(4 * kSize, kRegionCanary);
  const Region inner =
      must(b().add_region({.name = "inner", .bytes = std::span(memory).subspan(kSize, kSize), .device = {}}));
  Area ours = add(a(), "ours", 4 * kSize);
  fill(ours.bytes, 1);
  const Peer peer = must(a().add_peer(forged(b(), [](wire::CardRegion& region) { region.size = 3 * kSize; })));
  const std::vector<RemoteRange> beyond = {peer.range("inner", kSize, kSize)},
                                 across = {peer.range("inner", kSize / 2, kSize)};
  for (const auto& range : {beyond, across}) {
    const Status written = run(must(a().plan_write(peer, {{ours.range(0, kSize)}}, range)));
    EXPECT_TRUE(refused_bounds(written)) << written.to_string();
    const Status read = run(must(a().plan_read(peer, range, {{ours.range(0, kSize)}})));
    EXPECT_TRUE(refused_bounds(read)) << read.to_string();
  }
  EXPECT_TRUE(all_are(std::span(memory).first(kSize), kRegionCanary));
  EXPECT_TRUE(all_are(std::span(memory).subspan(2 * kSize), kRegionCanary));
  EXPECT_TRUE(holds(ours.bytes, 1));
}

TEST_P(Conformance, AnOldGenerationOpensNothing) {
  HAWSER_NEEDS_TWO_AGENTS();
  open_pair();
  Area source = add(a(), "source", 4096), target = add(b(), "target", 4096);
  const Peer peer = meet();
  const Plan old = must(a().plan_write(peer, {{source.range(0, 4096)}}, {{peer.range("target", 0, 4096)}}));
  must(run(old));
  env().blocking(b(), [&] { must(target.region.close(kPatience)); });
  target.region = Region();
  Area again = add(b(), "target", 4096);
  std::ranges::fill(again.bytes, kRegionCanary);
  EXPECT_EQ(again.region.index(), 0U);
  const Status stale = run(old);
  EXPECT_EQ(stale.code(), Code::kDenied) << stale.to_string();
  EXPECT_TRUE(all_are(again.bytes, kRegionCanary));
  fill(source.bytes, 1);
  const Peer fresh = a_to_b();
  EXPECT_EQ(fresh.incarnation(), peer.incarnation());
  must(run(must(a().plan_write(fresh, {{source.range(0, 4096)}}, {{fresh.range("target", 0, 4096)}}))));
  EXPECT_TRUE(holds(again.bytes, 1));
  EXPECT_EQ(run(old).code(), Code::kDenied);
}

TEST_P(Conformance, DroppedRegionsCloseByThemselves) {
  open_pair();
  Area source = add(a(), "source", 4096);
  Peer peer;
  Plan plan;
  {
    Area target = add(b(), "target", 4096);
    peer = meet();
    plan = must(a().plan_write(peer, {{source.range(0, 4096)}}, {{peer.range("target", 0, 4096)}}));
    must(run(plan));
  }
  EXPECT_EQ(run(plan).code(), Code::kDenied);
  EXPECT_EQ(a_to_b().region("target").error().code(), Code::kNotFound);
}

std::size_t mappings() {
  std::ifstream maps("/proc/self/maps");
  return static_cast<std::size_t>(
      std::count(std::istreambuf_iterator<char>(maps), std::istreambuf_iterator<char>(), '\n'));
}

/// Bytes. What malloc maps for itself belongs to it: a large block may be there today and in the heap tomorrow.
std::size_t heap_in_use() {
  const auto info = ::mallinfo2();
  return info.uordblks + info.hblkhd;
}

/// The least of some looks: what the last rounds left is on its way out.
std::size_t settled_heap(Environment& env) {
  constexpr Duration kLooks = 50ms, kBetween = 5ms;
  const Instant end = env.now() + kLooks;
  Instant look_at = env.now();
  std::size_t least = heap_in_use();
  env.eventually([&] {
    if (env.now() < look_at) return false;  // A look costs more than a simulated event.
    look_at = env.now() + kBetween;
    least = std::min(least, heap_in_use());
    return env.now() >= end;
  });
  return least;
}

/// Whoever wrote to a region keeps nothing of it once its owner closed it and its card says so: no memory, no mapping.
/// What is bounded is no leak: changes that an agent remembers for its card are as many as it keeps before any round is
/// counted, and news of a peer's card, fewer where its changes come together, are taken. Threads' caches of free memory
/// count as used, and how full they are depends on who was let run; so rounds go on until little has grown in the last
/// ones, or there were too many of them.
/// HAWSER_FLAT_ROUNDS=100000 for more of them than a peer may bind at once. With a sanitizer, whose heap is not
/// malloc's, only mappings count.
TEST_P(Conformance, MemoryStaysFlatOverRegionsThatComeAndGo) {
  open_pair();
  Area source = add(a(), "source", kLeftToDriver), stays = add(b(), "stays", kLeftToDriver);
  must(run(must(
      a().plan_write(a_to_b(), {{source.range(0, kLeftToDriver)}}, {{a_to_b().range("stays", 0, kLeftToDriver)}}))));
  const char* const wanted = std::getenv("HAWSER_FLAT_ROUNDS");
  const std::size_t span = wanted != nullptr ? std::strtoul(wanted, nullptr, 10) : kIsSanitized ? 160 : 1600;
  constexpr std::size_t kWindows = 8, kWindowsMax = 5 * kWindows;
  constexpr std::size_t kWarm = 100, kChangesKept = 4096;
  constexpr std::size_t kRoundBytesMax = 12;  // The least that malloc gives is 32.
  std::vector<Plan> kept;                     // Some plans outlive their region for a while.
  const auto come_and_go = [&](std::size_t times) {
    for (std::size_t round = 0; round < times; ++round) {
      if (round % 50 == 0) kept.clear();
      Area area = add(b(), "comes and goes", 4096);
      {
        Plan plan = must(a().plan_write(a_to_b(), {{source.range(0, 4096)}}, {{a_to_b().range(area.name(), 0, 4096)}}));
        must(run(plan));
        if (round % 2 == 0) kept.push_back(std::move(plan));
      }
      Status closed;
      env().blocking(b(), [&] { closed = area.region.close(kPatience); });
      must(closed);
      (void)a_to_b();
      while (a().take_event()) {
      }
    }
    kept.clear();
  };
  for (std::size_t i = 0; i <= kChangesKept / 2 && !kIsSanitized; ++i) {
    Area area = add(b(), "comes and goes", 4096);
    env().blocking(b(), [&] { must(area.region.close(kPatience)); });
  }
  come_and_go(kWarm);
  const std::size_t mapped = mappings();
  std::vector<std::size_t> heap = {settled_heap(env())};
  std::size_t growth = 0;
  do {
    come_and_go(span / kWindows);
    heap.push_back(settled_heap(env()));
    const std::size_t before = heap.size() > kWindows ? heap[heap.size() - 1 - kWindows] : 0;
    growth = heap.back() > before ? heap.back() - before : 0;
  } while (heap.size() <= kWindows || (growth > span * kRoundBytesMax && heap.size() <= kWindowsMax));
  EXPECT_LE(growth, span * kRoundBytesMax) << "in the last " << span << " rounds: " << testing::PrintToString(heap);
  std::size_t more = 0;
  env().eventually([&] {
    const std::size_t now = mappings();
    more = now > mapped ? now - mapped : 0;
    return more <= 16;
  });
  EXPECT_LE(more, 16U) << "after " << (heap.size() - 1) * span / kWindows << " rounds";
}

}  // namespace
}  // namespace hawser::conformance
