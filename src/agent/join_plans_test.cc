// Several plans as one transfer.

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <hawser/hawser.h>

#include "agent/open.h"
#include "backend/loopback/factory.h"

namespace hawser::agent {
namespace {

using namespace std::chrono_literals;

constexpr std::uint64_t kBlock = 16, kBlocks = 8, kLayers = 3;

/// An agent with a region for each layer, and as many for its copies: it is its own peer.
class JoinPlans : public testing::Test {
 protected:
  struct End {
    explicit End(const char* name)
        : agent(std::move(open_with({.name = name}, {backend::loopback_factory()}).value())) {
      for (std::uint64_t layer = 0; layer < kLayers; ++layer) {
        regions.push_back(add("layer" + std::to_string(layer)));
        tables.push_back(regions.back().table(kBlock));
        copies.push_back(add("copy" + std::to_string(layer)));
      }
    }
    Region add(const std::string& region) {
      memory.emplace_back(kBlock * kBlocks);
      return std::move(agent.add_region({.name = region, .bytes = memory.back()}).value());
    }
    std::vector<std::vector<std::byte>> memory;
    Agent agent;
    std::vector<Region> regions, copies;
    std::vector<RangeTable> tables;
  };
  JoinPlans() {
    for (std::uint64_t layer = 0; layer < kLayers; ++layer) {
      theirs_.push_back(peer_.table("copy" + std::to_string(layer), kBlock));
      for (std::uint64_t i = 0; i < kBlock * kBlocks; ++i) {
        here_.regions[layer].bytes()[i] = static_cast<std::byte>(100 * layer + i % 97 + 1);
      }
    }
  }
  bool has_block(std::uint64_t layer, std::uint64_t copy, std::uint64_t ours) const {
    const auto from = here_.regions[layer].bytes().subspan(ours * kBlock, kBlock);
    return std::ranges::equal(from, here_.copies[layer].bytes().subspan(copy * kBlock, kBlock));
  }
  Plan layer_plan(std::uint64_t layer, const std::vector<std::uint32_t>& ours, const std::vector<std::uint32_t>& at) {
    return here_.agent.plan_write(peer_, here_.tables[layer], ours, theirs_[layer], at).value();
  }

  End here_{"here"}, there_{"there"};
  Peer peer_ = here_.agent.self();
  std::vector<RangeTable> theirs_;
};

TEST_F(JoinPlans, MoveAsOneTransferWithOneNotification) {
  const std::vector<Plan> plans = {layer_plan(0, {1, 2}, {5, 0}), layer_plan(2, {3}, {7})};
  Transfer sent = Plan::submit_group(plans, {.notify = "both"}).value();
  ASSERT_TRUE(sent.wait(10s).ok()) << sent.status().to_string();
  EXPECT_EQ(sent.bytes(), 3 * kBlock);
  static_cast<void>(here_.agent.poll());
  const auto told = here_.agent.take_notification();
  ASSERT_TRUE(told.has_value());
  EXPECT_EQ(told->text, "both");
  EXPECT_FALSE(here_.agent.take_notification().has_value());
  EXPECT_TRUE(has_block(0, 5, 1));
  EXPECT_TRUE(has_block(0, 0, 2));
  EXPECT_TRUE(has_block(2, 7, 3));
}

TEST_F(JoinPlans, ReadsAreJoinedToo) {
  const std::vector<std::uint32_t> first = {0}, second = {4};
  std::vector<Plan> plans;
  plans.push_back(here_.agent.plan_read(peer_, theirs_[0], first, here_.tables[0], second).value());
  plans.push_back(here_.agent.plan_read(peer_, theirs_[2], second, here_.tables[2], first).value());
  const Plan joined = Plan::join(plans).value();
  EXPECT_EQ(joined.operation(), Operation::kRead);
  EXPECT_EQ(joined.range_count(), 2u);
  Transfer got = joined.submit().value();
  ASSERT_TRUE(got.wait(10s).ok()) << got.status().to_string();
  EXPECT_EQ(here_.regions[0].bytes()[4 * kBlock], std::byte{0}) << "as the copy is";
  EXPECT_EQ(here_.regions[2].bytes()[0], std::byte{0});
}

TEST_F(JoinPlans, TheSameBlocksOfEachLayerAreOnePlan) {
  const std::vector<std::uint32_t> ours = {6, 2}, at = {1, 3};
  const Plan plan = here_.agent.plan_write(peer_, here_.tables, ours, theirs_, at).value();
  EXPECT_EQ(plan.bytes(), kLayers * 2 * kBlock);
  Transfer sent = plan.submit({.notify = "layers"}).value();
  ASSERT_TRUE(sent.wait(10s).ok()) << sent.status().to_string();
  for (std::uint64_t layer = 0; layer < kLayers; ++layer) {
    EXPECT_TRUE(has_block(layer, 1, 6)) << layer;
    EXPECT_TRUE(has_block(layer, 3, 2)) << layer;
  }
}

TEST_F(JoinPlans, WhatDoesNotBelongTogetherIsRefused) {
  const Plan one = layer_plan(0, {0}, {0});
  const std::vector<std::uint32_t> first = {0};
  const auto refusal = [](const std::vector<Plan>& plans) { return Plan::join(plans).error().to_string(); };
  EXPECT_EQ(Plan::join({}).error().code(), Code::kInvalid);
  EXPECT_NE(refusal({one, Plan()}).find("plan 1 is empty"), std::string::npos);
  const Plan read = here_.agent.plan_read(peer_, theirs_[0], first, here_.tables[0], first).value();
  EXPECT_NE(refusal({one, read}).find("direction"), std::string::npos);
  const Peer other = here_.agent.add_peer(there_.agent.card().value()).value();
  const Plan to_other =
      here_.agent.plan_write(other, here_.tables[0], first, other.table("layer1", kBlock), first).value();
  EXPECT_NE(refusal({one, to_other}).find("goes to peer 'there'"), std::string::npos) << refusal({one, to_other});
  const Peer back = there_.agent.add_peer(here_.agent.card().value()).value();
  const Plan of_other =
      there_.agent.plan_write(back, there_.tables[0], first, back.table("layer0", kBlock), first).value();
  EXPECT_NE(refusal({one, of_other}).find("of agent 'there'"), std::string::npos) << refusal({one, of_other});
}

TEST_F(JoinPlans, OfTablesTheWrongPairIsNamed) {
  const std::vector<std::uint32_t> first = {0}, outside = {8};
  const std::span<const RangeTable> two(theirs_.data(), 2);
  EXPECT_EQ(here_.agent.plan_write(peer_, here_.tables, first, two, first).error().code(), Code::kInvalid);
  const Status wrong = here_.agent.plan_write(peer_, here_.tables, outside, theirs_, first).error();
  EXPECT_EQ(wrong.code(), Code::kInvalid);
  EXPECT_NE(wrong.to_string().find("pair 0 of the tables"), std::string::npos) << wrong.to_string();
}

TEST_F(JoinPlans, ARegionThatIsClosedMeanwhileIsNotJoined) {
  const std::vector<Plan> plans = {layer_plan(0, {0}, {0}), layer_plan(1, {0}, {0})};
  ASSERT_TRUE(here_.regions[1].close(10s).ok());
  EXPECT_EQ(Plan::join(plans).error().code(), Code::kInvalid);
}

}  // namespace
}  // namespace hawser::agent
