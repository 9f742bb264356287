// Lines about paths, however many a stranger causes.

#include "agent/engine/path_log.h"

#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <vector>

namespace hawser::agent {
namespace {

using namespace std::chrono_literals;

TEST(PathLog, OneLineASecondForEachBackendAndLevel) {
  std::vector<std::string> lines;
  base::Logger logger(
      {.level = LogLevel::kInfo, .sink = [&](LogLevel, std::string_view line) { lines.emplace_back(line); }});
  PathLog log(logger, "here");
  const Instant now = Instant::from_ns(1'000'000'000);
  for (int i = 0; i < 5; ++i) log.tell(LogLevel::kInfo, "there", 0, "tcp", "is up", now);
  log.tell(LogLevel::kInfo, "there", 1, "shm", "is up", now);
  log.tell(LogLevel::kDebug, "there", 2, "quic", "is up", now);
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_NE(lines[0].find("the path to there over tcp is up"), std::string::npos) << lines[0];
  log.tell(LogLevel::kInfo, "there", 0, "tcp", "is up", now + 1s);
  ASSERT_EQ(lines.size(), 3u);
  EXPECT_NE(lines[2].find('4'), std::string::npos) << "it tells how many were held back: " << lines[2];
}

TEST(PathLog, APeerThatIsDroppedIsNamedWithTheReason) {
  std::vector<std::string> lines;
  base::Logger logger(
      {.level = LogLevel::kInfo, .sink = [&](LogLevel, std::string_view line) { lines.emplace_back(line); }});
  PathLog log(logger, "here");
  for (int i = 0; i < 3; ++i) log.tell_dropped("there", Status(Code::kCorrupt, "garbage"), Instant::from_ns(1));
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_NE(lines[0].find("dropping there"), std::string::npos);
  EXPECT_NE(lines[0].find("garbage"), std::string::npos);
}

}  // namespace
}  // namespace hawser::agent
