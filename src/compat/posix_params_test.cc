#include "compat/posix_params.h"

#include <gtest/gtest.h>

#include <hawser/compat/status.h>

namespace hawser::compat {
namespace {

Params file_for(const Params& given) { return choose_for_posix(given).value().file; }

TEST(PosixParams, FlagsChooseTheEngine) {
  EXPECT_EQ(file_for({{"use_uring", "true"}}), (Params{{"engine", "io_uring"}}));
  EXPECT_EQ(file_for({{"use_aio", " YES "}, {"use_uring", "false"}}), (Params{{"engine", "threads"}}));
  EXPECT_EQ(file_for({{"use_posix_aio", "1"}}), (Params{{"engine", "threads"}}));
  EXPECT_EQ(file_for({{"use_aio", "false"}, {"use_uring", "0"}, {"use_posix_aio", ""}}), Params());
  EXPECT_EQ(file_for({}), Params());
}

TEST(PosixParams, OfTwoFlagsOneCountsAndTheOtherIsNamed) {
  const PosixChoice both = choose_for_posix({{"use_aio", "true"}, {"use_uring", "true"}}).value();
  EXPECT_EQ(both.file, (Params{{"engine", "io_uring"}}));
  ASSERT_EQ(both.warnings.size(), 1u);
  EXPECT_NE(both.warnings[0].find("use_aio"), std::string::npos);
}

TEST(PosixParams, TheQueueSizeIsTheDepth) {
  EXPECT_EQ(file_for({{"kernel_queue_size", "256"}, {"ios_pool_size", "65536"}}), (Params{{"depth", "256"}}));
  EXPECT_EQ(file_for({{"kernel_queue_size", "1000000"}}), (Params{{"depth", "4096"}}));
}

TEST(PosixParams, WhatIsNoValueIsRefusedByName) {
  for (const Params& given :
       {Params{{"use_uring", "perhaps"}}, Params{{"kernel_queue_size", "0"}}, Params{{"ios_pool_size", "abc"}},
        Params{{"ios_pool_size", "0"}}, Params{{"kernel_queue_size", "many"}}, Params{{"kernel_queue_size", "-1"}}}) {
    const auto refused = choose_for_posix(given);
    ASSERT_FALSE(refused) << given.begin()->second;
    EXPECT_EQ(code_of(refused.error()), NixlCode::kInvalidParam);
    EXPECT_NE(refused.error().to_string().find(given.begin()->first), std::string::npos);
  }
}

}  // namespace
}  // namespace hawser::compat
