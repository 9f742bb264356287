// Transfers that are larger than what one work request may be, over a fabric in memory.

#include "backend/test_aliased.h"
#include "backend/verbs/port_test_pair.h"

namespace hawser::backend::verbs {
namespace {

constexpr std::uint64_t kGiB = std::uint64_t{1} << 30;

class LargeTransfer : public VerbsPair {
 protected:
#ifdef HAWSER_SANITIZE_THREAD
  void SetUp() override { GTEST_SKIP() << "what ThreadSanitizer notes of each byte does not fit into memory"; }
#endif

  /// Connects over ports that take so many bytes in a request, and registers the memory of both ends.
  void connect_over(std::uint32_t max_msg_sz, AliasedMemory& here, AliasedMemory& there) {
    fabric.device("mock0").max_msg_sz = fabric.device("mock1").max_msg_sz = max_msg_sz;
    start();
    connect();
    add(*a, here);
    binding = bind(*add(*b, there), b->extra);
    fabric.requests = fabric.largest_request = 0;
  }
  static std::shared_ptr<const RegionEntry> add(Side& side, AliasedMemory& memory) {
    RegionEntry entry;
    entry.key = {7, 9};
    entry.base = memory.base();
    entry.size = memory.size();
    entry.rights = Rights::kReadWrite;
    auto added = *side.table.add(std::move(entry));
    side.extra = *side.regions->add(*added);
    return added;
  }
  /// One chunk; the status of its end.
  Status move(Operation op, std::byte* local, std::uint64_t remote, std::uint64_t size) {
    const Piece piece[] = {{local, remote, size}};
    EXPECT_EQ(submit(op, piece, 1).taken, 1u);
    EXPECT_TRUE(run([&] { return is_done(1); }));
    return outcome(1);
  }
};

/// Places where requests of `request` bytes meet, and the ends.
std::vector<std::uint64_t> seams_of(std::uint64_t size, std::uint64_t request) {
  std::vector<std::uint64_t> seams;
  for (std::uint64_t at = 0; at < size; at += request) seams.push_back(at / 4096 * 4096);
  seams.push_back(size);
  return seams;
}

TEST_F(LargeTransfer, C2_AboveAGibibyteIsSplitAtThePortsMessageSize) {
  constexpr std::uint64_t kSize = kGiB + kGiB / 2;
  struct Case {
    std::uint32_t max_msg_sz;
    std::uint64_t request;  // What is expected of the largest.
  };
  // 2 GiB is what most adapters tell; a scatter entry of ours is at most half of it. One is odd on purpose.
  for (const Case& each : {Case{1u << 31, kGiB}, Case{1u << 30, kGiB}, Case{700'000'003, 700'000'003}}) {
    AliasedMemory here(kSize, seams_of(kSize, each.request)), there(kSize, seams_of(kSize, each.request));
    here.fill(each.max_msg_sz);
    connect_over(each.max_msg_sz, here, there);
    const Status status = move(Operation::kWrite, here.base(), 0, kSize);
    EXPECT_TRUE(status.ok()) << status.to_string();
    EXPECT_EQ(fabric.requests, (kSize + each.request - 1) / each.request);
    EXPECT_EQ(fabric.largest_request, each.request);
    for (const std::uint64_t seam : seams_of(kSize, each.request)) {
      EXPECT_TRUE(std::ranges::equal(here.around(seam), there.around(seam))) << seam;
    }
    a.reset();
    b.reset();
  }
}

TEST_F(LargeTransfer, C2_AReadAbove4GiBArrivesAtEverySeamAndNowhereElse) {
  constexpr std::uint64_t kSize = 4 * kGiB + AliasedMemory::kBlock, kBegin = 5, kEnd = kSize - 7;
  const std::vector<std::uint64_t> seams = seams_of(kSize, kGiB);
  AliasedMemory here(kSize, seams), there(kSize, seams);
  there.fill(1);
  connect_over(1u << 30, here, there);
  const Status status = move(Operation::kRead, here.base() + kBegin, kBegin, kEnd - kBegin);
  EXPECT_TRUE(status.ok()) << status.to_string();
  EXPECT_EQ(fabric.largest_request, kGiB);
  for (const std::uint64_t seam : seams) {
    const std::span<std::byte> read = here.around(seam), source = there.around(seam);
    const std::size_t first = seam == 0 ? kBegin : 0, last = seam == kSize ? read.size() - 7 : read.size();
    EXPECT_TRUE(std::ranges::equal(read.subspan(first, last - first), source.subspan(first, last - first))) << seam;
    EXPECT_EQ(std::ranges::count(read.first(first), std::byte{0}), static_cast<std::ptrdiff_t>(first));
    EXPECT_EQ(std::ranges::count(read.subspan(last), std::byte{0}), static_cast<std::ptrdiff_t>(read.size() - last));
  }
}

TEST_F(LargeTransfer, C2_APortWithSmallMessagesTakesAChunkInPieces) {
  fabric.device("mock0").max_msg_sz = fabric.device("mock1").max_msg_sz = 100'000;
  start();
  connect();
  fabric.requests = fabric.largest_request = 0;
  const Piece piece[] = {{a->memory.data() + 1, 3, 1'000'001}};
  ASSERT_EQ(submit(Operation::kWrite, piece, 1).taken, 1u);
  ASSERT_TRUE(run([&] { return is_done(1); }));
  EXPECT_TRUE(outcome(1).ok()) << outcome(1).to_string();
  EXPECT_EQ(fabric.requests, 11u);
  EXPECT_EQ(fabric.largest_request, 100'000u);
  EXPECT_TRUE(std::equal(a->memory.begin() + 1, a->memory.begin() + 1'000'002, b->memory.begin() + 3));
  EXPECT_EQ(b->memory[2], std::byte{0xee});
  EXPECT_EQ(b->memory[1'000'004], std::byte{0xee});
}

}  // namespace
}  // namespace hawser::backend::verbs
