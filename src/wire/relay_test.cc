#include "wire/relay.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "wire/test_bytes.h"

namespace hawser::wire {
namespace {

std::string relay_bytes(const RelayMessage& message) {
  return encode(message) + std::string(base::as_text(message.body));
}

std::vector<RelayMessage> one_relay_of_each() {
  return {{.kind = RelayKind::kFrame,
           .has_more = true,
           .source = 3,
           .target = 300,
           .hops = 2,
           .sequence = 7,
           .acknowledged = 5,
           .body = base::as_bytes("abc")},
          {.kind = RelayKind::kFrame, .asks_at_once = true, .source = 3, .target = 4, .acknowledged = 5},
          {.kind = RelayKind::kGone, .rank = 300},
          {.kind = RelayKind::kLeaving, .rank = 5},
          {.kind = RelayKind::kGraph, .generation = 2, .body = base::as_bytes("\x05")},
          {.kind = RelayKind::kCard, .rank = 6, .body = base::as_bytes("card")},
          {.kind = RelayKind::kLost, .rank = 300, .other = 5}};
}

TEST(WireRelay, GoldenVectors) {
  const std::vector<std::string> golden = {"010103ac02020705616263",
                                           "010203040000"
                                           "05",
                                           "02ac02",
                                           "0305",
                                           "040205",
                                           "050663617264",
                                           "06ac0205"};
  const std::vector<RelayMessage> messages = one_relay_of_each();
  ASSERT_EQ(golden.size(), messages.size());
  for (std::size_t i = 0; i < golden.size(); ++i) EXPECT_EQ(hex(relay_bytes(messages[i])), golden[i]) << i;
}

TEST(WireRelay, WhatIsDecodedIsWrittenTheSameAgain) {
  for (const RelayMessage& message : one_relay_of_each()) {
    const std::string bytes = relay_bytes(message);
    const Result<RelayMessage> read = decode_relay(base::as_bytes(bytes));
    ASSERT_TRUE(read.has_value()) << hex(bytes);
    EXPECT_EQ(relay_bytes(*read), bytes);
    EXPECT_EQ(read->source, message.source);
    EXPECT_EQ(read->target, message.target);
    EXPECT_EQ(read->rank, message.rank);
    EXPECT_EQ(read->other, message.other);
  }
}

TEST(WireRelay, NoHeadIsLongerThanItsBound) {
  const RelayMessage longest{.kind = RelayKind::kFrame,
                             .source = kRelayRankMax,
                             .target = kRelayRankMax - 1,
                             .hops = kRelayHopsMax,
                             .sequence = UINT64_MAX,
                             .acknowledged = UINT64_MAX,
                             .body = base::as_bytes("x")};
  EXPECT_LE(encode(longest).size(), kRelayHeadMax);
  EXPECT_TRUE(decode_relay(base::as_bytes(relay_bytes(longest))).has_value());
}

TEST(WireRelay, WhatIsOutOfBoundsIsCorrupt) {
  const std::string piece(kRelayPieceMax + 1, 'p'), bitmap(kRelayBitmapMax + 1, 'b'), card(kRelayCardMax + 1, 'c');
  const std::vector<std::string> bad = {
      "",
      std::string("\x00", 1),
      "\x07",
      "\x02",
      relay_bytes({.kind = RelayKind::kGone, .rank = 5}) + "x",
      relay_bytes({.kind = RelayKind::kGone, .rank = kRelayRankMax + 1}),
      relay_bytes({.kind = RelayKind::kLost, .rank = 5, .other = 5}),
      relay_bytes({.kind = RelayKind::kLost, .rank = 5, .other = 6}) + "x",
      relay_bytes({.kind = RelayKind::kFrame, .source = 1, .target = 1, .sequence = 1, .body = base::as_bytes("x")}),
      relay_bytes({.kind = RelayKind::kFrame, .source = 1, .target = 2, .sequence = 0, .body = base::as_bytes("x")}),
      relay_bytes({.kind = RelayKind::kFrame, .source = 1, .target = 2, .sequence = 1}),
      relay_bytes({.kind = RelayKind::kFrame, .has_more = true, .source = 1, .target = 2, .sequence = 0}),
      relay_bytes({.kind = RelayKind::kFrame, .source = 1, .target = 2, .sequence = 1, .body = base::as_bytes(piece)}),
      std::string("\x01\x04\x01\x02\x00\x01\x00x", 8),
      relay_bytes({.kind = RelayKind::kGraph, .generation = 0, .body = base::as_bytes("x")}),
      relay_bytes({.kind = RelayKind::kGraph, .generation = 1}),
      relay_bytes({.kind = RelayKind::kGraph, .generation = 1, .body = base::as_bytes(bitmap)}),
      relay_bytes({.kind = RelayKind::kCard, .rank = 1}),
      relay_bytes({.kind = RelayKind::kCard, .rank = 1, .body = base::as_bytes(card)})};
  for (const std::string& bytes : bad) {
    const Result<RelayMessage> read = decode_relay(base::as_bytes(bytes));
    ASSERT_FALSE(read.has_value()) << hex(bytes.substr(0, 20));
    EXPECT_EQ(read.error().code(), Code::kCorrupt);
  }
}

}  // namespace
}  // namespace hawser::wire
