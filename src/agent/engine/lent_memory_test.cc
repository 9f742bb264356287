// Memory that is lent one peer, and is the caller's again within the call that takes it back.

#include "agent/engine/lent_memory.h"

#include "agent/engine/test_rig.h"

namespace hawser::agent {
namespace {

class LentMemoryTest : public ::testing::Test {
 protected:
  Rig rig_{{.carries_arrivals = true, .quits_at_once = true}};
  LentMemory lent_{rig_.regions, rig_.engine.ports(), rig_.host};
  const std::shared_ptr<PeerCore> peer_ = hand_peer("there");
  std::vector<std::byte> memory_ = std::vector<std::byte>(100);
};

TEST_F(LentMemoryTest, ItIsARegionForThatPeerAloneUntilItIsTakenBack) {
  rig_.connect(peer_);
  EXPECT_TRUE(lent_.lends(*peer_->session()));
  const wire::Lent its = *lent_.lend(*peer_->session(), memory_);
  const auto find = [&](Rights right, const base::Id128& who) {
    return rig_.regions.find(its.index, its.generation, its.key, right, who);
  };
  ASSERT_TRUE(find(Rights::kWrite, peer_->incarnation));
  EXPECT_EQ((*find(Rights::kWrite, peer_->incarnation))->base, memory_.data());
  EXPECT_EQ((*find(Rights::kWrite, peer_->incarnation))->size, memory_.size());
  EXPECT_FALSE((*find(Rights::kWrite, peer_->incarnation))->listed);
  EXPECT_FALSE(find(Rights::kRead, peer_->incarnation));
  EXPECT_FALSE(find(Rights::kWrite, base::Id128{8, 8}));
  EXPECT_FALSE(find(Rights::kWrite, {})) << "nor where nobody knows who asks";
  lent_.take_back(its);
  EXPECT_FALSE(find(Rights::kWrite, peer_->incarnation));
  EXPECT_EQ(rig_.regions.count(), 0u);
}

TEST_F(LentMemoryTest, WithoutAPathOrOverOneThatQuitsSlowlyNothingIsLent) {
  EXPECT_FALSE(lent_.lends(rig_.session_with(peer_)));
  Rig slow;
  const std::shared_ptr<PeerCore> other = hand_peer("other", 8);
  slow.connect(other);
  EXPECT_FALSE(LentMemory(slow.regions, slow.engine.ports(), slow.host).lends(*other->session()));
}

TEST_F(LentMemoryTest, AsManyRegionsAsThereMayBe) {
  rig_.connect(peer_);
  backend::RegionTable table(1);
  LentMemory one(table, rig_.engine.ports(), rig_.host);
  const Result<wire::Lent> first = one.lend(*peer_->session(), memory_);
  ASSERT_TRUE(first);
  EXPECT_EQ(one.lend(*peer_->session(), memory_).error().code(), Code::kBusy);
  one.take_back(*first);
  EXPECT_TRUE(one.lend(*peer_->session(), memory_));
}

}  // namespace
}  // namespace hawser::agent
