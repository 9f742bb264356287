// Rows: the backend verbs against a raw loop of posts on two queue pairs, over the same devices.

#include <fmt/format.h>

#include <algorithm>

#include "backend/verbs/raw_loop.h"
#include "cli/bench/catalog.h"
#include "cli/bench/flow.h"
#include "cli/bench/round_trip.h"
#include "cli/quantiles.h"
#include "cli/units.h"

namespace hawser::cli::bench {
namespace {

using backend::verbs::find_raw_loop_devices;
using backend::verbs::RawLoop;
using backend::verbs::RawLoopDevices;
using backend::verbs::RawLoopWay;

constexpr std::uint64_t kUnderWayBytes = 16u << 20;  // of a stream of transfers, at least ...
constexpr std::uint64_t kTransfersMin = 2, kTransfersMax = 16;
constexpr std::uint64_t kRawBytes = 16u << 20;  // memory of the raw loop at each end, at least
constexpr double kVerbsWeight = 3;              // of a slice's time: software devices are slow

struct VerbsRow {
  Operation operation = Operation::kWrite;
  std::uint64_t size = 0;
};

/// Both processes over verbs alone, each with a device of its own where two are in one subnet. Where the user chose
/// devices they are used by both.
Result<StageSpec> verbs_stage(const std::string& config, const RawLoopDevices& devices) {
  HAWSER_TRY_ASSIGN(const AgentOptions options, bench_agent_options(config, {}, "bench", false));
  const auto params = options.backend_params.find("verbs");
  const bool chosen = params != options.backend_params.end() && params->second.contains("devices");
  StageSpec spec{.key = "verbs", .backends = {verbs()}, .driven = false};
  if (chosen) return spec;
  spec.backends = {verbs({{"devices", devices.near}})};
  spec.target_backends = {verbs({{"devices", devices.far}})};
  return spec;
}

/// Those of the path that is up, which the raw loop takes as well.
Result<RawLoopDevices> devices_of(Stage& stage, const RawLoopDevices& otherwise) {
  for (const PathCounters& path : stage.agent().counters().paths) {
    if (path.queue_pairs.empty()) continue;
    RawLoopDevices used{path.queue_pairs[0].device, otherwise.far};
    if (used.near != otherwise.near) used.far = used.near;  // The user's own choice: seen from here alone.
    return used;
  }
  return otherwise;
}

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

Result<Figure> run_stream(Bench& bench, const VerbsRow& row) {
  HAWSER_TRY_ASSIGN(const RawLoopDevices found, find_raw_loop_devices());
  HAWSER_TRY_ASSIGN(const StageSpec spec, verbs_stage(bench.options().config, found));
  HAWSER_TRY_ASSIGN(Stage* const stage, bench.stage(spec));
  HAWSER_TRY_ASSIGN(const auto load, Load::prepare(*stage, {.operation = row.operation, .block_bytes = row.size}));
  HAWSER_TRY_ASSIGN(const RawLoopDevices devices, devices_of(*stage, found));
  HAWSER_TRY_ASSIGN(const auto raw, RawLoop::open(devices, std::max(kRawBytes, row.size)));
  const std::uint64_t window = std::clamp(kUnderWayBytes / row.size, kTransfersMin, kTransfersMax);
  std::vector<std::uint64_t> singles;
  std::uint64_t bytes = 0;
  Contest contest{.better = Better::kHigher, .placed = false};
  contest.subject = {"hawser", [&](Duration budget) {
                       return stage->measure({{"mode", "serve"}}, [&] {
                         return measure_flow(stage->agent(), *load, window, budget, singles, &bytes);
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

/// A write that ends once it was acknowledged, against the same of one post.
Result<Figure> run_latency(Bench& bench) {
  HAWSER_TRY_ASSIGN(const RawLoopDevices found, find_raw_loop_devices());
  HAWSER_TRY_ASSIGN(const StageSpec spec, verbs_stage(bench.options().config, found));
  HAWSER_TRY_ASSIGN(Stage* const stage, bench.stage(spec));
  HAWSER_TRY_ASSIGN(const auto load, Load::prepare(*stage, {.block_bytes = 8}));
  HAWSER_TRY_ASSIGN(const RawLoopDevices devices, devices_of(*stage, found));
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
  rows.push_back({"verbs.write_lat8", "8 B write, submit to final, ÷ one post and its completion", "ns", Better::kLower,
                  ratio_at_most(1.5), run_latency});
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
