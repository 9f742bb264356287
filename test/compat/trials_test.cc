// What passes with NIXL and did not here: deregistrations with a bad entry, deadlines, parameters, telemetry.

#include <hawser/compat/agent.h>

#include <array>

#include "agent/core.h"
#include "agents.h"
#include "base/inside.h"
#include "compat/core.h"
#include "compat/environment.h"

namespace hawser::compat {
namespace {

bool says(const Status& status, NixlCode code, std::string_view part) {
  return code_of(status) == code && status.to_string().find(part) != std::string::npos;
}

// Before, the good entries of the list were gone.
TEST(TrialsDeregister, OneBadEntryTakesNothingAway) {
  Side side("side", 4096);
  std::vector<char> memory(4096);
  const auto address = reinterpret_cast<std::uintptr_t>(memory.data());
  RegDescList two(MemType::kDram);
  two.add(address, 1024);
  two.add(address + 2048, 1024);
  side.agent.register_memory(two).value().detach();
  RegDescList bad(MemType::kDram);
  bad.add(address, 1024);
  bad.add(address + 1024, 512);  // Never registered.
  bad.add(address + 2048, 1024);
  EXPECT_TRUE(says(side.agent.deregister_memory(bad), NixlCode::kNotFound, "descriptor 1"));
  RegDescList twice(MemType::kDram);
  for (int i = 0; i < 2; ++i) twice.add(address, 1024);
  EXPECT_TRUE(says(side.agent.deregister_memory(twice), NixlCode::kNotFound, "descriptor 1"));
  XferDescList both(MemType::kDram);
  both.add(address, 1024);
  both.add(address + 2048, 1024);
  EXPECT_TRUE(side.agent.check_remote_metadata("side", &both)) << "something was taken away";
  EXPECT_TRUE(side.agent.deregister_memory(two).ok());
  EXPECT_FALSE(side.agent.check_remote_metadata("side", &both));
}

// A peer that never moves on holds a transfer over tcp for ever.
TEST(TrialsDeadline, ABackendParameterSetsOne) {
  AgentConfig still = quiet({{"HAWSER_BACKENDS", "loopback,tcp"}});
  still.progress_thread = false;
  Side one("one", 4096, quiet({{"HAWSER_BACKENDS", "loopback,tcp"}}), {{"hawser_deadline", "150ms"}});
  Side two("two", 4096, still);
  one.knows(two);
  auto request = one.agent.create_xfer_req(XferOp::kWrite, one.blocks(1), two.blocks(1), "two").value();
  const Instant begin = Clock::steady().now();
  const Status status = one.run(request);
  EXPECT_EQ(code_of(status), NixlCode::kBackend) << status.to_string();
  EXPECT_EQ(status.code(), Code::kTimedOut) << status.to_string();
  EXPECT_LT(Clock::steady().now() - begin, kNoDeadline);
}

TEST(TrialsDeadline, TheEnvironmentGoesFirstAndAWrongOneIsRefused) {
  Log log;
  AgentConfig config = quiet({{"HAWSER_DEADLINE", "7s"}});
  config.log = log.sink();
  Side side("side", 4096, config, {{"hawser_deadline", "150ms"}});
  EXPECT_EQ(core_of(core_of(side.agent)->agent())->options.default_deadline, std::chrono::seconds(7));
  EXPECT_TRUE(log.has("hawser_deadline changes nothing")) << log.text();
  for (const char* wrong : {"abc", "0s", "5"}) {
    Agent agent = Agent::open("wrong", quiet()).value();
    const auto made = agent.create_backend("UCX", {{"hawser_deadline", wrong}});
    EXPECT_TRUE(says(made.status(), NixlCode::kInvalidParam, "hawser_deadline")) << wrong;
    EXPECT_TRUE(agent.create_backend("UCX")) << "it left something behind";
  }
}

TEST(TrialsTelemetry, DescriptorsAreCountedAsGiven) {
  Side one("one", 4096), two("two", 4096);
  one.knows(two);
  const auto count = [&](TransferRequest& request) {
    EXPECT_TRUE(one.run(request).ok());
    return one.agent.get_xfer_telemetry(request).value()->desc_count;
  };
  auto created = one.agent.create_xfer_req(XferOp::kWrite, one.blocks(4), two.blocks(4), "two").value();
  EXPECT_EQ(count(created), 4u);  // Neighbours on both sides: they travel as one.
  const auto ours = one.agent.prepare_xfer_dlist("", one.blocks(4)).value();
  const auto theirs = one.agent.prepare_xfer_dlist("two", two.blocks(4)).value();
  const std::array<std::int32_t, 2> index = {1, 2};
  auto made = one.agent.make_xfer_req(XferOp::kRead, ours, index, theirs, index).value();
  EXPECT_EQ(count(made), 2u);
}

TEST(TrialsTelemetry, AnExporterThatIsNotThereIsRefusedByName) {
  for (const char* exporter : {"BUFFER", "prometheus_mp", "doca", "9090"}) {
    const ConfigSources::Texts named = {{"NIXL_TELEMETRY_EXPORTER", exporter}};
    auto on = named;
    on.emplace("NIXL_TELEMETRY_ENABLE", "yes");
    const auto refused = Agent::open("a", quiet(on));
    ASSERT_FALSE(refused) << exporter;
    EXPECT_TRUE(says(refused.error(), NixlCode::kNotSupported, "NIXL_TELEMETRY_EXPORTER"))
        << refused.error().to_string();
    EXPECT_TRUE(Agent::open("a", quiet(named))) << "nobody asked for telemetry";
  }
  EXPECT_TRUE(Agent::open("a", quiet({{"NIXL_TELEMETRY_ENABLE", "yes"}, {"NIXL_TELEMETRY_EXPORTER", "NOP"}})));
}

// The own tests of nixl-sys name a folder, only to have telemetry: the agent is made, and says that nothing is there.
TEST(TrialsTelemetry, AFolderIsWarnedOfByName) {
  const auto warns = [](ConfigSources::Texts environment) {
    Log log;
    environment.emplace("NIXL_TELEMETRY_DIR", "/a/folder");
    AgentConfig config = quiet(std::move(environment));
    config.log = log.sink();
    EXPECT_TRUE(Agent::open("a", config));
    return log.has("NIXL_TELEMETRY_DIR=/a/folder: nothing is exported there");
  };
  EXPECT_TRUE(warns({{"NIXL_TELEMETRY_ENABLE", "yes"}}));
  EXPECT_FALSE(warns({})) << "nobody asked for telemetry";
  EXPECT_FALSE(warns({{"NIXL_TELEMETRY_ENABLE", "yes"}, {"NIXL_TELEMETRY_EXPORTER", "NOP"}}));
}

}  // namespace
}  // namespace hawser::compat
