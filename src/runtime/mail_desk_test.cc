#include "runtime/mail_desk.h"

#include <gtest/gtest.h>

namespace hawser::runtime {
namespace {

TEST(ClassDesk, AMessageGoesAtOnceUpToTheWindowAndNotBeyond) {
  ClassDesk desk;
  EXPECT_TRUE(desk.may_send(kEagerMax));
  EXPECT_FALSE(desk.may_send(kEagerMax + 1));
  desk.note_sent(kEagerWindow - 10);
  EXPECT_TRUE(desk.may_send(10));
  EXPECT_FALSE(desk.may_send(11));
  for (std::size_t i = 1; i < kEagerMessages; ++i) {
    ASSERT_TRUE(desk.may_send(0)) << i;
    desk.note_sent(0);
  }
  EXPECT_FALSE(desk.may_send(0)) << "so many messages may be there";
}

TEST(ClassDesk, APeerFreesNoMoreThanItWasSent) {
  ClassDesk desk;
  desk.note_sent(8);
  EXPECT_FALSE(desk.note_freed_by_peer(9, 1));
  EXPECT_FALSE(desk.note_freed_by_peer(8, 2));
  EXPECT_TRUE(desk.note_freed_by_peer(8, 1));
  EXPECT_EQ(desk.eager_bytes, 0U);
  EXPECT_FALSE(desk.note_freed_by_peer(0, 1));
}

TEST(ClassDesk, WhatNobodyWantsIsKeptUpToTheWindow) {
  ClassDesk desk;
  desk.note_kept(kEagerWindow - 1);
  EXPECT_TRUE(desk.may_keep(1));
  EXPECT_FALSE(desk.may_keep(2));
  desk.note_taken(kEagerWindow - 1);
  EXPECT_EQ(desk.kept_messages, 0U);
  EXPECT_EQ(desk.freed_messages, 1U);
  for (std::size_t i = 0; i < kEagerMessages; ++i) {
    ASSERT_TRUE(desk.may_keep(0)) << i;
    desk.note_kept(0);
  }
  EXPECT_FALSE(desk.may_keep(0));
}

TEST(ClassDesk, ThePeerHearsOfAQuarterOfTheWindowOrOfTheMessages) {
  ClassDesk bytes;
  bytes.note_freed(kEagerWindow / 4);
  EXPECT_FALSE(bytes.owes_freed());
  bytes.note_freed(1);
  EXPECT_TRUE(bytes.owes_freed());
  ClassDesk messages;
  for (std::size_t i = 0; i < kEagerMessages / 4; ++i) messages.note_freed(0);
  EXPECT_FALSE(messages.owes_freed());
  messages.note_freed(0);
  EXPECT_TRUE(messages.owes_freed());
}

TEST(MailDesk, IsSilentOnceNothingWaitsToBeSaid) {
  MailDesk desk;
  EXPECT_TRUE(desk.is_silent());
  desk.say({.kind = wire::RuntimeKind::kGrant});
  EXPECT_EQ(desk.words(), 1U);
  EXPECT_FALSE(desk.is_silent());
  desk.of(Priority::kRealtime).words.clear();
  desk.of(Priority::kBulk).last_words.push_back(left_word(1));
  EXPECT_FALSE(desk.is_silent());
  desk.of(Priority::kBulk).last_words.clear();
  Send send;
  desk.of(Priority::kCritical).line.push_back(send);
  EXPECT_EQ(desk.words(), 0U);
  EXPECT_FALSE(desk.is_silent());
}

TEST(MailDesk, AnEndedSessionOwesNothing) {
  MailDesk desk;
  desk.of(Priority::kBulk).note_sent(5);
  desk.of(Priority::kBulk).note_kept(5);
  desk.of(Priority::kBulk).note_freed(5);
  desk.say({.kind = wire::RuntimeKind::kGrant});
  desk.early.push_back(left_word(1));
  desk.kept_asks.emplace(1, nullptr);
  desk.forget();
  EXPECT_TRUE(desk.is_silent());
  EXPECT_EQ(desk.of(Priority::kBulk).eager_bytes + desk.of(Priority::kBulk).kept_bytes, 0U);
  EXPECT_EQ(desk.of(Priority::kBulk).freed_messages, 0U);
  EXPECT_TRUE(desk.early.empty());
  EXPECT_TRUE(desk.kept_asks.empty());
}

}  // namespace
}  // namespace hawser::runtime
