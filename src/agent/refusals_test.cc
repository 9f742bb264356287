#include "agent/refusals.h"

#include <gtest/gtest.h>

#include <initializer_list>
#include <string>

namespace hawser::agent {
namespace {

using Id = Refusals::Id;

/// For a plan that is one chunk between these.
std::string found(const Refusals& refusals, std::initializer_list<Id> remotes, std::initializer_list<Id> locals) {
  const auto in = [](std::initializer_list<Id> ids) {
    return [ids](const Id& id) { return std::ranges::find(ids, id) != ids.end(); };
  };
  const Refusals::Refusal* refusal = refusals.find([&](const Refusals::Refusal& each) {
    return in(remotes)(each.remote) && std::ranges::all_of(each.locals, in(locals));
  });
  return refusal == nullptr ? "" : std::string(refusal->why.message());
}

Status because(const char* text) { return Status(Code::kUnsupported, text); }

TEST(Refusals, RefusedLocalMemoryLeavesTheRemoteRegionToOtherMemory) {
  Refusals refusals;
  refusals.add({1, 1}, {{7, 1}}, because("not registered"));
  EXPECT_EQ(found(refusals, {{1, 1}}, {{7, 1}}), "not registered");
  EXPECT_EQ(found(refusals, {{1, 1}, {2, 1}}, {{8, 1}, {7, 1}}), "not registered");
  EXPECT_EQ(found(refusals, {{1, 1}}, {{8, 1}}), "");
  EXPECT_EQ(found(refusals, {{2, 1}}, {{7, 1}}), "");
  EXPECT_EQ(found(refusals, {{1, 1}}, {{7, 2}}), "") << "another region at the same place";
}

TEST(Refusals, ARemoteRegionThatCannotBeBoundIsRefusedForAllMemory) {
  Refusals refusals;
  refusals.add({1, 1}, {}, because("no keys"));
  EXPECT_EQ(found(refusals, {{1, 1}}, {{7, 1}}), "no keys");
  EXPECT_EQ(found(refusals, {{1, 1}}, {}), "no keys");
  EXPECT_EQ(found(refusals, {{1, 2}}, {{7, 1}}), "");
}

TEST(Refusals, OfAChunkOverSeveralRegionsNoneIsBlamedAlone) {
  Refusals refusals;
  refusals.add({1, 1}, {{7, 1}, {8, 1}}, because("one of two"));
  EXPECT_EQ(found(refusals, {{1, 1}}, {{7, 1}, {8, 1}}), "one of two");
  EXPECT_EQ(found(refusals, {{1, 1}}, {{7, 1}}), "");
  EXPECT_EQ(found(refusals, {{1, 1}}, {{8, 1}}), "");
}

TEST(Refusals, TheyAreBoundedAndTheFirstReasonStays) {
  Refusals refusals;
  refusals.add({0, 1}, {{7, 1}}, because("first"));
  refusals.add({0, 1}, {{7, 1}}, because("again"));
  EXPECT_EQ(found(refusals, {{0, 1}}, {{7, 1}}), "first");
  for (std::uint32_t i = 1; i <= Refusals::kMax; ++i) refusals.add({i, 1}, {{7, 1}}, because("later"));
  EXPECT_EQ(found(refusals, {{0, 1}}, {{7, 1}}), "");
  EXPECT_EQ(found(refusals, {{Refusals::kMax, 1}}, {{7, 1}}), "later");
}

}  // namespace
}  // namespace hawser::agent
