// Ranks that call different things: each is told, whatever the two things are, and soon. Each case has a group of its
// own, so that those in which ranks find out only by asking one another wait at the same time.

#include <gtest/gtest.h>

#include <hawser/world.h>

#include <array>
#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "../must.h"

namespace hawser {
namespace {

using namespace std::chrono_literals;

/// One call: enough to tell two apart.
struct What {
  std::string name;
  std::uint32_t root = 0;
  std::size_t count = 4;
  DataType type = DataType::kInt32;
  ReduceOp op = ReduceOp::kSum;
  std::uint64_t extra = 0;  ///< all_to_all: so many more elements for each rank.
};

constexpr std::array kNames = {"barrier", "broadcast", "reduce",     "all_reduce", "all_gather",    "reduce_scatter",
                               "gather",  "scatter",   "all_to_all", "scan",       "exclusive_scan"};

bool has_root(const std::string& name) {
  return name == "broadcast" || name == "reduce" || name == "gather" || name == "scatter";
}

bool reduces(const std::string& name) {
  return name.find("reduce") != std::string::npos || name.find("scan") != std::string::npos;
}

/// A group of all ranks, what each calls, and how that ended.
class Case {
 public:
  Case(std::string name, std::vector<World>& worlds, const What& common, const What& other, std::uint32_t odd)
      : name_(std::move(name)) {
    for (World& world : worlds) groups_.push_back(must(world.duplicate()));
    for (World& group : groups_) requests_.push_back(begin(group, group.rank() == odd ? other : common));
  }

  /// A rank that is done need not have heard of it before: its next call tells.
  void expect_that_all_are_told() {
    for (std::size_t rank = 0; rank < groups_.size(); ++rank) {
      Status status = requests_[rank].wait(15s);
      if (status.ok()) status = groups_[rank].barrier({.timeout = 15s});
      EXPECT_EQ(status.code(), Code::kInvalid) << name_ << ", rank " << rank << ": " << status.to_string();
      EXPECT_NE(status.to_string().find("differ"), std::string::npos) << name_ << ": " << status.to_string();
      EXPECT_NE(status.to_string().find("rank "), std::string::npos) << name_ << ": " << status.to_string();
    }
  }

 private:
  Request begin(World& world, const What& what) {
    const std::uint32_t size = world.size();
    const std::vector<std::uint64_t> counts(size, what.count + what.extra);
    std::vector<std::uint64_t>& in = memory_.emplace_back((what.count + what.extra) * size, world.rank());
    std::vector<std::uint64_t>& out = memory_.emplace_back(in);
    if (what.name == "barrier") return world.ibarrier();
    if (what.name == "broadcast") return world.ibroadcast(out.data(), what.count, what.type, what.root);
    if (what.name == "reduce") {
      return world.ireduce(in.data(), out.data(), what.count, what.type, what.op, what.root);
    }
    if (what.name == "all_reduce") return world.iall_reduce(in.data(), out.data(), what.count, what.type, what.op);
    if (what.name == "all_gather") return world.iall_gather(in.data(), out.data(), counts, what.type);
    if (what.name == "reduce_scatter") {
      return world.ireduce_scatter(in.data(), out.data(), counts, what.type, what.op);
    }
    if (what.name == "gather") return world.igather(in.data(), out.data(), counts, what.type, what.root);
    if (what.name == "scatter") return world.iscatter(in.data(), out.data(), counts, what.type, what.root);
    if (what.name == "all_to_all") return world.iall_to_all(in.data(), out.data(), counts, counts, what.type);
    return world.iscan(in.data(), out.data(), what.count, what.type, what.op, what.name == "exclusive_scan");
  }

  std::string name_;
  std::vector<World> groups_;
  std::deque<std::vector<std::uint64_t>> memory_;
  std::vector<Request> requests_;  ///< After what they use.
};

struct Setting {
  std::string name;
  std::uint32_t size = 2;
  Topology topology = {};
};

class MisfitTest : public testing::TestWithParam<Setting> {
 protected:
  void add(const std::string& name, const What& common, const What& other) {
    for (const std::uint32_t odd : {0U, size() - 1}) {
      cases_.emplace_back(name + ", rank " + std::to_string(odd) + " differs", worlds_, common, other, odd);
    }
  }
  std::uint32_t size() const { return GetParam().size; }
  void expect_that_all_are_told() {
    for (Case& each : cases_) each.expect_that_all_are_told();
    EXPECT_LT(std::chrono::steady_clock::now() - begun_, 20s) << "found out by asking, not by a deadline";
  }

  std::chrono::steady_clock::time_point begun_ = std::chrono::steady_clock::now();
  std::vector<World> worlds_ = must(World::local(GetParam().size, {.topology = GetParam().topology}));
  std::deque<Case> cases_;
};

TEST_P(MisfitTest, AnyTwoOperations) {
  for (const char* const common : kNames) {
    for (const char* const other : kNames) {
      if (common != other) add(std::string(common) + " and " + other, {.name = common}, {.name = other});
    }
  }
  expect_that_all_are_told();
}

TEST_P(MisfitTest, AnyTwoRoots) {
  for (const char* const name : kNames) {
    for (std::uint32_t root = 0; has_root(name) && root < size(); ++root) {
      for (std::uint32_t other = 0; other < size(); ++other) {
        if (root == other) continue;
        add(std::string(name) + " of roots " + std::to_string(root) + " and " + std::to_string(other),
            {.name = name, .root = root}, {.name = name, .root = other});
      }
    }
  }
  expect_that_all_are_told();
}

TEST_P(MisfitTest, CountsTypesAndReductions) {
  for (const char* const name : kNames) {
    if (std::string(name) == "barrier") continue;
    add(std::string(name) + " of two counts", {.name = name}, {.name = name, .count = 5});
    add(std::string(name) + " of two types", {.name = name}, {.name = name, .type = DataType::kFloat32});
    if (!reduces(name)) continue;
    add(std::string(name) + " of two reductions", {.name = name}, {.name = name, .op = ReduceOp::kMax});
  }
  // Each rank has its own counts there.
  const What some = {.name = "all_to_all", .count = 0, .extra = 3}, none = {.name = "all_to_all", .count = 0};
  add("all_to_all of some and none", some, none);
  add("all_to_all of none and some", none, some);
  expect_that_all_are_told();
}

/// Nothing is sent for a broadcast of no elements, so a rank may call many without the others.
TEST_P(MisfitTest, WhatWasCalledLongAgo) {
  std::vector<World> groups;
  for (World& world : worlds_) groups.push_back(must(world.duplicate()));
  std::vector<std::uint32_t> in(size()), out(size());
  const std::vector<std::uint64_t> counts(size(), 1);
  Request gathered = groups[0].igather(in.data(), out.data(), counts, DataType::kUInt32, 0);
  for (std::uint32_t rank = 1; rank < size(); ++rank) {
    for (int i = 0; i < 300; ++i) ASSERT_TRUE(groups[rank].broadcast(nullptr, 0, DataType::kUInt8, 0).ok());
  }
  const Status status = gathered.wait(15s);
  EXPECT_EQ(status.code(), Code::kInvalid) << status.to_string();
  EXPECT_NE(status.to_string().find("differ"), std::string::npos) << status.to_string();
  EXPECT_EQ(groups[1].barrier({.timeout = 15s}).code(), Code::kInvalid);
}

TEST_P(MisfitTest, ARankThatHasClosedTheGroup) {
  std::vector<World> groups;
  for (World& world : worlds_) groups.push_back(must(world.duplicate()));
  EXPECT_TRUE(groups[size() - 1].close(5s).ok());
  std::vector<Request> requests;
  for (std::uint32_t rank = 0; rank + 1 < size(); ++rank) requests.push_back(groups[rank].ibarrier());
  for (Request& request : requests) {
    const Status status = request.wait(15s);
    EXPECT_EQ(status.code(), Code::kDisconnected) << status.to_string();
    EXPECT_NE(status.to_string().find("closed"), std::string::npos) << status.to_string();
  }
  EXPECT_EQ(worlds_[0].failed(), std::vector<std::uint32_t>()) << "its world goes on";
}

/// A rank that is late is no rank that differs.
TEST_P(MisfitTest, ALateRankIsWaitedFor) {
  std::vector<Request> requests;
  for (std::uint32_t rank = 0; rank + 1 < size(); ++rank) requests.push_back(worlds_[rank].ibarrier());
  EXPECT_EQ(requests[0].wait(1500ms).code(), Code::kTimedOut);
  requests.push_back(worlds_[size() - 1].ibarrier());
  for (Request& request : requests) EXPECT_TRUE(request.wait(10s).ok());
}

INSTANTIATE_TEST_SUITE_P(Worlds, MisfitTest,
                         testing::Values(Setting{"two", 2}, Setting{"five", 5},
                                         Setting{"ring", 5, Topology::regular(2)}),
                         [](const auto& its) { return its.param.name; });

}  // namespace
}  // namespace hawser
