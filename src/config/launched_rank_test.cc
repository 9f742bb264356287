#include <gtest/gtest.h>

#include <hawser/config.h>

namespace hawser {
namespace {

/// The variables of each launcher, as recorded from it.
TEST(LaunchedRank, OfEachLauncher) {
  const std::vector<std::pair<std::string, ConfigSources::Texts>> recorded = {
      {"hawser run",
       {{"HAWSER_WORLD_RANK", "2"},
        {"HAWSER_WORLD_SIZE", "4"},
        {"HAWSER_WORLD_LOCAL_RANK", "1"},
        {"HAWSER_WORLD_NAME", "7.0"}}},
      {"Open MPI",
       {{"OMPI_COMM_WORLD_RANK", "2"},
        {"OMPI_COMM_WORLD_SIZE", "4"},
        {"OMPI_COMM_WORLD_LOCAL_RANK", "1"},
        {"PMIX_NAMESPACE", "7.0"}}},
      {"MPICH", {{"PMI_RANK", "2"}, {"PMI_SIZE", "4"}, {"MPI_LOCALRANKID", "1"}, {"PMI_KVS", "7.0"}}},
      {"torchrun",
       {{"RANK", "2"},
        {"WORLD_SIZE", "4"},
        {"LOCAL_RANK", "1"},
        {"TORCHELASTIC_RUN_ID", "7"},
        {"TORCHELASTIC_RESTART_COUNT", "0"}}},
      {"Slurm",
       {{"SLURM_PROCID", "2"},
        {"SLURM_NTASKS", "4"},
        {"SLURM_LOCALID", "1"},
        {"SLURM_JOB_ID", "7"},
        {"SLURM_STEP_ID", "0"}}}};
  for (const auto& [launcher, environment] : recorded) {
    const Result<LaunchedRank> rank = launched_rank({.environment = environment});
    ASSERT_TRUE(rank.has_value()) << launcher << ": " << rank.error().to_string();
    EXPECT_EQ(rank->launcher, launcher);
    EXPECT_EQ(rank->rank, 2U);
    EXPECT_EQ(rank->size, 4U);
    EXPECT_EQ(rank->local_rank, 1U);
    EXPECT_EQ(rank->run, "7.0");
  }
}

TEST(LaunchedRank, TheNearestLauncherCounts) {
  const Result<LaunchedRank> rank = launched_rank({.environment = {{"SLURM_PROCID", "0"},
                                                                   {"SLURM_NTASKS", "1"},
                                                                   {"OMPI_COMM_WORLD_RANK", "1"},
                                                                   {"OMPI_COMM_WORLD_SIZE", "2"}}});
  ASSERT_TRUE(rank.has_value());
  EXPECT_EQ(rank->launcher, "Open MPI");
  EXPECT_EQ(rank->local_rank, 0U);
}

TEST(LaunchedRank, PmixAloneNeedsTheSize) {
  ConfigSources::Texts alone = {{"PMIX_RANK", "2"}, {"PMIX_NAMESPACE", "prterun-7"}};
  const Status unknown = launched_rank({.environment = alone}).error();
  EXPECT_EQ(unknown.code(), Code::kInvalid);
  EXPECT_NE(unknown.to_string().find("HAWSER_WORLD_SIZE"), std::string::npos) << unknown.to_string();
  alone["HAWSER_WORLD_SIZE"] = "4";
  const Result<LaunchedRank> rank = launched_rank({.environment = alone});
  ASSERT_TRUE(rank.has_value()) << rank.error().to_string();
  EXPECT_EQ(rank->launcher, "PMIx");
  EXPECT_EQ(rank->rank, 2U);
  EXPECT_EQ(rank->size, 4U);
  EXPECT_EQ(rank->run, "prterun-7");
}

TEST(LaunchedRank, PmixBelowSlurmMeansTheSameRank) {
  // `srun --mpi=pmix`.
  ConfigSources::Texts slurm = {
      {"SLURM_PROCID", "2"}, {"SLURM_NTASKS", "4"}, {"SLURM_JOB_ID", "7"}, {"PMIX_RANK", "2"}};
  const Result<LaunchedRank> rank = launched_rank({.environment = slurm});
  ASSERT_TRUE(rank.has_value()) << rank.error().to_string();
  EXPECT_EQ(rank->launcher, "Slurm");
  // prterun in a batch script: each process inherits the script's own number.
  slurm["SLURM_PROCID"] = "0";
  const Status differs = launched_rank({.environment = slurm}).error();
  EXPECT_EQ(differs.code(), Code::kInvalid);
  EXPECT_NE(differs.to_string().find("PMIX_RANK = 2 and SLURM_PROCID = 0 differ"), std::string::npos);
  slurm["HAWSER_WORLD_SIZE"] = "4";
  EXPECT_EQ(launched_rank({.environment = slurm}).value().launcher, "PMIx");
}

TEST(LaunchedRank, TorchrunTellsWhereToMeet) {
  ConfigSources::Texts torch = {{"MASTER_ADDR", "node1"}, {"MASTER_PORT", "29500"}};
  EXPECT_EQ(launched_meeting({.environment = torch}), "node1:29501");
  torch["MASTER_ADDR"] = "fe80::1";
  EXPECT_EQ(launched_meeting({.environment = torch}), "[fe80::1]:29501");
  for (const char* const wrong : {"", "port", "65535", "65536", "-1"}) {
    torch["MASTER_PORT"] = wrong;
    EXPECT_EQ(launched_meeting({.environment = torch}), "") << wrong;
  }
}

TEST(LaunchedRank, APodOfAnIndexedJobIsToldTheSize) {
  ConfigSources::Texts pod = {{"JOB_COMPLETION_INDEX", "2"}};
  EXPECT_EQ(launched_rank({.environment = pod}).error().code(), Code::kNotFound) << "it may be a job of something else";
  pod["HAWSER_WORLD_SIZE"] = "4";
  const Result<LaunchedRank> rank = launched_rank({.environment = pod});
  ASSERT_TRUE(rank.has_value()) << rank.error().to_string();
  EXPECT_EQ(rank->launcher, "Kubernetes");
  EXPECT_EQ(rank->rank, 2U);
  EXPECT_EQ(rank->size, 4U);
  pod["RANK"] = "1";
  pod["WORLD_SIZE"] = "2";
  EXPECT_EQ(launched_rank({.environment = pod})->launcher, "torchrun") << "it runs in the pod";
  pod = {{"JOB_COMPLETION_INDEX", "4"}, {"HAWSER_WORLD_SIZE", "4"}};
  EXPECT_EQ(launched_rank({.environment = pod}).error().code(), Code::kInvalid);
}

TEST(LaunchedRank, WhatIsWrongIsNamed) {
  EXPECT_EQ(launched_rank({}).error().code(), Code::kNotFound);
  const auto error = [](ConfigSources::Texts environment) {
    return launched_rank({.environment = std::move(environment)}).error();
  };
  EXPECT_EQ(error({{"RANK", "one"}, {"WORLD_SIZE", "2"}}).code(), Code::kInvalid);
  EXPECT_NE(error({{"RANK", "one"}, {"WORLD_SIZE", "2"}}).to_string().find("RANK = 'one'"), std::string::npos);
  EXPECT_NE(error({{"RANK", "1"}}).to_string().find("WORLD_SIZE"), std::string::npos);
  EXPECT_NE(error({{"RANK", "2"}, {"WORLD_SIZE", "2"}}).to_string().find("ranks 0 to 1"), std::string::npos);
  EXPECT_EQ(error({{"RANK", "-1"}, {"WORLD_SIZE", "2"}}).code(), Code::kInvalid);
  EXPECT_EQ(error({{"RANK", "1"}, {"WORLD_SIZE", "2"}, {"LOCAL_RANK", "1x"}}).code(), Code::kInvalid);
}

TEST(LaunchedRank, ASeedIsToldWithOrWithoutALauncher) {
  EXPECT_EQ(launched_seed({.environment = {{"HAWSER_SEED", "seed@10.0.0.1:7000#ticket"}}}),
            "seed@10.0.0.1:7000#ticket");
  EXPECT_EQ(launched_token_file({.environment = {{"HAWSER_SEED", "10.0.0.1:7000"}, {"HAWSER_TOKEN_FILE", "/t"}}}),
            "/t");
  EXPECT_EQ(launched_token_file({.environment = {{"HAWSER_SEED", "10.0.0.1:7000#x"}, {"HAWSER_TOKEN_FILE", "/t"}}}),
            "");
  EXPECT_EQ(launched_token_file({.environment = {{"HAWSER_TOKEN_FILE", "/t"}}}), "")
      << "there is no seed to prove it to";
  EXPECT_EQ(launched_seed({.environment = {{"HAWSER_WORLD_RANK", "0"}}}), "");
}

TEST(LaunchedRank, ItsVariablesAreNoOptions) {
  const Result<LoadedConfig> config = load_config(
      {.environment = {
           {"HAWSER_WORLD_RANK", "0"}, {"HAWSER_WORLD_SIZE", "1"}, {"HAWSER_SEED", "s"}, {"HAWSER_TOPOLOGY", "full"}}});
  ASSERT_TRUE(config.has_value());
  EXPECT_TRUE(config->warnings.empty()) << config->warnings.front();
}

}  // namespace
}  // namespace hawser
