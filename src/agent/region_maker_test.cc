#include "agent/region_maker.h"

#include <gtest/gtest.h>

#include <array>
#include <cstdint>

#include "agent/test_regions.h"

namespace hawser::agent {
namespace {

class RegionMakerTest : public testing::Test,
                        protected TestRegions,
                        public TestRegistrarHost,
                        public RegionCloser::Users {
 protected:
  RegionMakerTest() : TestRegions(10) {}

  // As the agent.
  void card_changed() override {}
  void take_submissions(Instant) override {}
  void end_use(const LocalRegion&, Instant) override {}
  void forget(const backend::RegionEntry&) override {}

  RegionMaker::Made add(RegionOptions options) {
    made_.clear();
    const Status status = maker_.add({&options, 1}, &made_, &wrong_);
    if (!status.ok()) return status;
    return made_.front();
  }

  AgentOptions options_{.name = "a"};
  ArenaBook arenas_;
  std::vector<std::shared_ptr<LocalRegion>> made_;
  Status file_backend_;
  int file_backends_asked_for_ = 0;
  std::array<std::byte, 4096> memory_{};
  RegionRegistrar registrar_ = make_registrar(*this, false);
  RegionCloser closer_{parts_of_closer(*this)};
  RegionMaker maker_{{.lane = lane_,
                      .life = life_,
                      .options = options_,
                      .log = log_,
                      .backends = backends_,
                      .arenas = arenas_,
                      .registrar = registrar_,
                      .closer = closer_,
                      .add_backend = [this](const BackendSpec& spec) {
                        EXPECT_EQ(spec.name, "file");
                        ++file_backends_asked_for_;
                        return file_backend_;
                      }}};
};

TEST_F(RegionMakerTest, MemoryOfItsUserIsServedAsItIs) {
  const auto region = *add({.name = "r", .bytes = memory_, .rights = Rights::kRead});
  const backend::RegionEntry& entry = *region->entry;
  EXPECT_EQ(entry.base, memory_.data());
  EXPECT_EQ(entry.size, memory_.size());
  EXPECT_EQ(entry.rights, Rights::kRead);
  EXPECT_EQ(entry.name, "r");
  EXPECT_EQ(entry.arena, nullptr);
  ASSERT_NE(entry.pages, nullptr);
  EXPECT_FALSE(entry.pages->was_asked()) << "nobody asked for its pages to be adopted";
}

TEST_F(RegionMakerTest, WhatIsNoMemoryIsRefusedAndNothingIsMade) {
  EXPECT_NE(add({.name = "r", .bytes = {}}).error().to_string().find("'r' has no bytes"), std::string::npos);
  EXPECT_EQ(add({.bytes = memory_, .device = {DeviceKind::kFile, 0}}).error().code(), Code::kInvalid);
  const std::span<std::byte> beyond(memory_.data(), SIZE_MAX);
  EXPECT_NE(add({.bytes = beyond}).error().to_string().find("no valid range"), std::string::npos);
  const std::array<RegionOptions, 2> wanted{RegionOptions{.name = "good", .bytes = memory_}, RegionOptions{}};
  EXPECT_FALSE(maker_.add(wanted, &made_, &wrong_).ok());
  EXPECT_EQ(wrong_, 1u);
  EXPECT_EQ(table_.count(), 0u);
}

TEST_F(RegionMakerTest, MemoryOfADeviceNeedsABackendThatReachesIt) {
  const RegionOptions wanted{.bytes = memory_, .device = {DeviceKind::kCuda, 1}};
  const Status refused = add(wanted).error();
  EXPECT_EQ(refused.code(), Code::kUnsupported);
  EXPECT_NE(refused.to_string().find("cuda:1"), std::string::npos) << refused.to_string();
  const auto reaching = std::make_shared<TestBackend>();
  reaching->its_traits.reaches.add(DeviceKind::kCuda);
  open("gpus", reaching);
  const auto region = add(wanted);
  ASSERT_TRUE(region) << region.error().to_string();
  EXPECT_EQ((*region)->entry->pages, nullptr) << "they are no pages of this host";
}

TEST_F(RegionMakerTest, AllocatedMemoryCanBeRegisteredAgainInPartAndStaysThen) {
  const auto whole = *maker_.allocate({.name = "whole", .size = 100, .huge_pages = HugePages::kOff});
  EXPECT_EQ(whole->entry->size, 100u);
  EXPECT_FALSE(whole->huge_pages);
  ASSERT_NE(whole->entry->arena, nullptr);
  const auto part = *add({.bytes = std::span(whole->entry->base, 8)});
  EXPECT_EQ(part->entry->arena, whole->entry->arena);
  EXPECT_EQ(part->entry->pages, nullptr);
  EXPECT_EQ(maker_.allocate({.name = "none", .size = 0}).error().code(), Code::kInvalid);
}

TEST_F(RegionMakerTest, AFileNeedsTheBackendOfFiles) {
  EXPECT_FALSE(maker_.add_file({.path = "/nowhere/file"}));
  EXPECT_EQ(file_backends_asked_for_, 1);
  file_backend_ = Status(Code::kFailed, "no io_uring");
  EXPECT_NE(maker_.add_file({.path = "/nowhere/file"}).error().to_string().find("does not open"), std::string::npos);
  open("file", std::make_shared<TestBackend>());
  EXPECT_EQ(maker_.add_file({.path = "/nowhere/file"}).error().to_string().find("does not open"), std::string::npos);
  EXPECT_EQ(file_backends_asked_for_, 2) << "it is open";
}

TEST_F(RegionMakerTest, AnAgentWhoseBackendsWereNamedGetsNoOther) {
  options_.backends = {{"tcp", {}}};
  EXPECT_EQ(maker_.add_file({.path = "/nowhere/file"}).error().code(), Code::kUnsupported);
  EXPECT_EQ(file_backends_asked_for_, 0);
}

TEST_F(RegionMakerTest, DroppedRegionsAreSweptWhereNobodyTurnsTheLane) {
  auto dropped = *add({.name = "r", .bytes = memory_});
  made_.clear();
  LocalRegion& its = *dropped;
  its.users = 1;
  closer_.drop(std::move(dropped));
  its.users = 0;
  ASSERT_TRUE(closer_.has_dropped());
  EXPECT_TRUE(add({.name = "s", .bytes = memory_}));
  EXPECT_FALSE(closer_.has_dropped());
}

TEST_F(RegionMakerTest, AClosedAgentMakesNone) {
  life_.begin_to_close();
  EXPECT_EQ(add({.bytes = memory_}).error().code(), Code::kInvalid);
  EXPECT_EQ(maker_.allocate({.size = 1}).error().code(), Code::kInvalid);
  EXPECT_EQ(maker_.add_file({}).error().code(), Code::kInvalid);
}

}  // namespace
}  // namespace hawser::agent
