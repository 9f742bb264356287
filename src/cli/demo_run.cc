#include "cli/demo_run.h"

#include <fmt/format.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>

#include "base/try.h"
#include "cli/demo_child.h"
#include "cli/demo_control.h"
#include "cli/interrupt.h"
#include "cli/progress.h"

namespace hawser::cli {
namespace {

constexpr Duration kDemoSetupTimeout = std::chrono::seconds(60);  // allocating and touching the memory
constexpr Duration kDemoCloseTimeout = std::chrono::seconds(2);
constexpr Duration kLastWords = std::chrono::milliseconds(300);  // for a dying child to say why
constexpr std::uint64_t kCeilingBytesMax = 512u << 20;           // far beyond any cache, and half a second to touch
constexpr std::uint64_t kCeilingBytesMin = 16u << 20;

class Run {
 public:
  Run(const DemoOptions& options, const Workload& work, RunReport& report)
      : options_(options), work_(work), report_(report) {}

  Status run();

 private:
  Status start();
  Status run_wave(std::size_t number, const std::vector<Request>& requests);
  Status run_pass(std::uint32_t pass, std::size_t wave, const std::vector<Request>& requests);
  Status verify(std::size_t requests);
  Status finish();
  Status alive();
  /// The child's last words, or how it ended, say more than a closed line does.
  Status blame(const Status& status);
  Control::Idle idle();

  const DemoOptions& options_;
  const Workload& work_;
  RunReport& report_;
  std::optional<Child> child_;
  std::optional<Control> control_;
  std::optional<Prefill> prefill_;
};

Status Run::run() {
  Status status = start();
  for (std::size_t wave = 0; wave < work_.waves.size() && status.ok(); ++wave) {
    status = run_wave(wave, work_.waves[wave]);
  }
  if (!status.ok()) return blame(status);
  report_.explain = prefill_->explain();
  report_.huge_pages = prefill_->huge_pages();
  return finish();
}

Status Run::start() {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) {
    return base::errno_status("the line to the second process", errno);
  }
  control_.emplace(base::Fd(ends[0]));
  base::Fd theirs(ends[1]);
  const bool is_far = !options_.far_command.empty();
  HAWSER_TRY_ASSIGN(Child child, is_far ? Child::start_far(options_.far_command, "decode", theirs)
                                        : Child::start("demo", "decode", theirs));
  theirs.reset();  // Only the child has it now, so its death closes the line.
  child_.emplace(std::move(child));

  const Geometry& geometry = options_.geometry;
  DemoSetup setup{{geometry.layers, geometry.planes, work_.blocks, geometry.block_bytes()},
                  report_.backend,
                  is_far ? std::string() : options_.config,  // The file is here. There is another one, or none.
                  is_far,
                  options_.seed,
                  options_.timeout};
  HAWSER_TRY(control_->send(to_json(setup), options_.timeout));
  setup.config = options_.config;
  HAWSER_TRY_ASSIGN(Prefill prefill, Prefill::open(setup));
  prefill_.emplace(std::move(prefill));
  HAWSER_TRY_ASSIGN(const std::string card, prefill_->card());
  Json peer = control_message("peer");
  peer["card"] = to_hex(card);
  HAWSER_TRY(control_->send(peer, options_.timeout));

  HAWSER_TRY_ASSIGN(const Json answer, control_->receive("card", kDemoSetupTimeout, idle()));
  HAWSER_TRY_ASSIGN(const std::string bytes, from_hex(answer.value("card", "")));
  const Instant connecting = Clock::steady().now();
  HAWSER_TRY(prefill_->meet(bytes));
  report_.connect_ns = (Clock::steady().now() - connecting).count();
  return Status();
}

Status Run::run_wave(std::size_t number, const std::vector<Request>& requests) {
  Json wave = control_message("wave");
  for (const Request& request : requests) {
    wave["requests"].push_back({{"id", request.id}, {"blocks", request.blocks}});
  }
  HAWSER_TRY(control_->send(wave, options_.timeout));
  HAWSER_TRY_ASSIGN(const Json answer, control_->receive("tables", kDemoSetupTimeout, idle()));
  auto tables = answer.value("tables", std::vector<std::vector<std::uint32_t>>());
  if (tables.size() != requests.size()) return Status(Code::kCorrupt, "the decode side gave too few block tables");
  prefill_->begin_wave(requests, std::move(tables), options_.verify);
  for (std::uint32_t pass = 0; pass <= options_.warm_passes; ++pass) {
    HAWSER_TRY(run_pass(pass, number, requests));
  }
  return Status();
}

Status Run::run_pass(std::uint32_t pass, std::size_t wave, const std::vector<Request>& requests) {
  Json begin = control_message("pass");
  begin["pass"] = pass;
  HAWSER_TRY(control_->send(begin, options_.timeout));
  HAWSER_TRY(control_->receive("ready", options_.timeout, idle()).status());

  Progress progress(fmt::format("{} wave {}/{} {}", report_.backend, wave + 1, work_.waves.size(),
                                pass == 0 ? "cold" : fmt::format("warm {}", pass)),
                    requests.size(), options_.progress);
  HAWSER_TRY_ASSIGN(const PassTimes times,
                    prefill_->run_pass(pass, options_.concurrency, [&](std::uint32_t acknowledged) {
                      progress.update(acknowledged);
                      return alive();
                    }));
  if (report_.passes.size() <= pass) report_.passes.resize(pass + 1);
  PassReport& total = report_.passes[pass];
  total.pass = pass;
  total.times.wall_ns += times.wall_ns;
  total.times.moving_ns += times.moving_ns;
  total.times.bytes += times.bytes;
  total.times.latency_ns.insert(total.times.latency_ns.end(), times.latency_ns.begin(), times.latency_ns.end());
  return options_.verify ? verify(requests.size()) : Status();
}

Status Run::verify(std::size_t requests) {
  HAWSER_TRY(control_->send(control_message("verify"), options_.timeout));
  HAWSER_TRY_ASSIGN(const Json answer, control_->receive("verified", options_.timeout, idle()));
  const auto good = answer.value("good", std::uint64_t{0});
  report_.verified += good;
  report_.to_verify += requests;
  report_.verify_ns += answer.value("ns", std::int64_t{0});
  for (const Json& fault : answer.value("faults", Json::array())) {
    const auto request = fault.value("request", 0u);
    const auto layer = fault.value("layer", 0u);
    const auto blocks = prefill_->differing(request, layer, fault.value("sums", std::vector<std::uint64_t>()));
    report_.faults.push_back(
        fault.value("missing", false)
            ? fmt::format("request {}: no record, or of another block table", request)
            : fmt::format("request {}, layer {}: blocks {} differ", request, layer, fmt::join(blocks, ", ")));
  }
  if (good == requests) return Status();
  return Status(Code::kCorrupt, fmt::format("{} of {} requests differ from their source", requests - good, requests))
      .with_advice("report this with the seed; --json lists the blocks");
}

Status Run::finish() {
  HAWSER_TRY(control_->send(control_message("quit"), options_.timeout));
  const Instant deadline = Clock::steady().now() + 2 * kDemoCloseTimeout;
  // Its agent says goodbye to ours, which must be there to listen.
  while (child_->running().ok() && Clock::steady().now() < deadline) prefill_->wait(std::chrono::milliseconds(5));
  const Status child = child_->wait(kDemoCloseTimeout);
  const Status own = prefill_->close(kDemoCloseTimeout);
  return child.ok() ? own : child;
}

Control::Idle Run::idle() {
  return [this] {
    if (prefill_) prefill_->poll();
    return interrupt_status();
  };
}

Status Run::alive() {
  HAWSER_TRY(interrupt_status());
  HAWSER_TRY(child_->running());
  if (!control_->pending()) return Status();
  // During a pass the child speaks up only when something is wrong.
  return control_->next(kLastWords, idle()).status();
}

Status Run::blame(const Status& status) {
  if (interrupted() || !child_ || !control_) return status.ok() ? interrupt_status() : status;
  Status words;
  if (status.code() == Code::kDisconnected || status.code() == Code::kTimedOut) {
    words = control_->next(kLastWords, {}).status();
    const Status end = child_->wait(kLastWords);
    if (!words.ok() && words.code() != Code::kDisconnected && words.code() != Code::kTimedOut) {
      return Status(words.code(), "the decode process gave up").because(words);
    }
    if (!end.ok() && end.code() != Code::kTimedOut) return end.because(status);
  }
  return status;
}

Ceiling better(const Ceiling& a, const Ceiling& b) { return a.gb_per_s >= b.gb_per_s ? a : b; }

Ceiling ceiling_of(const DemoOptions& options, const Workload& work, const std::string& backend) {
  if (!options.ceiling || interrupted()) return {};
  const std::uint64_t moved = work.blocks * options.geometry.block_bytes_all();
  const std::uint64_t bytes = std::clamp(std::min(moved, options.memory), kCeilingBytesMin, kCeilingBytesMax);
  return measure_ceiling(backend, {options.geometry.block_bytes(), bytes}).value_or(Ceiling{});
}

}  // namespace

RunReport run_backend(const DemoOptions& options, const Workload& work, const std::string& backend) {
  RunReport report;
  report.backend = backend;
  // No agent is open while the raw loops run: they fork, and want the cores for themselves.
  report.ceiling_before = ceiling_of(options, work, backend);
  if (options.ceiling) report.core_ns_before = core_round_trip_ns();
  {
    Run run(options, work, report);
    report.status = run.run();
  }
  if (options.ceiling && !interrupted()) report.core_ns_after = core_round_trip_ns();
  if (report.status.ok()) report.ceiling_after = ceiling_of(options, work, backend);
  report.ceiling = better(report.ceiling_before, report.ceiling_after);
  return report;
}

}  // namespace hawser::cli
