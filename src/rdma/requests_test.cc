#include "rdma/requests.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "rdma/test_agent.h"

HAWSER_NAMESPACE_BEGIN
namespace rdma {
namespace {

using std::chrono::seconds;

class RequestsTest : public ::testing::Test {
 protected:
  std::shared_ptr<BatchCore> ask(AskKind kind, Instant deadline = Instant::max()) {
    auto batch = batch_of(1, deadline);
    requests_.ask({.batch = batch, .index = 0, .buffer = buffer_, .owner = owner_, .ask = {.kind = kind}});
    return batch;
  }
  static Status status_of(const BatchCore& batch) { return batch.outcomes()[0].status; }

  Agent agent_ = agent_of_no_backends("a"), other_ = agent_of_no_backends("b");
  Peer owner_ = agent_.self();
  RemoteBuffer buffer_ = foreign_buffer({"tcp"});
  EngineId self_{.number = 1, .incarnation = agent_.incarnation()};
  Ways ways_{agent_, self_};
  base::EventFd wake_ = std::move(base::EventFd::open().value());
  Code refusal_ = Code::kOk;
  std::vector<Ask> sent_;
  Requests requests_{3,
                     {.send =
                          [this](const Peer&, std::string_view bytes) {
                            if (refusal_ != Code::kOk) return Status(refusal_, "refused");
                            sent_.push_back(*parse(bytes).ask);
                            return Status();
                          },
                      .ways = ways_,
                      .wake = wake_}};
};

TEST_F(RequestsTest, TheAnswerEndsIt) {
  const auto batch = ask(AskKind::kFetchAdd);
  ASSERT_EQ(sent_.size(), 1u);
  EXPECT_TRUE(wake_.drain());
  EXPECT_FALSE(batch->done());
  requests_.on_reply(owner_, {.number = sent_[0].number, .status = {}, .value = 5});
  ASSERT_TRUE(batch->done());
  EXPECT_TRUE(status_of(*batch).ok());
  EXPECT_EQ(batch->outcomes()[0].previous, 5u);
  EXPECT_EQ(batch->outcomes()[0].bytes, sizeof(std::uint64_t));
  EXPECT_TRUE(requests_.empty());
}

TEST_F(RequestsTest, ARefusalSaysWhose) {
  const auto batch = ask(AskKind::kRelease);
  requests_.on_reply(owner_, {.number = sent_[0].number, .status = Status(Code::kNotFound, "no such buffer")});
  EXPECT_EQ(status_of(*batch).code(), Code::kNotFound);
  EXPECT_EQ(status_of(*batch).peer(), "a");
}

TEST_F(RequestsTest, AHandleThatCameIsHandedOver) {
  const auto batch = batch_of(1);
  const auto handle = std::make_shared<std::string>();
  requests_.ask({.batch = batch,
                 .index = 0,
                 .buffer = buffer_,
                 .owner = owner_,
                 .ask = {.kind = AskKind::kHandle, .token = {}, .name = "weights"},
                 .handle = handle});
  EXPECT_EQ(sent_.at(0).name, "weights");
  requests_.on_reply(owner_, {.number = sent_[0].number, .status = {}, .value = 0, .handle = "bytes"});
  EXPECT_TRUE(status_of(*batch).ok());
  EXPECT_EQ(*handle, "bytes");
  EXPECT_EQ(batch->outcomes()[0].bytes, 0u);
}

TEST_F(RequestsTest, AnAnswerOfAnotherPeerOrToNothingIsPassedOver) {
  const auto batch = ask(AskKind::kFetchAdd);
  requests_.on_reply(other_.self(), {.number = sent_[0].number, .status = {}});
  requests_.on_reply(owner_, {.number = sent_[0].number + 1, .status = {}});
  EXPECT_FALSE(batch->done());
}

TEST_F(RequestsTest, OneMoreThanMayBeUnderWayIsRefused) {
  for (int i = 0; i < 3; ++i) ask(AskKind::kFetchAdd);
  const auto batch = ask(AskKind::kFetchAdd);
  EXPECT_EQ(status_of(*batch).code(), Code::kBusy);
  EXPECT_EQ(status_of(*batch).buffer(), BufferState::kUntouched);
  EXPECT_EQ(sent_.size(), 3u);
}

TEST_F(RequestsTest, OneWithoutRoomAtTheOwnerIsSentAgain) {
  refusal_ = Code::kBusy;
  const auto batch = ask(AskKind::kRelease);
  EXPECT_FALSE(batch->done());
  refusal_ = Code::kOk;
  EXPECT_FALSE(requests_.turn(Clock::steady().now())) << "nothing ended";
  EXPECT_EQ(sent_.size(), 1u);
  (void)requests_.turn(Clock::steady().now());
  EXPECT_EQ(sent_.size(), 1u) << "once";
}

TEST_F(RequestsTest, TheDeadlineSaysWhetherItWasAsked) {
  const Instant deadline = Clock::steady().now() + seconds(1000);
  const auto asked = ask(AskKind::kRelease, deadline);
  refusal_ = Code::kBusy;
  const auto unasked = ask(AskKind::kRelease, deadline);
  EXPECT_TRUE(requests_.turn(deadline));
  EXPECT_EQ(status_of(*asked).code(), Code::kTimedOut);
  EXPECT_EQ(status_of(*asked).message(), "the buffer's owner was asked and did not answer in time");
  EXPECT_EQ(status_of(*unasked).message(), "the buffer's owner took no request in time");
  EXPECT_TRUE(requests_.empty());
}

TEST_F(RequestsTest, WithoutAWayItEndsUntouched) {
  refusal_ = Code::kUnsupported;
  const auto batch = ask(AskKind::kFetchAdd);
  EXPECT_EQ(status_of(*batch).code(), Code::kUnsupported);
  EXPECT_EQ(status_of(*batch).buffer(), BufferState::kUntouched);
  EXPECT_FALSE(status_of(*batch).cause().ok()) << "the ways";
}

TEST_F(RequestsTest, ACancelledBatchEndsItsAtomicsAndNotItsReleases) {
  const auto atomic = ask(AskKind::kFetchAdd), release = ask(AskKind::kRelease), other = ask(AskKind::kFetchAdd);
  requests_.cancelled(*atomic);
  requests_.cancelled(*release);
  EXPECT_EQ(status_of(*atomic).code(), Code::kCancelled);
  EXPECT_FALSE(release->done());
  EXPECT_FALSE(other->done());
}

TEST_F(RequestsTest, NoneIsLeftOnceTheyAreCleared) {
  const auto batch = ask(AskKind::kFetchAdd);
  requests_.clear();
  EXPECT_TRUE(requests_.empty());
  requests_.on_reply(owner_, {.number = sent_[0].number, .status = {}});
  EXPECT_FALSE(batch->done());
}

}  // namespace
}  // namespace rdma
HAWSER_NAMESPACE_END
