#include "rdma/rules.h"

#include <gtest/gtest.h>

namespace hawser::rdma {
namespace {

OpShape shape(OpType type, std::uint64_t local, std::uint64_t remote, bool writable = true) {
  return {.type = type,
          .has_local = true,
          .local_writable = writable,
          .has_remote = true,
          .local_size = local,
          .remote_size = remote};
}

TEST(RdmaRules, C2_AReadMovesTheRemoteBufferAWriteTheLocalMemory) {
  EXPECT_EQ(bytes_of(shape(OpType::kReadIntoLocal, 10, 8)).value(), 8u);
  EXPECT_EQ(bytes_of(shape(OpType::kReadIntoLocal, 8, 8)).value(), 8u);
  EXPECT_EQ(bytes_of(shape(OpType::kWriteFromLocal, 5, 8)).value(), 5u);
  EXPECT_EQ(bytes_of(shape(OpType::kWriteFromLocal, 5, 8, false)).value(), 5u);
  EXPECT_EQ(bytes_of(shape(OpType::kReadIntoLocal, 10, 0)).value(), 0u);
  EXPECT_EQ(bytes_of(shape(OpType::kWriteFromLocal, 0, 8)).value(), 0u);
}

TEST(RdmaRules, C3_WhatDoesNotFitIsRefusedBeforeAByteMoves) {
  for (const OpShape& bad : {shape(OpType::kReadIntoLocal, 7, 8), shape(OpType::kWriteFromLocal, 9, 8)}) {
    const Status status = bytes_of(bad).error();
    EXPECT_EQ(status.code(), Code::kInvalid);
    EXPECT_EQ(status.buffer(), BufferState::kUntouched);
    EXPECT_FALSE(status.advice().empty());
  }
  EXPECT_EQ(bytes_of(shape(OpType::kReadIntoLocal, 8, 8, false)).error().code(), Code::kDenied);
}

TEST(RdmaRules, AtomicsTakeOneWord) {
  for (const OpType type : {OpType::kFetchAdd, OpType::kCompareSwap}) {
    EXPECT_EQ(bytes_of(shape(type, 8, 8)).value(), 8u);
    EXPECT_EQ(bytes_of({.type = type, .has_remote = true, .remote_size = 8}).value(), 8u);
    EXPECT_EQ(bytes_of(shape(type, 7, 8)).error().code(), Code::kInvalid);
    EXPECT_EQ(bytes_of(shape(type, 8, 8, false)).error().code(), Code::kInvalid);
    EXPECT_EQ(bytes_of(shape(type, 8, 16)).error().code(), Code::kInvalid);
    EXPECT_EQ(bytes_of(shape(type, 8, 4)).error().code(), Code::kInvalid);
    OpShape of_gpu = shape(type, 8, 8);
    of_gpu.local_on_host = false;
    EXPECT_EQ(bytes_of(of_gpu).error().code(), Code::kInvalid);
  }
}

TEST(RdmaRules, EmptyHandlesAndUnknownOperationsAreInvalid) {
  OpShape none = shape(OpType::kWriteFromLocal, 1, 1);
  none.has_remote = false;
  EXPECT_EQ(bytes_of(none).error().code(), Code::kInvalid);
  none.has_remote = true;
  none.has_local = false;
  EXPECT_EQ(bytes_of(none).error().code(), Code::kInvalid);
  EXPECT_EQ(bytes_of(shape(static_cast<OpType>(9), 1, 1)).error().code(), Code::kInvalid);
}

TEST(RdmaRules, LevelsAreOrdered) {
  EXPECT_LT(level_of("tcp"), level_of("verbs"));
  EXPECT_LT(level_of("verbs"), level_of("shm"));
  EXPECT_EQ(level_of("self"), TransportLevel::kMemory);
  EXPECT_EQ(level_of("some plug-in"), TransportLevel::kTcp);
  EXPECT_EQ(to_string(TransportLevel::kNic), "nic");
}

}  // namespace
}  // namespace hawser::rdma
