#include "compat/backend_wish.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "compat/environment.h"

namespace hawser::compat {
namespace {

struct BackendWishTest : ::testing::Test {
  Result<BackendWish> read(std::string_view plugin, const Params& given, bool is_open = false) {
    return read_wish(
        set, *find_plugin(plugin), given, is_open, [](const std::string&) { return false; }, log);
  }
  std::size_t count(std::string_view what) const {
    std::size_t found = 0;
    for (const std::string& line : lines) found += line.find(what) != std::string::npos;
    return found;
  }

  AgentOptions set{.name = "a"};
  std::vector<std::string> lines;
  base::Logger log{LogOptions{.level = LogLevel::kWarn,
                              .sink = [this](LogLevel, std::string_view line) { lines.emplace_back(line); }}};

  BackendWishTest() { set.default_deadline = kNoDeadline; }
};

TEST_F(BackendWishTest, ADeadlineIsTakenUnlessOneIsSet) {
  const Params given = {{std::string(kDeadlineKey), "30s"}};
  const auto wish = read("UCX", given);
  ASSERT_TRUE(wish.has_value());
  EXPECT_EQ(wish->options.default_deadline, std::chrono::seconds(30));
  EXPECT_EQ(set.default_deadline, kNoDeadline) << "what was set stays, should the agent not open";
  set.default_deadline = std::chrono::seconds(1);
  EXPECT_EQ(read("UCX", given)->options.default_deadline, std::chrono::seconds(1));
  EXPECT_EQ(count("changes nothing: a deadline is set"), 1u);
  EXPECT_EQ(read("UCX", given, /*is_open=*/true)->options.default_deadline, std::chrono::seconds(1));
  EXPECT_EQ(count("changes nothing: another backend was created before"), 1u);
}

TEST_F(BackendWishTest, ADeadlineThatIsNoDurationIsRefused) {
  for (const char* text : {"soon", "0ms", ""}) {
    const auto wish = read("UCX", {{std::string(kDeadlineKey), text}});
    ASSERT_FALSE(wish.has_value()) << text;
    EXPECT_EQ(code_of(wish.error()), NixlCode::kInvalidParam);
  }
}

TEST_F(BackendWishTest, UcxsDevicesAreThoseOfVerbs) {
  const Params given = {{"device_list", "mlx5_0:1"}};
  const auto wish = read("UCX", given);
  ASSERT_TRUE(wish.has_value());
  EXPECT_EQ(wish->options.backend_params.at("verbs").at("devices"), "mlx5_0:1");
  set.backend_params["verbs"]["devices"] = "mlx5_1";
  EXPECT_EQ(read("UCX", given)->options.backend_params.at("verbs").at("devices"), "mlx5_1");
  EXPECT_EQ(count("the devices of the backend verbs are set"), 1u);
}

TEST_F(BackendWishTest, UcxsTransportsAreHawsersBackends) {
  const Params given = {{"engine_config", "TLS=tcp"}};
  const auto wish = read("UCX", given);
  ASSERT_TRUE(wish.has_value());
  EXPECT_TRUE(std::ranges::any_of(wish->options.backends, [](const auto& each) { return each.name == "tcp"; }));
  EXPECT_TRUE(read("UCX", given, /*is_open=*/true)->options.backends.empty());
  set.backends = {{.name = "shm", .params = {}}};
  EXPECT_EQ(read("UCX", given)->options.backends.front().name, "shm");
  EXPECT_EQ(count("the list of transports changes nothing: HAWSER_BACKENDS is set"), 1u);
}

TEST_F(BackendWishTest, FilesAreThePosixPluginsBusiness) {
  const auto wish = read("POSIX", {{"use_uring", "true"}});
  ASSERT_TRUE(wish.has_value());
  EXPECT_FALSE(wish->file.empty());
  EXPECT_TRUE(wish->rdma.empty());
}

TEST_F(BackendWishTest, UnknownParametersAreToldAndKept) {
  const Params params = params_in_force(*find_plugin("UCX"), {{"no_such_key", "1"}}, log);
  EXPECT_EQ(params.at("no_such_key"), "1");
  EXPECT_GT(params.size(), 1u) << "defaults are in force";
  EXPECT_EQ(count("UCX has no parameter 'no_such_key'; it is ignored"), 1u);
}

}  // namespace
}  // namespace hawser::compat
