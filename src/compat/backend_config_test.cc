#include <gtest/gtest.h>

#include <hawser/compat/nixl_agent.h>

namespace hawser::compat {
namespace {

using Texts = ConfigSources::Texts;

/// Without the prefix.
Result<NixlBackendConfig> read(const std::map<std::string, std::string>& variables) {
  Texts environment = {{"PATH", "/bin"}, {"HAWSER_LOG", "off"}};
  for (const auto& [name, text] : variables) environment["DYN_KVBM_NIXL_BACKEND_" + name] = text;
  return NixlBackendConfig::from_environment(environment);
}

std::vector<std::string> names(const std::map<std::string, std::string>& variables) {
  return read(variables).value().backends();
}

std::string error(const std::map<std::string, std::string>& variables) {
  const auto config = read(variables);
  EXPECT_FALSE(config);
  return config ? "" : config.error().to_string();
}

void expect_in(const std::string& text, std::initializer_list<const char*> parts) {
  for (const char* const part : parts) EXPECT_NE(text.find(part), std::string::npos) << part << " in: " << text;
}

TEST(NixlBackendConfig, IsEmptyAtFirstAndKeepsTheOrder) {
  NixlBackendConfig config;
  EXPECT_EQ(config.size(), 0u);
  EXPECT_FALSE(config.has_backend("UCX"));
  config.with_backend("ucx").with_backend_params("Gds_Mt", {{"thread_count", "4"}}).with_backend("UCX");
  EXPECT_EQ(config.backends(), (std::vector<std::string>{"UCX", "GDS_MT"}));
  EXPECT_TRUE(config.has_backend("gds_mt"));
  ASSERT_NE(config.backend_params("GDS_mt"), nullptr);
  EXPECT_EQ(config.backend_params("GDS_MT")->at("thread_count"), "4");
  EXPECT_TRUE(config.backend_params("UCX")->empty());
  EXPECT_EQ(config.backend_params("POSIX"), nullptr);
  config.with_backend_params("gds_mt", {});
  EXPECT_TRUE(config.backend_params("GDS_MT")->empty());
}

TEST(NixlBackendConfig, MergingReplacesABackendsParametersAsAWhole) {
  NixlBackendConfig left, right;
  left.with_backend_params("UCX", {{"a", "1"}, {"b", "2"}}).with_backend("OBJ");
  right.with_backend_params("ucx", {{"a", "3"}}).with_backend("POSIX");
  left.merge(right);
  EXPECT_EQ(left.backends(), (std::vector<std::string>{"UCX", "OBJ", "POSIX"}));
  EXPECT_EQ(*left.backend_params("UCX"), (Params{{"a", "3"}}));
  left.merge(left);
  EXPECT_EQ(left.size(), 3u);
}

TEST(NixlBackendConfig, SwitchesTakeEveryWordInAnyCase) {
  EXPECT_EQ(names({}), std::vector<std::string>());
  EXPECT_EQ(names({{"UCX", "true"}, {"POSIX", "ON"}, {"OBJ", "Yes"}, {"GDS", "1"}}),
            (std::vector<std::string>{"GDS", "OBJ", "POSIX", "UCX"}));
  EXPECT_EQ(names({{"UCX", "false"}, {"POSIX", "off"}, {"OBJ", "NO"}, {"GDS", "0"}}), std::vector<std::string>());
  EXPECT_EQ(names({{"UCX", ""}, {"DUDE", "true"}}), (std::vector<std::string>{"DUDE"}));
  expect_in(error({{"UCX", "maybe"}, {"POSIX", "2"}}),
            {"DYN_KVBM_NIXL_BACKEND_UCX", "maybe", "DYN_KVBM_NIXL_BACKEND_POSIX", "true, on, yes"});
}

TEST(NixlBackendConfig, NamesMayHoldUnderscores) {
  EXPECT_EQ(names({{"GDS_MT", "true"}, {"AZURE_BLOB", "true"}}), (std::vector<std::string>{"AZURE_BLOB", "GDS_MT"}));
  const auto config =
      read({{"GDS_MT", "true"}, {"GDS_MT_THREAD_COUNT", "8"}, {"GDS", "true"}, {"GDS_BATCH_LIMIT", "9"}});
  ASSERT_TRUE(config) << config.error().to_string();
  EXPECT_EQ(*config->backend_params("GDS_MT"), (Params{{"thread_count", "8"}}));
  EXPECT_EQ(*config->backend_params("GDS"), (Params{{"batch_limit", "9"}}));
}

TEST(NixlBackendConfig, ParametersNeedTheirSwitch) {
  const auto config = read({{"UCX", "true"}, {"UCX_NUM_THREADS", "2"}, {"ucx_Device_List", "eth0"}});
  ASSERT_TRUE(config) << config.error().to_string();
  EXPECT_EQ(*config->backend_params("UCX"), (Params{{"num_threads", "2"}, {"device_list", "eth0"}}));
  EXPECT_EQ(names({{"UCX", "off"}, {"UCX_NUM_THREADS", "2"}}), std::vector<std::string>());
  expect_in(error({{"UCX_NUM_THREADS", "2"}}), {"num_threads", "DYN_KVBM_NIXL_BACKEND_UCX", "true"});
}

TEST(NixlBackendConfig, StrangeNamesAreSwitchesOrParametersOfTheirs) {
  EXPECT_EQ(names({{"MY_OWN", "true"}}), (std::vector<std::string>{"MY_OWN"}));
  const auto config = read({{"MY_OWN", "true"}, {"MY_OWN_PATH", "/x"}, {"DUDE", "yes"}, {"DUDE__SWITCH", "on"}});
  ASSERT_TRUE(config) << config.error().to_string();
  EXPECT_EQ(*config->backend_params("MY_OWN"), (Params{{"path", "/x"}}));
  EXPECT_EQ(*config->backend_params("DUDE"), (Params{{"switch", "on"}}));
  expect_in(error({{"DUDE", "yes"}, {"DUDE_FAST", "true"}}),
            {"DYN_KVBM_NIXL_BACKEND_DUDE_FAST", "switch of DUDE_FAST", "parameter fast of DUDE",
             "DYN_KVBM_NIXL_BACKEND_DUDE__FAST"});
  expect_in(error({{"NO_SUCH", "/x"}}), {"DYN_KVBM_NIXL_BACKEND_NO_SUCH", "/x", "NO_SUCH"});
}

TEST(NixlBackendConfig, OneThingSaidTwiceMustBeTheSame) {
  EXPECT_EQ(names({{"UCX", "true"}, {"ucx", "yes"}}), (std::vector<std::string>{"UCX"}));
  expect_in(error({{"UCX", "true"}, {"ucx", "no"}}), {"UCX is switched on and off"});
  expect_in(error({{"UCX", "true"}, {"UCX_A", "1"}, {"UCX__A", "2"}}), {"parameter a of UCX"});
}

TEST(BackendConfig, IsMadeOfAMap) {
  const NixlBackendConfig config({{"posix", {{"use_aio", "true"}}}, {"Ucx", {}}});
  EXPECT_EQ(config.backends(), (std::vector<std::string>{"UCX", "POSIX"}));
  ASSERT_NE(config.backend_params("POSIX"), nullptr);
  EXPECT_EQ(*config.backend_params("posix"), (Params{{"use_aio", "true"}}));
  EXPECT_TRUE(config.backend_params("UCX")->empty());
  NixlBackendConfig same;
  same.with_backend("UCX").with_backend_params("POSIX", {{"use_aio", "true"}});
  EXPECT_EQ(config, same);
  EXPECT_EQ(NixlBackendConfig(std::map<std::string, Params>()), NixlBackendConfig());
  const NixlBackendConfig twice({{"UCX", {{"a", "1"}}}, {"ucx", {{"b", "2"}}}});
  EXPECT_EQ(twice.size(), 1u);
  EXPECT_EQ(*twice.backend_params("UCX"), (Params{{"b", "2"}}));
}

}  // namespace
}  // namespace hawser::compat
