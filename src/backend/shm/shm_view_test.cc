// Looks into a peer's regions: Path::view.

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <vector>

#include "backend/shm/test_host.h"

namespace hawser::backend::shm {
namespace {

class ShmView : public ::testing::Test {
 protected:
  /// Once the peer has answered for the region.
  Result<std::unique_ptr<View>> view(const RegionEntry& region) {
    Result<Binding*> binding = path_->bind(b_.ref(region));
    if (!binding) return binding.error();
    Result<std::unique_ptr<View>> made = path_->view(**binding);
    const auto has_answer = [&] {
      if (!made && made.error().code() == Code::kBusy) made = path_->view(**binding);
      return made || made.error().code() != Code::kBusy;
    };
    EXPECT_TRUE(turn_until({&a_, &b_}, has_answer));
    return made;
  }
  bool is_quiet(const RegionEntry& region) { return b_.port().region_quiet(region.index, region.generation, &holder_); }

  TestFolder folder_;
  TestHost a_{"alice", folder_.path()};
  TestHost b_{"bob", folder_.path()};
  Path* const path_ = connect(a_, b_);
  std::string holder_;
};

TEST_F(ShmView, ShowsTheOwnersMemory) {
  const auto region = b_.allocate(1 << 20);
  Binding* const binding = path_->bind(b_.ref(*region)).value();
  const auto early = path_->view(*binding);
  ASSERT_FALSE(early);
  EXPECT_EQ(early.error().code(), Code::kBusy) << "the peer was asked just now";
  const auto seen = view(*region);
  ASSERT_TRUE(seen) << seen.error().to_string();
  ASSERT_EQ((*seen)->bytes().size(), region->size);
  EXPECT_EQ((*seen)->first(), 0U);
  std::memset(region->base, 0x5a, region->size);
  EXPECT_TRUE(std::ranges::all_of((*seen)->bytes(), [](std::byte each) { return each == std::byte{0x5a}; }));
  EXPECT_NE(path_->describe().find("1 of 16 views"), std::string::npos) << path_->describe();
}

TEST_F(ShmView, APathHasAFixedNumberOfThem) {
  const auto region = b_.allocate(4096);
  std::vector<std::unique_ptr<View>> held;
  for (std::uint32_t i = 0; i < kViewsMax; ++i) {
    auto made = view(*region);
    ASSERT_TRUE(made) << i << made.error().to_string();
    held.push_back(std::move(*made));
  }
  Binding* const binding = path_->bind(b_.ref(*region)).value();
  const auto refused = path_->view(*binding);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), Code::kBusy);
  held.erase(held.begin() + 3);
  EXPECT_TRUE(path_->view(*binding));
}

TEST_F(ShmView, AGrantThatItsOnlyHolderHasUsedIsShutWithoutABarrier) {
  const bool has_barriers = static_cast<const ShmBackend&>(b_.backend()).gates().has_membarrier();
  for (const bool is_over : {false, true}) {
    const auto grant = b_.grant_once(4096, a_.identity().incarnation);
    ASSERT_TRUE(view(*grant)) << "its holder was there, and left";
    if (is_over) grant->once->note_over();
    const std::uint64_t before = b_.barriers();
    b_.regions().close(grant->index, grant->generation);
    b_.port().regions_closing(std::array{RegionId{grant->index, grant->generation}});
    EXPECT_TRUE(is_quiet(*grant));
    EXPECT_EQ(b_.barriers() - before, has_barriers && !is_over ? 1U : 0U);
    EXPECT_EQ(view(*grant).error().code(), Code::kDenied);
  }
}

TEST_F(ShmView, ABarrierThatOneRegionNeedsIsNotSavedByAnother) {
  if (!static_cast<const ShmBackend&>(b_.backend()).gates().has_membarrier()) GTEST_SKIP() << "no membarrier here";
  const auto grant = b_.grant_once(4096, a_.identity().incarnation), anybodys = b_.grant_once(4096, {});
  for (const auto& each : {grant, anybodys}) {
    ASSERT_TRUE(view(*each)) << "its place was told, and the view left";
    each->once->note_over();
    b_.regions().close(each->index, each->generation);
  }
  const std::uint64_t before = b_.barriers();
  b_.port().regions_closing(
      std::array{RegionId{grant->index, grant->generation}, RegionId{anybodys->index, anybodys->generation}});
  EXPECT_EQ(b_.barriers() - before, 1U) << "somebody else may have the second";
}

TEST_F(ShmView, ARegionWhosePlaceNobodyWasToldNeedsNoBarrier) {
  const auto region = b_.allocate(4096);
  const std::uint64_t before = b_.barriers();
  b_.regions().close(region->index, region->generation);
  b_.port().regions_closing(std::array{RegionId{region->index, region->generation}});
  EXPECT_TRUE(is_quiet(*region));
  EXPECT_EQ(b_.barriers(), before);
  EXPECT_EQ(view(*region).error().code(), Code::kDenied) << "and nobody is told any more";
}

TEST_F(ShmView, AHolderThatIsInsideIsSeenThoughItSaidThatItIsDone) {
  const auto grant = b_.grant_once(4096, a_.identity().incarnation);
  auto seen = view(*grant);
  ASSERT_TRUE(seen);
  grant->once->note_over();
  b_.regions().close(grant->index, grant->generation);
  EXPECT_FALSE(is_quiet(*grant));
  EXPECT_EQ(holder_, base::format("alice (process {})", ::getpid()));
  seen->reset();
  EXPECT_TRUE(is_quiet(*grant));
}

TEST_F(ShmView, TheOwnersCloseWaitsForIt) {
  const auto region = b_.allocate(4096), other = b_.allocate(4096);
  auto first = view(*region), second = view(*region), third = view(*other);
  ASSERT_TRUE(first && second && third);
  b_.regions().close(region->index, region->generation);
  EXPECT_FALSE(is_quiet(*region));
  EXPECT_EQ(holder_, base::format("alice (process {})", ::getpid()));
  first->reset();
  EXPECT_FALSE(is_quiet(*region)) << "the other view is there still";
  EXPECT_FALSE((*second)->bytes().empty());
  second->reset();
  EXPECT_TRUE(is_quiet(*region));
  const auto late = path_->view(*path_->bind(b_.ref(*region)).value());
  ASSERT_FALSE(late);
  EXPECT_EQ(late.error().code(), Code::kDenied);
  EXPECT_FALSE((*third)->bytes().empty());
}

TEST_F(ShmView, OneThatLetGoHoldsNothingAndShowsTheMemoryAsBefore) {
  const auto region = b_.allocate(4096);
  std::vector<std::unique_ptr<View>> loose;
  for (std::uint32_t i = 0; i < kViewsMax + 2; ++i) {
    auto made = view(*region);
    ASSERT_TRUE(made) << i << made.error().to_string();
    (*made)->let_go();
    (*made)->let_go();
    loose.push_back(std::move(*made));
  }
  auto held = view(*region);
  ASSERT_TRUE(held);
  loose.erase(loose.begin());  // It leaves no pin of the others.
  std::memset(region->base, 0x5a, region->size);
  EXPECT_EQ(loose[0]->bytes().front(), std::byte{0x5a});
  b_.regions().close(region->index, region->generation);
  EXPECT_FALSE(is_quiet(*region));
  held->reset();
  EXPECT_TRUE(is_quiet(*region));
  EXPECT_FALSE(loose[0]->bytes().empty());
  a_.port().release_path(path_);
  EXPECT_TRUE(loose[0]->bytes().empty());
}

TEST_F(ShmView, IsEmptyOnceThePathHasEnded) {
  const auto region = b_.allocate(4096);
  auto seen = view(*region);
  ASSERT_TRUE(seen);
  const std::byte* const at = (*seen)->bytes().data();
  a_.port().release_path(path_);
  EXPECT_TRUE((*seen)->bytes().empty());
  EXPECT_EQ(*at, std::byte{0}) << "it stays mapped, so that a late look is no crash";
  b_.regions().close(region->index, region->generation);
  EXPECT_TRUE(turn_until({&a_, &b_}, [&] { return is_quiet(*region); }));
  seen->reset();
}

TEST_F(ShmView, IsEmptyOnceTheOwnerIsGone) {
  const auto region = b_.allocate(4096);
  auto seen = view(*region);
  ASSERT_TRUE(seen);
  b_.port().begin_close(Clock::steady().now());
  ASSERT_TRUE(turn_until({&a_, &b_}, [&] { return a_.downs.contains(path_); }));
  EXPECT_TRUE((*seen)->bytes().empty());
}

TEST_F(ShmView, ForeignMemoryHasNone) {
  std::vector<std::byte> memory(4096);
  const auto region = b_.add_foreign(memory);
  const auto refused = view(*region);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), Code::kUnsupported) << refused.error().to_string();
}

TEST_F(ShmView, WhatMayNotBeReadHasNone) {
  const auto refused = view(*b_.allocate(4096, Rights::kWrite));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), Code::kDenied);
}

TEST_F(ShmView, OfAdoptedMemoryItShowsThePagesThatAreMapped) {
  constexpr std::size_t kSize = 64 * 1024;
  auto* const memory =
      static_cast<std::byte*>(::mmap(nullptr, kSize, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  ASSERT_NE(memory, MAP_FAILED);
  std::memset(memory, 1, kSize);
  const auto region = b_.adopt({memory + 100, kSize - 300});
  if (!region->pages || !region->pages->file()) GTEST_SKIP() << "this system adopts no memory";
  const auto seen = view(*region);
  ASSERT_TRUE(seen) << seen.error().to_string();
  const SharedFile file = region->pages->file().value();
  EXPECT_EQ((*seen)->first(), file.head);
  EXPECT_EQ((*seen)->bytes().size(), region->size - file.head - file.tail);
  region->base[file.head] = std::byte{7};
  EXPECT_EQ((*seen)->bytes()[0], std::byte{7});
}

}  // namespace
}  // namespace hawser::backend::shm
