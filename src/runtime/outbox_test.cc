#include "runtime/outbox.h"

#include <gtest/gtest.h>

#include <array>
#include <string>
#include <vector>

#include "runtime/mailbox.h"
#include "runtime/test_carrier.h"

namespace hawser::runtime {
namespace {

using agent::Sent;
using wire::RuntimeKind;

class OutboxTest : public testing::Test {
 protected:
  static constexpr Instant kAt = Instant::from_ns(5);

  ~OutboxTest() override {
    for (Send& send : sends_) send.hook.unlink();
  }
  Send& message(std::size_t size, Priority priority = Priority::kRealtime) {
    Send& send = sends_[made_++];
    bytes_.resize(std::max(bytes_.size(), std::size_t{1} << 20));
    send.data = bytes_.data();
    send.envelope = {.world = 1, .use = wire::MessageUse::kUser, .tag = made_, .bytes = size};
    send.priority = priority;
    return send;
  }
  bool pump() {
    std::size_t work = 0;
    return outbox_.pump(*session_, desk_, &work);
  }
  std::vector<wire::RuntimeMessage> said() {
    std::vector<wire::RuntimeMessage> all;
    for (const std::string& each : carrier_.said) all.push_back(wire::decode_runtime(base::as_bytes(each)).value());
    return all;
  }
  Status hear(RuntimeKind kind, const Send& send, std::uint64_t landing) {
    const wire::RuntimeMessage word{.kind = kind, .id = send.id, .landing = landing};
    if (kind == RuntimeKind::kGrant) return outbox_.on_grant(*session_, desk_, word, kAt);
    return outbox_.on_fetched(*session_, desk_, word, kAt);
  }

  Status hear_lend(const Send& send, std::uint64_t landing) {
    return outbox_.on_lend(service_, *session_, desk_,
                           {.kind = RuntimeKind::kLend,
                            .id = send.id,
                            .landing = landing,
                            .lent = {.index = 1, .generation = 1, .key = {1, 2}}},
                           kAt);
  }
  void note_written(const Send& send, std::uint64_t bytes, const Status& status = {}) {
    outbox_.on_written(*session_, desk_, send.id, bytes, status, kAt);
  }
  const wire::RuntimeMessage& last_word() { return desk_.of(Priority::kRealtime).words.back().message; }

  TestCarrier carrier_;
  Mailbox service_{carrier_};
  TestSession session_;
  MailDesk desk_;
  std::vector<Operation*> ended_;
  Landings landings_{carrier_, [](Operation&, const Status&) {}};
  Outbox outbox_{carrier_, landings_, [this](Operation& operation, const Status&) { ended_.push_back(&operation); }};
  std::vector<std::byte> bytes_;
  std::array<Send, 8> sends_;
  std::size_t made_ = 0;
};

TEST_F(OutboxTest, ASmallMessageGoesAlongAndALargeOneIsAskedFor) {
  Send &small = message(kEagerMax), &large = message(kEagerMax + 1);
  EXPECT_EQ(outbox_.announce(*session_, desk_, small), Sent::kYes);
  EXPECT_EQ(outbox_.announce(*session_, desk_, large), Sent::kYes);
  EXPECT_EQ(said()[0].kind, RuntimeKind::kEager);
  EXPECT_EQ(said()[1].kind, RuntimeKind::kAsk);
  EXPECT_EQ(said()[1].address, 0U) << "nobody can read it here";
  EXPECT_EQ(ended_, std::vector<Operation*>{&small});
  EXPECT_EQ(desk_.of(Priority::kRealtime).eager_messages, 1U);
  EXPECT_TRUE(large.is_asked);
}

TEST_F(OutboxTest, WordsGoBeforeMessagesAndLastWordsBehind) {
  desk_.of(Priority::kRealtime).line.push_back(message(4));
  desk_.of(Priority::kRealtime).last_words.push_back(left_word(1));
  desk_.say({.kind = RuntimeKind::kGrant, .id = 3, .landing = 4});
  EXPECT_TRUE(pump());
  ASSERT_EQ(said().size(), 3U);
  EXPECT_EQ(said()[0].kind, RuntimeKind::kGrant);
  EXPECT_EQ(said()[1].kind, RuntimeKind::kEager);
  EXPECT_EQ(said()[2].kind, RuntimeKind::kLeft);
}

TEST_F(OutboxTest, AClassWithoutCreditHoldsBackNoOtherOne) {
  carrier_.full.insert(wire::runtime_channel_of(Priority::kRealtime));
  Send &waits = message(4), &goes = message(4, Priority::kBulk);
  desk_.of(Priority::kRealtime).line.push_back(waits);
  desk_.of(Priority::kBulk).line.push_back(goes);
  EXPECT_TRUE(pump()) << "credit is the peer's to give, there is room";
  EXPECT_EQ(ended_, std::vector<Operation*>{&goes});
  carrier_.full.clear();
  carrier_.answer = Sent::kNoRoom;
  EXPECT_FALSE(pump());
  carrier_.answer = Sent::kYes;
  EXPECT_TRUE(pump());
  EXPECT_EQ(ended_.back(), &waits);
}

TEST_F(OutboxTest, AGrantedMessageSendsSoManyPartsInATurn) {
  Send& large = message((kPartsAtOnce + 1) * kEagerMax, Priority::kBulk);
  EXPECT_EQ(outbox_.announce(*session_, desk_, large), Sent::kYes);
  ASSERT_TRUE(hear(RuntimeKind::kGrant, large, 9).ok());
  EXPECT_TRUE(pump());
  EXPECT_EQ(said().size(), 1U + kPartsAtOnce);
  EXPECT_TRUE(ended_.empty());
  EXPECT_TRUE(pump());
  EXPECT_EQ(ended_, std::vector<Operation*>{&large});
  EXPECT_EQ(said().back().landing, 9U);
  EXPECT_TRUE(desk_.asked.empty());
}

TEST_F(OutboxTest, WhatAReceiverMayNotSayIsItsError) {
  Send& large = message(kEagerMax + 1);
  EXPECT_EQ(outbox_.announce(*session_, desk_, large), Sent::kYes);
  EXPECT_EQ(hear(RuntimeKind::kGrant, large, 0).code(), Code::kCorrupt) << "parts need a number";
  EXPECT_EQ(hear(RuntimeKind::kFetched, large, 9).code(), Code::kCorrupt) << "it was not told where";
  EXPECT_TRUE(hear(RuntimeKind::kGrant, large, 9).ok());
  EXPECT_EQ(hear(RuntimeKind::kGrant, large, 9).code(), Code::kCorrupt) << "twice";
}

TEST_F(OutboxTest, AMessageThatWasReadIsOverAndItsReaderHearsIt) {
  carrier_.fetches = true;
  Send& large = message(kEagerMax + 1);
  EXPECT_EQ(outbox_.announce(*session_, desk_, large), Sent::kYes);
  EXPECT_EQ(said()[0].address, reinterpret_cast<std::uintptr_t>(large.data));
  EXPECT_TRUE(hear(RuntimeKind::kFetched, large, 9).ok());
  EXPECT_EQ(ended_, std::vector<Operation*>{&large});
  EXPECT_TRUE(pump());
  EXPECT_EQ(said().back().kind, RuntimeKind::kTaken);
  EXPECT_TRUE(hear(RuntimeKind::kFetched, large, 9).ok()) << "it was stopped meanwhile, for all it knows";
}

TEST_F(OutboxTest, AStoppedMessageIsSaidToBeGoneInItsOwnClass) {
  Send& large = message(kEagerMax + 1, Priority::kCritical);
  EXPECT_EQ(outbox_.announce(*session_, desk_, large), Sent::kYes);
  outbox_.forget(*session_, desk_, large, kAt);
  EXPECT_EQ(desk_.of(Priority::kCritical).words.size(), 1U) << "it does not overtake what it speaks of";
  EXPECT_TRUE(desk_.asked.empty());
}

TEST_F(OutboxTest, SendsOfAWorldAreThoseThatWereAskedThenThoseInLine) {
  Send &asked = message(kEagerMax + 1), &line = message(4), &other = message(4), &own = message(4);
  other.envelope.world = 2;
  own.envelope.use = wire::MessageUse::kCollective;
  EXPECT_EQ(outbox_.announce(*session_, desk_, asked), Sent::kYes);
  for (Send* const send : {&line, &other, &own}) desk_.of(Priority::kRealtime).line.push_back(*send);
  EXPECT_EQ(Outbox::of_world(desk_, 1), (std::vector<Send*>{&asked, &line}));
}

TEST_F(OutboxTest, RoomThatWasFreedIsToldOnceItIsMuch) {
  ClassDesk& its = desk_.of(Priority::kBulk);
  its.note_freed(kEagerWindow / 4);
  EXPECT_TRUE(pump());
  EXPECT_TRUE(carrier_.said.empty());
  its.note_freed(1);
  EXPECT_TRUE(pump());
  ASSERT_EQ(said().size(), 1U);
  EXPECT_EQ(said()[0].kind, RuntimeKind::kFreed);
  EXPECT_EQ(said()[0].bytes, kEagerWindow / 4 + 1);
  EXPECT_EQ(said()[0].priority, Priority::kBulk);
  EXPECT_EQ(its.freed_bytes, 0U);
}

TEST_F(OutboxTest, WhatTheReceiverLendsIsWrittenInChunksUpToABound) {
  carrier_.quits = true;
  bytes_.resize(kWritesMax + kWriteChunk + 1);
  Send& send = message(kWritesMax + kWriteChunk + 1);
  EXPECT_EQ(outbox_.announce(*session_, desk_, send), Sent::kYes);
  ASSERT_TRUE(hear_lend(send, 9).ok());
  for (int turn = 0; turn < 3; ++turn) pump();
  EXPECT_EQ(carrier_.writes.size(), kWritesMax / kWriteChunk);
  EXPECT_EQ(desk_.writing, kWritesMax);
  note_written(send, kWriteChunk);
  pump();
  EXPECT_EQ(carrier_.writes.back(), (TestCarrier::Written{send.id + 1000, kWritesMax, kWriteChunk}));
  while (desk_.writing > 0) {
    note_written(send, std::min(desk_.writing, kWriteChunk));
    pump();
  }
  EXPECT_EQ(carrier_.writes.back().size, 1U);
  ASSERT_EQ(ended_.size(), 1U);
  EXPECT_EQ(said().back().kind, RuntimeKind::kWritten);
  EXPECT_EQ(said().back().landing, 9U);
  EXPECT_EQ(carrier_.ended_writes.size(), 1U);
  EXPECT_TRUE(desk_.asked.empty());
}

TEST_F(OutboxTest, WhatCannotBeWrittenGoesInParts) {
  for (const bool is_later : {false, true}) {
    carrier_.quits = is_later;
    Send& send = message(2 * kEagerMax);
    EXPECT_EQ(outbox_.announce(*session_, desk_, send), Sent::kYes);
    ASSERT_TRUE(hear_lend(send, 9).ok());
    if (is_later) {
      pump();
      note_written(send, 2 * kEagerMax, Status(Code::kDisconnected, "the path is gone"));
      EXPECT_EQ(carrier_.ended_writes.size(), 1U);
    }
    EXPECT_EQ(last_word().kind, RuntimeKind::kUnwritten);
    EXPECT_EQ(last_word().id, send.id);
    EXPECT_EQ(desk_.writing, 0U);
    EXPECT_EQ(hear_lend(send, 10).code(), Code::kCorrupt) << "once is enough";
    ASSERT_TRUE(hear(RuntimeKind::kGrant, send, 9).ok());
    const std::size_t before = ended_.size();
    pump();
    EXPECT_EQ(ended_.size(), before + 1);
    carrier_.said.clear();
  }
}

TEST_F(OutboxTest, TheEndOfAWriteTouchesNoMessageThatGoesInParts) {
  Send& send = message(2 * kEagerMax);
  send.sent = kEagerMax;
  outbox_.end_write(desk_, send);
  EXPECT_EQ(desk_.writing, 0U);
  EXPECT_EQ(send.sent, kEagerMax);
  EXPECT_TRUE(carrier_.ended_writes.empty());
}

TEST_F(OutboxTest, AWriteWhosePathIsGoneIsGivenUp) {
  carrier_.quits = true;
  carrier_.write_answer = agent::LentWrite::kLost;
  Send& send = message(2 * kEagerMax);
  EXPECT_EQ(outbox_.announce(*session_, desk_, send), Sent::kYes);
  ASSERT_TRUE(hear_lend(send, 9).ok());
  pump();
  EXPECT_EQ(last_word().kind, RuntimeKind::kUnwritten);
  EXPECT_TRUE(hear(RuntimeKind::kFetched, send, 9).ok()) << "its receiver has stopped";
  EXPECT_EQ(ended_.size(), 1U);
}

TEST_F(OutboxTest, AStoppedMessageIsWrittenNoFurther) {
  carrier_.quits = true;
  Send& send = message(2 * kEagerMax);
  EXPECT_EQ(outbox_.announce(*session_, desk_, send), Sent::kYes);
  ASSERT_TRUE(hear_lend(send, 9).ok());
  pump();
  outbox_.forget(*session_, desk_, send, kAt);
  EXPECT_EQ(carrier_.ended_writes.size(), 1U);
  EXPECT_EQ(desk_.writing, 0U);
  note_written(send, 2 * kEagerMax);
  EXPECT_TRUE(ended_.empty()) << "nothing is told of it";
}

}  // namespace
}  // namespace hawser::runtime
