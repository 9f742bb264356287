#include "cli/bench/report_page.h"

#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>

#include "base/test_folder.h"

namespace hawser::cli::bench {
namespace {

using testing::HasSubstr;
using testing::Not;

Json some_results() {
  Json results = document("bench");
  results["rows"] = Json::array({{{"id", "shm.write.64k"}, {"state", "run"}, {"value", 48.1}}});
  return results;
}

std::string text_of(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

void put(const std::string& path, std::string_view text) { std::ofstream(path) << text; }

TEST(ReportPage, HoldsResultsAndNeedsNothingElse) {
  const std::string page = report_page(some_results());
  EXPECT_THAT(page, HasSubstr(R"("id":"shm.write.64k")"));
  EXPECT_THAT(page, HasSubstr("uPlot"));
  EXPECT_THAT(page, Not(HasSubstr(kResultsMark)));
  EXPECT_THAT(page, Not(HasSubstr("src=")));
  EXPECT_THAT(page, Not(HasSubstr("@HAWSER")));
}

TEST(ReportPage, TextOfResultsDoesNotEndTheScript) {
  Json results = some_results();
  results["rows"][0]["what"] = "</script><script>alert(1)</script>";
  EXPECT_THAT(report_page(results), Not(HasSubstr("alert(1)</script>")));
}

TEST(ReportPage, ReadsWhatTheBenchPrinted) {
  const base::TestFolder folder;
  const std::string path = folder.path("figures.json");
  put(path, some_results().dump());
  const Result<Json> read = read_results(path);
  ASSERT_TRUE(read) << read.error().to_string();
  EXPECT_EQ(*read, some_results());
}

TEST(ReportPage, RefusesWhatIsNoResults) {
  const base::TestFolder folder;
  const std::string path = folder.path("figures.json");
  EXPECT_EQ(read_results(path).error().code(), Code::kNotFound);
  for (const char* text : {"", "{", "[]", "{}", R"({"schema": "hawser.info/1", "rows": []})",
                           R"({"schema": "hawser.bench/1"})", R"({"schema": "hawser.bench/1", "rows": {}})"}) {
    put(path, text);
    EXPECT_EQ(read_results(path).error().code(), Code::kInvalid) << text;
  }
}

TEST(ReportPage, WritesTheWholePageOrNone) {
  const base::TestFolder folder;
  const std::string path = folder.path("out.html");
  put(path, "what was there");
  ASSERT_TRUE(write_page(path, some_results()).ok());
  EXPECT_EQ(text_of(path), report_page(some_results()));
  EXPECT_EQ(write_page(folder.path("no/out.html"), some_results()).code(), Code::kFailed);
  std::filesystem::create_directory(folder.path("taken"));
  EXPECT_EQ(write_page(folder.path("taken"), some_results()).code(), Code::kInvalid);
  const auto left = std::filesystem::directory_iterator(folder.path());
  EXPECT_EQ(std::distance(begin(left), end(left)), 2) << "a part of a page was left";
}

}  // namespace
}  // namespace hawser::cli::bench
