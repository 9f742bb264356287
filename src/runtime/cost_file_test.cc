#include "runtime/cost_file.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "base/test_folder.h"

namespace hawser::runtime {
namespace {

constexpr const char* kGood = R"(schema = "hawser.cost_model/1"
measured = "2026-11-28T22:50:00Z"
host = "node1"
cpu = "Some \"fast\" CPU"
backends = "shm"
ranks = 4
rounds = 7

[within_host]
message_ns = { value = 1850.5, low = 1700.0, high = 2400 }
byte_ns = { value = 0.2, low = 0.1, high = 0.3 }
combined_byte_ns = 0.09
read_byte_ns = { value = 0.07, low = 0.07, high = 0.07 }
board_ns = 300
)";

std::string with(std::string text, const std::string& part, const std::string& other) {
  const std::size_t at = text.find(part);
  EXPECT_NE(at, std::string::npos) << part;
  return text.replace(at, part.size(), other);
}

std::string refusal_of(const std::string& text) {
  const Result<CostFile> file = parse_cost_file(text, "m.toml");
  if (file) return "";
  EXPECT_EQ(file.error().code(), Code::kInvalid);
  return std::string(file.error().message());
}

TEST(CostFile, SaysWhatWasMeasuredAndTheRestIsBuiltIn) {
  const Result<CostFile> file = parse_cost_file(kGood, "m.toml");
  ASSERT_TRUE(file.has_value()) << file.error().to_string();
  EXPECT_EQ(file->measured, "2026-11-28T22:50:00Z");
  EXPECT_EQ(file->host, "node1");
  EXPECT_EQ(file->cpu, "Some \"fast\" CPU");
  EXPECT_EQ(file->backends, "shm");
  EXPECT_EQ(file->ranks, 4U);
  EXPECT_EQ(file->rounds, 7U);
  EXPECT_EQ(file->costs[0], (MeasuredCost{.value = 1850.5, .low = 1700, .high = 2400}));
  EXPECT_EQ(file->costs[4], (MeasuredCost{.value = 300, .low = 300, .high = 300}));
  EXPECT_TRUE(file->has(false));
  EXPECT_FALSE(file->has(true));
  const schedule::CostModel model = file->model(), built_in;
  EXPECT_EQ(model.message_ns, 1850.5);
  EXPECT_EQ(model.combined_byte_ns, 0.09);
  EXPECT_EQ(model.far_message_ns, built_in.far_message_ns);
  EXPECT_EQ(model.far_byte_ns, built_in.far_byte_ns);
}

TEST(CostFile, IsWrittenAsItIsRead) {
  CostFile file = parse_cost_file(kGood, "m.toml").value();
  const std::string near_alone = to_toml(file);
  EXPECT_NE(near_alone.find("# No [between_hosts]: it was not measured"), std::string::npos) << near_alone;
  EXPECT_EQ(parse_cost_file(near_alone, "m.toml").value(), file);
  file.costs[5] = {.value = 1e9, .low = 1, .high = 1e9};
  file.costs[6] = {.value = 1.0 / 3, .low = 1e-9, .high = 1e3};
  EXPECT_EQ(parse_cost_file(to_toml(file), "m.toml").value(), file);
  for (std::size_t i = 0; i < 5; ++i) file.costs[i].reset();
  EXPECT_EQ(parse_cost_file(to_toml(file), "m.toml").value(), file) << "messages between hosts alone";
}

TEST(CostFile, TextsOfOthersCannotBreakTheFile) {
  CostFile file = parse_cost_file(kGood, "m.toml").value();
  file.cpu = "a\"\\\n\x1b[2J\x7f\xff" + std::string(kCostTextMax, 'x');
  file.host.clear();
  const Result<CostFile> read = parse_cost_file(to_toml(file), "m.toml");
  ASSERT_TRUE(read.has_value()) << read.error().to_string();
  EXPECT_TRUE(read->cpu.starts_with("a\"\\??[2J??xxx"));
}

TEST(CostFile, EachBadFieldIsNamedWithItsLine) {
  const std::vector<std::tuple<std::string, std::string, std::string>> all = {
      {"cost_model/1", "cost_model/2", "m.toml:1: its schema is not \"hawser.cost_model/1\""},
      {"schema = ", "scheme = ", "its schema is not"},
      {"\"hawser.cost_model/1\"", "1", "its schema is not"},
      {"\"node1\"", "7", "m.toml:3: host is no text"},
      {"node1", "no\\u0007de", "host is no text of at most 200 bytes without control characters"},
      {"node1", std::string(kCostTextMax + 1, 'n'), "host is no text of at most 200 bytes"},
      {"ranks = 4", "ranks = -1", "ranks is no whole number from 0 to 1000000"},
      {"ranks = 4", "ranks = 1000001", "ranks is no whole number"},
      {"ranks = 4", "ranks = 4.0", "ranks is no whole number"},
      {"rounds = 7", "round = 7", "there is no 'round' in a cost model"},
      {"[within_host]", "[within]", "there is no 'within' in a cost model"},
      {"board_ns = 300", "", "[within_host] has no board_ns"},
      {"board_ns = 300", "board_ns = 300\nfar_byte_ns = 1", "m.toml:15: there is no 'far_byte_ns'"},
      {"board_ns = 300", "board_ns = \"300\"", "m.toml:14: board_ns is no number"},
      {"board_ns = 300", "board_ns = 0", "board_ns = 0 is not a number above 0 and at most 1000000000"},
      {"board_ns = 300", "board_ns = -1", "board_ns = -1 is not a number above 0"},
      {"board_ns = 300", "board_ns = nan", "board_ns = nan is not a number above 0"},
      {"board_ns = 300", "board_ns = inf", "board_ns = inf is not a number above 0"},
      {"board_ns = 300", "board_ns = 1000000001", "board_ns = 1000000001 is not"},
      {"0.09", "1000.1", "combined_byte_ns = 1000.1 is not a number above 0 and at most 1000"},
      {"low = 1700.0", "low = 1851", "m.toml:10: message_ns has not low <= value <= high"},
      {"high = 2400", "high = 1850", "message_ns has not low <= value <= high"},
      {"low = 1700.0, ", "", "message_ns has not low <= value <= high"},
      {"low = 1700.0", "low = -1", "message_ns = -1 is not a number above 0"},
      {"low = 1700.0", "least = 1700.0", "there is no 'least'"},
      {"board_ns = 300", "board_ns = [300]", "board_ns is no number"},
      {"board_ns = 300", "board_ns = ", "m.toml:14"},
  };
  for (const auto& [part, other, text] : all) {
    const std::string refusal = refusal_of(with(kGood, part, other));
    EXPECT_NE(refusal.find(text), std::string::npos) << "'" << refusal << "' has not '" << text << "'";
  }
  EXPECT_NE(refusal_of("schema = \"hawser.cost_model/1\"\n").find("neither [within_host] nor [between_hosts]"),
            std::string::npos);
  EXPECT_NE(refusal_of("schema = \"hawser.cost_model/1\"\nwithin_host = 3\n").find("within_host is no table"),
            std::string::npos);
  EXPECT_NE(refusal_of("").find("its schema is not"), std::string::npos);
}

TEST(CostFile, ValuesAtTheirLargestAreTaken) {
  const std::string text = with(with(kGood, "300", "1000000000"), "0.09", "1000");
  EXPECT_EQ(refusal_of(text), "");
  EXPECT_EQ(refusal_of(with(with(kGood, "node1", std::string(kCostTextMax, 'n')), "ranks = 4", "ranks = 1000000")), "");
}

TEST(CostFile, OneThatIsTooLargeIsNotParsed) {
  std::string text = kGood;
  text += "#" + std::string(kCostFileMax - text.size() - 1, ' ');
  EXPECT_EQ(refusal_of(text), "");
  EXPECT_NE(refusal_of(text + " ").find("it is larger than 65536 bytes"), std::string::npos);
}

TEST(CostFile, IsReadFromItsPath) {
  const base::TestFolder folder("/tmp/hawser-cost-file");
  const std::string path = folder.path() + "/m.toml";
  const Result<CostFile> missing = read_cost_file(path);
  ASSERT_FALSE(missing.has_value());
  EXPECT_EQ(missing.error().code(), Code::kNotFound);
  EXPECT_NE(missing.error().to_string().find(path), std::string::npos);
  EXPECT_EQ(read_cost_file(folder.path()).error().code(), Code::kNotFound) << "a folder";
  std::ofstream(path) << kGood;
  EXPECT_EQ(read_cost_file(path).value(), parse_cost_file(kGood, path).value());
  std::ofstream(path) << kGood << "#" << std::string(kCostFileMax, ' ');
  EXPECT_EQ(read_cost_file(path).error().code(), Code::kInvalid);
}

}  // namespace
}  // namespace hawser::runtime
