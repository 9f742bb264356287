// Rows: small transfers and round trips over shared memory.

#include <fmt/format.h>

#include "cli/bench/catalog.h"
#include "cli/bench/load.h"
#include "cli/bench/raw_lines.h"
#include "cli/bench/round_trip.h"
#include "cli/bench/sampler.h"
#include "cli/quantiles.h"

namespace hawser::cli::bench {
namespace {

constexpr std::uint64_t kGroup = 64;  // small things are timed in groups: the clock costs as much as they do

void set_quantiles(Figure& figure, const std::vector<std::uint64_t>& singles) {
  const auto times = quantiles_of(singles);
  figure.p50_ns = times.p50;
  figure.p99_ns = times.p99;
}

// `share` turns one submission's time into the row's unit.
Result<Figure> run_small(Bench& bench, const LoadShape& shape, std::uint64_t group, double share) {
  HAWSER_TRY_ASSIGN(Stage* const stage, bench.stage(default_stage()));
  HAWSER_TRY_ASSIGN(const auto load, Load::prepare(*stage, shape));
  std::vector<std::uint64_t> singles;
  const auto once = [&] { return run_plan(stage->agent(), load->next_plan()); };
  Contest contest{.better = Better::kLower};
  contest.subject = {"hawser", [&](Duration budget) {
                       return stage->measure({{"mode", "serve"}}, [&]() -> Result<double> {
                         HAWSER_TRY(sample_ns(budget / 4, 1, &singles, once).status());
                         HAWSER_TRY_ASSIGN(const double ns, sample_ns(budget, group, nullptr, once));
                         return ns * share;
                       });
                     }};
  HAWSER_TRY_ASSIGN(Figure figure, run_contest(contest, bench.contest(*stage)));
  set_quantiles(figure, singles);
  figure.cold = static_cast<double>(load->cold_ns()) * share;
  HAWSER_TRY(load->verify(&figure.verified_bytes));
  return figure;
}

Result<Figure> run_notify_rtt(Bench& bench) {
  HAWSER_TRY_ASSIGN(Stage* const stage, bench.stage(default_stage()));
  HAWSER_TRY_ASSIGN(const auto load, Load::prepare(*stage, {.block_bytes = 8}));
  std::vector<std::uint64_t> singles;
  Contest contest{.better = Better::kLower, .placed = true};
  contest.subject = {"hawser",
                     [&](Duration budget) { return notify_round_trips(*stage, load->plan(0), budget, singles); }};
  contest.ceilings = {{"one cache line each way", [stage](Duration budget) {
                         return stage->measure({{"mode", "bounce"}}, [&]() -> Result<double> {
                           return sample_ns(budget, kGroup, nullptr,
                                            [&] { return bounce_lines(stage->board().page(), 1); });
                         });
                       }}};
  HAWSER_TRY_ASSIGN(Figure figure, run_contest(contest, bench.contest(*stage)));
  set_quantiles(figure, singles);
  HAWSER_TRY(load->verify(&figure.verified_bytes));
  return figure;
}

// The price of a poll that finds no message. The agent has all default backends and a peer.
Result<Figure> run_poll_idle(Bench& bench) {
  HAWSER_TRY_ASSIGN(Stage* const stage, bench.stage(default_stage()));
  HAWSER_TRY_ASSIGN(const auto load, Load::prepare(*stage, {.block_bytes = 8}));
  std::vector<std::uint64_t> singles;
  const auto once = [&] {
    stage->agent().poll();
    return Status();
  };
  Contest contest{.better = Better::kLower};
  contest.subject = {
      "hawser", [&](Duration budget) -> Result<double> {
        HAWSER_TRY(notify_round_trips(*stage, load->plan(0), budget / 8, singles).status());
        singles.clear();
        return stage->measure({{"mode", "serve"}}, [&] { return sample_ns(budget, kGroup, &singles, once); });
      }};
  HAWSER_TRY_ASSIGN(Figure figure, run_contest(contest, bench.contest(*stage)));
  set_quantiles(figure, singles);
  HAWSER_TRY(load->verify(&figure.verified_bytes));
  return figure;
}

}  // namespace

void add_small_rows(std::vector<Row>& rows) {
  rows.push_back({"shm.small.write8", "8 B write, submit to done", "ns", Better::kLower, value_at_most(150),
                  [](Bench& bench) { return run_small(bench, {.block_bytes = 8}, kGroup, 1); }});
  rows.push_back(
      {"shm.plan1000x8", "each of 1000 × 8 B in one plan", "ns", Better::kLower, value_at_most(35), [](Bench& bench) {
         const LoadShape shape{.block_bytes = 8, .count = 1000, .arena_bytes = 1 << 20};
         return run_small(bench, shape, 1, 1.0 / 1000);
       }});
  rows.push_back({"shm.notify_rtt", "8 B write with notification, answered by one, ÷ cache-line spin", "ns",
                  Better::kLower, ratio_at_most(3), run_notify_rtt});
  rows.push_back({"shm.poll_idle", "one poll that finds nothing, after notifications came", "ns", Better::kLower,
                  value_at_most(100), run_poll_idle});
}

}  // namespace hawser::cli::bench
