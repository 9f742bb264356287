#include "backend/stream/chunk_reports.h"

#include <gtest/gtest.h>

#include <array>

namespace hawser::backend::stream {
namespace {

class ChunkReportsTest : public testing::Test {
 protected:
  ChunkReportsTest() {
    binding_.bind.index = 5;
    slot_.target = &binding_;
    slot_.state = ChunkSlot::State::kFramed;
    slot_.bytes = 100;
    slot_.cookie = 42;
  }
  Status of(wire::Outcome outcome, Operation op = Operation::kWrite) {
    slot_.op = op;
    slot_.outcome = outcome;
    return reports_.status_of(slot_);
  }
  PortEvent told() {
    std::array<PortEvent, 2> out;
    EXPECT_EQ(events_.poll(out), 1u);
    return out[0];
  }

  EventQueue events_;
  ChunkReports reports_{events_, nullptr, "peer"};
  RemoteBinding binding_;
  ChunkSlot slot_;
};

TEST_F(ChunkReportsTest, ARefusalNamesThePeerTheRegionAndWhatIsUntouched) {
  const Status status = of(wire::Outcome::kDenied);
  EXPECT_EQ(status.code(), Code::kDenied);
  EXPECT_EQ(status.peer(), "peer");
  EXPECT_EQ(status.buffer(), BufferState::kUntouched);
  EXPECT_NE(status.message().find("region #5"), std::string::npos);
  EXPECT_EQ(of(wire::Outcome::kOutOfBounds).code(), Code::kInvalid);
  EXPECT_EQ(of(wire::Outcome::kNoRoom).code(), Code::kBusy);
  EXPECT_TRUE(of(wire::Outcome::kOk).ok());
}

TEST_F(ChunkReportsTest, OnlyWritesLeaveSomethingMidway) {
  EXPECT_EQ(of(wire::Outcome::kClosedMidway).buffer(), BufferState::kPartlyWritten);
  EXPECT_EQ(of(wire::Outcome::kClosedMidway, Operation::kRead).buffer(), BufferState::kUntouched);
  EXPECT_EQ(of(wire::Outcome::kFileFailed).code(), Code::kFailed);
  EXPECT_EQ(of(wire::Outcome::kFileFailed).buffer(), BufferState::kUnknown);
  EXPECT_EQ(of(wire::Outcome::kFileFailed, Operation::kRead).buffer(), BufferState::kUntouched);
}

TEST_F(ChunkReportsTest, ACancelledWriteTellsWhatItLeft) {
  slot_.cancelled = true;
  EXPECT_EQ(of(wire::Outcome::kOk).code(), Code::kCancelled);
  EXPECT_EQ(of(wire::Outcome::kOk).buffer(), BufferState::kComplete);
  EXPECT_EQ(of(wire::Outcome::kVoidedClean).buffer(), BufferState::kUntouched);
  EXPECT_EQ(of(wire::Outcome::kVoid).buffer(), BufferState::kUnknown);
  slot_.voided = slot_.has_begun = true;
  EXPECT_EQ(of(wire::Outcome::kVoid).buffer(), BufferState::kPartlyWritten);
}

TEST_F(ChunkReportsTest, AQuotaIsNamedWithThePeersValue) {
  reports_.note_quotas({.operations = 17, .bytes = 1234});
  const Status operations = of(wire::Outcome::kTooManyOperations);
  EXPECT_EQ(operations.code(), Code::kBusy);
  EXPECT_NE(operations.message().find("limits.peer_operations = 17"), std::string::npos) << operations.message();
  const Status bytes = of(wire::Outcome::kTooManyBytes);
  EXPECT_NE(bytes.message().find("limits.peer_bytes = 1234"), std::string::npos) << bytes.message();
  EXPECT_NE(bytes.advice().find("HAWSER_LIMITS_PEER_BYTES"), std::string::npos);
}

TEST_F(ChunkReportsTest, WhatALostPathLeftDependsOnHowFarTheChunkGot) {
  const Status why(Code::kDisconnected, "gone");
  Outlet outlet;
  slot_.op = Operation::kWrite;
  slot_.state = ChunkSlot::State::kQueued;
  EXPECT_EQ(reports_.lost(slot_, why, outlet).buffer(), BufferState::kUntouched);
  slot_.state = ChunkSlot::State::kFramed;
  slot_.begin = 0;
  outlet.add_bytes(std::array<std::byte, 8>{});
  EXPECT_EQ(reports_.lost(slot_, why, outlet).buffer(), BufferState::kUntouched);
  outlet.sent(1);
  EXPECT_EQ(reports_.lost(slot_, why, outlet).buffer(), BufferState::kUnknown);
  slot_.op = Operation::kRead;
  EXPECT_EQ(reports_.lost(slot_, why, outlet).buffer(), BufferState::kUntouched);
  slot_.landing = 1;
  EXPECT_EQ(reports_.lost(slot_, why, outlet).buffer(), BufferState::kPartlyWritten);
  EXPECT_EQ(reports_.lost(slot_, why, outlet).code(), Code::kDisconnected);
  slot_.cancelled = true;
  EXPECT_EQ(reports_.lost(slot_, why, outlet).code(), Code::kCancelled);
}

TEST_F(ChunkReportsTest, TheLaneHears) {
  reports_.tell(slot_, reports_.cancelled_unsent());
  const PortEvent event = told();
  EXPECT_EQ(event.cookie, 42u);
  EXPECT_EQ(event.status.code(), Code::kCancelled);
  EXPECT_FALSE(event.unsettled);
  reports_.tell_unanswered(slot_);
  EXPECT_TRUE(told().unsettled);
  Chunk chunk;
  chunk.cookie = 43;
  reports_.tell_malformed(chunk);
  EXPECT_EQ(told().status.code(), Code::kInvalid);
}

TEST_F(ChunkReportsTest, ACancelledReadTellsWhetherDataIsInPlace) {
  EXPECT_EQ(reports_.cancelled_read(true).buffer(), BufferState::kPartlyWritten);
  EXPECT_EQ(reports_.cancelled_read(false).buffer(), BufferState::kUntouched);
}

}  // namespace
}  // namespace hawser::backend::stream
