#include "backend/shm/heartbeat.h"

#include <gtest/gtest.h>

#include "base/fd.h"

namespace hawser::backend::shm {
namespace {

using namespace std::chrono_literals;
using Verdict = Heartbeat::Verdict;

/// Two ends of one link, at which time passes as the test says.
class HeartbeatTest : public ::testing::Test {
 protected:
  void SetUp() override {
    base::Fd file;
    auto made = Link::make(4096, &file);
    ASSERT_TRUE(made);
    near_link_ = std::move(*made);
    auto adopted = Link::adopt(file.get(), 4096);
    ASSERT_TRUE(adopted);
    far_link_ = std::move(*adopted);
    near_.begin(kInterval, kPatience, now_);
  }
  /// Lets time pass until a look is due, and looks.
  Heartbeat::Look look_when_due(bool is_drained = true) {
    now_ = near_.next();
    return near_.look(messages_, is_drained, now_);
  }
  bool is_suspect_soon() {
    for (int looks = 0; looks < 100; ++looks) {
      if (look_when_due().verdict == Verdict::kSuspect) return true;
    }
    return false;
  }
  std::int64_t milliseconds() const {
    return std::chrono::duration_cast<std::chrono::milliseconds>(now_ - kBegin).count();
  }

  static constexpr Duration kInterval = 100ms, kPatience = 1s;
  static constexpr Instant kBegin = Instant::from_ns(1'000'000'000);
  Link near_link_, far_link_;
  Heartbeat near_{near_link_}, far_{far_link_};
  Instant now_ = kBegin;
  std::uint64_t messages_ = 0;
};

TEST_F(HeartbeatTest, WithoutABeginningItAsksNobodyButAnswers) {
  EXPECT_FALSE(far_.is_on());
  EXPECT_EQ(far_.next(), Instant::max());
  EXPECT_EQ(far_.look(0, true, now_ + 1h).verdict, Verdict::kNothing);
  EXPECT_FALSE(far_.hasten(now_ + 1h));
  ASSERT_EQ(look_when_due().verdict, Verdict::kAsk);
  EXPECT_FALSE(far_.answer(now_));
  EXPECT_EQ(far_link_.my_pong().load(), near_link_.my_ping().load());
  EXPECT_NE(far_link_.my_pong().load(), 0u);
}

TEST_F(HeartbeatTest, AnIdlePeerIsAskedRarelyAndOneThatIsWaitedForSoon) {
  EXPECT_EQ(look_when_due().verdict, Verdict::kAsk);
  EXPECT_EQ(milliseconds(), 1'000);
  far_.answer(now_);
  EXPECT_EQ(near_.look(0, true, near_.next()).verdict, Verdict::kNothing);
  now_ = now_ + 100ms;
  near_.set_awaited(true, now_);
  EXPECT_LE(near_.next(), now_ + kInterval);
}

TEST_F(HeartbeatTest, AnUnreadMessageMakesItWait) {
  near_.note_unread(now_);
  EXPECT_TRUE(near_.is_unread());
  EXPECT_EQ(look_when_due(false).verdict, Verdict::kAsk);
  EXPECT_EQ(milliseconds(), 100);
  EXPECT_TRUE(near_.is_unread());
  far_.answer(now_);
  EXPECT_EQ(look_when_due(true).verdict, Verdict::kNothing);
  EXPECT_FALSE(near_.is_unread());
}

TEST_F(HeartbeatTest, ASilentPeerIsSuspectOnceAndThenFailedOnce) {
  near_.set_awaited(true, now_);
  EXPECT_EQ(look_when_due().verdict, Verdict::kAsk);
  std::vector<std::pair<Verdict, std::int64_t>> told;
  while (near_.next() != Instant::max()) {
    const Heartbeat::Look seen = look_when_due();
    if (seen.verdict == Verdict::kNothing || seen.verdict == Verdict::kAsk) continue;
    told.emplace_back(seen.verdict, milliseconds());
    EXPECT_EQ(seen.silent, now_ - kBegin);
  }
  EXPECT_EQ(told, (std::vector<std::pair<Verdict, std::int64_t>>{{Verdict::kSuspect, 300}, {Verdict::kFailed, 1'000}}));
}

TEST_F(HeartbeatTest, WhoAnswersAfterSuspicionIsHeardAgainOnce) {
  near_.set_awaited(true, now_);
  ASSERT_TRUE(is_suspect_soon());
  far_.answer(now_);
  EXPECT_TRUE(look_when_due().is_heard_again);
  EXPECT_FALSE(look_when_due().is_heard_again);
}

TEST_F(HeartbeatTest, AMessageIsAnAnswerToo) {
  near_.set_awaited(true, now_);
  ASSERT_TRUE(is_suspect_soon());
  ++messages_;
  EXPECT_TRUE(look_when_due().is_heard_again);
}

TEST_F(HeartbeatTest, WhoAsksIsHeard) {
  far_.begin(kInterval, kPatience, now_);
  far_.set_awaited(true, now_);
  near_.set_awaited(true, now_);
  ASSERT_TRUE(is_suspect_soon());
  ASSERT_EQ(far_.look(0, true, far_.next()).verdict, Verdict::kAsk);
  EXPECT_TRUE(near_.answer(now_));
  EXPECT_FALSE(near_.answer(now_)) << "it was answered";
}

}  // namespace
}  // namespace hawser::backend::shm
