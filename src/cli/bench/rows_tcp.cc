// Rows: tcp over loopback against raw sockets. A stream of transfers, several in flight, against a raw stream; the
// processor time of both processes beside it.

#include <fmt/format.h>

#include <algorithm>

#include "cli/bench/catalog.h"
#include "cli/bench/flow.h"
#include "cli/bench/raw_sockets.h"
#include "cli/bench/raw_stream_json.h"
#include "cli/bench/round_trip.h"
#include "cli/quantiles.h"
#include "cli/units.h"

namespace hawser::cli::bench {
namespace {

constexpr std::uint64_t kInFlightBytes = 16u << 20;  // of a stream of transfers, at least ...
constexpr std::uint64_t kWindowMin = 2, kWindowMax = 16;
constexpr std::uint64_t kPassBytes = 16u << 20;  // of a raw pass, at least

struct TcpRow {
  LoadShape shape;
  Params params;            ///< For the tcp backend.
  std::size_t sockets = 1;  ///< For the raw ceiling.
  bool threads = false;     ///< The ceiling may use a thread per socket.
  bool driven = false;      ///< Hawser by drivers, raw sockets blocking: for processor time.
};

// Processor seconds per GB of both processes, summed over slices.
struct Cost {
  std::int64_t cpu_ns = 0;
  std::uint64_t bytes = 0;
  std::optional<double> s_per_gb() const {
    if (bytes == 0) return std::nullopt;
    return static_cast<double>(cpu_ns) / static_cast<double>(bytes);
  }
};

// Runs `body` with the child in `mode` and adds both sides' time to `cost`.
Result<double> measure_cost(Stage& stage, Json mode, Cost& cost, const std::function<Result<double>()>& body) {
  double figure = 0;
  CpuTime own;
  HAWSER_TRY_ASSIGN(const Json ended, stage.during(std::move(mode), [&]() -> Status {
    const CpuTime before = cpu_time_now();
    HAWSER_TRY_ASSIGN(figure, body());
    own = cpu_time_now() - before;
    return Status();
  }));
  cost.cpu_ns += own.ns + ended.value("cpu_ns", std::int64_t{0});
  return figure;
}

struct RawContender {
  RawWay way;
  Cost cost;
  std::string name() const {
    return fmt::format("{} socket{}{}{}, {} a call", way.sockets, way.sockets == 1 ? "" : "s",
                       way.threads ? ", a thread each" : "", way.blocking ? ", blocking" : "",
                       short_size(way.call_bytes));
  }
};

Result<double> run_raw(Stage& stage, const Load& load, RawContender& raw, Duration budget) {
  HAWSER_TRY_ASSIGN(const std::vector<int> fds, stage.raw_sockets(raw.way.sockets));
  const std::uint64_t repeat = std::max<std::uint64_t>(kPassBytes / load.shape().bytes(), 1);
  const RawPass pass = raw_pass(load.local_blocks(0), repeat, load.local().data());
  const bool write = load.shape().operation == Operation::kWrite;
  Json mode{{"mode", "stream"}, {"way", to_json(raw.way)}, {"send", !write}};
  mode["pass"] = {{"blocks", to_json(load.remote_blocks(0))}, {"repeat", repeat}};
  open_stream(stage.board().page());
  return measure_cost(stage, std::move(mode), raw.cost, [&]() -> Result<double> {
    HAWSER_TRY_ASSIGN(const RawRate rate, measure_stream(fds, pass, raw.way, write ? RawSide::kSend : RawSide::kReceive,
                                                         stage.board().page(), budget));
    raw.cost.bytes += rate.bytes;
    return rate.gb_per_s;
  });
}

std::vector<RawContender> raw_contenders(const TcpRow& row) {
  std::vector<RawContender> all;
  for (const std::uint64_t call : {1u << 20, 256u << 10}) {
    RawWay way{.sockets = row.sockets, .threads = row.threads, .blocking = false, .call_bytes = call};
    // A thread per socket has no core of its own on a small machine: there it may also sleep.
    all.push_back({.way = way, .cost = {}});
    way.blocking = true;
    if (row.threads || row.driven) all.push_back({.way = way, .cost = {}});
  }
  return all;
}

const Cost& cost_of(const std::vector<RawContender>& raws, const std::string& name) {
  const auto found = std::find_if(raws.begin(), raws.end(), [&](const auto& raw) { return raw.name() == name; });
  return found == raws.end() ? raws.front().cost : found->cost;
}

Result<Figure> run_stream_row(Bench& bench, const TcpRow& row) {
  const StageSpec spec = row.driven ? driven_stage({tcp(row.params)}) : tcp_stage(row.params);
  HAWSER_TRY_ASSIGN(Stage* const stage, bench.stage(spec));
  stage->board().touch();
  HAWSER_TRY_ASSIGN(const auto load, Load::prepare(*stage, row.shape));
  const std::uint64_t window = std::clamp(kInFlightBytes / row.shape.bytes(), kWindowMin, kWindowMax);
  std::vector<std::uint64_t> singles;
  Cost cost;
  std::vector<RawContender> raws = raw_contenders(row);
  Contest contest{.better = Better::kHigher, .placed = true};
  contest.subject = {"hawser", [&](Duration budget) {
                       return measure_cost(*stage, {{"mode", "serve"}}, cost, [&] {
                         return measure_flow(stage->agent(), *load, window, budget, singles, &cost.bytes);
                       });
                     }};
  for (RawContender& raw : raws) {
    contest.ceilings.push_back({raw.name(), [&](Duration budget) { return run_raw(*stage, *load, raw, budget); }});
  }
  HAWSER_TRY_ASSIGN(Figure figure, run_contest(contest, bench.contest(*stage, 2)));
  const auto times = quantiles_of(singles);
  figure.p50_ns = times.p50;
  figure.p99_ns = times.p99;
  figure.cold = rate(row.shape.bytes(), load->cold_ns());
  figure.cpu_s_per_gb = cost.s_per_gb();
  figure.ceiling_cpu_s_per_gb = cost_of(raws, figure.best.ceiling_how).s_per_gb();
  HAWSER_TRY(load->verify(&figure.verified_bytes));
  return figure;
}

// The stream row once more, told as processor time: Hawser's against the thriftiest raw way.
Result<Figure> run_cpu_row(Bench& bench, const TcpRow& row) {
  HAWSER_TRY_ASSIGN(Figure figure, run_stream_row(bench, row));
  figure.note = fmt::format("at {:.2f} GB/s, raw {:.2f}", figure.best.value, figure.best.ceiling);
  for (Comparison* comparison : {&figure.best}) {
    comparison->value = figure.cpu_s_per_gb.value_or(0);
    comparison->ceiling = figure.ceiling_cpu_s_per_gb.value_or(0);
    comparison->ratio = comparison->ceiling > 0 ? comparison->value / comparison->ceiling : 0;
  }
  figure.placements = {figure.best};
  figure.cold.reset();
  return figure;
}

Result<Figure> run_tcp_rtt(Bench& bench) {
  HAWSER_TRY_ASSIGN(Stage* const stage, bench.stage(tcp_stage()));
  HAWSER_TRY_ASSIGN(const auto load, Load::prepare(*stage, {.block_bytes = 8}));
  HAWSER_TRY_ASSIGN(const std::vector<int> fds, stage->raw_sockets(1));
  std::vector<std::uint64_t> singles;
  Contest contest{.better = Better::kLower, .placed = true};
  contest.subject = {"hawser",
                     [&](Duration budget) { return notify_round_trips(*stage, load->plan(0), budget, singles); }};
  contest.ceilings = {{"one socket, spinning", [&](Duration budget) {
                         return stage->measure({{"mode", "pong"}}, [&] {
                           return sample_ns(budget, 1, nullptr, [&] { return raw_ping(fds[0]); });
                         });
                       }}};
  HAWSER_TRY_ASSIGN(Figure figure, run_contest(contest, bench.contest(*stage)));
  const auto times = quantiles_of(singles);
  figure.p50_ns = times.p50;
  figure.p99_ns = times.p99;
  figure.cold = static_cast<double>(load->cold_ns());
  HAWSER_TRY(load->verify(&figure.verified_bytes));
  return figure;
}

void add(std::vector<Row>& rows, std::string id, std::string what, double target, const TcpRow& row) {
  rows.push_back({std::move(id), std::move(what), "GB/s", Better::kHigher, ratio_at_least(target),
                  [row](Bench& bench) { return run_stream_row(bench, row); }});
}

constexpr struct {
  Operation operation;
  const char* name;
} kTcpOperations[] = {{Operation::kWrite, "write"}, {Operation::kRead, "read"}};

}  // namespace

void add_tcp_rows(std::vector<Row>& rows, const BenchOptions& options) {
  rows.push_back({"tcp.notify_rtt", "8 B write with notification, answered by one, ÷ raw ping-pong", "ns",
                  Better::kLower, ratio_at_most(1.2), run_tcp_rtt});
  for (const std::size_t sockets : {2, 1}) {
    for (const auto& [operation, name] : kTcpOperations) {
      for (const std::uint64_t size : {1u << 20, 64u << 20}) {
        // By default two connections carry bulk and one small things. One for bulk is a tuned configuration.
        const Params params = sockets == 2 ? Params() : Params{{"connections", "2"}};
        add(rows, fmt::format("tcp.{}.{}.c{}", name, size_id(size), sockets),
            fmt::format("{} of {}, {} bulk socket{}, ÷ raw stream", name, short_size(size), sockets,
                        sockets > 1 ? "s" : " (tuned)"),
            0.95, {{.operation = operation, .block_bytes = size}, params, sockets});
      }
    }
  }
  for (const auto& [operation, name] : kTcpOperations) {
    TcpRow row{{.operation = operation, .block_bytes = 1 << 20}, {}, 2, true};
    add(rows, fmt::format("tcp.{}.1m.threads", name),
        fmt::format("{} of 1 MiB ÷ raw stream, 2 sockets, a thread each", name), 0.95, row);
    for (const std::uint64_t size : {4u << 10, 16u << 10, 64u << 10}) {
      const LoadShape shape{
          .operation = operation, .block_bytes = size, .count = 1000, .arena_bytes = options.arena_bytes};
      add(rows, fmt::format("tcp.scatter.{}.1000x{}", name, size_id(size)),
          fmt::format("{} of 1000 × {} scattered, ÷ raw gather and scatter", name, short_size(size)), 0.9,
          {shape, {}, 2});
    }
  }
  rows.push_back({"cpu_per_gb.tcp", "processor time of both sides, by drivers, ÷ raw sockets", "s/GB", Better::kLower,
                  ratio_at_most(1.1), [](Bench& bench) {
                    return run_cpu_row(bench, {{.block_bytes = 1 << 20}, {}, 2, false, true});
                  }});
}

}  // namespace hawser::cli::bench
