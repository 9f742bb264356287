#include "backend/verbs/path/way_search.h"

#include <gtest/gtest.h>

namespace hawser::backend::verbs {
namespace {

void fail(WaySearch& search, const std::string& from, const std::string& to) {
  search.begin();
  search.on_met(from, to);
  search.on_failed("no answer");
}

TEST(WaySearch, AnAttemptThatBothEndsKnewOfCountsAgainstItsAddresses) {
  WaySearch search;
  search.begin();
  EXPECT_EQ(search.in_vain(), 0u);
  EXPECT_FALSE(search.has_more(4)) << "the peer did not even answer: other addresses do not help";
  search.begin();
  EXPECT_EQ(search.in_vain(), 0u);
  search.on_met("a", "x");
  EXPECT_TRUE(search.has_more(2));
  EXPECT_FALSE(search.has_more(1));
  search.begin();
  EXPECT_EQ(search.in_vain(), 1u);
  search.on_met("b", "x");
  search.on_proved();
  search.begin();
  EXPECT_EQ(search.in_vain(), 1u) << "what carried is taken again";
}

TEST(WaySearch, TheOtherEndMovesOnOnceTheOpenerWasThroughAll) {
  WaySearch search;
  for (const std::uint32_t expected : {0u, 0u, 1u, 1u, 2u}) {
    EXPECT_EQ(search.in_vain_for_all(2), expected);
    fail(search, "a", "x");
    search.begin();
  }
  EXPECT_EQ(search.in_vain_for_all(0), search.in_vain());
}

TEST(WaySearch, ItEnds) {
  WaySearch search;
  std::uint32_t attempts = 0;
  do {
    fail(search, std::to_string(attempts), "x");
    ASSERT_LE(++attempts, 100u);
  } while (search.has_more(1000));
  EXPECT_EQ(attempts, WaySearch::kWaysMax);
}

TEST(WaySearch, ErrorsTellWhatWasTried) {
  WaySearch search;
  EXPECT_EQ(search.tried(), "");
  fail(search, "a", "x");
  fail(search, "b", "x");
  search.on_failed("too late");
  EXPECT_EQ(search.tried(), "a to x (no answer); b to x (no answer)");
  for (int i = 0; i < 20; ++i) fail(search, "c" + std::to_string(i), "x");
  EXPECT_EQ(search.tried().find("a to x"), std::string::npos) << "only the last ones are kept";
  search.forget();
  EXPECT_EQ(search.tried(), "");
  EXPECT_EQ(search.in_vain(), 0u);
}

TEST(WaySearch, PacketsShrinkOnlyWhereLargeOnesGetLost) {
  WaySearch search;
  EXPECT_FALSE(search.on_broken(5, false, false)) << "nothing of full size was under way";
  EXPECT_FALSE(search.on_broken(5, true, true)) << "some came through";
  EXPECT_EQ(search.mtu_max(), 0);
  EXPECT_TRUE(search.on_broken(5, true, false));
  EXPECT_EQ(search.mtu_max(), 4);
  EXPECT_TRUE(search.on_broken(4, true, false));
  EXPECT_EQ(search.mtu_max(), 3);
  EXPECT_FALSE(search.on_broken(1, true, false)) << "there are no smaller ones";
  search.forget();
  EXPECT_EQ(search.mtu_max(), 0);
}

}  // namespace
}  // namespace hawser::backend::verbs
