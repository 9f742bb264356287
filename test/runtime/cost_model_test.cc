// The cost model of worlds: who tells it, and that all ranks choose by it. And algorithms by name.

#include <gtest/gtest.h>

#include <hawser/world.h>

#include <array>
#include <chrono>
#include <cstdint>
#include <fstream>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "../must.h"
#include "base/test_folder.h"
#include "local_worlds.h"
#include "runtime/cost_file.h"

namespace hawser {
namespace {

using namespace std::chrono_literals;

/// Messages cost so much, and all the rest is as built in.
std::string file_with(double message_ns, double board_ns) {
  runtime::CostFile file;
  const schedule::CostModel built_in;
  for (std::size_t i = 0; i < 5; ++i) {
    const double value = built_in.*schedule::kCostFields[i].value;
    file.costs[i] = {.value = value, .low = value, .high = value};
  }
  file.costs[0] = {.value = message_ns, .low = message_ns, .high = message_ns};
  file.costs[4] = {.value = board_ns, .low = board_ns, .high = board_ns};
  return runtime::to_toml(file);
}

class CostModelTest : public LocalWorlds {
 protected:
  std::string written(const std::string& name, const std::string& text) const {
    std::ofstream(place_.path() + "/" + name) << text;
    return place_.path() + "/" + name;
  }
  /// One rank for each, which is given that file, or none where it is empty.
  std::vector<Result<World>> open_each(const std::vector<std::string>& files) {
    const base::TestFolder meeting("/tmp/hawser-cost-meeting");
    const std::shared_ptr<Directory> directory = must(file_directory(meeting.path()));
    std::vector<std::optional<Result<World>>> opened(files.size());
    on_all(files.size(), [&](std::size_t rank) {
      WorldOptions options{.size = static_cast<std::uint32_t>(files.size()), .rank = static_cast<std::uint32_t>(rank)};
      options.agent.backends = {{.name = "shm"}};
      options.agent.directory = directory;
      options.cost_model = files[rank];
      options.join_timeout = 20s;
      options.timeout = 60s;
      opened[rank].emplace(World::open(std::move(options)));
    });
    std::vector<Result<World>> all;
    for (auto& each : opened) all.push_back(std::move(*each));
    return all;
  }
  static std::string_view barrier_of(World& world) {
    Request barrier = world.ibarrier();
    EXPECT_TRUE(barrier.wait(30s).ok()) << barrier.status().to_string();
    return barrier.algorithm();
  }

  base::TestFolder place_{"/tmp/hawser-costs"};
};

TEST_F(CostModelTest, IsBuiltInWhereNobodyHasAFile) {
  open(2);
  EXPECT_EQ(worlds_[0].cost_model(), "built in");
  std::string_view last;
  on_all([&](std::size_t rank) {
    std::string_view algorithm;
    for (int i = 0; i < kTriesMax && algorithm != "boards"; ++i) algorithm = barrier_of(worlds_[rank]);
    if (rank == 0) last = algorithm;
  });
  EXPECT_EQ(last, "boards");
}

TEST_F(CostModelTest, OneRankThatHasAFileTellsAllAndGroupsAndShrunkWorldsInheritIt) {
  // A board costs a second for each rank, so no barrier goes by boards.
  std::vector<Result<World>> worlds = open_each({"", written("m.toml", file_with(1'234, 1e9)), ""});
  for (const Result<World>& world : worlds) {
    ASSERT_TRUE(world.has_value()) << world.error().to_string();
    EXPECT_TRUE(world->cost_model().starts_with("told by rank 1: message_ns = 1234, ")) << world->cost_model();
    EXPECT_EQ(world->costs().front(), (std::pair<std::string, double>("message_ns", 1'234)));
  }
  on_all(worlds.size(), [&](std::size_t rank) {
    World& world = *worlds[rank];
    for (int i = 0; i < 20; ++i) EXPECT_EQ(barrier_of(world), "dissemination");
    {
      World halves = must(world.split(rank == 0 ? 0U : 1U, 0)), all = must(world.duplicate());
      EXPECT_EQ(halves.cost_model(), world.cost_model());
      for (int i = 0; i < 20; ++i) EXPECT_EQ(barrier_of(all), "dissemination");
    }
    World next = must(world.shrink());
    EXPECT_EQ(next.cost_model(), world.cost_model());
    for (int i = 0; i < 20; ++i) EXPECT_EQ(barrier_of(next), "dissemination");
    EXPECT_TRUE(next.shutdown(10s).ok());
  });
}

TEST_F(CostModelTest, RanksThatAreGivenDifferentOnesAllHearWhichDiffers) {
  const std::string one = written("one.toml", file_with(1'000, 250)),
                    other = written("other.toml", file_with(1'001, 250));
  for (const auto& files : {std::vector<std::string>{one, "", other}, {"", one, one, other, ""}}) {
    const std::vector<Result<World>> worlds = open_each(files);
    const std::string first = files[0].empty() ? "rank 1" : "rank 0", last = files[0].empty() ? "rank 3" : "rank 2";
    for (const Result<World>& world : worlds) {
      ASSERT_FALSE(world.has_value());
      EXPECT_EQ(world.error().code(), Code::kInvalid) << world.error().to_string();
      const std::string text = world.error().to_string();
      EXPECT_NE(text.find(last + " was given another cost model than " + first + ": message_ns is 1001 there"),
                std::string::npos)
          << text;
      EXPECT_NE(text.find("give cost_model"), std::string::npos) << text;
    }
  }
}

TEST_F(CostModelTest, TheSameValuesInTwoFilesGoTogether) {
  const std::string text = file_with(1'000, 250);
  for (const Result<World>& world : open_each({written("one.toml", text), written("other.toml", "# Mine\n" + text)})) {
    ASSERT_TRUE(world.has_value()) << world.error().to_string();
    EXPECT_TRUE(world->cost_model().starts_with("told by rank 0"));
  }
}

TEST_F(CostModelTest, AFileThatIsNotThereOrWrongIsAnError) {
  WorldOptions options;
  options.cost_model = place_.path() + "/none.toml";
  EXPECT_EQ(World::local(2, options).error().code(), Code::kNotFound);
  options.cost_model = written("bad.toml", "schema = 7");
  const auto worlds = World::local(2, options);
  ASSERT_FALSE(worlds.has_value());
  EXPECT_EQ(worlds.error().code(), Code::kInvalid);
  EXPECT_NE(worlds.error().to_string().find("bad.toml:1: its schema is not"), std::string::npos);
}

TEST_F(CostModelTest, ACallGoesByTheAlgorithmThatItNames) {
  open(4);
  on_all([&](std::size_t rank) {
    World& world = worlds_[rank];
    std::vector<std::uint64_t> numbers(100, rank), out(100);
    for (const std::string_view name : {"doubling", "circulant", "fixed tree", "doubling"}) {
      Request request = world.iall_reduce(numbers.data(), out.data(), numbers.size(), DataType::kUInt64, ReduceOp::kSum,
                                          {.algorithm = name});
      ASSERT_TRUE(request.wait(30s).ok()) << request.status().to_string();
      EXPECT_EQ(request.algorithm(), name);
      EXPECT_EQ(out, std::vector<std::uint64_t>(100, 6));
    }
    std::string_view last;
    for (int i = 0; i < kTriesMax && last != "boards"; ++i) {
      Request request = world.iall_reduce(numbers.data(), out.data(), numbers.size(), DataType::kUInt64, ReduceOp::kSum,
                                          {.algorithm = "boards"});
      ASSERT_TRUE(request.wait(30s).ok());
      last = request.algorithm();
      EXPECT_EQ(out, std::vector<std::uint64_t>(100, 6));
    }
    EXPECT_EQ(last, "boards");
  });
}

TEST_F(CostModelTest, AnAlgorithmThatCannotDoTheCallIsRefused) {
  open(2);
  std::array<std::uint64_t, 1> number = {1};
  for (const std::string_view name : {"tree", "two levels", "mapped ", "no such"}) {
    Request request =
        worlds_[0].iall_reduce(number.data(), number.data(), 1, DataType::kUInt64, ReduceOp::kSum, {.algorithm = name});
    const Status status = request.wait(1s);
    EXPECT_EQ(status.code(), Code::kInvalid) << name;
    EXPECT_NE(status.to_string().find("the algorithm '" + std::string(name) + "' cannot do this call"),
              std::string::npos)
        << status.to_string();
    EXPECT_NE(status.to_string().find("doubling"), std::string::npos) << status.to_string();
    EXPECT_EQ(request.algorithm(), "");
  }
  const Request message = worlds_[0].isend(std::as_bytes(std::span(number)), 1, 1);
  EXPECT_EQ(message.algorithm(), "");
}

TEST_F(CostModelTest, RanksThatNameDifferentAlgorithmsDiffer) {
  open(2);
  on_all([&](std::size_t rank) {
    std::uint64_t number = 1;
    const Status status = worlds_[rank].all_reduce(&number, &number, 1, DataType::kUInt64, ReduceOp::kSum,
                                                   {.algorithm = rank == 0 ? "doubling" : "circulant"});
    EXPECT_EQ(status.code(), Code::kInvalid) << status.to_string();
  });
}

}  // namespace
}  // namespace hawser
