// A transfer above 4 GiB between whole agents over a fabric in memory.

#include "backend/test_aliased.h"
#include "mock_agents.h"

namespace hawser::mock_agents {
namespace {

using backend::AliasedMemory;

TEST(VerbsLarge, C2_AWriteAbove4GiBIsSplitAndArrivesAtEverySeam) {
#ifdef HAWSER_SANITIZE_THREAD
  GTEST_SKIP() << "what ThreadSanitizer notes of each byte does not fit into memory";
#endif
  constexpr std::uint64_t kGiB = std::uint64_t{1} << 30, kSize = 4 * kGiB + AliasedMemory::kBlock;
  const std::vector<std::uint64_t> seams = {0, kGiB, 2 * kGiB, 3 * kGiB, 4 * kGiB, 4 * kGiB + (1 << 20), kSize};
  AliasedMemory source(kSize, seams), target(kSize, seams);
  source.fill(1);
  MockWorld world;
  Agent a = world.open("a", "mock0"), b = world.open("b", "mock1");
  const Region from = must(a.add_region({.name = "source", .bytes = source.bytes()}));
  const Region to = must(b.add_region({.name = "target", .bytes = target.bytes()}));
  const Peer peer = must(a.add_peer(must(b.card())));
  const LocalRange here = from.range(1, kSize - 2);
  const RemoteRange there = peer.range("target", 1, kSize - 2);
  Transfer sent = must(must(a.plan_write(peer, {&here, 1}, {&there, 1})).submit({.deadline = std::chrono::minutes(1)}));
  ASSERT_TRUE(poll_until(
      {&a, &b}, [&] { return sent.done(); }, std::chrono::minutes(1)));
  EXPECT_TRUE(sent.status().ok()) << sent.status().to_string();
  EXPECT_EQ(world.with([](auto& fabric) { return fabric.largest_request; }), 1u << 20) << "the parameter stripe";
  for (const std::uint64_t seam : seams) {
    std::span<std::byte> got = target.around(seam), wanted = source.around(seam);
    if (seam == 0) wanted[0] = std::byte{0};
    if (seam == kSize) wanted.back() = std::byte{0};
    EXPECT_TRUE(std::ranges::equal(got, wanted)) << seam;
  }
}

}  // namespace
}  // namespace hawser::mock_agents
