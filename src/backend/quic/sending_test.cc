#include "backend/quic/sending.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <vector>

namespace hawser::backend::quic {
namespace {

constexpr std::size_t kDatagram = 1200;
constexpr Duration kTimeout = std::chrono::milliseconds(10);

/// Datagrams that say of which stream they are by their first byte, as many as it is told may go.
class FakeWriter final : public PacketWriter {
 public:
  struct Made {
    std::int64_t stream;
    std::size_t taken;
    bool is_last;
  };

  Written write(const Wanted& wanted, std::span<std::byte> room, Instant) override {
    if (error != 0) return {.size = error, .taken = -1};
    std::size_t bytes = 0;
    for (const ngtcp2_vec& part : wanted.parts) bytes += part.len;
    const std::size_t most = std::min<std::size_t>({room.size(), congestion, stream_window});
    if (wanted.stream >= 0 && stream_window == 0 && bytes > 0) {
      return {.size = NGTCP2_ERR_STREAM_DATA_BLOCKED, .taken = -1};
    }
    const std::size_t taken = std::min(bytes, most);
    if (wanted.stream < 0 || (taken == 0 && bytes > 0)) return {.size = 0, .taken = -1};
    const std::size_t size = std::max<std::size_t>(taken, 1);
    std::memset(room.data(), static_cast<int>(wanted.stream), size);
    congestion -= taken;
    made.push_back({wanted.stream, taken, wanted.is_last && taken == bytes});
    return {.size = static_cast<ngtcp2_ssize>(size), .taken = static_cast<ngtcp2_ssize>(taken)};
  }
  std::uint64_t congestion_left() const override { return congestion; }
  std::uint64_t window_left() const override { return window; }
  std::uint64_t stream_window_left(std::int64_t) const override { return stream_window; }
  std::size_t burst_max() const override { return burst; }
  void note_burst(Instant) override { ++bursts; }

  std::size_t congestion = 1u << 30, window = 1u << 30, stream_window = 1u << 30, burst = 3 * kDatagram;
  int error = 0, bursts = 0;
  std::vector<Made> made;
};

class FakeSender final : public PacketSender {
 public:
  bool send(const Route&, std::span<const std::byte> packets, std::size_t segment) override {
    if (is_full) return false;
    for (std::size_t at = 0; at < packets.size(); at += segment)
      sizes.push_back(std::min(segment, packets.size() - at));
    return true;
  }
  bool is_full = false;
  std::vector<std::size_t> sizes;
};

class SendingTest : public testing::Test {
 protected:
  explicit SendingTest(bool is_paced = true)
      : sending_(flows_, writer_, sender_, spare_, {.datagram_max = kDatagram, .is_paced = is_paced}) {}

  Flow& add_flow() {
    flows_.push_back(std::make_unique<Flow>(pool_, 1000));
    flows_.back()->id = static_cast<std::int64_t>(4 * (flows_.size() - 1));
    return *flows_.back();
  }
  std::size_t write(Flow& flow, std::size_t bytes) {
    const std::vector<std::byte> from(bytes);
    const iovec part = {const_cast<std::byte*>(from.data()), bytes};
    const Sending::Taken taken = sending_.write(flow, {&part, 1}, now_);
    EXPECT_EQ(taken.error, writer_.error);
    return taken.bytes;
  }

  const Instant now_ = Instant::from_ns(1'000'000'000);
  ChunkPool pool_;
  PacketBatch::Buffer spare_;
  FakeWriter writer_;
  FakeSender sender_;
  Sending::Flows flows_;
  Sending sending_;
  std::array<std::byte, 3000> spare_bytes_ = {};
};

class UnpacedSending : public SendingTest {
 protected:
  UnpacedSending() : SendingTest(false) {}
};

TEST_F(SendingTest, WhatIsWrittenGoesAtOnceWhereItMay) {
  Flow& flow = add_flow();
  EXPECT_EQ(write(flow, 100), 100u);
  EXPECT_EQ(sender_.sizes, std::vector<std::size_t>{100});
  EXPECT_EQ(sending_.under_way(), 100u);
  EXPECT_EQ(sending_.unsent(), 0u);
  EXPECT_FALSE(flow.wants_room);
  EXPECT_FALSE(sending_.is_delivered());
  sending_.note_acknowledged(flow.id, 100);
  EXPECT_EQ(sending_.under_way(), 0u);
  EXPECT_TRUE(sending_.is_delivered());
}

TEST_F(SendingTest, PartsOfAWriteKeepTheirOrder) {
  Flow& flow = add_flow();
  writer_.congestion = 0;
  std::array<std::byte, 3> a = {std::byte{1}, std::byte{2}, std::byte{3}};
  std::array<std::byte, 2> b = {std::byte{4}, std::byte{5}};
  const std::array<iovec, 3> parts = {iovec{a.data(), 3}, iovec{nullptr, 0}, iovec{b.data(), 2}};
  EXPECT_EQ(sending_.write(flow, parts, now_).bytes, 5u);
  const SendParts waits = flow.out.unsent(SIZE_MAX);
  ASSERT_EQ(waits.count, 1u);
  EXPECT_EQ(std::vector<int>(waits.parts[0].base, waits.parts[0].base + 5), (std::vector<int>{1, 2, 3, 4, 5}));
}

TEST_F(SendingTest, AFullNetworkTakesLittleMoreAndTellsWhenThereIsRoom) {
  Flow& flow = add_flow();
  writer_.congestion = 0;
  EXPECT_EQ(write(flow, 1u << 20), Sending::kSmallUnsent);
  EXPECT_EQ(write(flow, 1u << 20), 0u) << "what it took before was not sent yet";
  EXPECT_EQ(sending_.unsent(), Sending::kSmallUnsent);
  sending_.tell_room();
  EXPECT_FALSE(flow.is_writable);
  writer_.congestion = 1u << 20, writer_.burst = 1u << 20;
  EXPECT_EQ(sending_.settle(now_), 0);
  EXPECT_EQ(sending_.unsent(), 0u);
  sending_.tell_room();
  EXPECT_TRUE(flow.is_writable);
  EXPECT_FALSE(flow.wants_room) << "it is told once";
}

TEST_F(SendingTest, NoRoomIsToldWhereTheWindowOrTheKernelTakesNothing) {
  Flow& flow = add_flow();
  flow.wants_room = true;
  writer_.window = 0;
  sending_.tell_room();
  EXPECT_FALSE(flow.is_writable);
  writer_.window = 100, writer_.stream_window = 0;
  sending_.tell_room();
  EXPECT_FALSE(flow.is_writable);
  writer_.stream_window = 100, sender_.is_full = true;
  Flow& other = add_flow();
  EXPECT_EQ(write(other, 10), 10u);
  EXPECT_TRUE(sending_.is_blocked());
  sending_.tell_room();
  EXPECT_FALSE(flow.is_writable);
  sender_.is_full = false;
  EXPECT_TRUE(sending_.flush());
  sending_.tell_room();
  EXPECT_TRUE(flow.is_writable);
}

TEST_F(SendingTest, AStreamKeepsSoMuchUnacknowledgedAtMost) {
  Flow& flow = add_flow();
  writer_.burst = 1u << 30;
  std::size_t total = 0;
  while (const std::size_t taken = write(flow, 1u << 20)) total += taken;
  EXPECT_GE(total, SendQueue::kUnackedMax);
  EXPECT_LT(total, SendQueue::kUnackedMax + Sending::kTakeAtOnce);
  sending_.tell_room();
  EXPECT_FALSE(flow.is_writable);
  sending_.note_acknowledged(flow.id, total);
  sending_.tell_room();
  EXPECT_TRUE(flow.is_writable);
}

TEST_F(SendingTest, SmallThingsGoBeforeBulkThatWaits) {
  Flow &bulk = add_flow(), &message = add_flow();
  bulk.out.append(std::vector<std::byte>(Sending::kSmallUnsent + 1));
  message.out.append(std::vector<std::byte>(100));
  writer_.burst = 1u << 20;
  EXPECT_EQ(sending_.settle(now_), 0);
  ASSERT_GE(writer_.made.size(), 2u);
  EXPECT_EQ(writer_.made[0].stream, message.id);
  EXPECT_EQ(writer_.made[1].stream, bulk.id);
}

TEST_F(SendingTest, AFullStreamHoldsNoOtherBack) {
  Flow& full = add_flow();
  full.out.append(std::vector<std::byte>(100));
  writer_.stream_window = 0;
  EXPECT_EQ(sending_.settle(now_), 0);
  EXPECT_TRUE(writer_.made.empty());
  writer_.stream_window = 1000;
  EXPECT_EQ(write(add_flow(), 10), 10u);
}

TEST_F(SendingTest, APacedOneSendsABurstAtOnce) {
  Flow& flow = add_flow();
  EXPECT_EQ(write(flow, 100 * kDatagram), 100 * kDatagram);
  EXPECT_EQ(writer_.made.size(), 3u);
  EXPECT_EQ(writer_.bursts, 1);
  EXPECT_EQ(sending_.settle(now_), 0);
  EXPECT_EQ(writer_.made.size(), 6u);
}

TEST_F(UnpacedSending, SendsAllThatMayGo) {
  EXPECT_EQ(write(add_flow(), 100 * kDatagram), 100 * kDatagram);
  EXPECT_EQ(writer_.made.size(), 100u);
  EXPECT_EQ(writer_.bursts, 0);
}

TEST_F(UnpacedSending, BulkBesideASmallWriteIsHeldBack) {
  Flow &bulk = add_flow(), &message = add_flow();
  EXPECT_EQ(write(message, 8), 8u);
  EXPECT_EQ(write(bulk, 1u << 20), BulkBrake::kBesideFew - 8);
  const iovec more = {spare_bytes_.data(), spare_bytes_.size()};
  const Sending::Taken held = sending_.write(bulk, {&more, 1}, now_);
  EXPECT_EQ(held.bytes, 0u);
  EXPECT_TRUE(held.is_held) << "whoever settled after it, and so told of room, would turn in a circle";
  EXPECT_TRUE(bulk.wants_room);
  EXPECT_EQ(write(message, 8), 8u) << "messages go";
}

TEST_F(SendingTest, LargePartsAreLentWhereThatIsAsked) {
  Sending lending(flows_, writer_, sender_, spare_, {.is_lent = true, .is_paced = false});
  Flow& flow = add_flow();
  std::vector<std::byte> large(SendQueue::kLendMin);
  const std::array<iovec, 2> parts = {iovec{spare_bytes_.data(), 100}, iovec{large.data(), large.size()}};
  EXPECT_EQ(lending.write(flow, parts, now_).bytes, 100 + large.size());
  EXPECT_EQ(flow.out.released(), 100u);
  lending.note_acknowledged(flow.id, 100);
  EXPECT_TRUE(flow.is_released);
  lending.note_acknowledged(flow.id, large.size());
  EXPECT_EQ(flow.out.released(), 100 + large.size());
  EXPECT_EQ(write(flow, large.size()), large.size()) << "where it is not, all are copied";
  EXPECT_FALSE(flow.out.refers_to_user());
}

TEST_F(SendingTest, TheEndGoesWithTheLastBytes) {
  Flow& flow = add_flow();
  flow.out.append(std::vector<std::byte>(kDatagram + 10));
  flow.out.finish();
  EXPECT_EQ(sending_.settle(now_), 0);
  ASSERT_EQ(writer_.made.size(), 2u);
  EXPECT_FALSE(writer_.made[0].is_last);
  EXPECT_TRUE(writer_.made[1].is_last);
  EXPECT_FALSE(sending_.is_delivered());
  sending_.note_acknowledged(flow.id, kDatagram + 10);
  EXPECT_TRUE(sending_.is_delivered());
}

TEST_F(SendingTest, AnErrorOfNgtcp2IsGivenBack) {
  Flow& flow = add_flow();
  writer_.error = NGTCP2_ERR_NOMEM;
  write(flow, 10);
  EXPECT_EQ(sending_.settle(now_), NGTCP2_ERR_NOMEM);
}

TEST_F(SendingTest, DatagramsAreSmallOnceAHeardPeerAcknowledgesNothing) {
  Sending large(flows_, writer_, sender_, spare_, {.datagram_max = 9000});
  Flow& flow = add_flow();
  flow.out.append(std::vector<std::byte>(30'000));
  ASSERT_EQ(large.settle(now_), 0);
  EXPECT_EQ(sender_.sizes.at(0), 9000u);
  Instant now = now_;
  large.watch(now, kTimeout);
  std::optional<Duration> waited;
  for (int i = 0; i < 100 && !waited; ++i) {
    now = now + kTimeout;
    waited = large.note_heard(now, kTimeout);
  }
  ASSERT_TRUE(waited.has_value());
  EXPECT_EQ(*waited, now - now_);
  sender_.sizes.clear();
  flow.out.append(std::vector<std::byte>(30'000));
  ASSERT_EQ(large.settle(now), 0);
  EXPECT_EQ(sender_.sizes.at(0), DatagramLimit::kLeast);
  large.note_moved();
  sender_.sizes.clear();
  ASSERT_EQ(large.settle(now), 0);
  EXPECT_EQ(sender_.sizes.at(0), 9000u);
}

TEST_F(SendingTest, APeerThatAcknowledgesIsNotMissed) {
  Flow& flow = add_flow();
  EXPECT_EQ(write(flow, 100), 100u);
  Instant now = now_;
  for (int i = 0; i < 100; ++i) {
    now = now + kTimeout;
    sending_.watch(now, kTimeout);
    sending_.note_acknowledged(flow.id, 1);
    EXPECT_FALSE(sending_.note_heard(now, kTimeout)) << i;
  }
}

TEST_F(SendingTest, TheLastDatagramGoesBehindWhatWaits) {
  EXPECT_EQ(write(add_flow(), 100), 100u);
  sending_.send_last({}, 300, [](std::span<std::byte> room) {
    EXPECT_EQ(room.size(), 300u);
    return std::size_t{50};
  });
  EXPECT_EQ(sender_.sizes, (std::vector<std::size_t>{100, 50}));
  sending_.send_last({}, 300, [](std::span<std::byte>) { return std::size_t{0}; });
  EXPECT_EQ(sender_.sizes.size(), 2u);
}

}  // namespace
}  // namespace hawser::backend::quic
