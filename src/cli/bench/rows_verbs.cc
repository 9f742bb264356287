// Rows: the backend verbs against a raw loop of posts on two queue pairs, over the same devices.

#include <fmt/format.h>

#include <algorithm>
#include <functional>

#include "backend/verbs/queues/raw_loop.h"
#include "cli/bench/catalog.h"
#include "cli/bench/flow.h"
#include "cli/bench/pong.h"
#include "cli/bench/round_trip.h"
#include "cli/bench/verbs_stage.h"
#include "cli/quantiles.h"
#include "cli/units.h"

namespace hawser::cli::bench {
namespace {

using backend::verbs::RawLoop;
using backend::verbs::RawLoopDevices;
using backend::verbs::RawLoopWay;

constexpr std::uint64_t kUnderWayBytes = 16u << 20;  // of a stream of transfers, at least ...
constexpr std::uint64_t kTransfersMin = 2, kTransfersMax = 16;
constexpr std::uint64_t kRawBytes = 16u << 20;  // memory of the raw loop at each end, at least

constexpr std::uint64_t kVerbsBlocks = 4096, kManyBytes = 64u << 20;

struct VerbsRow {
  Operation operation = Operation::kWrite;
  std::uint64_t size = 0;
};

std::vector<RawLoopWay> ways_of(std::uint64_t size) {
  constexpr std::uint64_t kLargest = 1u << 20;
  if (size >= 4 * kLargest) return {{.message_bytes = kLargest}, {.message_bytes = kLargest / 4}};
  RawLoopWay every{.message_bytes = std::min(size, kLargest), .window = 16, .signal_every = 1};
  if (size >= kLargest) return {every, {.message_bytes = kLargest / 4}};
  RawLoopWay seldom = every;
  seldom.window = 64;
  seldom.signal_every = 8;
  return {every, seldom};
}

std::string name_of(const RawLoopWay& way) {
  return fmt::format("requests of {}, {} under way{}", short_size(way.message_bytes), way.window,
                     way.signal_every > 1 ? fmt::format(", a completion in {}", way.signal_every) : "");
}

Status run_asleep(const Plan& plan) {
  HAWSER_TRY_ASSIGN(Transfer transfer, plan.submit());
  return transfer.wait(std::chrono::seconds(30));
}

Result<Figure> run_stream(Bench& bench, const VerbsRow& row) {
  HAWSER_TRY_ASSIGN(const VerbsStage found, verbs_stage(bench.options().config, Turns::kSleeping));
  HAWSER_TRY_ASSIGN(Stage* const stage, bench.stage(found.spec));
  HAWSER_TRY_ASSIGN(const auto load, Load::prepare(*stage, {.operation = row.operation, .block_bytes = row.size}));
  const RawLoopDevices devices = devices_of(*stage, found.devices);
  HAWSER_TRY_ASSIGN(const auto raw, RawLoop::open(devices, std::max(kRawBytes, row.size)));
  const std::uint64_t window = std::clamp(kUnderWayBytes / row.size, kTransfersMin, kTransfersMax);
  std::vector<std::uint64_t> singles;
  std::uint64_t bytes = 0;
  Contest contest{.better = Better::kHigher, .placed = false};
  contest.subject = {"hawser", [&](Duration budget) {
                       return stage->measure({{"mode", "serve"}}, [&] {
                         return measure_flow(stage->agent(), *load, window, budget, singles, &bytes, Turns::kSleeping);
                       });
                     }};
  for (const RawLoopWay& way : ways_of(row.size)) {
    contest.ceilings.push_back(
        {name_of(way), [&, way](Duration budget) { return raw->stream(row.operation, way, budget); }});
  }
  HAWSER_TRY_ASSIGN(Figure figure, run_contest(contest, bench.contest_alone(kVerbsWeight)));
  const auto times = quantiles_of(singles);
  figure.p50_ns = times.p50;
  figure.p99_ns = times.p99;
  figure.cold = rate(row.size, load->cold_ns());
  figure.note = fmt::format("{} to {}", devices.near, devices.far);
  HAWSER_TRY(load->verify(&figure.verified_bytes));
  return figure;
}

/// Many blocks side by side in one transfer against one block of as many bytes: what the count of descriptors costs.
Result<Figure> run_blocks(Bench& bench) {
  HAWSER_TRY_ASSIGN(const VerbsStage found, verbs_stage(bench.options().config, Turns::kSleeping));
  HAWSER_TRY_ASSIGN(Stage* const stage, bench.stage(found.spec));
  const LoadShape shape{.block_bytes = kManyBytes / kVerbsBlocks, .count = kVerbsBlocks, .arena_bytes = 2 * kManyBytes};
  HAWSER_TRY_ASSIGN(const auto load, Load::prepare(*stage, shape));
  HAWSER_TRY_ASSIGN(const Plan one, load->whole(kManyBytes));
  std::vector<std::uint64_t> singles;
  const auto rate_of = [&](const std::function<const Plan&()>& next, std::vector<std::uint64_t>* times) {
    return [next, times, stage](Duration budget) {
      return stage->measure({{"mode", "serve"}}, [&]() -> Result<double> {
        HAWSER_TRY_ASSIGN(const double ns, sample_ns(budget, 1, times, [&] { return run_asleep(next()); }));
        return static_cast<double>(kManyBytes) / ns;
      });
    };
  };
  Contest contest{.better = Better::kHigher, .placed = false};
  contest.subject = {"hawser", rate_of([&]() -> const Plan& { return load->next_plan(); }, &singles)};
  contest.ceilings = {{"hawser, one block", rate_of([&]() -> const Plan& { return one; }, nullptr)}};
  HAWSER_TRY_ASSIGN(Figure figure, run_contest(contest, bench.contest_alone(kVerbsWeight)));
  const auto times = quantiles_of(singles);
  figure.p50_ns = times.p50;
  figure.p99_ns = times.p99;
  HAWSER_TRY(load->verify(&figure.verified_bytes));
  return figure;
}

enum class RoundTrip { kPut, kNotify, kMessage };

/// Half a round trip of 8 bytes: written and seen in memory by the other side, as `ib_write_lat` measures; written with
/// a notification, which a notification answers; notifications alone.
Result<Figure> run_round_trip(Bench& bench, RoundTrip kind) {
  HAWSER_TRY_ASSIGN(const VerbsStage found, verbs_stage(bench.options().config, Turns::kSpinning));
  HAWSER_TRY_ASSIGN(Stage* const stage, bench.stage(found.spec));
  HAWSER_TRY_ASSIGN(const Pong pong, make_pong(*stage));
  HAWSER_TRY_ASSIGN(const auto raw, RawLoop::open(devices_of(*stage, found.devices), 4096));
  std::vector<std::uint64_t> singles;
  const auto round_trips = [&](Duration budget) {
    if (kind == RoundTrip::kPut) return pong_round_trips(*stage, pong, budget, singles);
    if (kind == RoundTrip::kNotify) return notify_round_trips(*stage, pong.plan, budget, singles);
    return message_round_trips(*stage, budget, singles);
  };
  Contest contest{.better = Better::kLower, .placed = false};
  contest.subject = {"hawser", [&](Duration budget) -> Result<double> {
                       HAWSER_TRY_ASSIGN(const double ns, round_trips(budget));
                       return ns / 2;
                     }};
  contest.ceilings = {{"one post each way, both in one process", [&](Duration budget) -> Result<double> {
                         HAWSER_TRY_ASSIGN(const double ns,
                                           sample_ns(budget, 1, nullptr, [&] { return raw->there_and_back(); }));
                         return ns / 2;
                       }}};
  HAWSER_TRY_ASSIGN(Figure figure, run_contest(contest, bench.contest_alone(kVerbsWeight)));
  const auto times = quantiles_of(singles);
  figure.p50_ns = times.p50 / 2;
  figure.p99_ns = times.p99 / 2;
  return figure;
}

/// A write that ends once it was acknowledged, against the same of one post.
Result<Figure> run_write_latency(Bench& bench) {
  HAWSER_TRY_ASSIGN(const VerbsStage found, verbs_stage(bench.options().config, Turns::kSpinning));
  HAWSER_TRY_ASSIGN(Stage* const stage, bench.stage(found.spec));
  HAWSER_TRY_ASSIGN(const auto load, Load::prepare(*stage, {.block_bytes = 8}));
  const RawLoopDevices devices = devices_of(*stage, found.devices);
  HAWSER_TRY_ASSIGN(const auto raw, RawLoop::open(devices, 4096));
  std::vector<std::uint64_t> singles;
  Contest contest{.better = Better::kLower, .placed = false};
  contest.subject = {"hawser", [&](Duration budget) {
                       return stage->measure({{"mode", "serve"}}, [&] {
                         return sample_ns(budget, 1, &singles, [&] { return run_plan(stage->agent(), load->plan(0)); });
                       });
                     }};
  contest.ceilings = {{"one post, polled", [&](Duration budget) {
                         return sample_ns(budget, 1, nullptr, [&] { return raw->write_once(); });
                       }}};
  HAWSER_TRY_ASSIGN(Figure figure, run_contest(contest, bench.contest_alone(kVerbsWeight)));
  const auto times = quantiles_of(singles);
  figure.p50_ns = times.p50;
  figure.p99_ns = times.p99;
  figure.note = fmt::format("{} to {}", devices.near, devices.far);
  HAWSER_TRY(load->verify(&figure.verified_bytes));
  return figure;
}

}  // namespace

void add_verbs_rows(std::vector<Row>& rows) {
  rows.push_back({"verbs.put_lat8", "8 B written there and back and seen in memory, half of it ÷ posts in one process",
                  "ns", Better::kLower, ratio_at_most(1.5),
                  [](Bench& bench) { return run_round_trip(bench, RoundTrip::kPut); }});
  rows.push_back({"verbs.notify_lat8", "8 B write with notification, answered by one, half of it ÷ posts each way",
                  "ns", Better::kLower, ratio_at_most(2),
                  [](Bench& bench) { return run_round_trip(bench, RoundTrip::kNotify); }});
  rows.push_back({"verbs.message_lat8", "8 B notification, answered by one, half of it ÷ posts each way", "ns",
                  Better::kLower, ratio_at_most(1.5),
                  [](Bench& bench) { return run_round_trip(bench, RoundTrip::kMessage); }});
  rows.push_back({"verbs.write_lat8", "8 B write, submit to final, ÷ one post and its completion", "ns", Better::kLower,
                  ratio_at_most(1.5), run_write_latency});
  rows.push_back({"verbs.blocks.4096x16k", "write of 4096 × 16 KiB scattered ÷ one of 64 MiB", "GB/s", Better::kHigher,
                  ratio_at_least(0.9), run_blocks});
  for (const Operation operation : {Operation::kWrite, Operation::kRead}) {
    const char* const name = operation == Operation::kWrite ? "write" : "read";
    for (std::uint64_t size = 4096; size <= 64u << 20; size *= 4) {
      rows.push_back({fmt::format("verbs.{}.{}", name, size_id(size)),
                      fmt::format("{} of {} ÷ raw posts on two queue pairs", name, short_size(size)), "GB/s",
                      Better::kHigher, ratio_at_least(0.95),
                      [row = VerbsRow{operation, size}](Bench& bench) { return run_stream(bench, row); }});
    }
  }
}

}  // namespace hawser::cli::bench
