// Rows: a round trip of 8 bytes while bulk runs to the same peer, against the same when idle.

#include <fmt/format.h>

#include "cli/bench/catalog.h"
#include "cli/bench/flow.h"
#include "cli/bench/round_trip.h"
#include "cli/quantiles.h"

namespace hawser::cli::bench {
namespace {

constexpr std::uint64_t kBulkBytes = 256u << 20;  // of one transfer; four of them are in flight: 1 GiB
constexpr std::size_t kBulkInFlight = 4;

double p99_us(const std::vector<std::uint64_t>& times) { return static_cast<double>(quantiles_of(times).p99) * 1e-3; }

// Round trips with bulk always in flight.
Status run_loaded(Stage& stage, const Plan& ping, Load& bulk, Duration budget, std::vector<std::uint64_t>& times) {
  Flow flow(stage.agent(), bulk, kBulkInFlight);
  const SubmitOptions options{.notify = "ping", .priority = Priority::kCritical};
  Notification room;
  const std::int64_t end = now_ns() + budget.count();
  while (now_ns() < end || times.size() < 100) {
    HAWSER_TRY(flow.step(nullptr).status());
    const std::int64_t start = now_ns();
    HAWSER_TRY(notify_round_trip(stage.agent(), ping, room, options));
    times.push_back(static_cast<std::uint64_t>(now_ns() - start));
  }
  return flow.drain();
}

Result<Figure> run_mixed(Bench& bench, const StageSpec& spec) {
  HAWSER_TRY_ASSIGN(Stage* const stage, bench.stage(spec));
  const std::uint64_t bulk_bytes = std::min(kBulkBytes, bench.options().arena_bytes / 2);
  HAWSER_TRY_ASSIGN(const auto bulk, Load::prepare(*stage, {.block_bytes = bulk_bytes}));
  HAWSER_TRY_ASSIGN(const Ping small, make_ping(*stage));
  std::vector<std::uint64_t> all;
  Contest contest{.better = Better::kLower, .placed = true};
  contest.subject = {"hawser", [&](Duration budget) {
                       return stage->measure({{"mode", "echo"}}, [&]() -> Result<double> {
                         std::vector<std::uint64_t> times;
                         HAWSER_TRY(run_loaded(*stage, small.plan, *bulk, budget, times));
                         all.insert(all.end(), times.begin(), times.end());
                         return p99_us(times);
                       });
                     }};
  contest.ceilings = {{"p99 of the same when idle", [&](Duration budget) -> Result<double> {
                         std::vector<std::uint64_t> times;
                         HAWSER_TRY(notify_round_trips(*stage, small.plan, budget, times).status());
                         return p99_us(times);
                       }}};
  HAWSER_TRY_ASSIGN(Figure figure, run_contest(contest, bench.contest(*stage, 6)));
  const auto times = quantiles_of(all);
  figure.p50_ns = times.p50;
  figure.p99_ns = times.p99;
  HAWSER_TRY(bulk->verify(&figure.verified_bytes));
  return figure;
}

}  // namespace

void add_mixed_rows(std::vector<Row>& rows) {
  rows.push_back({"mixed.rtt_under_bulk.shm", "p99 of an 8 B round trip while 1 GiB runs, ÷ idle p99", "µs",
                  Better::kLower, ratio_at_most(5), [](Bench& bench) { return run_mixed(bench, default_stage()); }});
  rows.push_back({"mixed.rtt_under_bulk.tcp", "the same over tcp", "µs", Better::kLower, ratio_at_most(5),
                  [](Bench& bench) { return run_mixed(bench, tcp_stage()); }});
}

}  // namespace hawser::cli::bench
