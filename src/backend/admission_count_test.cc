#include "backend/admission_count.h"

#include <gtest/gtest.h>

namespace hawser::backend {
namespace {

TEST(AdmissionCount, TellsOfEachReasonApart) {
  AdmissionCount count;
  count.let_in();
  count.gave_way();
  for (int i = 0; i < 3; ++i) count.turned_away(Status(Code::kDenied, "no"));
  count.turned_away(Status(Code::kTimedOut, "late"));
  count.turned_away(Status(Code::kFailed, "the last code there is"));
  const AdmissionCounters told = count.counters();
  EXPECT_EQ(told.let_in, 1u);
  EXPECT_EQ(told.gave_way, 1u);
  EXPECT_EQ(told.turned_away, 5u);
  std::uint64_t denied = 0, failed = 0;
  for (const auto& [code, times] : told.by_code) {
    denied += code == to_string(Code::kDenied) ? times : 0;
    failed += code == to_string(Code::kFailed) ? times : 0;
  }
  EXPECT_EQ(denied, 3u);
  EXPECT_EQ(failed, 1u);
  EXPECT_EQ(told.by_code.size(), 3u) << "what did not happen is not told";
}

}  // namespace
}  // namespace hawser::backend
