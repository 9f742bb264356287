#include "agent/region_registrar.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "agent/test_regions.h"
#include "base/bytes.h"
#include "wire/card.h"

namespace hawser::agent {
namespace {

class RegionRegistrarTest : public testing::Test, protected TestRegions, public TestRegistrarHost {
 protected:
  RegionRegistrarTest() : TestRegions(3) {}
  void SetUp() override {
    card_.open({.name = name_});
    open("first", first_);
    open("second", second_);
  }
  // As the agent.
  base::Id128 make_key() override {
    EXPECT_TRUE(lane_.is_locked);
    return TestRegistrarHost::make_key();
  }
  void card_changed() override { ++card_changes_; }

  static RegionRegistrar::Entry entry(std::string name = "") {
    auto made = std::make_shared<backend::RegionEntry>();
    made->name = std::move(name);
    made->size = 64;
    return made;
  }
  RegionRegistrar::Registered add(std::vector<RegionRegistrar::Entry> entries) {
    return registrar_.add("add_region", entries, false);
  }
  /// Nothing of a failed call is left.
  void expect_nothing() {
    EXPECT_EQ(table_.count(), 0u);
    EXPECT_TRUE(book_.all().empty());
    EXPECT_TRUE(first_->regions.empty());
    EXPECT_TRUE(second_->regions.empty());
    EXPECT_EQ(card_changes_, 0);
    std::size_t wrong = 0;
    const RegionRegistrar::Entry named = entry("r");
    EXPECT_TRUE(names_.take("test", std::span(&named, 1), &wrong).ok()) << "the name is free";
  }
  std::vector<std::string> extras() {
    const wire::Card card = *wire::decode_card(base::as_bytes(card_.full().value()));
    std::vector<std::string> all;
    for (const wire::CardExtra& extra : card.extras) all.emplace_back(extra.bytes);
    return all;
  }
  std::shared_ptr<TestBackend> first_ = std::make_shared<TestBackend>("one"), second_ = std::make_shared<TestBackend>();
  int card_changes_ = 0;
  RegionRegistrar registrar_ = make_registrar(*this, true);
};

TEST_F(RegionRegistrarTest, HasEachBackendServeItAndThenTellsOfIt) {
  const RegionRegistrar::Registered made = add({entry("r"), entry()});
  ASSERT_TRUE(made.status.ok()) << made.status.to_string();
  ASSERT_EQ(made.regions.size(), 2u);
  EXPECT_NE(made.regions[0]->entry->key, made.regions[1]->entry->key);
  EXPECT_EQ(first_->regions, (std::set<std::uint32_t>{0, 1}));
  EXPECT_EQ(second_->regions, (std::set<std::uint32_t>{0, 1}));
  EXPECT_TRUE(std::ranges::equal(book_.open(), made.regions));
  EXPECT_EQ(extras(), (std::vector<std::string>{"one", "one"}));
  EXPECT_EQ(card_changes_, 1) << "for both";
  EXPECT_EQ(lane_.wakes, 1);
}

TEST_F(RegionRegistrarTest, NobodyKnowsItBeforeAllBackendsDoAndTheLaneIsFreeMeanwhile) {
  second_->meanwhile = [&] {
    EXPECT_FALSE(lane_.is_locked);
    EXPECT_TRUE(book_.all().empty());
    EXPECT_TRUE(extras().empty());
  };
  EXPECT_TRUE(add({entry("r")}).status.ok());
}

TEST_F(RegionRegistrarTest, ATakenNameIsRefused) {
  ASSERT_TRUE(add({entry("r")}).status.ok());
  const RegionRegistrar::Registered made = add({entry("s"), entry("r")});
  EXPECT_EQ(made.status.code(), Code::kInvalid);
  EXPECT_EQ(made.wrong, 1u);
  EXPECT_EQ(table_.count(), 1u);
}

TEST_F(RegionRegistrarTest, AsManyAsTheTableHoldsAreTakenAndNotOneMore) {
  const RegionRegistrar::Registered refused = add({entry("r"), entry(), entry(), entry()});
  EXPECT_EQ(refused.status.code(), Code::kBusy);
  EXPECT_EQ(refused.wrong, 3u) << "the first that has no place";
  expect_nothing();
  names_.give_back("r");
  EXPECT_TRUE(add({entry("r"), entry(), entry()}).status.ok());
}

TEST_F(RegionRegistrarTest, WhatANamedBackendRefusesIsTakenBackFromAll) {
  second_->meanwhile = [&] { second_->refusal = Status(Code::kBusy, "no locked memory is left"); };
  const RegionRegistrar::Registered made = add({entry(), entry("r")});
  EXPECT_EQ(made.status.code(), Code::kBusy);
  EXPECT_EQ(made.wrong, 1u);
  expect_nothing();
}

TEST_F(RegionRegistrarTest, ABackendThatNobodyNamedMayRefuse) {
  second_->refusal = Status(Code::kBusy, "no locked memory is left");
  RegionRegistrar lenient = make_registrar(*this, false);
  const RegionRegistrar::Entry one = entry("r");
  const RegionRegistrar::Registered made = lenient.add("add_region", std::span(&one, 1), false);
  EXPECT_TRUE(made.status.ok()) << made.status.to_string();
  EXPECT_EQ(first_->regions.size(), 1u);
  EXPECT_EQ(book_.open().size(), 1u);
}

TEST_F(RegionRegistrarTest, ABackendThatOpensMeanwhileIsToldBeforeTheRegionIsInTheBooks) {
  const auto late = std::make_shared<TestBackend>("late");
  first_->meanwhile = [&] { open("late", late); };
  late->meanwhile = [&] { EXPECT_TRUE(book_.all().empty()); };
  ASSERT_TRUE(add({entry("r")}).status.ok());
  EXPECT_EQ(late->regions.size(), 1u);
  EXPECT_EQ(first_->regions.size(), 1u);
  EXPECT_EQ(extras(), (std::vector<std::string>{"one", "late"}));
}

TEST_F(RegionRegistrarTest, WhatABackendSaysAnewMeanwhileIsTold) {
  second_->meanwhile = [&] {
    first_->extra = "renewed";
    ++backends_[0].renewals;
  };
  ASSERT_TRUE(add({entry("r")}).status.ok());
  EXPECT_EQ(extras(), std::vector<std::string>{"renewed"});
}

TEST_F(RegionRegistrarTest, AnAgentThatClosesMeanwhileHasNoSuchRegion) {
  second_->meanwhile = [&] { life_.begin_to_close(); };
  EXPECT_EQ(add({entry("r")}).status.code(), Code::kInvalid);
  expect_nothing();
}

TEST_F(RegionRegistrarTest, NobodyIsToldOfUnlistedRegions) {
  const std::uint64_t revision = card_.revision();
  RegionRegistrar::Entry hidden = entry("r"), namesake = entry("r");
  hidden->listed = namesake->listed = false;
  const int wakes = lane_.wakes;
  const RegionRegistrar::Registered made = add({hidden, namesake});
  ASSERT_TRUE(made.status.ok()) << made.status.to_string();
  EXPECT_EQ(card_.revision(), revision);
  EXPECT_EQ(card_changes_, 0);
  EXPECT_EQ(lane_.wakes, wakes);
  EXPECT_TRUE(extras().empty());
  EXPECT_EQ(first_->regions.size(), 2u) << "backends serve them all the same";
  std::string extra;
  made.regions[0]->extras.for_each([&](std::uint32_t, std::string_view bytes) { extra = bytes; });
  EXPECT_EQ(extra, "one") << "for grants";
  const RegionRegistrar::Registered mixed = add({entry("r")});
  EXPECT_TRUE(mixed.status.ok()) << "names of unlisted ones take none away";
  EXPECT_EQ(card_.revision(), revision + 1);
}

}  // namespace
}  // namespace hawser::agent
