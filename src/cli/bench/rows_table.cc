// Rows: preparing. Tables, plans from index arrays, cards of many regions.

#include <fmt/format.h>

#include "base/rng.h"
#include "cli/bench/blocks.h"
#include "cli/bench/catalog.h"
#include "cli/bench/sampler.h"
#include "cli/quantiles.h"

namespace hawser::cli::bench {
namespace {

constexpr std::uint64_t kIndices = 100'000;
constexpr std::uint64_t kTableBlock = 4096;
constexpr std::uint64_t kStrided = 1'000'000;
constexpr std::uint64_t kRegions = 100'000;
constexpr double kWeight = 4;  // these operations take milliseconds

Figure with_quantiles(Figure figure, std::vector<std::uint64_t> singles) {
  const auto times = quantiles_of(std::move(singles));
  figure.p50_ns = times.p50;
  figure.p99_ns = times.p99;
  return figure;
}

// A figure of this process alone: the median time of `op`, times `share`.
template <typename Op>
Result<Figure> time_alone(Bench& bench, double share, Op op) {
  std::vector<std::uint64_t> singles;
  Contest contest{.better = Better::kLower};
  contest.subject = {"hawser", [&](Duration budget) -> Result<double> {
                       HAWSER_TRY_ASSIGN(const double ns, sample_ns(budget, 1, &singles, op));
                       return ns * share;
                     }};
  HAWSER_TRY_ASSIGN(Figure figure, run_contest(contest, bench.contest_alone(kWeight)));
  return with_quantiles(std::move(figure), std::move(singles));
}

Result<Figure> run_plan_index(Bench& bench) {
  HAWSER_TRY_ASSIGN(Stage* const stage, bench.stage(default_stage()));
  const std::uint64_t size = bench.options().arena_bytes;
  const std::uint64_t blocks = size / kTableBlock, count = std::min(kIndices, blocks);
  HAWSER_TRY_ASSIGN(const Region region, stage->agent().allocate({.name = "index", .size = size}));
  HAWSER_TRY(stage->remote_memory("index", size, MemoryKind::kAllocated).status());
  const RangeTable here = region.table(kTableBlock), there = stage->peer().table("index", kTableBlock);
  const auto local = BlockList{kTableBlock, blocks, count, 0, 1}.indices();
  const auto remote = BlockList{kTableBlock, blocks, count, 0, 2}.indices();
  auto figure = time_alone(bench, 1.0 / static_cast<double>(count), [&] {
    return stage->agent().plan_write(stage->peer(), here, local, there, remote).status();
  });
  HAWSER_TRY(stage->forget_memory("index"));
  if (figure && count < kIndices) figure->note = fmt::format("{} blocks only", count);
  return figure;
}

Result<Agent> lone_agent(const Bench& bench, std::string name) {
  HAWSER_TRY_ASSIGN(AgentOptions options, bench_agent_options(bench.options().config, {}, std::move(name), false));
  return Agent::open(std::move(options));
}

// Strides, so that a table cannot be one range.
constexpr StridedRange kManyBlocks{.offset = 0, .size = 64, .stride = 80, .count = kStrided};

Result<Figure> run_table_build(Bench& bench) {
  HAWSER_TRY_ASSIGN(Agent agent, lone_agent(bench, "bench-table"));
  HAWSER_TRY_ASSIGN(const Region region, agent.allocate({.name = "table", .size = kManyBlocks.stride * kStrided}));
  return time_alone(bench, 1e-6, [&] { return region.table(kManyBlocks).status(); });
}

Result<Figure> run_table_bytes(Bench& bench) {
  HAWSER_TRY_ASSIGN(Agent agent, lone_agent(bench, "bench-table"));
  HAWSER_TRY_ASSIGN(const Region region, agent.allocate({.name = "table", .size = kManyBlocks.stride * kStrided}));
  HAWSER_TRY_ASSIGN(const std::string bytes, region.table(kManyBlocks).encode());
  Figure figure;
  figure.best.value = static_cast<double>(bytes.size());
  return figure;
}

// An agent with very many regions of one page each, every one with its own random key.
struct Crowd {
  std::vector<std::byte> memory;
  Agent agent;
  std::vector<Region> regions;
  std::string card;
};

Result<std::unique_ptr<Crowd>> make_crowd(Bench& bench) {
  bench.drop_stage();
  auto crowd = std::make_unique<Crowd>();
  crowd->memory.resize(kRegions * 64);
  HAWSER_TRY_ASSIGN(crowd->agent, lone_agent(bench, "bench-crowd"));
  for (std::uint64_t i = 0; i < kRegions; ++i) {
    HAWSER_TRY_ASSIGN(Region region, crowd->agent.add_region({.bytes = std::span(crowd->memory).subspan(i * 64, 64)}));
    crowd->regions.push_back(std::move(region));
  }
  HAWSER_TRY_ASSIGN(crowd->card, crowd->agent.card());
  return crowd;
}

Result<Figure> run_card_bytes(Bench& bench) {
  HAWSER_TRY_ASSIGN(const auto crowd, make_crowd(bench));
  Figure figure;
  figure.best.value = static_cast<double>(crowd->card.size()) / kRegions;
  return figure;
}

Result<Figure> run_card_load(Bench& bench) {
  HAWSER_TRY_ASSIGN(const auto crowd, make_crowd(bench));
  std::vector<std::uint64_t> times;
  for (std::size_t i = 0; i < 2 * bench.options().rounds + 1; ++i) {
    HAWSER_TRY_ASSIGN(Agent reader, lone_agent(bench, "bench-reader"));
    const std::int64_t start = now_ns();
    HAWSER_TRY(reader.add_peer(std::string_view(crowd->card)).status());
    times.push_back(static_cast<std::uint64_t>(now_ns() - start));
  }
  Figure figure;
  figure.cold = static_cast<double>(times.front()) * 1e-6;
  figure.best = {.value = static_cast<double>(quantiles_of(times).p50) * 1e-6, .rounds = times.size()};
  return with_quantiles(std::move(figure), std::move(times));
}

}  // namespace

void add_table_rows(std::vector<Row>& rows) {
  rows.push_back({"plan.index100k", "plan from two index arrays over tables, each of 100,000 blocks", "ns",
                  Better::kLower, value_at_most(20), run_plan_index});
  rows.push_back({"table.build1m", "table of 1,000,000 strided blocks: build", "ms", Better::kLower, value_at_most(1),
                  run_table_build});
  rows.push_back({"table.bytes1m", "table of 1,000,000 strided blocks: bytes in a message", "B", Better::kLower,
                  value_at_most(1024), run_table_bytes});
  rows.push_back({"card.bytes100k", "card of 100,000 regions, bytes for each", "B", Better::kLower, value_at_most(32),
                  run_card_bytes});
  rows.push_back({"card.load100k", "card of 100,000 regions: time to load", "ms", Better::kLower, value_at_most(10),
                  run_card_load});
}

}  // namespace hawser::cli::bench
