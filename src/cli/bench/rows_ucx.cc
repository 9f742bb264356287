// Rows: UCX beside Hawser, where ucx_perftest is installed: put, get and tag against write, read and message.

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

#include "cli/bench/catalog.h"
#include "cli/bench/flow.h"
#include "cli/bench/messages.h"
#include "cli/bench/pong.h"
#include "cli/bench/round_trip.h"
#include "cli/bench/ucx.h"
#include "cli/bench/verbs_stage.h"
#include "cli/quantiles.h"
#include "cli/units.h"

namespace hawser::cli::bench {
namespace {

constexpr std::uint64_t kRunBytes = 1u << 30;  // that one run of ucx_perftest moves, at most ...
constexpr std::uint64_t kIterationsMin = 20, kIterationsMax = 20'000;  // ... within these
constexpr std::uint64_t kLatencyIterations = 50'000;
constexpr std::uint64_t kOnTheSpotMax = 4u << 20;
constexpr std::size_t kTcpWindow = 8, kShmMessages = 8;
// Over verbs: software devices are slow.
constexpr std::uint64_t kVerbsRunBytes = 64u << 20, kVerbsIterationsMin = 2, kVerbsLatencyIterations = 500;
constexpr std::uint64_t kVerbsUnderWayBytes = 16u << 20;
constexpr std::size_t kVerbsWindowMin = 2, kVerbsWindowMax = 16;

enum class Kind { kPut, kGet, kTag };
enum class Over { kShm, kTcp, kVerbs };

struct UcxRow {
  Kind kind = Kind::kPut;
  Over over = Over::kShm;
  std::uint64_t size = 0;

  bool copies_on_the_spot() const { return over == Over::kShm && kind != Kind::kTag; }
};

/// With many small ones in flight, each end is work for a thread that would have to be woken, so both sides spin,
/// as UCX's do in all rows. With few large ones the kernel's copies are the work. Where Soft-RoCE does them, it needs
/// the processors that spinning takes.
constexpr Turns turns_of(const UcxRow& row) {
  constexpr std::uint64_t kSpinBelow = 64 * 1024;
  return row.over == Over::kVerbs && row.size >= kSpinBelow ? Turns::kSleeping : Turns::kSpinning;
}

/// Our stage, and for verbs the devices that UCX takes as well.
Result<VerbsStage> stage_of(Bench& bench, Over over, Turns turns) {
  if (over == Over::kVerbs) return verbs_stage(bench.options().config, turns);
  return VerbsStage{.spec = over == Over::kTcp ? tcp_stage() : default_stage(), .devices = {}};
}

using Environment = std::map<std::string, std::string>;

// Ways to run UCX: its defaults and what is known to be faster. The best counts.
std::vector<Environment> environments(Kind kind, Over over, const std::string& device) {
  if (over == Over::kShm) return {{{"UCX_TLS", "posix"}}, {{"UCX_TLS", "shm"}}};
  if (over == Over::kVerbs) {
    Environment plain = {{"UCX_TLS", "rc"}, {"UCX_NET_DEVICES", device + ":1"}};
    // Which identifier works is the network's business: Soft-RoCE wants 0.
    if (const char* const gid = std::getenv("UCX_IB_GID_INDEX")) plain["UCX_IB_GID_INDEX"] = gid;
    if (kind != Kind::kTag) return {plain};
    auto rendezvous = plain;
    rendezvous.insert({"UCX_RNDV_SCHEME", "put_zcopy"});
    return {plain, rendezvous};
  }
  const Environment plain = {{"UCX_TLS", "tcp"}, {"UCX_NET_DEVICES", "lo"}};
  auto segments = plain, rendezvous = plain;
  segments.insert({{"UCX_TCP_TX_SEG_SIZE", "256k"}, {"UCX_TCP_RX_SEG_SIZE", "256k"}});
  rendezvous.insert({"UCX_RNDV_SCHEME", "put_zcopy"});
  return {plain, segments, rendezvous};
}

std::string name_of(const std::string& test, const Environment& env) {
  std::string name = "ucx " + test;
  for (const auto& [key, value] : env) {
    if (key != "UCX_NET_DEVICES") name += fmt::format(" {}={}", key.substr(4), value);
  }
  return name;
}

struct Ways {
  Kind kind = Kind::kPut;
  Over over = Over::kShm;
  backend::verbs::RawLoopDevices devices;
};

void add_ucx(Contest& contest, const UcxTool& tool, const UcxTest& pattern, const Ways& ways,
             const std::function<double(double)>& figure) {
  for (const Environment& env : environments(ways.kind, ways.over, ways.devices.near)) {
    UcxTest test = pattern;
    test.env = env;
    if (ways.over == Over::kVerbs) test.server_env = {{"UCX_NET_DEVICES", ways.devices.far + ":1"}};
    contest.ceilings.push_back({name_of(test.test, env), [tool, test, figure](Duration) -> Result<double> {
                                  const Result<double> ns = run_ucx(tool, test);
                                  return ns ? figure(*ns) : 0.0;  // A way that does not work here is no ceiling.
                                }});
  }
}

/// How many of ours are in flight at a time.
std::size_t window_of(const UcxRow& row) {
  if (row.over != Over::kVerbs) return row.over == Over::kTcp ? kTcpWindow : kShmMessages;
  return std::clamp<std::size_t>(kVerbsUnderWayBytes / row.size, kVerbsWindowMin, kVerbsWindowMax);
}

Slice subject(Stage& stage, Load& load, const UcxRow& row, std::vector<std::uint64_t>& singles) {
  return [&, row](Duration budget) -> Result<double> {
    if (row.kind == Kind::kTag) return measure_messages(stage, load, window_of(row), budget, turns_of(row));
    std::uint64_t bytes = 0;
    return stage.measure({{"mode", "serve"}}, [&]() -> Result<double> {
      if (row.over != Over::kShm)
        return measure_flow(stage.agent(), load, window_of(row), budget, singles, &bytes, turns_of(row));
      HAWSER_TRY_ASSIGN(const double ns, sample_ns(budget, row.size < 65536 ? 16 : 1, &singles,
                                                   [&] { return run_plan(stage.agent(), load.plan(0)); }));
      return static_cast<double>(row.size) / ns;
    });
  };
}

std::uint64_t iterations_of(const UcxRow& row) {
  if (row.over == Over::kVerbs) return std::clamp(kVerbsRunBytes / row.size, kVerbsIterationsMin, kIterationsMax);
  return std::clamp(kRunBytes / row.size, kIterationsMin, kIterationsMax);
}

/// The median of a stream is of posting alone; what copies on the spot has a true one.
bool has_true_median(const UcxRow& row) { return row.copies_on_the_spot() && row.size <= kOnTheSpotMax; }

ContestOptions contest_of(Bench& bench, Stage& stage, Over over) {
  return over == Over::kVerbs ? bench.contest_alone(kVerbsWeight) : bench.contest(stage);
}

Result<Figure> run_bandwidth(Bench& bench, const UcxRow& row) {
  HAWSER_TRY_ASSIGN(const UcxTool tool, find_ucx());
  HAWSER_TRY_ASSIGN(const VerbsStage found, stage_of(bench, row.over, turns_of(row)));
  HAWSER_TRY_ASSIGN(Stage* const stage, bench.stage(found.spec));
  const Operation operation = row.kind == Kind::kGet ? Operation::kRead : Operation::kWrite;
  HAWSER_TRY_ASSIGN(const auto load, Load::prepare(*stage, {.operation = operation, .block_bytes = row.size}));
  std::vector<std::uint64_t> singles;
  Contest contest{.better = Better::kHigher, .placed = row.over != Over::kVerbs && !row.copies_on_the_spot()};
  contest.subject = {"hawser", subject(*stage, *load, row, singles)};
  const char* const tests[] = {"ucp_put_bw", "ucp_get", "tag_bw"};
  const UcxTest test{.test = tests[static_cast<int>(row.kind)],
                     .size = row.size,
                     .iterations = iterations_of(row),
                     .env = {},
                     .by_median = has_true_median(row)};
  add_ucx(contest, tool, test, {row.kind, row.over, found.devices},
          [size = row.size](double ns) { return static_cast<double>(size) / ns; });
  HAWSER_TRY_ASSIGN(Figure figure, run_contest(contest, contest_of(bench, *stage, row.over)));
  const auto times = quantiles_of(singles);
  figure.p50_ns = times.p50;
  figure.p99_ns = times.p99;
  HAWSER_TRY(load->verify(&figure.verified_bytes));
  return figure;
}

// Half a round trip of 8 bytes: written into each other's memory and watched there, or as a notification (tag).
Result<Figure> run_latency(Bench& bench, Over over, bool put) {
  HAWSER_TRY_ASSIGN(const UcxTool tool, find_ucx());
  HAWSER_TRY_ASSIGN(const VerbsStage found, stage_of(bench, over, Turns::kSpinning));
  HAWSER_TRY_ASSIGN(Stage* const stage, bench.stage(found.spec));
  HAWSER_TRY_ASSIGN(const Pong pong, make_pong(*stage));
  std::vector<std::uint64_t> singles;
  Contest contest{.better = Better::kLower, .placed = over != Over::kVerbs};
  contest.subject = {"hawser", [&](Duration budget) -> Result<double> {
                       HAWSER_TRY_ASSIGN(const double ns, put ? pong_round_trips(*stage, pong, budget, singles)
                                                              : message_round_trips(*stage, budget, singles));
                       return ns / 2;
                     }};
  const UcxTest test{.test = put ? "ucp_put_lat" : "tag_lat",
                     .size = 8,
                     .iterations = over == Over::kVerbs ? kVerbsLatencyIterations : kLatencyIterations,
                     .env = {},
                     .by_median = true};
  add_ucx(contest, tool, test, {put ? Kind::kPut : Kind::kTag, over, found.devices}, [](double ns) { return ns; });
  HAWSER_TRY_ASSIGN(Figure figure, run_contest(contest, contest_of(bench, *stage, over)));
  const auto times = quantiles_of(singles);
  figure.p50_ns = times.p50 / 2;
  figure.p99_ns = times.p99 / 2;
  return figure;
}

constexpr struct {
  Over over;
  const char* name;
  double latency_target, target;
} kOvers[] = {{Over::kShm, "shm", 2, 0.97}, {Over::kTcp, "tcp", 1, 1}, {Over::kVerbs, "verbs", 1, 1}};

constexpr struct {
  Kind kind;
  const char* name;
  const char* ours;
} kKinds[] = {{Kind::kPut, "put", "write"}, {Kind::kGet, "get", "read"}, {Kind::kTag, "tag", "message"}};

}  // namespace

void add_ucx_rows(std::vector<Row>& rows) {
  for (const auto& [over, name_of_over, latency_target, target] : kOvers) {
    for (const bool put : {true, false}) {
      rows.push_back({fmt::format("ucx.{}.{}_lat8", name_of_over, put ? "put" : "tag"),
                      fmt::format("8 B {}, one way, ÷ ucx {}", put ? "write" : "notification", put ? "put" : "tag"),
                      "ns", Better::kLower, ratio_at_most(latency_target),
                      [over = over, put](Bench& bench) { return run_latency(bench, over, put); }});
    }
    for (const auto& [kind, name, ours] : kKinds) {
      for (std::uint64_t size = 4096; size <= 64u << 20; size *= 4) {
        rows.push_back({fmt::format("ucx.{}.{}.{}", name_of_over, name, size_id(size)),
                        fmt::format("{} of {} ÷ ucx {}", ours, short_size(size), name), "GB/s", Better::kHigher,
                        ratio_at_least(target),
                        [row = UcxRow{kind, over, size}](Bench& bench) { return run_bandwidth(bench, row); }});
      }
    }
  }
}

}  // namespace hawser::cli::bench
