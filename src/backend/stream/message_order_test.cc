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
  EXPECT_EQ(out.bulk(), 1U);
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
  EXPECT_TRUE(in.has_bulk(0));
  EXPECT_FALSE(in.has_bulk(1));
  in.came(3);
  EXPECT_TRUE(in.has_bulk(1));
  EXPECT_FALSE(in.has_bulk(2));
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
}

}  // namespace
}  // namespace hawser::backend::stream
