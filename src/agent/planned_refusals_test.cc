// Which plans a refusal is about: those that join its regions, not those that have them.

#include <gtest/gtest.h>

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include <hawser/agent.h>

#include "agent/open.h"
#include "agent/plan.h"
#include "backend/loopback/factory.h"
#include "base/inside.h"

namespace hawser::agent {
namespace {

class PlannedRefusals : public testing::Test {
 protected:
  static constexpr std::uint64_t kSize = 4096;
  struct Join {
    std::size_t local = 0;
    const char* remote = nullptr;
    std::uint64_t offset = 0, size = 1024;
  };

  Region add(const char* name) { return *agent_.add_region({.name = name, .bytes = memory_.emplace_back(kSize)}); }
  Plan plan(const std::vector<Join>& joins) {
    std::vector<LocalRange> from;
    std::vector<RemoteRange> to;
    for (const Join& join : joins) {
      from.push_back(locals_[join.local].range(join.offset, join.size));
      to.push_back(agent_.self().range(join.remote, join.offset, join.size));
    }
    return *agent_.plan_write(agent_.self(), from, to);
  }
  Refusals::Id local(std::size_t at) const {
    return {core_of(locals_[at])->entry->index, core_of(locals_[at])->entry->generation};
  }
  Refusals::Id remote(const char* name) const {
    const RemoteRange range = agent_.self().range(name, 0, kSize);
    return {range.region->index, range.region->generation};
  }
  /// Whether a path that refused what is between these is not for the plan.
  bool is_refused(const Plan& plan, Refusals::Id remote, std::vector<Refusals::Id> locals) const {
    Refusals refusals;
    refusals.add(remote, std::move(locals), Status(Code::kUnsupported, "not registered"));
    return core_of(plan)->refused_by(refusals) != nullptr;
  }

  std::vector<std::vector<std::byte>> memory_;
  Agent agent_ = *open_with({.name = "a"}, {backend::loopback_factory()});
  std::vector<Region> locals_;
  Region one_, two_;

  void SetUp() override {
    memory_.reserve(4);
    locals_.push_back(add("first"));
    locals_.push_back(add("second"));
    one_ = add("one");
    two_ = add("two");
  }
};

TEST_F(PlannedRefusals, APlanThatHasBothAndDoesNotJoinThemIsNotRefused) {
  EXPECT_FALSE(is_refused(plan({{0, "two"}, {1, "one"}}), remote("two"), {local(1)}));
  EXPECT_TRUE(is_refused(plan({{0, "one"}, {1, "two"}}), remote("two"), {local(1)}));
  EXPECT_TRUE(is_refused(plan({{0, "two"}, {1, "one"}, {1, "two", 2048}}), remote("two"), {local(1)}));
}

TEST_F(PlannedRefusals, OneOfOtherRegionsIsNotRefused) {
  EXPECT_FALSE(is_refused(plan({{0, "one"}}), remote("two"), {local(0)}));
  EXPECT_FALSE(is_refused(plan({{0, "one"}}), remote("one"), {local(1)}));
  EXPECT_FALSE(is_refused(plan({{0, "one"}}), remote("one"), {{99, 1}}));
}

TEST_F(PlannedRefusals, SeveralInOneChunkAreRefusedTogether) {
  const Plan both = plan({{0, "one"}, {1, "one", 2048}});
  ASSERT_EQ(core_of(both)->chunk_count(), 1u);
  EXPECT_TRUE(is_refused(both, remote("one"), {local(0), local(1)}));
  EXPECT_TRUE(is_refused(both, remote("one"), {local(1)}));
  const Plan apart = plan({{0, "one"}, {1, "two"}});
  EXPECT_FALSE(is_refused(apart, remote("one"), {local(0), local(1)}));
}

TEST_F(PlannedRefusals, ARegionThatCannotBeBoundIsRefusedForAllMemory) {
  EXPECT_TRUE(is_refused(plan({{0, "one"}}), remote("one"), {}));
  EXPECT_TRUE(is_refused(plan({{0, "one"}, {1, "two"}}), remote("two"), {}));
  EXPECT_FALSE(is_refused(plan({{0, "one"}}), remote("two"), {}));
}

TEST_F(PlannedRefusals, WhatWasSaidOnceIsSaidAgain) {
  const Plan crossed = plan({{0, "two"}, {1, "one"}});
  for (int i = 0; i < 3; ++i) {
    EXPECT_FALSE(is_refused(crossed, remote("two"), {local(1)}));
    EXPECT_TRUE(is_refused(crossed, remote("two"), {local(0)}));
  }
}

}  // namespace
}  // namespace hawser::agent
