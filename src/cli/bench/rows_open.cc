// Rows: beginnings. Opening an agent; the first write to a peer that was never met.

#include <fmt/format.h>

#include "cli/bench/catalog.h"
#include "cli/bench/cores.h"
#include "cli/bench/sampler.h"
#include "cli/bench/stage.h"
#include "cli/quantiles.h"

namespace hawser::cli::bench {
namespace {

constexpr std::size_t kNewPeers = 16;

Figure median_figure(const std::vector<std::uint64_t>& times, double share) {
  Figure figure;
  const Quantiles all = quantiles_of(times);
  figure.best = {.value = static_cast<double>(all.p50) * share, .rounds = times.size()};
  figure.p50_ns = all.p50;
  figure.p99_ns = all.p99;
  if (!times.empty()) figure.cold = static_cast<double>(times.front()) * share;
  return figure;
}

Result<Figure> run_open(Bench& bench) {
  bench.drop_stage();
  std::vector<std::uint64_t> times;
  for (std::size_t i = 0; i < 4 * bench.options().rounds; ++i) {
    HAWSER_TRY_ASSIGN(AgentOptions options, bench_agent_options(bench.options().config, {}, "bench-open", false));
    const std::int64_t start = now_ns();
    HAWSER_TRY_ASSIGN(Agent agent, Agent::open(std::move(options)));
    times.push_back(static_cast<std::uint64_t>(now_ns() - start));
    HAWSER_TRY(agent.close(std::chrono::seconds(1)));
  }
  return median_figure(times, 1e-6);
}

// From the card's bytes to the first 8 bytes in the peer's memory.
Status first_write(Agent& agent, const Region& source, std::string_view card) {
  HAWSER_TRY_ASSIGN(const Peer peer, agent.add_peer(card));
  const LocalRange from = source.range(0, 8);
  const RemoteRange to = peer.range("word", 0, 8);
  HAWSER_TRY_ASSIGN(const Plan plan, agent.plan_write(peer, {&from, 1}, {&to, 1}));
  return run_plan(agent, plan);
}

Result<std::vector<std::string>> new_peers(Stage& stage, std::size_t count) {
  Json command = control_message("more_agents");
  command["count"] = count;
  command["backends"] = bench::to_json(stage.spec().backends);
  HAWSER_TRY_ASSIGN(const Json answer, stage.ask(command));
  std::vector<std::string> cards;
  for (const auto& hex : answer.value("cards", std::vector<std::string>())) {
    HAWSER_TRY_ASSIGN(std::string card, from_hex(hex));
    cards.push_back(std::move(card));
  }
  return cards;
}

Result<Figure> run_first_write(Bench& bench, const StageSpec& spec) {
  HAWSER_TRY_ASSIGN(Stage* const stage, bench.stage(spec));
  HAWSER_TRY_ASSIGN(const Region source, stage->agent().allocate({.name = "first", .size = 4096}));
  std::vector<std::uint64_t> times;
  for (std::size_t round = 0; round < bench.options().rounds; ++round) {
    HAWSER_TRY_ASSIGN(const auto cards, new_peers(*stage, kNewPeers));
    const auto meet_all = [&]() -> Status {
      for (const std::string& card : cards) {
        const std::int64_t start = now_ns();
        HAWSER_TRY(first_write(stage->agent(), source, card));
        times.push_back(static_cast<std::uint64_t>(now_ns() - start));
      }
      return Status();
    };
    HAWSER_TRY(stage->during({{"mode", "serve"}}, meet_all).status());
    HAWSER_TRY(new_peers(*stage, 0).status());
  }
  return median_figure(times, 1e-6);
}

}  // namespace

void add_open_rows(std::vector<Row>& rows) {
  rows.push_back({"open.agent", "opening an agent in the default configuration", "ms", Better::kLower,
                  value_at_most(10), run_open});
  rows.push_back({"first.write.shm", "card, plan and first 8 B write to a new peer", "ms", Better::kLower,
                  value_at_most(1), [](Bench& bench) { return run_first_write(bench, default_stage()); }});
  rows.push_back({"first.write.tcp", "the same over tcp", "ms", Better::kLower, value_at_most(5),
                  [](Bench& bench) { return run_first_write(bench, tcp_stage()); }});
}

}  // namespace hawser::cli::bench
