#include "rdma/replies.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "rdma/test_agent.h"

HAWSER_NAMESPACE_BEGIN
namespace rdma {
namespace {

class RepliesTest : public ::testing::Test {
 protected:
  static constexpr Instant kNow = Instant::from_ns(1'000'000'000);

  void reply(std::uint64_t number) { replies_.reply(peer_, {.number = number, .status = {}}, kNow); }

  Agent agent_ = agent_of_no_backends("a");
  Peer peer_ = agent_.self();
  Code refusal_ = Code::kOk;
  std::vector<std::uint64_t> sent_;  ///< Numbers.
  Replies replies_{[this](const Peer&, std::string_view bytes) {
    if (refusal_ != Code::kOk) return Status(refusal_, "refused");
    sent_.push_back(parse(bytes).reply->number);
    return Status();
  }};
};

TEST_F(RepliesTest, AnAnswerIsSentAtOnce) {
  reply(7);
  EXPECT_EQ(sent_, std::vector<std::uint64_t>{7});
  EXPECT_TRUE(replies_.empty());
  EXPECT_FALSE(replies_.send_waiting(kNow));
}

TEST_F(RepliesTest, OneWithoutRoomIsSentLater) {
  refusal_ = Code::kBusy;
  reply(7);
  EXPECT_FALSE(replies_.empty());
  EXPECT_FALSE(replies_.send_waiting(kNow));
  refusal_ = Code::kOk;
  EXPECT_TRUE(replies_.send_waiting(kNow));
  EXPECT_EQ(sent_, std::vector<std::uint64_t>{7});
  EXPECT_TRUE(replies_.empty());
}

TEST_F(RepliesTest, AnAnswerWaitsForSomeTimeOnly) {
  refusal_ = Code::kBusy;
  reply(7);
  EXPECT_TRUE(replies_.send_waiting(kNow + kReplyPatience));
  EXPECT_TRUE(replies_.empty());
}

TEST_F(RepliesTest, OneForAPeerThatIsGoneIsDropped) {
  refusal_ = Code::kDisconnected;
  reply(7);
  EXPECT_TRUE(replies_.empty());
}

TEST_F(RepliesTest, ABoundedNumberWaits) {
  refusal_ = Code::kBusy;
  for (std::uint64_t i = 0; i < Replies::kWaitingMax + 3; ++i) reply(i);
  refusal_ = Code::kOk;
  EXPECT_TRUE(replies_.send_waiting(kNow));
  EXPECT_EQ(sent_.size(), Replies::kWaitingMax);
}

TEST_F(RepliesTest, NoneWaitsOnceTheyAreCleared) {
  refusal_ = Code::kBusy;
  reply(7);
  replies_.clear();
  EXPECT_TRUE(replies_.empty());
}

}  // namespace
}  // namespace rdma
HAWSER_NAMESPACE_END
