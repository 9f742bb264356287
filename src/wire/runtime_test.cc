#include "wire/runtime.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "wire/test_bytes.h"

namespace hawser::wire {
namespace {

const MessageEnvelope kEnvelope = {
    .world = 0x0102030405060708, .use = MessageUse::kCollective, .tag = 9, .digest = 0x11, .extra = 4, .bytes = 3};

std::string bytes_of(const RuntimeMessage& message) {
  RuntimeBuffer buffer;
  return std::string(base::as_text(encode(message, buffer))) + std::string(base::as_text(message.body));
}

std::vector<RuntimeMessage> one_of_each() {
  return {{.kind = RuntimeKind::kEager, .envelope = kEnvelope, .body = base::as_bytes("abc")},
          {.kind = RuntimeKind::kAsk, .envelope = kEnvelope, .id = 5, .address = 300},
          {.kind = RuntimeKind::kGrant, .id = 5, .landing = 6},
          {.kind = RuntimeKind::kPart, .landing = 6, .offset = 300, .body = base::as_bytes("xyz")},
          {.kind = RuntimeKind::kFreed, .bytes = 300, .messages = 2, .priority = Priority::kBulk},
          {.kind = RuntimeKind::kGone, .id = 5},
          {.kind = RuntimeKind::kRevoke, .world = 7, .code = Code::kTimedOut, .body = base::as_bytes("late")},
          {.kind = RuntimeKind::kLeft, .world = 7},
          {.kind = RuntimeKind::kFailed, .world = 7, .rank = 300, .flag = true},
          {.kind = RuntimeKind::kAgree,
           .world = 7,
           .number = 300,
           .last_good = 5,
           .phase = AgreementPhase::kDecision,
           .ballot = 2,
           .calls = 1,
           .flag = true,
           .body = base::as_bytes("\x05\x01")},
          {.kind = RuntimeKind::kFetched, .id = 5, .landing = 6},
          {.kind = RuntimeKind::kTaken, .landing = 6},
          {.kind = RuntimeKind::kTopology, .world = 7, .body = base::as_bytes("full")},
          {.kind = RuntimeKind::kCheck, .world = 7, .number = 300, .digest = 0x0102030405060708, .flag = true},
          {.kind = RuntimeKind::kChecked, .world = 7, .code = Code::kInvalid, .number = 300},
          {.kind = RuntimeKind::kChecked, .world = 7, .code = Code::kBusy, .number = 300},
          {.kind = RuntimeKind::kLost, .world = 7, .flag = true, .body = base::as_bytes("\x05")},
          {.kind = RuntimeKind::kBell, .world = 7},
          {.kind = RuntimeKind::kLend, .id = 5, .landing = 6, .lent = {.index = 300, .generation = 2, .key = {3, 4}}},
          {.kind = RuntimeKind::kWritten, .landing = 6},
          {.kind = RuntimeKind::kUnwritten, .id = 5, .landing = 6}};
}

TEST(WireRuntime, GoldenVectors) {
  const std::vector<std::string> golden = {
      "0108070605040302010209000000000000001100000000000000040361"
      "6263",
      "02080706050403020102090000000000000011000000000000000403"
      "0500000000000000ac02",
      "0305000000000000000600000000000000",
      "040600000000000000ac0278797a",
      "0502ac0202",
      "060500000000000000",
      "070700000000000000066c617465",
      "080700000000000000",
      "090700000000000000ac0201",
      "0a0700000000000000ac0204020101"
      "050501",
      "0b05000000000000000600000000000000",
      "0c0600000000000000",
      "0d070000000000000066756c6c",
      "0e0700000000000000ac02080706050403020101",
      "0f0700000000000000ac0201",
      "0f0700000000000000ac0204",
      "1007000000000000000105",
      "110700000000000000",
      "1205000000000000000600000000000000ac020204000000000000000300000000000000",
      "130600000000000000",
      "1405000000000000000600000000000000"};
  const std::vector<RuntimeMessage> all = one_of_each();
  for (std::size_t i = 0; i < all.size(); ++i) EXPECT_EQ(hex(bytes_of(all[i])), golden[i]) << i;
}

TEST(WireRuntime, RoundTrips) {
  for (const RuntimeMessage& message : one_of_each()) {
    const std::string bytes = bytes_of(message);
    const Result<RuntimeMessage> got = decode_runtime(base::as_bytes(bytes));
    ASSERT_TRUE(got.has_value()) << got.error().to_string();
    EXPECT_EQ(bytes_of(*got), bytes);
    EXPECT_EQ(got->kind, message.kind);
  }
}

TEST(WireRuntime, CutOnesAreCorrupt) {
  for (const RuntimeMessage& message : one_of_each()) {
    // A message with a text or with bytes cannot know that some of them are missing. Its head can.
    RuntimeBuffer buffer;
    const std::string head(base::as_text(encode(message, buffer)));
    feed_every_cut(head, [](auto bytes) { EXPECT_EQ(decode_runtime(bytes).error().code(), Code::kCorrupt); });
  }
}

TEST(WireRuntime, WhatContradictsItselfIsCorrupt) {
  const auto is_corrupt = [](const RuntimeMessage& message) {
    return decode_runtime(base::as_bytes(bytes_of(message))).error().code() == Code::kCorrupt;
  };
  RuntimeMessage eager = one_of_each()[0];
  eager.envelope.bytes = 4;
  EXPECT_TRUE(is_corrupt(eager));
  RuntimeMessage use = one_of_each()[1];
  for (const int wrong : {0, 5}) {
    use.envelope.use = static_cast<MessageUse>(wrong);
    EXPECT_TRUE(is_corrupt(use));
  }
  use.envelope.use = MessageUse::kAnswer;
  use.envelope.digest = static_cast<std::uint64_t>(Code::kFailed);
  EXPECT_FALSE(is_corrupt(use));
  ++use.envelope.digest;
  EXPECT_TRUE(is_corrupt(use));
  RuntimeMessage empty = one_of_each()[3];
  empty.body = {};
  EXPECT_TRUE(is_corrupt(empty));
  RuntimeMessage good = one_of_each()[6];
  good.code = Code::kOk;
  EXPECT_TRUE(is_corrupt(good));
  good.code = static_cast<Code>(static_cast<int>(Code::kFailed) + 1);
  EXPECT_TRUE(is_corrupt(good));
  RuntimeMessage over = one_of_each()[14];
  for (const Code code : {Code::kOk, Code::kTimedOut, Code::kFailed}) {
    over.code = code;
    EXPECT_TRUE(is_corrupt(over));
  }
  for (const Code code : {Code::kDisconnected, Code::kBusy}) {
    over.code = code;
    EXPECT_FALSE(is_corrupt(over));
  }
  RuntimeMessage agree = one_of_each()[9];
  agree.body = {};
  EXPECT_TRUE(is_corrupt(agree));
  for (const int phase : {0, 7}) {
    agree = one_of_each()[9];
    agree.phase = static_cast<AgreementPhase>(phase);
    EXPECT_TRUE(is_corrupt(agree));
  }
  std::string flag = bytes_of(one_of_each()[9]);
  flag[14] = 2;
  EXPECT_FALSE(decode_runtime(base::as_bytes(flag)).has_value());
  EXPECT_FALSE(decode_runtime(base::as_bytes("\x0e")).has_value());
  EXPECT_FALSE(decode_runtime({}).has_value());
}

TEST(WireRuntime, LimitsAtTheirValueAndOneBeyond) {
  for (const std::size_t more : {0U, 1U}) {
    const std::string bytes(kRuntimeBodyMax + more, 'b'), text(kRevokeTextMax + more, 't');
    const RuntimeMessage part = {.kind = RuntimeKind::kPart, .landing = 6, .body = base::as_bytes(bytes)};
    EXPECT_EQ(decode_runtime(base::as_bytes(bytes_of(part))).has_value(), more == 0);
    const RuntimeMessage revoke = {
        .kind = RuntimeKind::kRevoke, .world = 7, .code = Code::kFailed, .body = base::as_bytes(text)};
    EXPECT_EQ(decode_runtime(base::as_bytes(bytes_of(revoke))).has_value(), more == 0);
    const std::string bitmap(kRankBitmapsMax + more, '\0');
    const RuntimeMessage agree = {.kind = RuntimeKind::kAgree, .world = 7, .body = base::as_bytes(bitmap)};
    EXPECT_EQ(decode_runtime(base::as_bytes(bytes_of(agree))).has_value(), more == 0);
  }
}

}  // namespace
}  // namespace hawser::wire
