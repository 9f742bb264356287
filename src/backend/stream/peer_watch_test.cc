#include "backend/stream/peer_watch.h"

#include <gtest/gtest.h>

namespace hawser::backend::stream {
namespace {

using std::chrono::milliseconds;
using Kind = proto::DetectorAction::Kind;

class PeerWatchTest : public testing::Test {
 protected:
  Instant later(Duration time) { return now_ = now_ + time; }
  /// Turns without a word from the peer until the watch answers `kind`.
  proto::DetectorAction silent_until(Kind kind) {
    for (int i = 0; i < 100; ++i) {
      watch_.begin_turn();
      now_ = std::max(now_, watch_.next_timeout());
      if (const proto::DetectorAction action = watch_.poll(now_); action.kind == kind) return action;
    }
    return {};
  }

  Instant now_ = Instant::from_ns(10'000'000'000);
  PeerWatch watch_{{.heartbeat = milliseconds(100), .patience = milliseconds(1000)}, now_};
};

TEST_F(PeerWatchTest, ItsHelloWasItsFirstWord) {
  const Instant hello = now_;
  later(milliseconds(7));
  EXPECT_FALSE(watch_.take_heard(now_)) << "nothing came";
  EXPECT_EQ(watch_.last_heard(), hello);
  watch_.note_heard();
  EXPECT_FALSE(watch_.take_heard(now_)) << "nobody was told of a silence";
  EXPECT_EQ(watch_.last_heard(), now_);
}

TEST_F(PeerWatchTest, ASilentPeerIsAskedThenSuspectedThenFailed) {
  watch_.set_busy(true, now_);
  EXPECT_EQ(silent_until(Kind::kSendPing).kind, Kind::kSendPing);
  EXPECT_EQ(silent_until(Kind::kSuspect).kind, Kind::kSuspect);
  EXPECT_GE(silent_until(Kind::kFailed).silent, milliseconds(1000));
}

TEST_F(PeerWatchTest, TheEndOfASilenceIsToldOnceAndOnlyWhereItWasTold) {
  watch_.set_busy(true, now_);
  ASSERT_EQ(silent_until(Kind::kSuspect).kind, Kind::kSuspect);
  watch_.begin_turn();
  watch_.note_heard();
  EXPECT_FALSE(watch_.take_heard(now_)) << "the agent had not heard of it";
  ASSERT_EQ(silent_until(Kind::kSuspect).kind, Kind::kSuspect);
  watch_.note_told();
  watch_.note_heard();
  EXPECT_TRUE(watch_.take_heard(now_));
  watch_.begin_turn();
  watch_.note_heard();
  EXPECT_FALSE(watch_.take_heard(now_));
}

TEST_F(PeerWatchTest, WhoOnlyHearsOwesASignOnceAnInterval) {
  watch_.note_heard();
  EXPECT_FALSE(watch_.owes_sign(later(milliseconds(99)), false)) << "its own hello is a sign";
  EXPECT_TRUE(watch_.owes_sign(later(milliseconds(1)), false));
  EXPECT_FALSE(watch_.owes_sign(later(milliseconds(99)), false)) << "it has just said one";
}

TEST_F(PeerWatchTest, WhoSpeaksOrHasSomethingToSendOwesNone) {
  watch_.note_heard();
  EXPECT_FALSE(watch_.owes_sign(later(milliseconds(100)), true));
  watch_.note_spoken();
  EXPECT_FALSE(watch_.owes_sign(later(milliseconds(100)), false));
  watch_.begin_turn();
  EXPECT_FALSE(watch_.owes_sign(later(milliseconds(100)), false)) << "nothing came";
}

TEST_F(PeerWatchTest, AQuestionIsNotPutBehindWhatWaits) {
  EXPECT_TRUE(watch_.may_ask(true));
  watch_.set_busy(true, now_);
  ASSERT_EQ(silent_until(Kind::kSuspect).kind, Kind::kSuspect);
  EXPECT_FALSE(watch_.may_ask(true));
  EXPECT_TRUE(watch_.may_ask(false));
}

TEST_F(PeerWatchTest, SilenceIsNoProofOfDeath) {
  const Status told = silence_of("b", milliseconds(1500));
  EXPECT_EQ(told.code(), Code::kTimedOut);
  EXPECT_EQ(told.message(), "b has been silent for 1500 ms");
  EXPECT_EQ(told.peer(), "b");
}

}  // namespace
}  // namespace hawser::backend::stream
