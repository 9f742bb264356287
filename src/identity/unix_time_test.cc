#include "identity/unix_time.h"

#include <gtest/gtest.h>

#include <ctime>

namespace hawser::identity {
namespace {

TEST(UnixTime, IsWrittenAsPeopleReadIt) {
  EXPECT_EQ(time_text(0), "1970-01-01 00:00:00 UTC");
  EXPECT_EQ(time_text(1'795'867'200), "2026-11-28 12:00:00 UTC");
  EXPECT_EQ(time_text(253'402'300'799), "9999-12-31 23:59:59 UTC");
}

TEST(UnixTime, IsTheSystems) {
  EXPECT_NEAR(static_cast<double>(unix_seconds()), static_cast<double>(std::time(nullptr)), 2);
}

}  // namespace
}  // namespace hawser::identity
