#include "cli/rank_launcher.h"

#include <gtest/gtest.h>

namespace hawser::cli {
namespace {

TEST(RankLauncher, ThisHostIsKnownByItsNames) {
  for (const char* ours : {"localhost", "127.0.0.1", "127.1.2.3", "::1", "node1", "node1.cluster"}) {
    EXPECT_TRUE(is_this_host(ours, "node1")) << ours;
  }
  EXPECT_TRUE(is_this_host("node1", "node1.cluster"));
  EXPECT_FALSE(is_this_host("node1.other", "node1.cluster"));
  for (const char* others : {"node2", "node11", "10.0.0.1", "fe80::1"}) EXPECT_FALSE(is_this_host(others, "node1"));
  EXPECT_FALSE(is_this_host("node1", ""));
}

TEST(RankLauncher, AWordIsQuotedForTheFarShell) {
  EXPECT_EQ(shell_word("/usr/bin/hawser"), "'/usr/bin/hawser'");
  EXPECT_EQ(shell_word("a b; it's"), "'a b; it'\\''s'");
}

TEST(RankLauncher, RanksThatFindNoPlaceAreRefused) {
  const Result<RankLauncher> few =
      RankLauncher::open({.ranks = 3, .hosts = {{"node1", 1}, {"node2", 1}}, .ssh = {"ssh"}});
  EXPECT_EQ(few.error().code(), Code::kInvalid);
  EXPECT_EQ(RankLauncher::open({.ranks = 1, .hosts = {{"node1.example", 0}}}).error().code(), Code::kInvalid);
  const Result<RankLauncher> here = RankLauncher::open({.ranks = 2});
  ASSERT_TRUE(here.has_value());
  EXPECT_FALSE(here->has_remote());
  EXPECT_EQ(here->place_of(1), "");
}

}  // namespace
}  // namespace hawser::cli
