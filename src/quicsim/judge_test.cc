#include "quicsim/judge.h"

#include <gtest/gtest.h>

#include <vector>

namespace hawser::quicsim {
namespace {

using std::chrono::seconds;

class QuicJudgeTest : public testing::Test {
 protected:
  void SetUp() override {
    settings_.connections = 1;
    judge_ = std::make_unique<QuicJudge>(world_, settings_);
    for (const Side side : {Side::kOpener, Side::kAcceptor}) {
      judge_->came_up(0, side, {});
      judge_->half(0, 4, side).is_open = true;
      judge_->talk(0).end(side).heard = world_.now();
    }
    judge_->half(0, 4, Side::kOpener).planned = 100;
  }
  void read(std::uint64_t from, std::size_t bytes) {
    std::vector<std::byte> got(bytes);
    fill(0, 4, Side::kOpener, from, got);
    judge_->read(0, 4, Side::kAcceptor, got);
  }
  static Status disconnected(const char* text) { return Status(Code::kDisconnected, text); }
  static Status idle() { return disconnected("nothing came from the peer for the idle timeout"); }

  sim::World world_{{.seed = 1}};
  Settings settings_;
  std::unique_ptr<QuicJudge> judge_;
};

TEST_F(QuicJudgeTest, BytesInOrderAndAnEndBehindTheLast) {
  EXPECT_NE(judge_->has_work(0), "");
  judge_->wrote(0, 4, Side::kOpener, 100);
  read(0, 60), read(60, 40);
  judge_->half(0, 4, Side::kOpener).parting = Parting::kOrderly;
  EXPECT_NE(judge_->has_work(0), "") << "the reader is not told of the end";
  judge_->told_end(0, 4, Side::kAcceptor);
  EXPECT_FALSE(judge_->failed()) << judge_->failure();
  EXPECT_EQ(judge_->has_work(0), "");
}

TEST_F(QuicJudgeTest, BytesThatNobodyWroteThere) {
  judge_->wrote(0, 4, Side::kOpener, 100);
  read(1, 10);
  EXPECT_NE(judge_->failure().find("another byte at 0"), std::string::npos) << judge_->failure();
}

TEST_F(QuicJudgeTest, MoreBytesThanWereWritten) {
  judge_->wrote(0, 4, Side::kOpener, 10);
  read(0, 11);
  EXPECT_TRUE(judge_->failed());
}

TEST_F(QuicJudgeTest, AnEndTooEarlyAndOneThatNobodyMade) {
  judge_->wrote(0, 4, Side::kOpener, 10);
  judge_->half(0, 4, Side::kOpener).parting = Parting::kOrderly;
  judge_->told_end(0, 4, Side::kAcceptor);
  EXPECT_NE(judge_->failure().find("ended after 0 bytes of 10"), std::string::npos) << judge_->failure();
  QuicJudge other(world_, settings_);
  other.told_end(0, 4, Side::kAcceptor);
  EXPECT_TRUE(other.failed());
}

TEST_F(QuicJudgeTest, AResetNeedsAnAbort) {
  judge_->half(0, 4, Side::kOpener).parting = Parting::kAborted;
  EXPECT_NE(judge_->has_work(0), "") << "it is not told yet";
  judge_->told_reset(0, 4, Side::kAcceptor, disconnected("the peer has reset the stream"));
  EXPECT_FALSE(judge_->failed()) << judge_->failure();
  judge_->told_reset(0, 4, Side::kOpener, disconnected("the peer has reset the stream"));
  EXPECT_TRUE(judge_->failed());
}

TEST_F(QuicJudgeTest, IdleNeedsSilenceAndAReasonForIt) {
  judge_->wrote(0, 4, Side::kOpener, 100);
  world_.run_for(settings_.options.idle_timeout + seconds(1));
  judge_->ended(0, Side::kAcceptor, idle(), true);
  EXPECT_NE(judge_->failure().find("nothing in its way"), std::string::npos) << judge_->failure();
}

TEST_F(QuicJudgeTest, IdleAfterALossIsFine) {
  judge_->wrote(0, 4, Side::kOpener, 100);
  world_.run_for(seconds(1));
  judge_->talk(0).end(Side::kAcceptor).lost = world_.now();
  world_.run_for(settings_.options.idle_timeout);
  judge_->ended(0, Side::kAcceptor, idle(), true);
  EXPECT_FALSE(judge_->failed()) << judge_->failure();
  EXPECT_NE(judge_->unsettled(), "") << "the opener goes on";
}

TEST_F(QuicJudgeTest, IdleThoughItHeardSomething) {
  world_.run_for(seconds(1));
  judge_->ended(0, Side::kOpener, idle(), true);
  EXPECT_NE(judge_->failure().find("heard something"), std::string::npos) << judge_->failure();
}

TEST_F(QuicJudgeTest, AGoodEndNeedsOneWhoClosed) {
  judge_->talk(0).end(Side::kOpener).closed = Parting::kOrderly;
  judge_->ended(0, Side::kOpener, Status(), true);
  judge_->ended(0, Side::kAcceptor, Status(), true);
  EXPECT_FALSE(judge_->failed()) << judge_->failure();
  QuicJudge other(world_, settings_);
  other.ended(0, Side::kAcceptor, Status(), true);
  EXPECT_TRUE(other.failed());
  QuicJudge third(world_, settings_);
  third.ended(0, Side::kAcceptor, Status(Code::kCorrupt, "QUIC: ERR_FLOW_CONTROL"), true);
  EXPECT_TRUE(third.failed());
}

}  // namespace
}  // namespace hawser::quicsim
