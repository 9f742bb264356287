#include "backend/stream/desk_share.h"

#include <gtest/gtest.h>

#include "backend/stream/memory_network.h"
#include "backend/stream/target.h"
#include "backend/stream/test_context.h"
#include "fileio/fake_queue.h"

namespace hawser::backend::stream {
namespace {

class DeskShareTest : public testing::Test {
 protected:
  MemorySwitch switch_;
  MemoryNetwork network_{switch_, "store"};
  Identity identity_{.name = "store"};
  base::Logger log_;
  RegionTable regions_{4};
  Context context_ = test_context(identity_, regions_, log_);
  FileDesk desk_{context_, network_};
  std::shared_ptr<PeerGuard> guard_ = std::make_shared<PeerGuard>();
  std::shared_ptr<PeerAccount> account_ = guard_->account({1, 1});
  DeskShare share_{&desk_, nullptr, nullptr, *account_};
};

TEST_F(DeskShareTest, APeersPathsTogetherHaveOneShare) {
  DeskShare other(&desk_, nullptr, nullptr, *account_);
  Staged first = share_.stage(kStagedPerPeer / 2);
  Staged second = other.stage(kStagedPerPeer / 2 - 1);
  ASSERT_TRUE(first && second);
  EXPECT_EQ(account_->staged, kStagedPerPeer) << "whole pages, a power of two";
  EXPECT_FALSE(share_.stage(1)) << "the share is used up";
  EXPECT_FALSE(other.stage(1));
  other.unstage(second);
  EXPECT_EQ(other.held(), 0u);
  Staged third = share_.stage(1);
  EXPECT_TRUE(third);
  share_.unstage(first);
  share_.unstage(third);
  share_.unstage(third);
  EXPECT_EQ(account_->staged, 0u);
  EXPECT_EQ(desk_.staged(), 0u);
}

TEST_F(DeskShareTest, AnotherPeerHasItsOwn) {
  Staged staged = share_.stage(kStagedPerPeer);
  ASSERT_TRUE(staged);
  const std::shared_ptr<PeerAccount> account = guard_->account({2, 2});
  DeskShare other(&desk_, nullptr, nullptr, *account);
  Staged theirs = other.stage(1);
  EXPECT_TRUE(theirs);
  EXPECT_EQ(other.held(), theirs.capacity());
}

TEST_F(DeskShareTest, WhatJobsStillHoldLeavesTheAccountWithThePath) {
  Staged staged = share_.stage(5000);
  share_.abandon();
  share_.forget_held();
  EXPECT_EQ(share_.held(), 0u);
  EXPECT_EQ(account_->staged, 0u);
  EXPECT_GT(desk_.staged(), 0u) << "the desk knows of it until the job ends";
}

TEST_F(DeskShareTest, AJobNamesItsRegionAndWhoseItIs) {
  EventQueue events;
  Target target(regions_, events, nullptr, &desk_, "peer", 4096);
  const DeskShare share(&desk_, &target, nullptr, *account_);
  BoundRegion region;
  region.index = 3;
  region.generation = 4;
  region.file_offset = 100;
  const FileJob job = share.job(Operation::kWrite, region, {.transfer = 7, .index = 1, .tag = 9, .binding = 1}, 50);
  EXPECT_EQ(job.target, &target);
  EXPECT_EQ(job.region, 3u);
  EXPECT_EQ(job.generation, 4u);
  EXPECT_EQ(job.file_offset, 100u);
  EXPECT_EQ(job.bytes, 50u);
  EXPECT_EQ(job.chunk.tag, 9u);
}

TEST(DeskShare, PiecesLieBehindOneAnother) {
  std::array<std::byte, 10> memory = {};
  std::array<Piece, 3> pieces{Piece{nullptr, 0, 3}, Piece{nullptr, 50, 0}, Piece{nullptr, 90, 7}};
  DeskShare::place(pieces, memory.data());
  EXPECT_EQ(pieces[0].local, memory.data());
  EXPECT_EQ(pieces[2].local, memory.data() + 3);
  EXPECT_EQ(pieces[2].remote, 90u);
}

}  // namespace
}  // namespace hawser::backend::stream
