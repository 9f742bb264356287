#include "backend/stream/message_order.h"

#include <gtest/gtest.h>

namespace hawser::backend::stream {
namespace {

TEST(MessagesOut, BulkKeepsTheFirstStreamThatOpened) {
  MessagesOut out;
  EXPECT_EQ(out.bulk_stream(), 0U);
  out.open(2);
  out.open(1);
  EXPECT_EQ(out.bulk_stream(), 2U);
}

TEST(MessagesOut, CountsEachStreamByItself) {
  MessagesOut out;
  out.sent(0, 10);
  out.sent(0, 10);
  out.sent(1, 10);
  EXPECT_EQ(out.urgent(), 2U);
  EXPECT_EQ(out.others(), 1U);
}

TEST(MessagesOut, WhereStreamsWaitABulkMessageComesAfterAllOnStreamZero) {
  MessagesOut out;
  const wire::Link bulk(Priority::kBulk, 17);
  out.open(1);
  EXPECT_EQ(out.stream_for(bulk), 1U);
  EXPECT_EQ(out.stream_for({Priority::kRealtime, 17}), 0U);
  out.sent(0, 10);
  EXPECT_EQ(out.ahead(bulk), 1U);
  out.sent(0, 10);
  EXPECT_EQ(out.ahead(bulk), 2U);
  EXPECT_EQ(out.last_stream(), 1U);
}

TEST(MessagesOut, WhereStreamsAreApartALinkComesAfterGreetingsAndItsOwnAlone) {
  MessagesOut out(true);
  const wire::Link one(Priority::kRealtime, 16), other(Priority::kRealtime, 17);
  EXPECT_EQ(out.stream_for(one), 0U);
  EXPECT_EQ(out.last_stream(), 0U);
  out.sent(0, 10);
  out.greeted();
  out.sent(0, 10);  // One of `one`.
  out.open(stream_of(one));
  out.sent(0, 10);
  out.open(stream_of(other));
  EXPECT_EQ(out.stream_for(one), stream_of(one));
  EXPECT_EQ(out.last_stream(), stream_of(other));
  out.sent(0, 10);
  EXPECT_EQ(out.ahead(one), 2U);
  EXPECT_EQ(out.ahead(other), 3U);
  out.greeted();
  out.sent(0, 10);
  EXPECT_EQ(out.ahead(one), 4U);
  EXPECT_EQ(out.ahead(other), 4U);
}

TEST(MessagesOut, TheLibrarysOwnLinksStayWithTheOperations) {
  MessagesOut out(true);
  EXPECT_FALSE(has_own_stream(Priority::kRealtime));
  EXPECT_FALSE(has_own_stream(Priority::kBulk));
  EXPECT_TRUE(has_own_stream(Priority::kCritical));
  out.sent(0, 10);
  out.open(2);
  EXPECT_EQ(out.stream_for(Priority::kRealtime), 0U);
  EXPECT_EQ(out.stream_for(Priority::kBulk), 2U);
  EXPECT_EQ(out.ahead(Priority::kBulk), 1U) << "some went on stream 0 before";
  EXPECT_EQ(out.stream_for({Priority::kBulk, 17}), 0U) << "until its own is open";
  EXPECT_EQ(out.last_stream(), 2U);
}

TEST(MessagesOut, AChunkGoesAfterSoManyBytes) {
  MessagesOut out;
  out.sent(0, kMessagesAhead);  // Chunks do not wait for that stream.
  EXPECT_FALSE(out.owes_chunk());
  out.sent(1, kMessagesAhead - 1);
  EXPECT_FALSE(out.owes_chunk());
  out.sent(1, 1);
  EXPECT_TRUE(out.owes_chunk());
  out.chunk_sent();
  EXPECT_FALSE(out.owes_chunk());
}

TEST(MessagesIn, WaitsForThoseBefore) {
  MessagesIn in;
  EXPECT_TRUE(in.has_urgent(0));
  EXPECT_FALSE(in.has_urgent(1));
  in.came(0);
  EXPECT_TRUE(in.has_urgent(1));
  EXPECT_FALSE(in.has_urgent(2));
  EXPECT_TRUE(in.has_others(0));
  EXPECT_FALSE(in.has_others(1));
  in.came(3);
  EXPECT_TRUE(in.has_others(1));
  EXPECT_FALSE(in.has_others(2));
}

TEST(MessagesIn, BulkKeepsItsStream) {
  MessagesIn in;
  EXPECT_TRUE(in.may_come_on(2));
  in.begins(0);
  EXPECT_TRUE(in.may_come_on(1));
  in.begins(2);
  EXPECT_TRUE(in.may_come_on(0));
  EXPECT_TRUE(in.may_come_on(2));
  EXPECT_FALSE(in.may_come_on(1));
  EXPECT_TRUE(in.may_come_on(kStreamsMax)) << "a link's";
  in.begins(kStreamsMax + 2);
  EXPECT_TRUE(in.may_come_on(2));
}

}  // namespace
}  // namespace hawser::backend::stream
