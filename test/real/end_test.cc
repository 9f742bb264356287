// Transfers between processes that end early, and tables of a million ranges.

#include <algorithm>
#include <numeric>

#include "real_test.h"

namespace hawser::real {
namespace {

constexpr std::size_t kSize = 12 << 20;
constexpr std::byte kCanary{0xca};
constexpr std::string_view kCanaryText = "202";

/// Submits, lets it run for a while, ends it. Gives its outcome, final.
Status end_after(const Plan& plan, Duration delay, bool by_deadline) {
  Transfer sent = must(plan.submit({.deadline = by_deadline ? std::max<Duration>(delay, 1us) : kPatience}));
  const Instant from = now();
  if (!by_deadline) {
    eventually([&] { return now() - from >= delay || sent.done(); });
    sent.cancel();
  }
  const Status status = finish(sent);
  EXPECT_TRUE(sent.done());
  const Code early = by_deadline ? Code::kTimedOut : Code::kCancelled;
  EXPECT_TRUE(status.ok() || status.code() == early) << status.to_string();
  return status;
}

TEST_P(RealTest, WhatEndsEarlyTouchesNothingAfterwards) {
  // Looking at bytes takes long in an emulated machine.
  const std::size_t size = GetParam().backend == "verbs" ? 2 << 20 : kSize;
  Here here(GetParam(), quick("here"));
  Memory& local = here.add("local", size);
  PeerProcess process = PeerProcess::start(peer_line(GetParam(), "there"));
  process.ask("region remote " + std::to_string(size) + (GetParam().allocated ? " allocated" : " foreign"));
  const Peer peer = here.meet(process);
  const Plan write = here.plan_write(peer, "local", "remote", size);
  const Plan read = here.plan_read(peer, "remote", "local", size);
  must(peer.connect(kPatience));
  int early = 0;
  for (const bool by_deadline : {false, true}) {
    for (const Duration delay : {0us, 50us, 200us, 500us, 1000us, 2000us, 4000us}) {
      process.ask("put remote 1");
      std::ranges::fill(local.bytes, std::byte{2});
      early += end_after(write, delay, by_deadline).ok() ? 0 : 1;
      // Final: this memory is ours again, and what is in it now must never be seen there.
      std::ranges::fill(local.bytes, kCanary);
      EXPECT_EQ(process.ask("count remote " + std::string(kCanaryText)), "0") << delay.count();

      process.ask("put remote 3");
      early += end_after(read, delay, by_deadline).ok() ? 0 : 1;
      std::ranges::fill(local.bytes, kCanary);
      (void)process.ask("event");  // There and back: what was under way has come.
      ASSERT_TRUE(all_are(local.bytes, kCanary)) << delay.count();
    }
  }
  EXPECT_GT(early, 0) << "all were quicker than their end: nothing was tested";
  std::ranges::fill(local.bytes, std::byte{5});
  Transfer good = must(write.submit());
  must(finish(good));
  EXPECT_EQ(process.ask("see remote 5"), "yes");
}

TEST_P(RealTest, AMillionRangesBetweenProcesses) {
  constexpr std::uint32_t kCount = 1'000'000;
  constexpr std::uint64_t kBlock = 8, kStride = 16;
  Here here(GetParam(), quick("here"));
  Memory& source = here.add("source", kCount * kBlock);
  Memory& back = here.add("back", kCount * kStride);
  PeerProcess process = PeerProcess::start(peer_line(GetParam(), "there"));
  process.ask("region target " + std::to_string(kCount * kStride) + (GetParam().allocated ? " allocated" : " foreign"));
  process.ask("put target 0");
  const Peer peer = here.meet(process);
  for (std::size_t i = 0; i < source.bytes.size(); ++i) source.bytes[i] = static_cast<std::byte>(i * 7 / 5 + 1);
  std::vector<std::uint32_t> in_order(kCount), scattered(kCount);
  std::iota(in_order.begin(), in_order.end(), 0U);
  constexpr std::uint64_t kStep = 611'953;  // Prime, so that it visits all.
  for (std::uint32_t i = 0; i < kCount; ++i) scattered[i] = static_cast<std::uint32_t>(i * kStep % kCount);
  const RangeTable theirs = peer.table("target", {.offset = 0, .size = kBlock, .stride = kStride, .count = kCount});
  const Plan plan = must(here.agent().plan_write(peer, source.region.table(kBlock), in_order, theirs, scattered));
  EXPECT_EQ(plan.range_count(), kCount);
  const Instant from = now();
  Transfer sent = must(plan.submit({.notify = "million", .deadline = kPatience}));
  must(finish(sent));
  print_time("a million ranges in", now() - from);
  EXPECT_TRUE(eventually([&] { return process.ask("take") == "got million"; }));
  Transfer read = must(here.plan_read(peer, "target", "back", kCount * kStride).submit());
  must(finish(read));
  for (std::uint32_t i = 0; i < kCount; ++i) {
    const auto got = back.bytes.subspan(scattered[i] * kStride, kStride);
    ASSERT_TRUE(std::ranges::equal(got.first(kBlock), source.bytes.subspan(i * kBlock, kBlock))) << "range " << i;
    ASSERT_TRUE(all_are(got.last(kStride - kBlock), std::byte{0})) << "the gap after range " << i;
  }
}

}  // namespace
}  // namespace hawser::real
