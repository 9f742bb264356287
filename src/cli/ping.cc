// hawser ping: finds an agent, talks to it, tells how fast: round trips, small and large transfers, and by which path.

#include <fmt/format.h>
#include <hawser/agent.h>
#include <unistd.h>

#include <algorithm>
#include <memory>

#include "base/quantity.h"
#include "base/shown.h"
#include "base/try.h"
#include "cli/command.h"
#include "cli/interrupt.h"
#include "cli/json_out.h"
#include "cli/progress.h"
#include "cli/quantiles.h"
#include "cli/reach.h"
#include "cli/status_exit.h"
#include "cli/table.h"
#include "cli/units.h"
#include "identity/files.h"

namespace hawser::cli {
namespace {

constexpr Duration kPingCloseTimeout = std::chrono::seconds(1);
constexpr Duration kPingSlice = std::chrono::milliseconds(20);
constexpr std::uint64_t kSmall = 8;           // bytes of the small write
constexpr std::uint64_t kBulkRepeats = 5;     // large transfers of each kind; the best counts
constexpr std::size_t kProbeSizeMax = 32768;  // bytes of a round trip's notification

constexpr const char* kPingExamples =
    "  hawser ping store@10.0.0.5:7000\n"
    "  hawser ping store@localhost:7000 -c 1000 -s 64KiB --backend tcp\n"
    "  hawser ping store --directory /shared/cards --json";

struct PingArguments {
  Common common;
  std::string target;
  std::uint32_t count = 100;
  std::uint64_t probe = 8;
  std::uint64_t bulk = 64ull << 20;
  Duration timeout = std::chrono::seconds(5);
  Reach reach;
};

struct Bulk {
  std::uint64_t bytes = 0;
  double write_gb_per_s = 0, read_gb_per_s = 0;
};

struct PingReport {
  std::string peer, incarnation;
  std::int64_t find_ns = 0, connect_ns = 0;
  Quantiles echo, small_write;
  std::uint32_t lost = 0;
  Bulk bulk;
  std::vector<PathCounters> paths;
  std::string explain;
};

class Pinger {
 public:
  Pinger(const PingArguments& a, Agent agent) : a_(a), agent_(std::move(agent)) {}

  Result<PingReport> run();

 private:
  Status find();
  Status echo_all();
  /// Nothing when no echo came in time.
  Result<std::optional<std::uint64_t>> echo_once(std::uint64_t number);
  Status write_small();
  Status move_bulk();
  Result<double> best_rate(const Plan& plan);

  const PingArguments& a_;
  Agent agent_;
  Region scratch_;
  Peer peer_;
  PingReport report_;
};

Status Pinger::find() {
  const Instant start = Clock::steady().now();
  HAWSER_TRY_ASSIGN(peer_, agent_.find_peer(a_.target, a_.timeout));
  const Instant found = Clock::steady().now();
  HAWSER_TRY(peer_.connect(a_.timeout));
  report_.peer = peer_.name();
  report_.incarnation = to_string(peer_.incarnation());
  report_.find_ns = (found - start).count();
  report_.connect_ns = (Clock::steady().now() - found).count();
  return Status();
}

Result<std::optional<std::uint64_t>> Pinger::echo_once(std::uint64_t number) {
  std::string text = fmt::format("ping {} ", number);
  text.resize(std::max<std::size_t>(text.size(), a_.probe), '.');
  const Instant start = Clock::steady().now();
  HAWSER_TRY(peer_.notify(text));
  while (!interrupted()) {
    while (const auto answer = agent_.take_notification()) {
      const Instant now = Clock::steady().now();
      if (answer->text == text) return std::optional<std::uint64_t>((now - start).count());
    }
    if (Clock::steady().now() - start > a_.timeout) return std::optional<std::uint64_t>();
    if (agent_.poll() == 0) agent_.wait(kPingSlice);
  }
  return interrupt_status();
}

Status Pinger::echo_all() {
  std::vector<std::uint64_t> samples;
  Progress progress("round trips", a_.count, !a_.common.json);
  for (std::uint32_t i = 0; i < a_.count; ++i) {
    HAWSER_TRY_ASSIGN(const auto sample, echo_once(i));
    if (sample) samples.push_back(*sample);
    report_.lost += sample ? 0 : 1;
    progress.update(i + 1);
  }
  report_.echo = quantiles_of(std::move(samples));
  if (report_.lost < a_.count || a_.count == 0) return Status();
  return Status(Code::kTimedOut, fmt::format("{} notifications were sent, none came back", a_.count))
      .with_peer(report_.peer)
      .with_advice("is it a `hawser serve`? Other agents do not echo");
}

Status Pinger::write_small() {
  const LocalRange source = scratch_.range(0, kSmall);
  const RemoteRange target = peer_.range("memory", 0, kSmall);
  HAWSER_TRY_ASSIGN(const Plan plan, agent_.plan_write(peer_, std::span(&source, 1), std::span(&target, 1)));
  std::vector<std::uint64_t> samples;
  for (std::uint32_t i = 0; i < a_.count; ++i) {
    HAWSER_TRY(interrupt_status());
    const Instant start = Clock::steady().now();
    HAWSER_TRY_ASSIGN(Transfer transfer, plan.submit({}));
    HAWSER_TRY(transfer.wait(a_.timeout));
    samples.push_back(static_cast<std::uint64_t>((Clock::steady().now() - start).count()));
  }
  report_.small_write = quantiles_of(std::move(samples));
  return Status();
}

Result<double> Pinger::best_rate(const Plan& plan) {
  double best = 0;
  for (std::uint64_t i = 0; i < kBulkRepeats; ++i) {
    HAWSER_TRY(interrupt_status());
    const Instant start = Clock::steady().now();
    HAWSER_TRY_ASSIGN(Transfer transfer, plan.submit({.notify = std::nullopt, .deadline = 10 * a_.timeout}));
    HAWSER_TRY(transfer.wait(10 * a_.timeout));
    best = std::max(best, rate(plan.bytes(), (Clock::steady().now() - start).count()));
  }
  return best;
}

Status Pinger::move_bulk() {
  const std::uint64_t size = report_.bulk.bytes;
  const LocalRange local = scratch_.range(0, size);
  const RemoteRange remote = peer_.range("memory", 0, size);
  HAWSER_TRY_ASSIGN(const Plan write, agent_.plan_write(peer_, std::span(&local, 1), std::span(&remote, 1)));
  HAWSER_TRY_ASSIGN(const Plan read, agent_.plan_read(peer_, std::span(&remote, 1), std::span(&local, 1)));
  HAWSER_TRY_ASSIGN(report_.bulk.write_gb_per_s, best_rate(write));
  HAWSER_TRY_ASSIGN(report_.bulk.read_gb_per_s, best_rate(read));
  report_.explain = agent_.explain(write);
  return Status();
}

Result<PingReport> Pinger::run() {
  HAWSER_TRY(find());
  HAWSER_TRY(echo_all());
  HAWSER_TRY_ASSIGN(const RemoteRange memory, peer_.region("memory"));
  report_.bulk.bytes = std::min(a_.bulk, memory.size);
  const std::uint64_t scratch = std::max(report_.bulk.bytes, kSmall);
  HAWSER_TRY_ASSIGN(scratch_, agent_.allocate({.name = "scratch", .size = scratch, .rights = Rights::kNone}));
  HAWSER_TRY(write_small());
  if (report_.bulk.bytes > 0) HAWSER_TRY(move_bulk());
  for (PathCounters& path : agent_.counters().paths) {
    if (path.peer == report_.peer) report_.paths.push_back(std::move(path));
  }
  HAWSER_TRY(scratch_.close(kPingCloseTimeout));
  HAWSER_TRY(agent_.close(kPingCloseTimeout));
  return report_;
}

std::string ns_text(std::uint64_t ns) { return short_duration(Duration(static_cast<std::int64_t>(ns))); }

void print_text(const PingArguments& a, const PingReport& r) {
  fmt::print("{} ({}): found in {}, connected in {}\n", base::shown(r.peer), r.incarnation,
             short_duration(Duration(r.find_ns)), short_duration(Duration(r.connect_ns)));
  Table times({{"what"},
               {"count", Align::kRight},
               {"min", Align::kRight},
               {"p50", Align::kRight},
               {"p99", Align::kRight},
               {"max", Align::kRight}});
  const auto add = [&](const std::string& what, const Quantiles& q) {
    times.add({what, std::to_string(q.count), ns_text(q.min), ns_text(q.p50), ns_text(q.p99), ns_text(q.max)});
  };
  add(fmt::format("notification of {} and its echo", short_size(std::max<std::uint64_t>(a.probe, 8))), r.echo);
  add("write of 8 B, submit to done", r.small_write);
  fmt::print("{}", times.to_string());
  if (r.lost > 0) fmt::print("{} echoes did not come in time\n", r.lost);
  if (r.bulk.bytes > 0) {
    fmt::print("{} at once: write {} GB/s, read {} GB/s (best of {})\n", short_size(r.bulk.bytes),
               short_rate(r.bulk.write_gb_per_s), short_rate(r.bulk.read_gb_per_s), kBulkRepeats);
  }
  for (const PathCounters& path : r.paths) {
    fmt::print("path {}: {}, {} out, {} in\n", path.backend, path.state, short_size(path.bytes_out),
               short_size(path.bytes_in));
  }
  fmt::print("{}\n", r.explain);
}

Json quantiles_json(const Quantiles& q) {
  return {{"count", q.count}, {"min", q.min}, {"p50", q.p50}, {"p99", q.p99}, {"max", q.max}};
}

void print_json(const PingReport& r) {
  Json json = document("ping");
  json["ok"] = true;
  json["peer"] = r.peer;
  json["incarnation"] = r.incarnation;
  json["find_ns"] = r.find_ns;
  json["connect_ns"] = r.connect_ns;
  json["echo_ns"] = quantiles_json(r.echo);
  json["lost"] = r.lost;
  json["small_write_ns"] = quantiles_json(r.small_write);
  json["bulk"] = {
      {"bytes", r.bulk.bytes}, {"write_gb_per_s", r.bulk.write_gb_per_s}, {"read_gb_per_s", r.bulk.read_gb_per_s}};
  json["paths"] = Json::array();
  for (const PathCounters& path : r.paths) {
    json["paths"].push_back(
        {{"backend", path.backend}, {"state", path.state}, {"bytes_out", path.bytes_out}, {"bytes_in", path.bytes_in}});
  }
  json["explain"] = r.explain;
  print(json);
}

int run_ping(PingArguments& a) {
  catch_interrupts();
  // An address is asked over tcp or quic, whatever moves the bytes afterwards.
  std::vector<std::string>& backends = a.reach.backends;
  const auto is_typed = [](const std::string& name) { return name == "tcp" || name == "quic"; };
  if (!backends.empty() && a.target.find('@') != std::string::npos && std::ranges::none_of(backends, is_typed)) {
    backends.emplace_back("tcp");
  }
  Result<AgentOptions> options = agent_options(a.reach, a.common.config);
  if (!options) return fail("ping", a.common.json, options.error());
  options->name = identity::name_beneath(options->identity.folder, identity::one_of_many("ping"));
  Result<Agent> agent = Agent::open(*std::move(options));
  if (!agent) return fail("ping", a.common.json, agent.error());
  const Result<PingReport> report = Pinger(a, *std::move(agent)).run();
  if (!report) return fail("ping", a.common.json, report.error());
  if (a.common.json) {
    print_json(*report);
  } else {
    print_text(a, *report);
  }
  return kExitOk;
}

}  // namespace

void add_ping(Shell& shell) {
  auto a = std::make_shared<PingArguments>();
  CLI::App* command =
      add_command(shell, "ping", "Measure round trips and bandwidth to an agent", kPingExamples, a->common);
  command
      ->add_option("TARGET", a->target,
                   "name@host:port (name@host:port#TICKET on another host), or a name with --directory")
      ->required();
  command->add_option("-c,--count", a->count, "Round trips and small writes")
      ->check(CLI::Range(1, 10000000))
      ->capture_default_str();
  add_size(command, "-s,--probe", a->probe, "Bytes of a round trip's notification, up to 32KiB (default 8)");
  add_size(command, "--size", a->bulk, "Bytes of the large transfers, at most the peer's region (default 64MiB)");
  add_duration(command, "--timeout", a->timeout, "For finding, connecting and each answer (default 5s)");
  add_reach(command, a->reach);
  on_run(shell, command, [a] {
    if (a->probe <= kProbeSizeMax) return run_ping(*a);
    return fail("ping", a->common.json,
                Status(Code::kInvalid, fmt::format("--probe {} is above {}", a->probe, kProbeSizeMax)));
  });
}

}  // namespace hawser::cli
