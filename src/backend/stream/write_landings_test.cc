#include "backend/stream/write_landings.h"

#include <gtest/gtest.h>

#include "backend/stream/test_serving.h"

namespace hawser::backend::stream {
namespace {

class WriteLandingsTest : public testing::Test, protected TestServing {
 protected:
  explicit WriteLandingsTest(const PeerQuotas& quotas = {}) : TestServing(quotas) {}

  /// A WRITE frame to `offset` as its initiator frames it.
  std::vector<std::byte> write(std::uint32_t tag, std::uint64_t offset, std::uint32_t size, bool is_void = false) {
    std::vector<std::byte> payload(size, std::byte{'w'});
    const Piece piece{.local = payload.data(), .remote = offset, .size = size};
    bool equal = true;
    const std::size_t meta = wire::kChunkHeadSize + wire::pieces_size(std::span(&piece, 1), &equal);
    Outlet outlet;
    FrameWriter frame(outlet, {.type = wire::FrameType::kWrite,
                               .flags = wire::kFlagCovered | wire::kFlagTrailer,
                               .meta_size = static_cast<std::uint16_t>(meta),
                               .payload_size = size});
    wire::encode_chunk(frame.meta(), {.transfer = 7, .index = 3, .tag = tag, .binding = 1});
    wire::encode_pieces(frame.meta(), std::span(&piece, 1), equal);
    const std::uint64_t end = frame.payload({&piece, 1}, {}, kNoOwner);
    std::vector<std::byte> bytes;
    if (is_void) {
      bytes = bytes_of(outlet, wire::lead_size(meta) + size / 2);
      static_cast<void>(outlet.stop_frame(end, wire::Outcome::kVoid));
    }
    const auto rest = bytes_of(outlet);
    bytes.insert(bytes.end(), rest.begin(), rest.end());
    return bytes;
  }
  /// `bytes` come on stream 1. False: senseless.
  bool come(std::span<const std::byte> bytes) {
    for (Inlet::Next next = next_of(inlets_[1], bytes); next != Inlet::Next::kMore; next = next_of(inlets_[1], bytes)) {
      const bool good =
          next == Inlet::Next::kFrame ? landings_.on_write(1, inlets_[1]) : landings_.on_write_end(1, inlets_[1]);
      if (!good) return false;
    }
    return true;
  }
  bool ask_void(std::uint32_t tag, std::uint64_t frame, std::uint32_t stream = 1) {
    std::string meta;
    base::ByteWriter out(&meta);
    wire::encode_void(out, {.tag = tag, .stream = static_cast<std::uint8_t>(stream), .frame = frame});
    return landings_.on_void(base::as_bytes(meta), inlets_);
  }
  std::size_t arrivals() {
    std::array<PortEvent, 8> out;
    return events.poll(out);
  }
  std::ptrdiff_t written() const { return std::ranges::count(memory, std::byte{'w'}); }

  std::array<Inlet, 2> inlets_;
  WriteLandings landings_{serving, events, nullptr};
};

TEST_F(WriteLandingsTest, AWriteIsCountedAndAcknowledgedWhenItIsThere) {
  const auto bytes = write(5, 100, 5000);
  ASSERT_TRUE(come(std::span(bytes).first(2000)));
  EXPECT_TRUE(acked().empty());
  ASSERT_TRUE(come(std::span(bytes).subspan(2000)));
  EXPECT_EQ(acked(), (Acked{{5, wire::Outcome::kOk}}));
  EXPECT_EQ(arrivals(), 1u);
  EXPECT_EQ(written(), 5000);
  EXPECT_EQ(memory[99], std::byte{0xee});
  EXPECT_EQ(memory[100], std::byte{'w'});
  EXPECT_EQ(landings_.bytes(), 5000u);
}

TEST_F(WriteLandingsTest, OneByteBeyondTheRegionTouchesNothing) {
  ASSERT_TRUE(come(write(1, memory.size() - 10, 10)));
  EXPECT_EQ(written(), 10);
  ASSERT_TRUE(come(write(2, memory.size() - 10, 11)));
  EXPECT_EQ(acked(), (Acked{{1, wire::Outcome::kOk}, {2, wire::Outcome::kOutOfBounds}}));
  EXPECT_EQ(arrivals(), 1u);
}

TEST_F(WriteLandingsTest, WhatLandsInARegionThatClosesStopsThere) {
  const auto bytes = write(5, 0, 5000);
  ASSERT_TRUE(come(std::span(bytes).first(2000)));
  close_region();
  landings_.stop_closed(inlets_);
  const auto before = written();
  EXPECT_GT(before, 0);
  ASSERT_TRUE(come(std::span(bytes).subspan(2000)));
  EXPECT_EQ(written(), before);
  EXPECT_EQ(acked(), (Acked{{5, wire::Outcome::kClosedMidway}}));
  EXPECT_EQ(arrivals(), 0u);
}

TEST_F(WriteLandingsTest, OneRegionIsLetGo) {
  const auto bytes = write(5, 0, 5000);
  ASSERT_TRUE(come(std::span(bytes).first(2000)));
  landings_.stop_region(region->index, region->generation + 1, inlets_);
  landings_.stop_region(region->index, region->generation, inlets_);
  ASSERT_TRUE(come(std::span(bytes).subspan(2000)));
  EXPECT_LT(written(), 5000);
}

TEST_F(WriteLandingsTest, AVoidWriteCountsAsNone) {
  ASSERT_TRUE(come(write(5, 0, 5000, true)));
  EXPECT_EQ(acked(), (Acked{{5, wire::Outcome::kVoid}}));
  EXPECT_EQ(arrivals(), 0u);
  EXPECT_EQ(landings_.bytes(), 0u);
}

TEST_F(WriteLandingsTest, AWriteThatIsGivenUpStopsWhereItIs) {
  const auto bytes = write(5, 0, 5000);
  ASSERT_TRUE(come(std::span(bytes).first(2000)));
  ASSERT_TRUE(ask_void(5, 0));
  EXPECT_EQ(acked(), (Acked{{5, wire::Outcome::kVoidedMidway}}));
  const auto before = written();
  ASSERT_TRUE(come(std::span(bytes).subspan(2000)));
  EXPECT_EQ(written(), before);
  EXPECT_EQ(acked(), (Acked{{5, wire::Outcome::kVoid}}));
}

TEST_F(WriteLandingsTest, OneThatIsStillToComeDoesNotLand) {
  ASSERT_TRUE(ask_void(5, 0));
  EXPECT_EQ(acked(), (Acked{{5, wire::Outcome::kVoidedClean}}));
  ASSERT_TRUE(come(write(5, 0, 5000)));
  EXPECT_EQ(written(), 0);
  EXPECT_EQ(acked(), (Acked{{5, wire::Outcome::kVoid}}));
}

TEST_F(WriteLandingsTest, OneThatHasEndedIsNotAnsweredAgain) {
  ASSERT_TRUE(come(write(5, 0, 5000)));
  EXPECT_EQ(acked().size(), 1u);
  ASSERT_TRUE(ask_void(5, 0));
  EXPECT_TRUE(acked().empty());
}

TEST_F(WriteLandingsTest, OnlyStreamsOfBulkAreAskedFor) {
  EXPECT_FALSE(ask_void(5, 0, 0));
  EXPECT_FALSE(ask_void(5, 0, 2));
}

TEST_F(WriteLandingsTest, MoreWritesThanAPeerMayHaveAreSenseless) {
  while (acks.has_room()) acks.add(1, wire::Outcome::kOk);
  EXPECT_FALSE(come(write(5, 0, 100)));
}

class WriteQuotaTest : public WriteLandingsTest {
 protected:
  WriteQuotaTest() : WriteLandingsTest({.operations = 1, .bytes = 1000}) {}
};

TEST_F(WriteQuotaTest, AWriteBeyondTheQuotaTouchesNothing) {
  ASSERT_TRUE(come(write(1, 0, 1000)));
  ASSERT_TRUE(come(write(2, 5000, 1001)));
  EXPECT_EQ(acked(), (Acked{{1, wire::Outcome::kOk}, {2, wire::Outcome::kTooManyBytes}}));
  EXPECT_EQ(written(), 1000);
}

}  // namespace
}  // namespace hawser::backend::stream
