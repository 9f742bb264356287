// The agent wrapper: the seed's own seven tests, and what its users lack.

#include <hawser/compat/nixl_agent.h>

#include <sstream>

#include "agents.h"
#include "base/inside.h"
#include "compat/core.h"

namespace hawser::compat {
namespace {

using Names = std::vector<std::string_view>;

TEST(NixlAgentSeed, TracksItsBackendsInAnyCase) {
  NixlAgent agent = NixlAgent::open("test_agent", quiet()).value();
  EXPECT_FALSE(agent.has_backend("UCX"));
  ASSERT_TRUE(agent.add_backend("ucx").ok());
  EXPECT_TRUE(agent.has_backend("UCX"));
  EXPECT_TRUE(agent.has_backend("ucx"));
  EXPECT_EQ(agent.backends(), std::vector<std::string>{"UCX"});
}

TEST(NixlAgentSeed, RequireBackend) {
  const NixlAgent agent = NixlAgent::with_backends("test_agent", Names{"UCX"}, quiet()).value();
  EXPECT_TRUE(agent.require_backend("UCX").ok());
  const Status missing = agent.require_backend("GDS_MT");
  EXPECT_EQ(code_of(missing), NixlCode::kNotFound);
  EXPECT_NE(missing.to_string().find("GDS_MT"), std::string::npos);
  EXPECT_NE(missing.to_string().find("it has: UCX"), std::string::npos);
}

TEST(NixlAgentSeed, StrictTakesWhatIsThereAndNamesWhatIsNot) {
  EXPECT_TRUE(NixlAgent::with_backends("test_agent", Names{"UCX"}, quiet()));
  const auto failed = NixlAgent::with_backends("test_agent", Names{"UCX", "DUDE", "WHO"}, quiet());
  ASSERT_FALSE(failed);
  for (const char* const part : {"DUDE: ", "WHO: ", "there is no plugin 'DUDE'", "there is no plugin 'WHO'"}) {
    EXPECT_NE(failed.error().to_string().find(part), std::string::npos) << failed.error().to_string();
  }
}

TEST(NixlAgentSeed, EmptyParametersAreTheDefaults) {
  NixlAgent agent = NixlAgent::open("test_agent", quiet()).value();
  ASSERT_TRUE(agent.add_backend_with_params("UCX", {}).ok());
  EXPECT_EQ(agent->get_backend_params(*agent->get_backend("UCX")).value().params,
            agent->get_plugin_params("UCX").value().params);
}

TEST(NixlAgentSeed, CustomParametersOverlayTheDefaults) {
  Log log;
  AgentConfig config = quiet();
  config.log = log.sink();
  NixlAgent agent = NixlAgent::open("test_agent", config).value();
  ASSERT_TRUE(agent.add_backend_with_params("UCX", {{"some_key", "some_value"}, {"num_workers", "3"}}).ok());
  const Params params = agent->get_backend_params(*agent->get_backend("UCX")).value().params;
  EXPECT_EQ(params.at("some_key"), "some_value");
  EXPECT_EQ(params.at("num_workers"), "3");
  EXPECT_EQ(params.at("ucx_error_handling_mode"), "peer");
  EXPECT_TRUE(log.has("UCX has no parameter 'some_key'")) << log.text();
}

TEST(NixlAgentSeed, AConfigWithCustomParametersWorks) {
  NixlBackendConfig config;
  config.with_backend_params("UCX", {{"threads", "4"}});
  const auto agent = NixlAgent::from_nixl_backend_config("test_agent", config, quiet());
  ASSERT_TRUE(agent) << agent.error().to_string();
  EXPECT_EQ((*agent)->get_backend_params(*(*agent)->get_backend("UCX")).value().params.at("threads"), "4");
}

TEST(NixlAgentSeed, AConfigWithoutParametersWorks) {
  NixlBackendConfig config;
  config.with_backend("UCX");
  EXPECT_TRUE(NixlAgent::from_nixl_backend_config("test_agent", config, quiet()).value().has_backend("UCX"));
}

TEST(NixlAgentMore, LenientGoesOnAndKeepsEachCause) {
  const NixlAgent agent = NixlAgent::new_with_backends("a", Names{"DUDE", "UCX", "GDS"}, quiet()).value();
  EXPECT_EQ(agent.backends(), std::vector<std::string>{"UCX"});
  ASSERT_EQ(agent.failures().size(), 2u);
  EXPECT_EQ(agent.failures()[0].name, "DUDE");
  EXPECT_EQ(code_of(agent.failures()[1].cause), NixlCode::kNotFound);
}

TEST(NixlAgentMore, ABackendAgainWithOtherParametersWarnsAndNamesThoseInForce) {
  Log log;
  AgentConfig config = quiet();
  config.log = log.sink();
  NixlAgent agent = NixlAgent::open("a", config).value();
  ASSERT_TRUE(agent.add_backend_with_params("UCX", {{"num_workers", "2"}}).ok());
  ASSERT_TRUE(agent.add_backend("UCX").ok());
  ASSERT_TRUE(agent.add_backend_with_params("ucx", {{"num_workers", "2"}}).ok());
  EXPECT_EQ(log.text(), "");
  ASSERT_TRUE(agent.add_backend_with_params("ucx", {{"num_workers", "9"}}).ok());
  EXPECT_TRUE(log.has("num_workers=2")) << log.text();
}

TEST(NixlAgentMore, NothingGoesPastItsTracking) {
  NixlAgent agent = NixlAgent::open("a", quiet()).value();
  NixlAgent copy = agent;
  ASSERT_TRUE(agent.raw_agent().create_backend("ucx"));
  EXPECT_TRUE(agent.has_backend("UCX"));
  EXPECT_TRUE(copy.has_backend("UCX"));
  ASSERT_TRUE(copy.add_backend("UCX").ok());
  const Agent raw = std::move(copy).into_raw_agent();
  EXPECT_EQ(raw, *agent);
  std::ostringstream text;
  text << agent;
  EXPECT_NE(text.str().find("agent a: backends [UCX]"), std::string::npos) << text.str();
}

TEST(NixlAgentMore, TheEnvironmentSaysWhichBackends) {
  const auto config = NixlBackendConfig::from_environment(
      {{"DYN_KVBM_NIXL_BACKEND_UCX", "true"}, {"DYN_KVBM_NIXL_BACKEND_UCX_NUM_WORKERS", "5"}});
  const NixlAgent agent = NixlAgent::from_nixl_backend_config("a", config.value(), quiet()).value();
  EXPECT_EQ(agent->get_backend_params(*agent->get_backend("UCX")).value().params.at("num_workers"), "5");
}

/// What the agent's backend verbs was told, with what it said of it.
std::string devices_of(const Agent& agent, Log& log, const Params& ucx) {
  Agent copy = agent;
  EXPECT_TRUE(copy.create_backend("UCX", ucx)) << log.text();
  for (const BackendReport& report : core_of(agent)->agent().backends()) {
    if (report.name == "verbs") return report.open ? "open" : report.cause.to_string();
  }
  return "no verbs";
}

// No host has a device of this name.
TEST(CompatUcx, ListsOfDevicesReachVerbsAndWhoGetsNoRdmaIsTold) {
  Log log;
  AgentConfig config = quiet();
  config.log = log.sink();
  const Agent named = Agent::open("named", config).value();
  const std::string said = devices_of(named, log, {{"device_list", "no_such_nic_7:1"}});
  EXPECT_NE(said, "open") << "it took other devices than those that were named";
  EXPECT_TRUE(log.has("device_list=no_such_nic_7:1: RDMA is not used")) << log.text();
  // The configuration of the machine goes first, and says so.
  AgentConfig set = quiet({{"HAWSER_BACKEND_VERBS_DEVICES", "no_such_nic_8"}});
  set.log = log.sink();
  const Agent other = Agent::open("other", set).value();
  EXPECT_NE(devices_of(other, log, {{"device_list", "no_such_nic_9"}}), "open");
  EXPECT_TRUE(log.has("the list of devices changes nothing")) << log.text();
  EXPECT_FALSE(log.has("verbs: no_such_nic_9")) << log.text();
}

TEST(CompatUcx, RdmaAloneIsRefusedWhereThereIsNone) {
  Agent agent = Agent::open("rdma", quiet()).value();
  const auto refused = agent.create_backend("UCX", {{"engine_config", "TLS=rc"}, {"device_list", "no_such_nic_7"}});
  ASSERT_FALSE(refused);
  EXPECT_EQ(code_of(refused.error()), NixlCode::kBackend);
  EXPECT_NE(refused.error().to_string().find("verbs"), std::string::npos) << refused.error().to_string();
  const auto made = agent.create_backend("UCX", {{"engine_config", "TLS=tcp"}});
  EXPECT_TRUE(made) << "the refused call left something behind: " << made.error().to_string();
}

TEST(CompatUcx, RdmaBesideSharedMemoryIsDoneWithout) {
  Log log;
  AgentConfig config = quiet();
  config.log = log.sink();
  Agent agent = Agent::open("both", config).value();
  const auto made = agent.create_backend("UCX", {{"engine_config", "TLS=sm,rc"}, {"device_list", "no_such_nic_7"}});
  ASSERT_TRUE(made) << made.error().to_string();
  EXPECT_TRUE(core_of(agent)->agent().has_backend("shm"));
  EXPECT_FALSE(core_of(agent)->agent().has_backend("tcp"));
  EXPECT_TRUE(log.has("RDMA is not used")) << log.text();
}

}  // namespace
}  // namespace hawser::compat
