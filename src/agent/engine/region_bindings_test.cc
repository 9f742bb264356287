// When paths forget regions that are gone.

#include "agent/engine/region_bindings.h"

#include "agent/engine/test_rig.h"

namespace hawser::agent {
namespace {

class RegionBindingsTest : public ::testing::Test {
 protected:
  RegionBindingsTest() {
    Status why;
    EXPECT_NE(rig_.engine.router().route(*plan_, *peer_->session(), &why), nullptr);
  }
  using Ids = std::vector<std::pair<std::uint32_t, std::uint32_t>>;

  Rig rig_;
  RegionBindings& bindings_ = rig_.engine.bindings();
  const std::shared_ptr<PeerCore> peer_ = hand_peer("there");
  HandPath& path_ = rig_.connect(peer_);
  std::shared_ptr<PlanCore> plan_ = rig_.plan_of(peer_);
};

TEST_F(RegionBindingsTest, AClosedRegionIsForgottenOnceNoHandleIsLeft) {
  CardStore::Change change;
  change.gone.emplace_back(3, 1);
  bindings_.on_card(*peer_, change, rig_.now());
  EXPECT_TRUE(path_.unbound.empty()) << "the plan holds it";
  EXPECT_EQ(peer_->session()->alarms.at(SessionTimer::kLetGo), rig_.now() + 1s);
  plan_.reset();
  rig_.pass(1s);
  rig_.turn();
  EXPECT_EQ(path_.unbound, (Ids{{3, 1}}));
  EXPECT_FALSE(peer_->session()->alarms.is_set(SessionTimer::kLetGo));
}

TEST_F(RegionBindingsTest, ANewCardMayMakeAPathReachWhatItCouldNot) {
  peer_->session()->paths.front().refused.add({8, 1}, {}, Status(Code::kUnsupported, "no key"));
  const std::uint64_t before = peer_->session()->paths_agreed;
  bindings_.on_card(*peer_, {}, rig_.now());
  EXPECT_EQ(peer_->session()->paths_agreed, before + 1);
  bindings_.on_card(*peer_, {}, rig_.now());
  EXPECT_EQ(peer_->session()->paths_agreed, before + 1);
}

}  // namespace
}  // namespace hawser::agent
