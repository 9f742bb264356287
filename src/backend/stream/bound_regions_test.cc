#include "backend/stream/bound_regions.h"

#include <gtest/gtest.h>

#include <array>
#include <string>
#include <vector>

namespace hawser::backend::stream {
namespace {

class BoundRegionsTest : public testing::Test {
 protected:
  std::shared_ptr<const RegionEntry> add(Rights rights = Rights::kReadWrite) {
    RegionEntry entry;
    entry.key = {7, 9};
    entry.base = memory_.data();
    entry.size = memory_.size();
    entry.rights = rights;
    return regions_.add(std::move(entry)).value();
  }
  bool bind(std::uint32_t binding, const RegionEntry& region, unsigned stream = 0, base::Id128 key = {7, 9}) {
    std::string meta;
    base::ByteWriter out(&meta);
    wire::encode_bind(out, {.binding = binding, .index = region.index, .generation = region.generation, .key = key});
    return bound_.on_bind(stream, base::as_bytes(meta));
  }
  bool unbind(std::uint32_t binding, unsigned stream = 0) {
    std::string meta;
    base::ByteWriter out(&meta);
    out.u32(binding);
    return bound_.on_unbind(stream, base::as_bytes(meta));
  }
  wire::Outcome resolve(std::uint32_t binding, std::uint64_t offset, std::uint64_t size,
                        Rights right = Rights::kWrite) {
    const wire::RemotePiece piece{.remote = offset, .size = size};
    return bound_.resolve({.binding = binding}, right, {&piece, 1}, places_).outcome;
  }

  std::vector<std::byte> memory_ = std::vector<std::byte>(1000);
  RegionTable regions_{4096};
  std::shared_ptr<PeerGuard> guard_ = std::make_shared<PeerGuard>();
  std::shared_ptr<PeerAccount> account_ = guard_->account({1, 1});
  BoundRegions bound_{regions_, nullptr, *account_};
  std::vector<Piece> places_;
};

TEST_F(BoundRegionsTest, ABoundRegionIsReachedWithinItsBounds) {
  ASSERT_TRUE(bind(1, *add()));
  EXPECT_EQ(resolve(1, 10, 990), wire::Outcome::kOk);
  ASSERT_EQ(places_.size(), 1u);
  EXPECT_EQ(places_[0].local, memory_.data() + 10);
  EXPECT_EQ(resolve(1, 10, 991), wire::Outcome::kOutOfBounds);
  EXPECT_EQ(resolve(1, UINT64_MAX, 2), wire::Outcome::kOutOfBounds);
  EXPECT_EQ(resolve(2, 0, 1), wire::Outcome::kDenied) << "never bound";
}

TEST_F(BoundRegionsTest, RightsAreChecked) {
  ASSERT_TRUE(bind(1, *add(Rights::kRead)));
  EXPECT_EQ(resolve(1, 0, 1, Rights::kRead), wire::Outcome::kOk);
  EXPECT_EQ(resolve(1, 0, 1, Rights::kWrite), wire::Outcome::kDenied);
}

TEST_F(BoundRegionsTest, AWrongKeyLeavesNothingBehind) {
  EXPECT_TRUE(bind(1, *add(), 0, {7, 8})) << "it may be of a region that is gone";
  EXPECT_EQ(bound_.count(), 0u);
  EXPECT_EQ(resolve(1, 0, 1), wire::Outcome::kDenied);
}

TEST_F(BoundRegionsTest, AClosedRegionIsReachedNoMore) {
  const auto region = add();
  ASSERT_TRUE(bind(1, *region));
  regions_.close(region->index, region->generation);
  EXPECT_EQ(resolve(1, 0, 1), wire::Outcome::kClosed);
}

TEST_F(BoundRegionsTest, ABindingGoesWithTheLastStreamThatAnnouncedIt) {
  const auto region = add();
  ASSERT_TRUE(bind(1, *region, 0));
  ASSERT_TRUE(bind(1, *region, 1));
  EXPECT_FALSE(bind(1, *region, 1)) << "twice on one stream";
  EXPECT_FALSE(bind(1, *add(), 2)) << "the same name for another region";
  EXPECT_TRUE(unbind(1, 1));
  EXPECT_EQ(resolve(1, 0, 1), wire::Outcome::kOk);
  EXPECT_TRUE(unbind(1, 0));
  EXPECT_EQ(resolve(1, 0, 1), wire::Outcome::kDenied);
  EXPECT_TRUE(unbind(1, 0)) << "it names nothing that is known here";
}

TEST_F(BoundRegionsTest, MalformedFramesAreSenseless) {
  const std::array<std::byte, 3> meta = {};
  EXPECT_FALSE(bound_.on_bind(0, meta));
  EXPECT_FALSE(bound_.on_unbind(0, meta));
}

TEST_F(BoundRegionsTest, APeerHasSoManyBindings) {
  const auto region = add();
  const std::size_t most = kBindingsFree + 2;  // Twice the one open region.
  for (std::uint32_t binding = 0; binding < most; ++binding) ASSERT_TRUE(bind(binding, *region)) << binding;
  EXPECT_FALSE(bind(static_cast<std::uint32_t>(most), *region));
}

TEST_F(BoundRegionsTest, BindingsOfClosedRegionsGiveWay) {
  const auto old = add();
  const auto region = add();
  for (std::uint32_t binding = 0; binding < kBindingsFree + 4; ++binding) ASSERT_TRUE(bind(binding, *old));
  regions_.close(old->index, old->generation);
  regions_.remove(old->index, old->generation);
  EXPECT_TRUE(bind(5000, *region));
  EXPECT_EQ(bound_.count(), 1u);
}

TEST_F(BoundRegionsTest, WithoutADeskFilesAreNotReached) {
  RegionEntry entry;
  entry.key = {7, 9};
  entry.size = 100;
  entry.rights = Rights::kReadWrite;
  entry.device = {.kind = DeviceKind::kFile, .ordinal = 0};
  ASSERT_TRUE(bind(1, *regions_.add(std::move(entry)).value()));
  EXPECT_EQ(resolve(1, 0, 1), wire::Outcome::kDenied);
}

}  // namespace
}  // namespace hawser::backend::stream
