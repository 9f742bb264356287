// Back to the backend that is preferred. Without agents: src/agent/better_path_test.cc has whole ones.

#include "agent/engine/better_paths.h"

#include "agent/engine/test_rig.h"

namespace hawser::agent {
namespace {

class BetterPathsTest : public ::testing::Test {
 protected:
  BetterPathsTest() {
    constexpr std::string_view kBoth[] = {"first", "second"};
    Rig::give_card(*peer_, kBoth);
    rig_.host.known[peer_->incarnation] = peer_;
    HandPath& path = *rig_.second.port->make();
    rig_.come_up(rig_.second, path, *peer_);
    rig_.be_welcomed(rig_.second, path);
  }
  bool is_sought() { return session_->alarms.is_set(SessionTimer::kBetter); }

  Rig rig_;
  BetterPaths& better_ = rig_.engine.better();
  const std::shared_ptr<PeerCore> peer_ = hand_peer("there");
  Session* const session_ = &rig_.session_with(peer_);
};

TEST_F(BetterPathsTest, ABackendThatWasNotTriedIsNotMissed) {
  better_.seek_later(*session_, rig_.now());
  EXPECT_FALSE(is_sought());
}

TEST_F(BetterPathsTest, OneThatFailedIsTriedAgainInPausesThatGrow) {
  session_->failed[0] = Status(Code::kDisconnected, "lost");
  rig_.first.port->open_answer = Status(Code::kDisconnected, "still away");
  better_.seek_later(*session_, rig_.now());
  ASSERT_TRUE(is_sought());
  Duration before = Duration::zero();
  for (int i = 0; i < 4; ++i) {
    const Duration pause = session_->alarms.at(SessionTimer::kBetter) - rig_.now();
    EXPECT_GT(pause, before);
    before = pause;
    rig_.pass(pause);
    rig_.turn();
    EXPECT_EQ(rig_.first.port->opened.size(), static_cast<std::size_t>(i) + 1);
    ASSERT_TRUE(is_sought());
  }
  better_.seek_now(*session_, rig_.now());
  EXPECT_EQ(session_->alarms.at(SessionTimer::kBetter), rig_.now());
}

TEST_F(BetterPathsTest, OnceItIsThereNothingIsSought) {
  session_->failed[0] = Status(Code::kDisconnected, "lost");
  better_.seek_later(*session_, rig_.now());
  const std::uint64_t serial = better_.open(*session_, rig_.now() + 1s, rig_.now());
  ASSERT_NE(serial, 0u);
  EXPECT_TRUE(BetterPaths::is_opening(*session_, serial));
  HandPath& path = rig_.first.port->last();
  rig_.come_up(rig_.first, path, *peer_, 2);
  EXPECT_EQ(better_.open(*session_, rig_.now() + 1s, rig_.now()), 0u);
  rig_.be_welcomed(rig_.first, path);
  EXPECT_FALSE(BetterPaths::is_opening(*session_, serial));
  EXPECT_FALSE(is_sought());
}

}  // namespace
}  // namespace hawser::agent
