#include "cli/bench/disturbance.h"

#include <gtest/gtest.h>

#include <string>

namespace hawser::cli::bench {
namespace {

TEST(Disturbance, ReadsTheMachinesTime) {
  const auto ticks = cpu_ticks_of("cpu  100 1 20 1000 50 2 3 4 7 8\ncpu0 1 2 3 4 5 6 7 8 9 10\n");
  ASSERT_TRUE(ticks);
  EXPECT_EQ(ticks->all, 1180u);
  EXPECT_EQ(ticks->busy, 130u) << "neither idle nor waiting for a disk";
}

TEST(Disturbance, RefusesOtherTexts) {
  for (const char* text : {"", "cpu", "cpu 1 2 3 4 5 6 7", "cpu0 1 2 3 4 5 6 7 8", "cpu 1 2 3 x 5 6 7 8"}) {
    EXPECT_FALSE(cpu_ticks_of(text)) << text;
  }
  for (const char* text :
       {"", "17", "17 (a", "17 (a)", "17 (a) S", "(a) S 1 2", "17 (a) S 1 2 3 4 5 6 7 8 9 10 11 12 13"}) {
    EXPECT_FALSE(process_ticks_of(text)) << text;
  }
}

TEST(Disturbance, ReadsAProcessWhateverItsName) {
  for (const std::string name : {"a", "a b", "a) S 1 (b", "()"}) {
    const auto process = process_ticks_of("17 (" + name + ") S 3 17 17 0 -1 4194560 1 2 3 4 50 60 7 8 20 0 1 0");
    ASSERT_TRUE(process) << name;
    EXPECT_EQ(process->id, 17) << name;
    EXPECT_EQ(process->parent, 3) << name;
    EXPECT_EQ(process->own, 110u) << name;
    EXPECT_EQ(process->ended, 15u) << name;
  }
}

TEST(Disturbance, AFamilyIsAllBelowItsRoot) {
  const std::vector<ProcessTicks> processes = {{.id = 4, .parent = 3, .own = 8},
                                               {.id = 1, .parent = 0, .own = 1000},
                                               {.id = 2, .parent = 1, .own = 1},
                                               {.id = 3, .parent = 2, .own = 2, .ended = 4},
                                               {.id = 5, .parent = 1, .own = 100}};
  EXPECT_EQ(family_ticks(processes, 2), 15u);
  EXPECT_EQ(family_ticks(processes, 9), 0u);
}

TEST(Disturbance, ACircleOfParentsEnds) {
  EXPECT_EQ(family_ticks({{.id = 1, .parent = 2, .own = 1}, {.id = 2, .parent = 1, .own = 2}}, 1), 3u);
}

TEST(Disturbance, WhatOthersHadIsTheRest) {
  const CpuReading before{{.all = 1000, .busy = 500}, 100};
  EXPECT_DOUBLE_EQ(others_share(before, {{.all = 1200, .busy = 600}, 180}).value(), 0.1);
  EXPECT_DOUBLE_EQ(others_share(before, {{.all = 1200, .busy = 600}, 230}).value(), 0.0) << "clocks differ by ticks";
}

TEST(Disturbance, TwoReadingsTooCloseSayNothing) {
  const CpuReading before{{.all = 1000, .busy = 500}, 100};
  EXPECT_FALSE(others_share(before, {{.all = 1049, .busy = 549}, 100}));
  EXPECT_TRUE(others_share(before, {{.all = 1050, .busy = 550}, 100}));
  EXPECT_FALSE(others_share(before, {{.all = 900, .busy = 400}, 100})) << "a clock that went back";
}

TEST(Disturbance, ThisMachineCanBeRead) {
  const auto reading = read_cpu();
  ASSERT_TRUE(reading);
  EXPECT_GT(reading->machine.all, reading->machine.busy);
}

}  // namespace
}  // namespace hawser::cli::bench
