#include "backend/quic/packet_batch.h"

#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

namespace hawser::backend::quic {
namespace {

struct Call {
  std::uint16_t port;
  std::string bytes;
  std::size_t segment;
};

class Recorder final : public PacketSender {
 public:
  bool send(const Route& route, std::span<const std::byte> packets, std::size_t segment) override {
    if (is_full) return false;
    calls.push_back(
        {route.remote.port(), std::string(reinterpret_cast<const char*>(packets.data()), packets.size()), segment});
    return true;
  }
  bool is_full = false;
  std::vector<Call> calls;
};

Route to(std::uint16_t port) {
  Route route;
  route.local = base::numeric_address({"127.0.0.1", 1}).value();
  route.remote = base::numeric_address({"127.0.0.1", port}).value();
  return route;
}

void put(PacketBatch& batch, const Route& route, std::string_view bytes) {
  const std::span<std::byte> room = batch.room(100);
  ASSERT_EQ(room.size(), 100u);
  std::memcpy(room.data(), bytes.data(), bytes.size());
  batch.add(route, bytes.size());
}

TEST(PacketBatch, DatagramsOfOneSizeGoTogetherAndAShorterOneEndsThem) {
  Recorder recorder;
  PacketBatch::Buffer spare;
  PacketBatch batch(recorder, spare);
  put(batch, to(7), "aaa");
  put(batch, to(7), "bbb");
  put(batch, to(7), "c");
  EXPECT_TRUE(recorder.calls.empty());
  put(batch, to(7), "ddd");
  ASSERT_EQ(recorder.calls.size(), 1u);
  EXPECT_EQ(recorder.calls[0].bytes, "aaabbbc");
  EXPECT_EQ(recorder.calls[0].segment, 3u);
  EXPECT_TRUE(batch.flush());
  ASSERT_EQ(recorder.calls.size(), 2u);
  EXPECT_EQ(recorder.calls[1].bytes, "ddd");
}

TEST(PacketBatch, ALongerOneAndOneOfAnotherRouteGoAlone) {
  Recorder recorder;
  PacketBatch::Buffer spare;
  PacketBatch batch(recorder, spare);
  put(batch, to(7), "aa");
  put(batch, to(7), "bbbb");
  put(batch, to(8), "cccc");
  EXPECT_TRUE(batch.flush());
  ASSERT_EQ(recorder.calls.size(), 3u);
  EXPECT_EQ(recorder.calls[0].bytes, "aa");
  EXPECT_EQ(recorder.calls[1].bytes, "bbbb");
  EXPECT_EQ(recorder.calls[1].segment, 4u);
  EXPECT_EQ(recorder.calls[2].port, 8);
}

TEST(PacketBatch, WhatHasNothingToSendHoldsNoMemory) {
  Recorder recorder;
  PacketBatch::Buffer spare;
  PacketBatch batch(recorder, spare);
  EXPECT_EQ(batch.room(100).size(), 100u);
  EXPECT_EQ(spare, nullptr);
  EXPECT_TRUE(batch.flush());
  EXPECT_NE(spare, nullptr) << "nothing was written there";
  put(batch, to(7), "aaa");
  EXPECT_TRUE(batch.flush());
  EXPECT_NE(spare, nullptr);
}

TEST(PacketBatch, HoldsNoMoreThanTheKernelTakesAtOnce) {
  Recorder recorder;
  PacketBatch::Buffer spare;
  PacketBatch batch(recorder, spare);
  for (std::size_t i = 0; i <= kSendPacketsMax; ++i) put(batch, to(7), "x");
  ASSERT_EQ(recorder.calls.size(), 1u);
  EXPECT_EQ(recorder.calls[0].bytes.size(), kSendPacketsMax);
}

TEST(PacketBatch, WhatTheKernelDoesNotTakeIsKeptAndNothingIsPutBehindIt) {
  Recorder recorder;
  PacketBatch::Buffer spare;
  PacketBatch batch(recorder, spare);
  put(batch, to(7), "aaa");
  recorder.is_full = true;
  EXPECT_FALSE(batch.flush());
  EXPECT_TRUE(batch.is_blocked());
  EXPECT_TRUE(batch.room(100).empty());
  recorder.is_full = false;
  EXPECT_TRUE(batch.flush());
  ASSERT_EQ(recorder.calls.size(), 1u);
  EXPECT_EQ(recorder.calls[0].bytes, "aaa");
}

}  // namespace
}  // namespace hawser::backend::quic
