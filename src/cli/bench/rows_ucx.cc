// Rows: UCX beside Hawser, where ucx_perftest is installed: put, get and tag against write, read and message.

#include <fmt/format.h>

#include <algorithm>

#include "cli/bench/catalog.h"
#include "cli/bench/flow.h"
#include "cli/bench/messages.h"
#include "cli/bench/pong.h"
#include "cli/bench/round_trip.h"
#include "cli/bench/ucx.h"
#include "cli/quantiles.h"
#include "cli/units.h"

namespace hawser::cli::bench {
namespace {

constexpr std::uint64_t kRunBytes = 1u << 30;  // that one run of ucx_perftest moves, at most ...
constexpr std::uint64_t kIterationsMin = 20, kIterationsMax = 20'000;  // ... within these
constexpr std::uint64_t kLatencyIterations = 50'000;
constexpr std::uint64_t kOnTheSpotMax = 4u << 20;
constexpr std::size_t kTcpWindow = 8, kShmMessages = 8;

enum class Kind { kPut, kGet, kTag };

struct UcxRow {
  Kind kind = Kind::kPut;
  bool tcp = false;
  std::uint64_t size = 0;
};

StageSpec stage_of(bool tcp) { return tcp ? tcp_stage() : default_stage(); }

// Ways to run UCX: its defaults and what is known to be faster. The best counts.
std::vector<std::map<std::string, std::string>> environments(bool tcp) {
  if (!tcp) return {{{"UCX_TLS", "posix"}}, {{"UCX_TLS", "shm"}}};
  const std::map<std::string, std::string> plain = {{"UCX_TLS", "tcp"}, {"UCX_NET_DEVICES", "lo"}};
  auto segments = plain, rendezvous = plain;
  segments.insert({{"UCX_TCP_TX_SEG_SIZE", "256k"}, {"UCX_TCP_RX_SEG_SIZE", "256k"}});
  rendezvous.insert({"UCX_RNDV_SCHEME", "put_zcopy"});
  return {plain, segments, rendezvous};
}

std::string name_of(const std::string& test, const std::map<std::string, std::string>& env) {
  std::string name = "ucx " + test;
  for (const auto& [key, value] : env) {
    if (key != "UCX_NET_DEVICES") name += fmt::format(" {}={}", key.substr(4), value);
  }
  return name;
}

void add_ucx(Contest& contest, const UcxTool& tool, const UcxTest& pattern, bool tcp,
             const std::function<double(double)>& figure) {
  for (const auto& env : environments(tcp)) {
    UcxTest test = pattern;
    test.env = env;
    contest.ceilings.push_back({name_of(test.test, env), [tool, test, figure](Duration) -> Result<double> {
                                  const Result<double> ns = run_ucx(tool, test);
                                  return ns ? figure(*ns) : 0.0;  // A way that does not work here is no ceiling.
                                }});
  }
}

Slice subject(Stage& stage, Load& load, const UcxRow& row, std::vector<std::uint64_t>& singles) {
  return [&, row](Duration budget) -> Result<double> {
    if (row.kind == Kind::kTag) return measure_messages(stage, load, row.tcp ? kTcpWindow : kShmMessages, budget);
    std::uint64_t bytes = 0;
    return stage.measure({{"mode", "serve"}}, [&]() -> Result<double> {
      if (row.tcp) return measure_flow(stage.agent(), load, kTcpWindow, budget, singles, &bytes);
      HAWSER_TRY_ASSIGN(const double ns, sample_ns(budget, row.size < 65536 ? 16 : 1, &singles,
                                                   [&] { return run_plan(stage.agent(), load.plan(0)); }));
      return static_cast<double>(row.size) / ns;
    });
  };
}

Result<Figure> run_bandwidth(Bench& bench, const UcxRow& row) {
  HAWSER_TRY_ASSIGN(const UcxTool tool, find_ucx());
  HAWSER_TRY_ASSIGN(Stage* const stage, bench.stage(stage_of(row.tcp)));
  const Operation operation = row.kind == Kind::kGet ? Operation::kRead : Operation::kWrite;
  HAWSER_TRY_ASSIGN(const auto load, Load::prepare(*stage, {.operation = operation, .block_bytes = row.size}));
  std::vector<std::uint64_t> singles;
  Contest contest{.better = Better::kHigher, .placed = row.tcp || row.kind == Kind::kTag};
  contest.subject = {"hawser", subject(*stage, *load, row, singles)};
  const char* const tests[] = {"ucp_put_bw", "ucp_get", "tag_bw"};
  const UcxTest test{.test = tests[static_cast<int>(row.kind)],
                     .size = row.size,
                     .iterations = std::clamp(kRunBytes / row.size, kIterationsMin, kIterationsMax),
                     .env = {},
                     // The median of a stream is of posting alone; what copies on the spot has a true one.
                     .by_median = !row.tcp && row.kind != Kind::kTag && row.size <= kOnTheSpotMax};
  add_ucx(contest, tool, test, row.tcp, [size = row.size](double ns) { return static_cast<double>(size) / ns; });
  HAWSER_TRY_ASSIGN(Figure figure, run_contest(contest, bench.contest(*stage)));
  const auto times = quantiles_of(singles);
  figure.p50_ns = times.p50;
  figure.p99_ns = times.p99;
  HAWSER_TRY(load->verify(&figure.verified_bytes));
  return figure;
}

// Half a round trip of 8 bytes: written into each other's memory and watched there, or told by notification (tag).
Result<Figure> run_latency(Bench& bench, bool tcp, bool put) {
  HAWSER_TRY_ASSIGN(const UcxTool tool, find_ucx());
  HAWSER_TRY_ASSIGN(Stage* const stage, bench.stage(stage_of(tcp)));
  HAWSER_TRY_ASSIGN(const Pong pong, make_pong(*stage));
  std::vector<std::uint64_t> singles;
  Contest contest{.better = Better::kLower, .placed = true};
  contest.subject = {"hawser", [&](Duration budget) -> Result<double> {
                       HAWSER_TRY_ASSIGN(const double ns, put ? pong_round_trips(*stage, pong, budget, singles)
                                                              : notify_round_trips(*stage, pong.plan, budget, singles));
                       return ns / 2;
                     }};
  const UcxTest test{.test = put ? "ucp_put_lat" : "tag_lat",
                     .size = 8,
                     .iterations = kLatencyIterations,
                     .env = {},
                     .by_median = true};
  add_ucx(contest, tool, test, tcp, [](double ns) { return ns; });
  HAWSER_TRY_ASSIGN(Figure figure, run_contest(contest, bench.contest(*stage)));
  const auto times = quantiles_of(singles);
  figure.p50_ns = times.p50 / 2;
  figure.p99_ns = times.p99 / 2;
  return figure;
}

constexpr struct {
  Kind kind;
  const char* name;
  const char* ours;
} kKinds[] = {{Kind::kPut, "put", "write"}, {Kind::kGet, "get", "read"}, {Kind::kTag, "tag", "message"}};

}  // namespace

void add_ucx_rows(std::vector<Row>& rows) {
  for (const bool tcp : {false, true}) {
    const char* const over = tcp ? "tcp" : "shm";
    for (const bool put : {true, false}) {
      rows.push_back(
          {fmt::format("ucx.{}.{}_lat8", over, put ? "put" : "tag"),
           fmt::format("8 B {}, one way, ÷ ucx {}", put ? "write" : "write with notification", put ? "put" : "tag"),
           "ns", Better::kLower, ratio_at_most(tcp ? 1 : 2),
           [tcp, put](Bench& bench) { return run_latency(bench, tcp, put); }});
    }
    for (const auto& [kind, name, ours] : kKinds) {
      for (std::uint64_t size = 4096; size <= 64u << 20; size *= 4) {
        rows.push_back({fmt::format("ucx.{}.{}.{}", over, name, size_id(size)),
                        fmt::format("{} of {} ÷ ucx {}", ours, short_size(size), name), "GB/s", Better::kHigher,
                        ratio_at_least(tcp ? 1 : 0.97),
                        [row = UcxRow{kind, tcp, size}](Bench& bench) { return run_bandwidth(bench, row); }});
      }
    }
  }
}

}  // namespace hawser::cli::bench
