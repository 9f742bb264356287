// hawser sim: real agents, the ranks of a world, or QUIC connections, in a simulated universe, under faults, with a
// judge. All of a run follows from its seed.

#include <fmt/format.h>

#include <cstdio>
#include <memory>

#include "cli/command.h"
#include "cli/interrupt.h"
#include "cli/progress.h"
#ifdef HAWSER_WITH_QUIC
#include "cli/quic_sim_report.h"
#endif
#include "cli/scale_report.h"
#include "cli/sim_report.h"
#include "cli/status_exit.h"
#include "cli/world_sim_report.h"

namespace hawser::cli {
namespace {

constexpr const char* kSimExamples =
    "  hawser sim --seed 42\n"
    "  hawser sim --seed 42 --mode mapped --trace\n"
    "  hawser sim --seed 1 --count 2000 --json\n"
    "  hawser sim --what world --seed 1 --count 500\n"
    "  hawser sim --what quic --seed 1 --count 1000\n"
    "  hawser sim --what scale --ranks 4096";

struct SimArguments {
  Common common;
  std::uint64_t seed = 1;
  std::uint64_t count = 1;
  std::uint32_t ranks = 4096;
  std::string what = "agents";
  std::string mode = "stream";
  bool trace = false;
  const CLI::Option* mode_option = nullptr;
};

void print_trace(Instant at, std::string_view line) {
  fmt::print("{:.6f} {}\n", static_cast<double>(at.ns()) / 1e9, line);
}

/// Runs the seeds of one of the simulators, and tells of those that fail as they come.
template <typename Run, typename Options>
auto run_seeds(const SimArguments& a, sim::Mode mode, Options options, auto run_batch, auto replay_command) {
  catch_interrupts();
  Progress progress("seeds", a.count, a.count > 1 && !a.common.json && !a.trace);
  options.first = a.seed;
  options.count = a.count;
  options.mode = mode;
  if (a.trace) options.trace = print_trace;
  options.on_run = [&](std::uint64_t seed, const Run& run) {
    if (!run.ok) {
      progress.finish();
      fmt::print(stderr, "seed {} failed {}\n  replay: {}\n", seed, run.failure, replay_command(seed, mode));
    }
    progress.update(seed - a.seed + 1);
    return !interrupted();
  };
  auto batch = run_batch(options);
  progress.finish();
  return batch;
}

template <typename Report>
int tell(const SimArguments& a, const Report& report) {
  if (const Status status = interrupt_status(); !status.ok()) return fail("sim", a.common.json, status);
  if (a.common.json) {
    print(to_json(report));
  } else {
    fmt::print("{}", to_text(report));
  }
  return exit_code(verdict(report));
}

int run_scale(const SimArguments& a) {
  const ScaleReport report = {.ranks = a.ranks, .rows = worldsim::run_scale(a.ranks)};
  if (a.common.json) {
    print(to_json(report));
  } else {
    fmt::print("{}", to_text(report));
  }
  return 0;
}

int run_quic([[maybe_unused]] const SimArguments& a) {
#ifdef HAWSER_WITH_QUIC
  if (const Status ready = quicsim::is_ready(); !ready.ok()) return fail("sim", a.common.json, ready);
  return tell(a, QuicSimReport{.first = a.seed,
                               .batch = run_seeds<quicsim::Run>(a, sim::Mode::kStream, quicsim::BatchOptions(),
                                                                quicsim::run_batch, quicsim::replay_command)});
#else
  return fail(
      "sim", a.common.json,
      Status(Code::kUnsupported, "this build has no QUIC: it was made without the headers of ngtcp2 0.12, or 1.11")
          .with_advice("build on Debian 12 or 13 with libngtcp2-dev and libngtcp2-crypto-gnutls-dev"));
#endif
}

int run_sim(const SimArguments& a) {
  if (a.what == "scale") return run_scale(a);
  if (a.what == "quic" && a.mode_option->count() > 0) {
    return fail("sim", a.common.json,
                Status(Code::kInvalid, "--what quic has no modes").with_advice("leave --mode out"));
  }
  if (a.what == "quic") return run_quic(a);
  const Result<sim::Mode> mode = simulation::mode_of(a.mode);
  if (!mode) return fail("sim", a.common.json, mode.error());
  if (a.what == "world") {
    return tell(a, WorldSimReport{.first = a.seed,
                                  .mode = *mode,
                                  .batch = run_seeds<worldsim::Run>(a, *mode, worldsim::BatchOptions(),
                                                                    worldsim::run_batch, worldsim::replay_command)});
  }
  return tell(a, SimReport{.first = a.seed,
                           .mode = *mode,
                           .batch = run_seeds<simulation::Run>(a, *mode, simulation::BatchOptions(),
                                                               simulation::run_batch, simulation::replay_command)});
}

}  // namespace

void add_sim(Shell& shell) {
  auto a = std::make_shared<SimArguments>();
  CLI::App* command = add_command(shell, "sim", "Run agents in a simulated network under faults; a seed repeats a run",
                                  kSimExamples, a->common);
  command->add_option("--seed", a->seed, "What everything in the run follows from; of several, the first")
      ->check(whole_number())
      ->capture_default_str();
  command->add_option("--count", a->count, "How many seeds, one after another")
      ->check(whole_number(1))
      ->capture_default_str();
  command
      ->add_option("--what", a->what,
                   "agents: users of agents; world: the ranks of a world; quic: QUIC connections; scale: what "
                   "collectives of many ranks take in virtual time, without faults")
      ->check(CLI::IsMember({"agents", "world", "quic", "scale"}))
      ->capture_default_str();
  command->add_option("--ranks", a->ranks, "Of --what scale: how many")
      ->check(CLI::Range(std::uint32_t{2}, worldsim::kScaleRanksMax))
      ->capture_default_str();
  a->mode_option =
      command->add_option("--mode", a->mode, "stream: over byte streams, as tcp; mapped: over shared memory, as shm")
          ->check(CLI::IsMember({"stream", "mapped"}))
          ->capture_default_str();
  CLI::Option* json = command->get_option("--json");
  command->add_flag("--trace", a->trace, "Print each thing that happens, with its virtual time")->excludes(json);
  on_run(shell, command, [a] { return run_sim(*a); });
}

}  // namespace hawser::cli
