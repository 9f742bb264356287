// Files that are no plug-ins, or broken ones: what their users are told.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <hawser/agent.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "backend/plugin/plugin.h"
#include "base/test_folder.h"

namespace hawser {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
namespace fs = std::filesystem;

struct Expected {
  const char* name;
  Code code;
  const char* text;
};
constexpr Expected kBroken[] = {
    {"no_symbol", Code::kNotFound, "has no symbol hawser_plugin_v0"},
    {"null_function", Code::kInvalid, "function 'backend.open' is null"},
    {"refuses", Code::kUnsupported, "it refuses this hawser, whose ABI is 0"},
    {"short_api", Code::kInvalid, "its table 'backend' has 40 bytes, not 104"},
    {"short_table", Code::kInvalid, "its table has 40 bytes, not 56"},
    {"wrong_abi", Code::kUnsupported, "it has ABI 41, this hawser loads ABI 0"},
    {"wrong_name", Code::kInvalid, "it calls itself 'null_function', not 'wrong_name' as its file does"},
};

std::string file_of(std::string_view name) {
  return std::string(HAWSER_BROKEN_PLUGINS "/libhawser_backend_") + std::string(name) + ".so";
}

struct Folder : base::TestFolder {
  Folder() : base::TestFolder("hawser-plugins") {}
  void write(std::string_view name, std::string_view bytes) const { std::ofstream(path(name)) << bytes; }
};

TEST(PluginFiles, FaultsAreNamed) {
  for (const Expected& each : kBroken) {
    const Status why = backend::load_plugin(file_of(each.name)).error();
    EXPECT_EQ(why.code(), each.code) << each.name;
    EXPECT_THAT(why.to_string(), AllOf(HasSubstr(each.text), HasSubstr(file_of(each.name))));
  }
}

TEST(PluginFiles, AnAgentThatNamesABrokenOneDoesNotOpen) {
  for (const Expected& each : kBroken) {
    const auto agent =
        Agent::open({.name = "a", .backends = {{each.name, {}}}, .plugin_paths = {HAWSER_BROKEN_PLUGINS}});
    ASSERT_FALSE(agent);
    EXPECT_THAT(agent.error().to_string(), AllOf(HasSubstr(each.name), HasSubstr(each.text)));
  }
}

TEST(PluginFiles, OtherBackendsGoOn) {
  const auto agent = Agent::open({.name = "a", .plugin_paths = {HAWSER_BROKEN_PLUGINS}});
  ASSERT_TRUE(agent) << agent.error().to_string();
  EXPECT_TRUE(agent->has_backend("loopback"));
  const std::vector<BackendReport> reports = agent->backends();
  for (const Expected& each : kBroken) {
    const auto report = std::ranges::find(reports, each.name, &BackendReport::name);
    ASSERT_NE(report, reports.end()) << each.name;
    EXPECT_FALSE(report->open);
    EXPECT_THAT(report->cause.to_string(), HasSubstr(each.text));
  }
}

TEST(PluginFiles, WhatIsNoSharedObjectIsNamed) {
  const Folder folder;
  folder.write("libhawser_backend_text.so", "this is no shared object");
  folder.write("libhawser_backend_.so", "");
  folder.write("libhawser_backend_Upper.so", "");
  folder.write("notes.txt", "");
  fs::create_symlink("/nowhere/x.so", folder.path() + "/libhawser_backend_gone.so");
  const backend::FoundPlugins found = backend::find_plugins(std::vector<std::string>{folder.path()});
  ASSERT_EQ(found.factories.size(), 2U);
  EXPECT_EQ(found.factories[0].name, "gone");
  EXPECT_EQ(found.factories[1].name, "text");
  const auto agent = Agent::open({.name = "a", .backends = {{"gone", {}}}, .plugin_paths = {folder.path()}});
  EXPECT_THAT(agent.error().to_string(), HasSubstr("libhawser_backend_gone.so: cannot open shared object file"));
  const auto other = Agent::open({.name = "a", .backends = {{"text", {}}}, .plugin_paths = {folder.path()}});
  EXPECT_THAT(other.error().to_string(),
              AllOf(HasSubstr("libhawser_backend_text.so"), HasSubstr("could not be loaded")));
}

TEST(PluginFiles, WhatIsOddIsLogged) {
  const Folder folder;
  folder.write("libhawser_backend_tcp.so", "");
  folder.write("libhawser_backend_wrong_abi.so", "");
  std::string lines;
  LogOptions log;
  log.sink = [&](LogLevel, std::string_view line) { lines.append(line).append("\n"); };
  const auto agent = Agent::open({.name = "a",
                                  .backends = {loopback(), tcp()},
                                  .plugin_paths = {"/nowhere", HAWSER_BROKEN_PLUGINS, folder.path()},
                                  .log = log});
  ASSERT_TRUE(agent) << agent.error().to_string();
  EXPECT_THAT(lines, HasSubstr("plug-in folder /nowhere cannot be read: No such file or directory"));
  EXPECT_THAT(lines, HasSubstr("libhawser_backend_wrong_abi.so is passed over: there is another 'wrong_abi'"));
  EXPECT_THAT(lines, HasSubstr("plug-in tcp is passed over: a backend of the library has that name"));
}

}  // namespace
}  // namespace hawser
