// Rows: processor time of an agent that has a hundred peers and nothing to do.

#include <fmt/format.h>
#include <poll.h>

#include "cli/bench/catalog.h"
#include "cli/bench/cpu.h"
#include "cli/bench/sampler.h"

namespace hawser::cli::bench {
namespace {

constexpr std::size_t kPeers = 100;
constexpr int kSettleMs = 500;

// Both sides are run by drivers; the child's hundred agents by one.
Result<Figure> run_idle(Bench& bench, const std::vector<BackendSpec>& backends) {
  HAWSER_TRY_ASSIGN(Stage* const stage, bench.stage(driven_stage(backends)));
  Json command = control_message("more_agents");
  command["count"] = kPeers;
  command["backends"] = bench::to_json(backends);
  HAWSER_TRY_ASSIGN(const Json answer, stage->ask(command));
  for (const auto& hex : answer.value("cards", std::vector<std::string>())) {
    HAWSER_TRY_ASSIGN(const std::string card, from_hex(hex));
    HAWSER_TRY_ASSIGN(const Peer peer, stage->agent().add_peer(std::string_view(card)));
    HAWSER_TRY(peer.connect(std::chrono::seconds(10)));
  }
  const int quiet_ms = bench.options().quick ? 1000 : 5000;
  double own = 0;
  HAWSER_TRY_ASSIGN(const Json ended, stage->during({{"mode", "rest"}}, [&] {
    ::poll(nullptr, 0, kSettleMs);
    const CpuTime before = cpu_time_now();
    const std::int64_t start = now_ns();
    ::poll(nullptr, 0, quiet_ms);
    own = 100.0 * static_cast<double>((cpu_time_now() - before).ns) / static_cast<double>(now_ns() - start);
    return Status();
  }));
  Figure figure;
  figure.best.value = own;
  figure.note = fmt::format("the other process, with {} agents: {:.2f} %", kPeers + 1,
                            100.0 * static_cast<double>(ended.value("cpu_ns", std::int64_t{0})) /
                                (static_cast<double>(quiet_ms + kSettleMs) * 1e6));
  command["count"] = 0;
  HAWSER_TRY(stage->ask(command).status());
  return figure;
}

}  // namespace

void add_idle_rows(std::vector<Row>& rows) {
  rows.push_back({"idle.cpu100", "processor time with 100 connected peers and nothing to do, by a driver", "%",
                  Better::kLower, value_below(0.5), [](Bench& bench) { return run_idle(bench, {}); }});
  rows.push_back({"idle.cpu100.tcp", "the same over tcp", "%", Better::kLower, value_below(0.5),
                  [](Bench& bench) { return run_idle(bench, {tcp()}); }});
}

}  // namespace hawser::cli::bench
