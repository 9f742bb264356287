// The path that a plan takes.

#include "agent/engine/router.h"

#include "agent/engine/test_rig.h"

namespace hawser::agent {
namespace {

class RouterTest : public ::testing::Test {
 protected:
  HandPath& connect_second() {
    HandPath& path = *rig_.second.port->make();
    rig_.come_up(rig_.second, path, *peer_, 2);
    rig_.be_welcomed(rig_.second, path);
    return path;
  }
  PathEntry* route() { return router_.route(*plan_, *peer_->session(), &why_); }

  Rig rig_;
  Router& router_ = rig_.engine.router();
  const std::shared_ptr<PeerCore> peer_ = hand_peer("there");
  HandPath& path_ = rig_.connect(peer_);
  const std::shared_ptr<PlanCore> plan_ = rig_.plan_of(peer_);
  Status why_;
};

TEST_F(RouterTest, ThePreferredBackendIsTakenAndItsRegionsAreBoundOnce) {
  connect_second();
  PathEntry* const entry = route();
  ASSERT_NE(entry, nullptr);
  EXPECT_EQ(entry->path, &path_);
  EXPECT_EQ(route(), entry);
  EXPECT_EQ(path_.bound.size(), 1u);
  EXPECT_EQ(plan_->route.bindings.size(), 1u);
}

TEST_F(RouterTest, AfterAnotherPathWasAgreedUponItChoosesAnew) {
  ASSERT_NE(route(), nullptr);
  EXPECT_NE(Router::in_force(plan_->route, *peer_->session()), nullptr);
  connect_second();
  EXPECT_EQ(Router::in_force(plan_->route, *peer_->session()), nullptr);
  EXPECT_EQ(route()->path, &path_);
}

TEST_F(RouterTest, ARegionThatAPathCannotBindGoesByAnother) {
  HandPath& other = connect_second();
  path_.bind_answer = Status(Code::kUnsupported, "not on this path");
  PathEntry* const entry = route();
  ASSERT_NE(entry, nullptr);
  EXPECT_EQ(entry->path, &other);
  EXPECT_TRUE(why_.ok());
}

TEST_F(RouterTest, AReasonThatTheCallerHadStaysWhileAPathIsOnItsWay) {
  const std::shared_ptr<PeerCore> unmet = hand_peer("unmet", 9);
  const std::shared_ptr<PlanCore> plan = rig_.plan_of(unmet);
  why_ = Status(Code::kDisconnected, "no path is up");
  EXPECT_EQ(router_.route(*plan, rig_.session_with(unmet), &why_), nullptr);
  EXPECT_EQ(why_.message(), "no path is up");
  // Nor does it keep the plan from another path.
  HandPath& other = connect_second();
  path_.bind_answer = Status(Code::kUnsupported, "not on this path");
  ASSERT_NE(route(), nullptr);
  EXPECT_EQ(route()->path, &other);
}

TEST_F(RouterTest, APathThatHasJustGoneDeniesNothing) {
  path_.bind_answer = Status(Code::kDisconnected, "the path is not up").with_scope(Scope::kPath);
  EXPECT_EQ(route(), nullptr);
  EXPECT_TRUE(why_.ok()) << "the plan waits for the next path";
  path_.bind_answer = Status(Code::kDisconnected, "the peer is gone");
  EXPECT_EQ(route(), nullptr);
  EXPECT_EQ(why_.code(), Code::kDisconnected);
}

TEST_F(RouterTest, WhatIsDeniedIsFinal) {
  connect_second();
  path_.bind_answer = Status(Code::kDenied, "wrong key");
  EXPECT_EQ(route(), nullptr);
  EXPECT_EQ(why_.code(), Code::kDenied);
}

TEST_F(RouterTest, WhereNoPathCanTheNextBackendIsOpenedAndElseTheReasonsAreTold) {
  path_.bind_answer = Status(Code::kUnsupported, "not on this path");
  EXPECT_EQ(route(), nullptr);
  EXPECT_EQ(why_.code(), Code::kUnsupported);
  EXPECT_NE(why_.to_string().find("not on this path"), std::string::npos) << why_.to_string();
  constexpr std::string_view kSecond[] = {"second"};
  Rig::give_card(*peer_, kSecond);
  why_ = Status();
  EXPECT_EQ(route(), nullptr);
  EXPECT_TRUE(why_.ok()) << "a path is on its way";
  EXPECT_EQ(rig_.second.port->opened.size(), 1u);
}

TEST_F(RouterTest, MemoryThatABackendDoesNotReachIsNotGivenToIt) {
  auto remote = std::make_shared<RemoteRegion>(*plan_->remotes[0]);
  remote->device = Device{.kind = DeviceKind::kCuda, .ordinal = 0};
  plan_->remotes[0] = remote;
  EXPECT_EQ(route(), nullptr);
  EXPECT_TRUE(path_.bound.empty());
  EXPECT_NE(why_.to_string().find("does not reach remote memory"), std::string::npos) << why_.to_string();
}

}  // namespace
}  // namespace hawser::agent
