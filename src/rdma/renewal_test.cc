#include "rdma/renewal.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "rdma/test_agent.h"

HAWSER_NAMESPACE_BEGIN
namespace rdma {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

class RenewalTest : public ::testing::Test {
 protected:
  void meet() { ASSERT_TRUE(here_.agent.add_peer(std::string_view(there_.agent.card().value()))); }

  TestOwner here_{"here"}, there_{"there"};
  int asked_ = 0;
  std::function<Result<std::string>()> answer_ = [] { return Status(Code::kNotFound, "not lent yet"); };
  Renewal renewal_{{.agent = here_.agent, .lender = here_.lender, .ask = [this](const RemoteBuffer&, Peer, Duration) {
                      ++asked_;
                      return answer_();
                    }}};
};

TEST_F(RenewalTest, WithoutANameThereIsNone) {
  EXPECT_EQ(renewal_.renew(RemoteBuffer(), seconds(1)).error().code(), Code::kInvalid);
  EXPECT_EQ(renewal_.renew(there_.lend(1).value(), seconds(1)).error().code(), Code::kInvalid);
}

TEST_F(RenewalTest, ABufferOfThisProcessIsFoundAtOnce) {
  const RemoteBuffer made = here_.lend(1, {.name = "weights"}).value();
  const RemoteBuffer fresh = renewal_.renew(made.slice(8, 16).value(), seconds(1)).value();
  EXPECT_EQ(fresh.offset(), 8u);
  EXPECT_EQ(fresh.size(), 16u);
  EXPECT_EQ(asked_, 0);
}

TEST_F(RenewalTest, WithoutADirectoryAnUnknownOwnerIsNotFound) {
  const RemoteBuffer made = there_.lend(1, {.name = "weights"}).value();
  EXPECT_EQ(renewal_.renew(made, milliseconds(1)).error().code(), Code::kUnsupported);
  EXPECT_EQ(asked_, 0);
}

TEST_F(RenewalTest, AnotherOwnerIsAskedUntilItLendsTheBuffer) {
  meet();
  const RemoteBuffer made = there_.lend(1, {.name = "weights"}).value();
  answer_ = [&]() -> Result<std::string> {
    if (asked_ < 3) return Status(Code::kNotFound, "not lent yet");
    return made.encode();
  };
  const RemoteBuffer fresh = renewal_.renew(made.slice(8, 16).value(), seconds(100)).value();
  EXPECT_EQ(fresh.offset(), 8u);
  EXPECT_EQ(asked_, 3);
}

TEST_F(RenewalTest, ItsLastAnswerIsToldWhenTimeIsOver) {
  meet();
  const Status told = renewal_.renew(there_.lend(1, {.name = "weights"}).value(), Duration::zero()).error();
  EXPECT_EQ(told.code(), Code::kTimedOut);
  EXPECT_EQ(told.cause().message(), "not lent yet");
}

TEST_F(RenewalTest, AHandleOfAnotherBufferIsNoAnswer) {
  meet();
  const RemoteBuffer other = there_.lend(2, {.name = "other"}).value();
  answer_ = [&] { return other.encode(); };
  const Status told = renewal_.renew(there_.lend(1, {.name = "weights"}).value(), seconds(1)).error();
  EXPECT_EQ(told.code(), Code::kCorrupt);
  EXPECT_EQ(told.peer(), "there");
}

}  // namespace
}  // namespace rdma
HAWSER_NAMESPACE_END
