#include "rdma/messages.h"

#include <gtest/gtest.h>

namespace hawser::rdma {
namespace {

TEST(RdmaMessages, RequestsComeBackAsTheyWere) {
  const Ask release{.kind = AskKind::kRelease, .number = 7, .token = {1, 2}};
  const Ask swap{.kind = AskKind::kCompareSwap, .number = 8, .token = {1, 2}, .offset = 64, .value = 5, .expected = 6};
  for (const Ask& ask : {release, swap}) {
    const Parsed back = parse(encode(ask));
    ASSERT_TRUE(back.ask.has_value());
    EXPECT_EQ(back.ask->kind, ask.kind);
    EXPECT_EQ(back.ask->number, ask.number);
    EXPECT_EQ(back.ask->token, ask.token);
    EXPECT_EQ(back.ask->offset, ask.offset);
    EXPECT_EQ(back.ask->value, ask.value);
    EXPECT_EQ(back.ask->expected, ask.expected);
  }
}

TEST(RdmaMessages, RepliesComeBackAsTheyWere) {
  const Status status = Status(Code::kNotFound, "gone").with_advice("ask again");
  const Parsed back = parse(encode(Reply{.number = 9, .status = status, .value = 77}));
  ASSERT_TRUE(back.reply.has_value());
  EXPECT_EQ(back.reply->number, 9u);
  EXPECT_EQ(back.reply->value, 77u);
  EXPECT_EQ(back.reply->status, status);
  EXPECT_EQ(back.reply->status.advice(), "ask again");
  EXPECT_TRUE(parse(encode(Reply{.number = 1})).reply->status.ok());
}

TEST(RdmaMessages, OtherBytesAreNeither) {
  const std::string good = encode(Ask{.kind = AskKind::kFetchAdd, .number = 1, .token = {1, 2}});
  for (std::size_t size = 0; size < good.size(); ++size) {
    const Parsed cut = parse(std::string_view(good).substr(0, size));
    EXPECT_FALSE(cut.ask || cut.reply) << size;
  }
  for (const char kind : {0, 5, 99}) {
    std::string other = good;
    other[1] = kind;
    EXPECT_FALSE(parse(other).ask.has_value());
  }
  std::string later = good;
  later[0] = 2;
  EXPECT_FALSE(parse(later).ask.has_value());
  std::string bad_code = encode(Reply{.number = 1});
  bad_code[10] = 11;
  EXPECT_FALSE(parse(bad_code).reply.has_value());
}

}  // namespace
}  // namespace hawser::rdma
