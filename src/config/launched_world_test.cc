#include <gtest/gtest.h>
#include <hawser/config.h>
#include <hawser/world.h>

namespace hawser {
namespace {

TEST(LaunchedWorld, IsThatOfTheLauncher) {
  const Result<WorldOptions> options = launched_world({.environment = {{"HAWSER_WORLD_RANK", "2"},
                                                                       {"HAWSER_WORLD_SIZE", "3"},
                                                                       {"HAWSER_SEED", "seed@10.0.0.1:7000#ticket"},
                                                                       {"HAWSER_TOPOLOGY", "regular:2"},
                                                                       {"HAWSER_COST_MODEL", "/etc/costs.toml"},
                                                                       {"HAWSER_DEADLINE", "7s"}}});
  ASSERT_TRUE(options) << options.error().to_string();
  EXPECT_EQ(options->rank, 2u);
  EXPECT_EQ(options->size, 3u);
  EXPECT_EQ(options->seed, "seed@10.0.0.1:7000#ticket");
  EXPECT_EQ(options->agent.default_deadline, std::chrono::seconds(7));
  EXPECT_EQ(options->cost_model, "/etc/costs.toml");
  EXPECT_EQ(options->name, "world");
  EXPECT_EQ(options->topology, Topology::regular(2));
}

TEST(LaunchedWorld, EachRunHasAWorldOfItsOwn) {
  const auto name_of = [](std::string job) {
    const auto options = launched_world(
        {.environment = {{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "1"}, {"SLURM_JOB_ID", job}, {"SLURM_STEP_ID", "0"}}});
    return options ? options->name : options.error().to_string();
  };
  EXPECT_NE(name_of("17"), name_of("18"));
  EXPECT_EQ(name_of("17").substr(0, 6), "world.");
}

TEST(LaunchedWorld, UnderTorchrunItMeetsBehindTheMastersPort) {
  ConfigSources::Texts torch = {{"RANK", "1"},
                                {"WORLD_SIZE", "2"},
                                {"MASTER_ADDR", "node1"},
                                {"MASTER_PORT", "29500"},
                                {"TORCHELASTIC_RUN_ID", "job"},
                                {"TORCHELASTIC_RESTART_COUNT", "3"},
                                {"HAWSER_TOKEN_FILE", "/run/token"}};
  const WorldOptions options = launched_world({.environment = torch}).value();
  EXPECT_EQ(options.seed, "node1:29501");
  EXPECT_TRUE(options.serves_seed);
  EXPECT_EQ(options.token_file, "/run/token");
  EXPECT_EQ(options.name, "world.job.3");
  EXPECT_EQ(options.origins.at("world.rank"), "torchrun");
  torch["HAWSER_SEED"] = "seed@10.0.0.1:7000#ticket";
  EXPECT_FALSE(launched_world({.environment = torch}).value().serves_seed);
}

TEST(LaunchedWorld, WithoutALauncherOrWithAWrongOptionThereIsNone) {
  EXPECT_EQ(launched_world({}).error().code(), Code::kNotFound);
  EXPECT_EQ(launched_world(
                {.environment = {{"HAWSER_WORLD_RANK", "0"}, {"HAWSER_WORLD_SIZE", "1"}, {"HAWSER_DEADLINE", "soon"}}})
                .error()
                .code(),
            Code::kInvalid);
}

TEST(LaunchedWorld, AWrongTopologySaysWhereItIsSet) {
  EXPECT_EQ(launched_topology({}).value(), Topology());
  const Result<Topology> wrong = launched_topology({.environment = {{"HAWSER_TOPOLOGY", "cube"}}});
  EXPECT_EQ(wrong.error().code(), Code::kInvalid);
  EXPECT_NE(wrong.error().to_string().find("HAWSER_TOPOLOGY"), std::string::npos) << wrong.error().to_string();
}

TEST(LaunchedTopology, TakesNexarsNameWhereTheOwnOneIsNotSet) {
  const auto told = [](ConfigSources::Texts environment) { return launched_topology({.environment = environment}); };
  EXPECT_EQ(told({{"NEXAR_TOPOLOGY", "full_mesh"}}).value(), Topology());
  EXPECT_EQ(told({{"NEXAR_TOPOLOGY", "hypercube"}}).value(), parse_topology("hypercube").value());
  EXPECT_EQ(told({{"NEXAR_TOPOLOGY", "k_regular:4"}}).value(), parse_topology("regular:4").value());
  EXPECT_EQ(told({{"NEXAR_TOPOLOGY", "hypercube"}, {"HAWSER_TOPOLOGY", "regular:2"}}).value(),
            parse_topology("regular:2").value());
  const Result<Topology> wrong = told({{"NEXAR_TOPOLOGY", "k_regular:x"}});
  EXPECT_EQ(wrong.error().code(), Code::kInvalid);
  EXPECT_NE(wrong.error().to_string().find("NEXAR_TOPOLOGY"), std::string::npos) << wrong.error().to_string();
}

}  // namespace
}  // namespace hawser
