#include "base/log.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <stdexcept>
#include <string>
#include <vector>

namespace hawser::base {
namespace {

struct Lines {
  std::vector<std::string> lines;
  LogOptions options(LogLevel level) {
    return {level, [this](LogLevel at, std::string_view text) {
              lines.push_back(std::string(to_string(at)) + " " + std::string(text));
            }};
  }
};

TEST(Logger, WritesFromItsLevelOn) {
  Lines lines;
  const Logger logger(lines.options(LogLevel::kInfo));
  int evaluated = 0;
  HAWSER_LOG(logger, kDebug, "no {}", ++evaluated);
  HAWSER_LOG(logger, kInfo, "one {}", ++evaluated);
  HAWSER_LOG(logger, kError, "two {} {}", ++evaluated, "b");
  EXPECT_EQ(evaluated, 2);
  EXPECT_EQ(lines.lines, (std::vector<std::string>{"info one 1", "error two 2 b"}));
}

// A peer chooses its name, a user the program's: whoever reads the log must see one line, and no moved cursor.
TEST(Logger, ATextIsOneLine) {
  Lines lines;
  HAWSER_LOG(Logger(lines.options(LogLevel::kInfo)), kInfo, "{} is up",
             "a\nb\033[31m\xc2\x9b"
             "1m\xe2\x80\xa8");
  EXPECT_EQ(lines.lines, (std::vector<std::string>{"info a\\x0ab\\x1b[31m\\xc2\\x9b1m\\xe2\\x80\\xa8 is up"}));
  testing::internal::CaptureStderr();
  HAWSER_LOG(Logger(LogOptions{}), kWarn, "peer {}", "a\nb");
  EXPECT_TRUE(testing::internal::GetCapturedStderr().ends_with("warn: peer a\\x0ab\n"));
}

TEST(Logger, OffIsSilent) {
  Lines lines;
  HAWSER_LOG(Logger(lines.options(LogLevel::kOff)), kError, "x");
  HAWSER_LOG(Logger(), kError, "x");
  EXPECT_TRUE(lines.lines.empty());
  EXPECT_FALSE(Logger().enabled(LogLevel::kError));
}

TEST(Logger, ASinkThatThrowsDoesNoHarm) {
  const Logger logger({LogLevel::kTrace, [](LogLevel, std::string_view) { throw std::runtime_error("full"); }});
  HAWSER_LOG(logger, kWarn, "x");
}

TEST(Logger, StandardErrorIsTheDefault) {
  testing::internal::CaptureStderr();
  HAWSER_LOG(Logger(LogOptions{}), kWarn, "peer {}", "a");
  const std::string line = testing::internal::GetCapturedStderr();
  EXPECT_TRUE(line.ends_with("Z hawser warn: peer a\n")) << line;
  testing::internal::CaptureStderr();
  HAWSER_LOG(Logger(LogOptions{.format = LogFormat::kJson}), kWarn, "peer {}", "a");
  EXPECT_EQ(testing::internal::GetCapturedStderr().substr(0, 9), "{\"time\":\"");
}

TEST(LogLine, HasTimeAndLevel) {
  using std::chrono::milliseconds;
  const auto at = [](std::int64_t ms) { return std::chrono::system_clock::time_point(milliseconds(ms)); };
  EXPECT_EQ(log_line(LogFormat::kText, LogLevel::kInfo, "a", at(1'795'772'840'007)),
            "2026-11-27T09:47:20.007Z hawser info: a\n");
  EXPECT_EQ(log_line(LogFormat::kText, LogLevel::kInfo, "a", at(-1)), "1969-12-31T23:59:59.999Z hawser info: a\n");
  EXPECT_EQ(log_line(LogFormat::kJson, LogLevel::kError, "a\n\"\xff", at(0)),
            "{\"time\":\"1970-01-01T00:00:00.000Z\",\"level\":\"error\",\"process\":" + std::to_string(::getpid()) +
                ",\"text\":\"a\\n\\\"\xef\xbf\xbd\"}\n");
}

TEST(LogLevel, IsReadFromText) {
  EXPECT_EQ(*parse_log_level("trace"), LogLevel::kTrace);
  EXPECT_EQ(*parse_log_level("WARN"), LogLevel::kWarn);
  EXPECT_EQ(*parse_log_level("Warning"), LogLevel::kWarn);
  EXPECT_EQ(*parse_log_level("off"), LogLevel::kOff);
  const Status wrong = parse_log_level("loud").error();
  EXPECT_EQ(wrong.code(), Code::kInvalid);
  EXPECT_EQ(wrong.to_string(), "invalid: 'loud' is no log level. use one of trace, debug, info, warn, error, off");
}

}  // namespace
}  // namespace hawser::base
