#include "runtime/world_config.h"

#include <gtest/gtest.h>

#include <map>
#include <string>

namespace hawser::runtime {
namespace {

std::map<std::string, ConfigValue> told(const WorldOptions& options, const WorldFacts& facts = {.costs = "built in"}) {
  std::map<std::string, ConfigValue> all;
  for (const ConfigValue& each : config_of(options, facts)) all[each.name] = each;
  return all;
}

TEST(WorldConfig, SaysWhereEachOptionCameFrom) {
  WorldOptions options;
  options.size = 4;
  options.agent.heartbeat = std::chrono::seconds(1);
  options.agent.peer_timeout = std::chrono::seconds(9);
  options.origins = {{"world.size", "torchrun"}, {"heartbeat", "HAWSER_HEARTBEAT"}, {"peer_timeout", "default"}};
  auto all = told(options);
  EXPECT_EQ(all["world.size"].value, "4");
  EXPECT_EQ(all["world.size"].origin, "torchrun");
  EXPECT_EQ(all["heartbeat"].value, "1s");
  EXPECT_EQ(all["heartbeat"].origin, "HAWSER_HEARTBEAT");
  EXPECT_EQ(all["peer_timeout"].origin, "caller");  // The program changed what was loaded.
  EXPECT_EQ(all["world.recovery"].origin, "default");
  EXPECT_EQ(all["cost_model"].value, "built in");
}

TEST(WorldConfig, WhoToldTheCostModelIsItsOrigin) {
  auto all = told({}, {.costs = "told by rank 2: message_ns = 1850, byte_ns = 3"});
  EXPECT_EQ(all["cost_model"].value, "message_ns = 1850, byte_ns = 3");
  EXPECT_EQ(all["cost_model"].origin, "told by rank 2");
}

TEST(WorldConfig, OfAGuestTheAgentsOptionsAreTheAgents) {
  WorldOptions options;
  options.agent.security = Security::kEncrypt;
  auto all = told(options, {.place = "given peers", .costs = "built in", .agent = "node", .is_guest = true});
  EXPECT_EQ(all["security"].value, "encrypt");
  EXPECT_EQ(all["security"].origin, "agent");
  EXPECT_EQ(all["name"].value, "node");
}

TEST(WorldConfig, APlaceHasNoSecret) {
  WorldOptions options;
  EXPECT_EQ(place_of(options), "this process");
  options.store.get = [](const std::string&, Duration) -> Result<std::string> { return std::string(); };
  EXPECT_EQ(place_of(options), "a store");
  options.seed = "seed@10.0.0.1:7000#VERYSECRET";
  EXPECT_EQ(place_of(options), "seed 10.0.0.1:7000");
}

TEST(WorldConfig, AQuorumThatComesWithThePolicyIsTheDefault) {
  WorldOptions options;
  options.recovery = RecoveryPolicy::kAutomatic;
  options.quorum = Quorum::kMajority;
  EXPECT_EQ(told(options)["world.quorum"].origin, "default");
  options.quorum = Quorum::kNone;
  EXPECT_EQ(told(options)["world.quorum"].origin, "caller");
}

}  // namespace
}  // namespace hawser::runtime
