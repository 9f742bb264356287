#include "runtime/collective_call.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

namespace hawser::runtime {
namespace {

using schedule::Algorithm;

CollectiveCall all_reduce() {
  return {.call = {.operation = schedule::Operation::kAllReduce, .rank = 1, .size = 4, .count = 100},
          .type = DataType::kFloat32,
          .op = ReduceOp::kSum};
}

TEST(CollectiveCall, WhatRanksMustAgreeUponIsInItsDigest) {
  const std::uint64_t digest = digest_of(all_reduce(), Algorithm::kDoubling);
  CollectiveCall call = all_reduce();
  call.call.rank = 2;
  EXPECT_EQ(digest_of(call, Algorithm::kDoubling), digest);
  EXPECT_NE(digest_of(call, Algorithm::kTree), digest);
  call.call.count = 101;
  EXPECT_NE(digest_of(call, Algorithm::kDoubling), digest);
  call = all_reduce();
  call.type = DataType::kFloat64;
  EXPECT_NE(digest_of(call, Algorithm::kDoubling), digest);
  call = all_reduce();
  call.op = ReduceOp::kMax;
  EXPECT_NE(digest_of(call, Algorithm::kDoubling), digest);
  call = all_reduce();
  call.call.reproducible = true;
  EXPECT_NE(digest_of(call, Algorithm::kDoubling), digest);
}

TEST(CollectiveCall, CountsOfAnEvenExchangeAreInItsDigest) {
  CollectiveCall call = {.call = {.operation = schedule::Operation::kAllToAll, .size = 2, .counts = {1, 1}}};
  CollectiveCall other = call;
  other.call.counts = {2, 2};
  EXPECT_EQ(digest_of(call, Algorithm::kDirect), digest_of(other, Algorithm::kDirect)) << "each rank has its own";
  call.call.is_even = true;
  EXPECT_NE(digest_of(call, Algorithm::kDirect), digest_of(other, Algorithm::kDirect)) << "even and not";
  other.call.is_even = true;
  EXPECT_NE(digest_of(call, Algorithm::kDirect), digest_of(other, Algorithm::kDirect));
  other.call.counts = {1, 1};
  EXPECT_EQ(digest_of(call, Algorithm::kDirect), digest_of(other, Algorithm::kDirect));
}

TEST(CollectiveCall, BuffersForBoardsAreThereAndApart) {
  schedule::Call call = {.operation = schedule::Operation::kAllReduce, .size = 2, .count = 4, .element_bytes = 4};
  std::array<float, 12> bytes{};
  float* const in = bytes.data() + 4;
  EXPECT_TRUE(has_buffers_for_boards(call, in, in + 4));
  EXPECT_TRUE(has_buffers_for_boards(call, in, in - 4));
  EXPECT_FALSE(has_buffers_for_boards(call, in, in + 3));
  EXPECT_FALSE(has_buffers_for_boards(call, in, in - 3));
  EXPECT_FALSE(has_buffers_for_boards(call, nullptr, in));
  EXPECT_FALSE(has_buffers_for_boards(call, in, nullptr));
  call.has_input_in_output = true;
  EXPECT_TRUE(has_buffers_for_boards(call, in, in));
  EXPECT_TRUE(has_buffers_for_boards(call, nullptr, in));
  call.count = 0;
  EXPECT_TRUE(has_buffers_for_boards(call, nullptr, nullptr));
}

TEST(CollectiveCall, IsWrittenDown) {
  const FlightEntry entry = flight_of(all_reduce(), Algorithm::kDoubling);
  EXPECT_EQ(text_of(entry.operation), "all_reduce");
  EXPECT_EQ(entry.rank, 1u);
  EXPECT_EQ(entry.size, 4u);
  EXPECT_EQ(entry.count, 100u);
  EXPECT_EQ(entry.type, static_cast<unsigned>(DataType::kFloat32) + 1);
  EXPECT_EQ(flight_of({.call = {.operation = schedule::Operation::kBarrier}}, Algorithm::kDissemination).type, 0u);
  using What = schedule::Operation;
  const auto sizes = [](What what, std::vector<std::uint64_t> counts, std::vector<std::uint64_t> in_counts = {}) {
    CollectiveCall call = {.call = {.operation = what, .rank = 1, .size = 3}};
    call.call.counts = std::move(counts);
    call.call.in_counts = std::move(in_counts);
    const FlightEntry its = flight_of(call, Algorithm::kDirect);
    EXPECT_EQ(its.count, std::max(its.inputs, its.outputs));
    return std::pair(its.inputs, its.outputs);
  };
  EXPECT_EQ(sizes(What::kAllGather, {1, 2, 3}), std::pair(std::uint64_t{2}, std::uint64_t{6}));
  EXPECT_EQ(sizes(What::kGather, {1, 2, 3}), std::pair(std::uint64_t{2}, std::uint64_t{6}));
  EXPECT_EQ(sizes(What::kScatter, {1, 2, 3}), std::pair(std::uint64_t{6}, std::uint64_t{2}));
  EXPECT_EQ(sizes(What::kReduceScatter, {1, 2, 3}), std::pair(std::uint64_t{6}, std::uint64_t{2}));
  EXPECT_EQ(sizes(What::kAllToAll, {1, 2, 3}, {4, 5, 6}), std::pair(std::uint64_t{6}, std::uint64_t{15}));
  EXPECT_EQ(entry.inputs, 100u);
  EXPECT_EQ(entry.outputs, 100u);
}

}  // namespace
}  // namespace hawser::runtime
