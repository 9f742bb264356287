#include "cli/reach.h"

#include <gtest/gtest.h>

#include <filesystem>

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

}  // namespace
}  // namespace hawser::cli
