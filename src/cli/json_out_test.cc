#include "cli/json_out.h"

#include <gtest/gtest.h>

#include "cli/demo_control.h"
#include "cli/status_exit.h"

namespace hawser::cli {
namespace {

TEST(JsonOut, AStatusSurvivesTheWay) {
  const Status status = Status(Code::kDenied, "no right to write")
                            .with_peer("decode-0")
                            .with_advice("ask for it")
                            .because(Status(Code::kFailed, "deeper"));
  const Status again = status_from(to_json(status));
  EXPECT_EQ(again, status);
  EXPECT_EQ(again.peer(), "decode-0");
  EXPECT_EQ(again.advice(), "ask for it");
  EXPECT_EQ(again.cause().message(), "deeper");
  EXPECT_TRUE(to_json(Status()).is_null());
  EXPECT_TRUE(status_from(Json()).ok());
}

TEST(JsonOut, AnUnknownCodeIsAFailure) {
  EXPECT_EQ(status_from({{"number", 99}, {"message", "?"}}).code(), Code::kFailed);
  EXPECT_EQ(status_from(Json::object()).code(), Code::kFailed);
}

TEST(StatusExit, CodesAreStable) {
  EXPECT_EQ(exit_code(Status()), 0);
  EXPECT_EQ(exit_code(Code::kInvalid), 11);
  EXPECT_EQ(exit_code(Code::kCancelled), 17);
  EXPECT_EQ(exit_code(Code::kCorrupt), 18);
  EXPECT_EQ(exit_code(Code::kFailed), 20);
}

TEST(DemoControl, HexSurvivesTheWay) {
  std::string bytes;
  for (int i = 0; i < 256; ++i) bytes += static_cast<char>(i);
  EXPECT_EQ(from_hex(to_hex(bytes)).value(), bytes);
  EXPECT_EQ(from_hex("abc").error().code(), Code::kCorrupt);
  EXPECT_EQ(from_hex("zz").error().code(), Code::kCorrupt);
}

}  // namespace
}  // namespace hawser::cli
