#include "cli/reach.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <initializer_list>
#include <utility>

#include "base/test_folder.h"

namespace hawser::cli {
namespace {

Result<AgentOptions> with_directory(const std::string& text) { return agent_options({.directory = text}, ""); }

TEST(Reach, ADirectoryIsAFolderOrWhatTheOptionTakes) {
  const base::TestFolder root("hawser-reach");
  EXPECT_TRUE(with_directory(root.path("plain")));
  EXPECT_TRUE(std::filesystem::is_directory(root.path("plain")));
  EXPECT_TRUE(with_directory(root.path("with:colon")));
  EXPECT_TRUE(std::filesystem::is_directory(root.path("with:colon")));
  EXPECT_TRUE(with_directory("file:" + root.path("kind")));
  EXPECT_TRUE(std::filesystem::is_directory(root.path("kind")));
}

TEST(Reach, AKindOfDirectoryThatIsNoneMakesNoFolder) {
  for (const std::string text : {"etcd:127.0.0.1", "http://127.0.0.1:2379", "store:cards"}) {
    const auto options = with_directory(text);
    ASSERT_FALSE(options) << text;
    EXPECT_EQ(options.error().code(), Code::kInvalid) << options.error().to_string();
    EXPECT_NE(options.error().to_string().find("etcd://host:port"), std::string::npos) << options.error().to_string();
    EXPECT_FALSE(std::filesystem::exists(text));
  }
}

// The borders of what the configuration takes are such that an agent opens with them.
TEST(TrialsReach, AgentsOpenWithTheLimitsThatTheConfigurationTakes) {
  for (const auto& [name, value] : std::initializer_list<std::pair<const char*, const char*>>{
           {"HAWSER_LIMITS_TRANSFERS", "16777216"},
           {"HAWSER_LIMITS_TRANSFERS", "1"},
           {"HAWSER_LIMITS_NOTIFICATION_BYTES", "65600"},
           {"HAWSER_LIMITS_NOTIFICATION_BYTES_TOTAL", "65600"}}) {
    ASSERT_EQ(::setenv(name, value, 1), 0);
    auto options = agent_options({.name = "a", .backends = {"loopback"}}, "");
    ::unsetenv(name);
    ASSERT_TRUE(options) << options.error().to_string();
    const auto agent = Agent::open(*options);
    EXPECT_TRUE(agent) << name << "=" << value << ": " << agent.error().to_string();
  }
}

}  // namespace
}  // namespace hawser::cli
