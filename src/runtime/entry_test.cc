#include "runtime/entry.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <string>
#include <vector>

namespace hawser::runtime {
namespace {

using schedule::CostModel;
using schedule::kCostFields;

std::vector<std::uint64_t> words_of(const std::vector<std::optional<CostModel>>& told) {
  std::vector<std::uint64_t> words;
  for (std::size_t rank = 0; rank < told.size(); ++rank) {
    const EntryWords its = entry_of(100 + rank / 2, told[rank]);
    words.insert(words.end(), its.begin(), its.end());
  }
  return words;
}

TEST(Entry, WhatIsToldIsUnderstood) {
  const CostModel model{.message_ns = 1'234.5, .far_byte_ns = 0.125};
  EXPECT_EQ(costs_of(entry_of(9, model)).value(), model);
  EXPECT_FALSE(costs_of(entry_of(9, std::nullopt)).value().has_value());
  EXPECT_EQ(hosts_of(words_of({model, {}, {}})), (std::vector<std::uint64_t>{100, 100, 101}));
}

TEST(Entry, NobodyWasGivenOneSoItIsBuiltIn) {
  const SettledCosts costs = settle_costs(words_of({{}, {}, {}})).value();
  EXPECT_EQ(costs.model, CostModel());
  EXPECT_FALSE(costs.teller.has_value());
  EXPECT_EQ(to_string(costs), "built in");
}

TEST(Entry, OneRankThatHasItIsEnough) {
  const CostModel model{.board_ns = 7};
  for (const auto& words : {words_of({{}, {}, model}), words_of({{}, {}, model, model})}) {
    const SettledCosts costs = settle_costs(words).value();
    EXPECT_EQ(costs.model, model);
    EXPECT_EQ(costs.teller, 2U);
    EXPECT_TRUE(to_string(costs).starts_with("told by rank 2: message_ns = 2000, ")) << to_string(costs);
    EXPECT_NE(to_string(costs).find(", board_ns = 7, "), std::string::npos);
  }
}

TEST(Entry, TwoModelsAreAnErrorThatNamesTheRankAndTheValue) {
  for (const schedule::CostField& field : kCostFields) {
    CostModel other;
    other.*field.value = std::nextafter(other.*field.value, 0);
    const auto costs = settle_costs(words_of({{}, CostModel(), CostModel(), other}));
    ASSERT_FALSE(costs.has_value());
    EXPECT_EQ(costs.error().code(), Code::kInvalid);
    const std::string text = costs.error().to_string();
    EXPECT_NE(text.find("rank 3 was given another cost model than rank 1: " + std::string(field.name)),
              std::string::npos)
        << text;
    EXPECT_NE(text.find("the same file to all"), std::string::npos) << text;
  }
}

TEST(Entry, ValuesOfStrangersAreBounded) {
  for (std::size_t i = 0; i < kCostFields.size(); ++i) {
    const double most = kCostFields[i].most;
    EntryWords words = entry_of(1, CostModel());
    words[2 + i] = std::bit_cast<std::uint64_t>(most);
    EXPECT_TRUE(costs_of(words).has_value());
    for (const double bad : {std::nextafter(most, 2 * most), 0.0, -1.0, std::nan(""), HUGE_VAL}) {
      words[2 + i] = std::bit_cast<std::uint64_t>(bad);
      EXPECT_EQ(costs_of(words).error().code(), Code::kInvalid) << kCostFields[i].name << " " << bad;
      const auto settled = settle_costs(words);
      ASSERT_FALSE(settled.has_value());
      EXPECT_NE(settled.error().to_string().find("the cost model of rank 0"), std::string::npos);
    }
  }
}

TEST(Entry, HasOneForm) {
  EntryWords words = entry_of(1, CostModel());
  words[1] = 2;
  EXPECT_EQ(costs_of(words).error().code(), Code::kInvalid) << "another version's";
  words[1] = 0;
  EXPECT_EQ(costs_of(words).error().code(), Code::kInvalid) << "values of no model";
}

}  // namespace
}  // namespace hawser::runtime
