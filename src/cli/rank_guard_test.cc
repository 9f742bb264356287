#include "cli/rank_guard.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>

namespace hawser::cli {
namespace {

using namespace std::chrono_literals;

TEST(RankGuard, AnOrderIsOneLineAndComesBackWhole) {
  const GuardOrder order{.rank = 3,
                         .folder = "/home/a b",
                         .grace = 200ms,
                         .environment = {{"HAWSER_SEED", "seed@10.0.0.1:7#t"}, {"HAWSER_LOG", "a=b\nc"}},
                         .token = "Jc7p1q0wX9bTzR4nUe2LkA",
                         .command = {"sh", "-c", "echo 'it is'\n\xc3\xa4 $HOME"},
                         .binds = LocalPlace{.rank = 1, .size = 8}};
  const std::string line = to_line(order).value();
  EXPECT_EQ(std::count(line.begin(), line.end(), '\n'), 1);
  const Result<GuardOrder> back = parse_order(line);
  ASSERT_TRUE(back.has_value()) << back.error().to_string();
  EXPECT_EQ(back->rank, 3u);
  EXPECT_EQ(back->folder, order.folder);
  EXPECT_EQ(back->grace, 200ms);
  EXPECT_EQ(back->environment, order.environment);
  EXPECT_EQ(back->token, order.token);
  EXPECT_EQ(back->command, order.command);
  ASSERT_TRUE(back->binds.has_value());
  EXPECT_EQ(back->binds->rank, 1u);
  EXPECT_EQ(back->binds->size, 8u);
}

TEST(RankGuard, WithoutAPlaceNothingIsBound) {
  const std::string line = to_line({.folder = "/", .command = {"cat"}}).value();
  EXPECT_FALSE(parse_order(line).value().binds.has_value());
}

TEST(RankGuard, WhatIsNotUtf8IsRefusedAndNotChanged) {
  GuardOrder order{.folder = "/", .command = {"cat", "\xff"}};
  EXPECT_EQ(to_line(order).error().code(), Code::kInvalid);
  order.command.pop_back();
  order.environment = {{"HAWSER_X", "\xe4"}};
  EXPECT_EQ(to_line(order).error().code(), Code::kInvalid);
  order.environment.clear();
  EXPECT_TRUE(to_line(order).has_value());
}

TEST(RankGuard, AnythingElseIsRefused) {
  for (const char* wrong :
       {"", "x", "{}", "[1]", R"({"rank":-1,"folder":"/","grace_ns":1,"environment":[],"command":[]})",
        R"({"rank":0,"folder":"/","grace_ns":1,"environment":[["a"]],"command":["x"]})",
        R"({"rank":0,"folder":"/","grace_ns":1,"environment":[],"token":7,"command":["x"]})",
        R"({"rank":0,"folder":"/","grace_ns":1,"environment":[],"command":["x"],"binds":[1]})",
        R"({"rank":0,"folder":"/","grace_ns":1,"environment":[],"command":["x"],"binds":"core"})",
        R"({"rank":0,"folder":"/","grace_ns":1,"environment":[],"command":[7]})"}) {
    EXPECT_EQ(parse_order(wrong).error().code(), Code::kInvalid) << wrong;
  }
}

}  // namespace
}  // namespace hawser::cli
