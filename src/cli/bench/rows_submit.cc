// Rows: the caller's time in submit, where a driver moves the bytes.

#include <fmt/format.h>
#include <poll.h>

#include "cli/bench/catalog.h"
#include "cli/bench/load.h"
#include "cli/bench/sampler.h"
#include "cli/quantiles.h"

namespace hawser::cli::bench {
namespace {

constexpr std::uint64_t kBlock = 4096;

Result<Figure> run_submit(Bench& bench, std::uint64_t count) {
  HAWSER_TRY_ASSIGN(Stage* const stage, bench.stage(driven_stage()));
  const LoadShape shape{.block_bytes = kBlock, .count = count, .arena_bytes = bench.options().arena_bytes};
  HAWSER_TRY_ASSIGN(const auto load, Load::prepare(*stage, shape));
  std::vector<std::uint64_t> singles;
  Contest contest{.better = Better::kLower};
  contest.subject = {"hawser", [&](Duration budget) {
                       return stage->measure({{"mode", "serve"}}, [&]() -> Result<double> {
                         std::vector<std::uint64_t> times;
                         const std::int64_t end = now_ns() + budget.count();
                         while (now_ns() < end || times.size() < kSamplesMin) {
                           const std::int64_t start = now_ns();
                           HAWSER_TRY_ASSIGN(Transfer transfer, load->next_plan().submit());
                           times.push_back(static_cast<std::uint64_t>(now_ns() - start));
                           HAWSER_TRY(transfer.wait(std::chrono::seconds(20)));
                         }
                         singles.insert(singles.end(), times.begin(), times.end());
                         return static_cast<double>(median_of(std::move(times))) * 1e-3;
                       });
                     }};
  HAWSER_TRY_ASSIGN(Figure figure, run_contest(contest, bench.contest(*stage, 4)));
  const auto times = quantiles_of(singles);
  figure.p50_ns = times.p50;
  figure.p99_ns = times.p99;
  HAWSER_TRY(load->verify(&figure.verified_bytes));
  return figure;
}

}  // namespace

void add_submit_rows(std::vector<Row>& rows) {
  rows.push_back({"submit.10", "the caller's time in submit: 10 scattered blocks, driver", "µs", Better::kLower,
                  value_at_most(2), [](Bench& bench) { return run_submit(bench, 10); }});
  rows.push_back({"submit.100k", "the caller's time in submit: 100,000 scattered blocks, driver", "µs", Better::kLower,
                  value_at_most(2), [](Bench& bench) { return run_submit(bench, 100'000); }});
}

}  // namespace hawser::cli::bench
