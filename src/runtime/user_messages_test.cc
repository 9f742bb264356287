#include "runtime/user_messages.h"

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <string>

#include "base/bytes.h"
#include "runtime/test_seat.h"

namespace hawser::runtime {
namespace {

class UserMessagesTest : public TestSeat {
 protected:
  UserMessagesTest() : TestSeat(2) {
    messages_.open({.world = kWorld,
                    .name = "lone",
                    .requests = &requests_,
                    .roster = &roster_,
                    .seat = seat_.get(),
                    .failures = &failures_,
                    .aborted = &aborted_});
  }
  Received received() { return messages_.received(static_cast<const Receive&>(last())); }

  Status aborted_;
  UserMessages messages_;
  std::array<std::byte, 8> into_{};
};

TEST_F(UserMessagesTest, ARankSendsToItself) {
  static_cast<void>(messages_.send(base::as_bytes("12345"), 0, 9, {}));
  EXPECT_TRUE(end_of(last()).ok());
  static_cast<void>(messages_.receive(into_, kAnySource, std::nullopt, {}));
  EXPECT_TRUE(end_of(last()).ok());
  EXPECT_EQ(received().source, 0U);
  EXPECT_EQ(received().tag, 9U);
  EXPECT_EQ(received().bytes, 5U);
}

TEST_F(UserMessagesTest, SeveralPartsAreOneMessage) {
  const std::array<std::span<const std::byte>, 2> parts{base::as_bytes("ab"), base::as_bytes("cd")};
  static_cast<void>(messages_.send_parts(parts, 0, 1, {}));
  const std::array<std::span<std::byte>, 2> places{std::span(into_).first(3), std::span(into_).subspan(3)};
  static_cast<void>(messages_.receive_parts(places, 0, 1, {}));
  EXPECT_TRUE(end_of(last()).ok());
  EXPECT_EQ(base::as_text(std::span<const std::byte>(into_).first(4)), "abcd");
}

TEST_F(UserMessagesTest, ABatchGivesARequestForEachMessage) {
  const std::array<OutgoingMessage, 2> sends{{{.bytes = base::as_bytes("12"), .to = 0, .tag = 1},
                                              {.bytes = base::as_bytes("34"), .to = 5, .tag = 1}}};  // No such rank.
  const std::array<AwaitedMessage, 2> receives{{{.into = into_, .from = 0, .tag = 1}, {.into = {}, .from = 7}}};
  EXPECT_EQ(messages_.batch(sends, receives, {}).size(), 4U);
  ASSERT_EQ(begun_.size(), 4U);
  EXPECT_TRUE(end_of(*begun_[0]).ok());
  EXPECT_EQ(end_of(*begun_[1]).code(), Code::kInvalid);
  EXPECT_TRUE(end_of(*begun_[2]).ok());
  EXPECT_EQ(end_of(*begun_[3]).code(), Code::kInvalid);
  EXPECT_EQ(base::as_text(std::span<const std::byte>(into_).first(2)), "12");
}

TEST_F(UserMessagesTest, AProbeTakesNothing) {
  EXPECT_FALSE(messages_.probe(0, 4, Duration::zero()));
  static_cast<void>(messages_.send(base::as_bytes("12"), 0, 4, {}));
  EXPECT_FALSE(messages_.probe(0, 5, Duration::zero())) << "another tag";
  EXPECT_FALSE(messages_.probe(2, 4, Duration::zero())) << "no rank of the world";
  for (int i = 0; i < 2; ++i) {
    const std::optional<Received> found = messages_.probe(kAnySource, 4, Duration::zero());
    ASSERT_TRUE(found);
    EXPECT_EQ(found->bytes, 2U);
  }
}

TEST_F(UserMessagesTest, ARankOutsideOfTheWorldIsRefusedByName) {
  static_cast<void>(messages_.send({}, 2, 0, {}));
  EXPECT_EQ(last().status.code(), Code::kInvalid);
  static_cast<void>(messages_.receive(into_, 2, 0, {}));
  EXPECT_EQ(last().status.code(), Code::kInvalid);
  EXPECT_NE(last().status.message().find("'lone'"), std::string_view::npos) << last().status.to_string();
}

TEST_F(UserMessagesTest, AfterAFailureAReceiveFromAnySourceEndsUntilItIsAcknowledged) {
  failures_.note_failure(1, Status(Code::kDisconnected, "it is gone"));
  static_cast<void>(messages_.receive(into_, kAnySource, 0, {}));
  EXPECT_EQ(end_of(last()).code(), Code::kDisconnected);
  failures_.acknowledge();
  static_cast<void>(messages_.receive(into_, kAnySource, 0, {}));
  EXPECT_FALSE(last().final);
  ASSERT_TRUE(agent::inner::under_lane(seat_->agent, "test", [&](Instant now) {
                seat_->mailbox->stop(last(), Status(Code::kCancelled, "the test is over"), now);
              }).ok());
}

TEST_F(UserMessagesTest, WhatWasAbortedBeginsNothing) {
  aborted_ = Status(Code::kDisconnected, "its recovery policy ends all operations");
  static_cast<void>(messages_.send({}, 0, 0, {}));
  EXPECT_EQ(end_of(last()).code(), Code::kDisconnected);
  static_cast<void>(messages_.receive(into_, 0, 0, {}));
  EXPECT_EQ(end_of(last()).code(), Code::kDisconnected);
}

}  // namespace
}  // namespace hawser::runtime
