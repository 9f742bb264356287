// hawser bench: figures of every kind of transfer beside the ceilings of this machine, measured in the same run.

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <memory>

#include "base/fd.h"
#include "cli/bench/bench.h"
#include "cli/bench/catalog.h"
#include "cli/bench/disturbance.h"
#include "cli/bench/report.h"
#include "cli/bench/report_page.h"
#include "cli/bench/target.h"
#include "cli/coll/command.h"
#include "cli/command.h"
#include "cli/interrupt.h"
#include "cli/json_out.h"
#include "cli/progress.h"
#include "cli/status_exit.h"
#include "cli/system_limits.h"

namespace hawser::cli {
namespace bench {
namespace {

constexpr const char* kBenchExamples =
    "  hawser bench --quick\n"
    "  hawser bench --row 'shm.*,tcp.notify_rtt' --rounds 9\n"
    "  hawser bench --json > figures.json\n"
    "  hawser bench --report out.html                       # a page with plots\n"
    "  hawser bench --from figures.json --report out.html   # the same of an earlier run\n"
    "  hawser bench --backend verbs\n"
    "  hawser bench coll -n 4                               # collectives\n"
    "  UCX_PERFTEST=/opt/ucx/bin/ucx_perftest hawser bench --row 'ucx.*'";

constexpr std::uint64_t kArenaMax = 512u << 20;  // bytes; 8000 blocks of 64 KiB fit
constexpr std::uint64_t kArenaMin = 128u << 20;  // 1000 blocks of 64 KiB fit twice
constexpr std::uint64_t kMemoryShare = 6;        // of what is free: three arenas, and as much again for others

struct BenchArguments {
  Common common;
  std::string rows = "*";
  std::string backend;  ///< Rows of this one alone; empty: all.
  std::string report;   ///< The page to write; empty: none.
  std::string from;     ///< Results of an earlier run, to make the page of; empty: run.
  std::size_t rounds = 0;
  bool quick = false, list = false;
  std::string role;
  int control_fd = -1;
};

BenchOptions options_of(const BenchArguments& a) {
  BenchOptions options;
  options.config = a.common.config;
  options.quick = a.quick;
  options.rounds = a.rounds > 0 ? a.rounds : a.quick ? 2 : 5;
  if (a.quick) options.slice = std::chrono::milliseconds(10);
  const std::uint64_t free = available_memory();
  options.arena_bytes = a.quick ? kArenaMin : kArenaMax;
  while (free > 0 && options.arena_bytes > kArenaMin && options.arena_bytes > free / kMemoryShare)
    options.arena_bytes /= 2;
  return options;
}

bool is_of(const Row& row, const std::string& backend) { return backend.empty() || row.id.starts_with(backend + "."); }

std::vector<Row> chosen_rows(const BenchArguments& a, const BenchOptions& options) {
  std::vector<Row> rows = all_rows(options);
  std::erase_if(rows, [&](const Row& row) { return !matches(row.id, a.rows) || !is_of(row, a.backend); });
  return rows;
}

std::vector<Outcome> run_rows(const std::vector<Row>& rows, const BenchOptions& options, bool quiet) {
  Bench bench(options);
  Progress progress("bench", rows.size(), !quiet);
  std::vector<Outcome> outcomes;
  for (const Row& row : rows) {
    if (interrupted()) break;
    progress.update(outcomes.size());
    const auto before = read_cpu();
    const Result<Figure> figure = row.run(bench);
    const auto after = read_cpu();
    const auto others = before && after ? others_share(*before, *after) : std::nullopt;
    outcomes.push_back({&row, figure.error(), figure ? *figure : Figure(), others});
    // A stage in which something went wrong is not for others.
    if (is_failed(outcomes.back())) bench.drop_stage();
  }
  return outcomes;
}

// Targets are reported, never enforced: only wrong bytes and a broken run are failures.
int exit_code_of(const std::vector<Outcome>& outcomes) {
  if (interrupted()) return exit_code(interrupt_status());
  for (const Outcome& outcome : outcomes) {
    if (is_failed(outcome)) return exit_code(outcome.status);
  }
  return kExitOk;
}

int report_of_earlier(const BenchArguments& a) {
  const Result<Json> results = read_results(a.from);
  if (!results) return fail("bench", a.common.json, results.error());
  if (const Status written = write_page(a.report, *results); !written.ok())
    return fail("bench", a.common.json, written);
  return kExitOk;
}

// Before minutes of measuring, not after them.
Status check_place(const std::string& path) {
  const std::filesystem::path folder = std::filesystem::absolute(path).parent_path();
  if (std::filesystem::is_directory(path)) {
    return Status(Code::kInvalid, fmt::format("'{}' is a folder: --report takes a file", path));
  }
  if (::access(folder.c_str(), W_OK | X_OK) == 0) return {};
  return base::errno_status(Code::kInvalid, fmt::format("--report: making a file in '{}'", folder.string()), errno);
}

int run(const BenchArguments& a) {
  if (a.role == "target") return run_target(base::Fd(a.control_fd));
  if (!a.report.empty()) {
    if (const Status place = check_place(a.report); !place.ok()) return fail("bench", a.common.json, place);
  }
  if (!a.from.empty()) return report_of_earlier(a);
  const BenchOptions options = options_of(a);
  const std::vector<Row> rows = chosen_rows(a, options);
  if (rows.empty()) {
    return fail("bench", a.common.json,
                Status(Code::kInvalid, fmt::format("no row matches '{}'{}", a.rows,
                                                   a.backend.empty() ? "" : " of backend '" + a.backend + "'"))
                    .with_advice("--list shows all"));
  }
  if (a.list) {
    a.common.json ? print(rows_json(rows)) : fmt::print("{}", rows_text(rows));
    return kExitOk;
  }
  const Result<Surroundings> found = look_around(options);
  if (!found) return fail("bench", a.common.json, found.error());
  catch_interrupts();
  if (!a.common.json) fmt::print("{}\n", surroundings_text(*found, options));
  std::fflush(stdout);
  const std::vector<Outcome> outcomes = run_rows(rows, options, a.common.json);
  const Json results = results_json(*found, options, outcomes);
  a.common.json ? print(results) : fmt::print("{}", results_text(outcomes));
  std::fflush(stdout);
  if (!a.report.empty()) {
    if (const Status written = write_page(a.report, results); !written.ok())
      return fail("bench", a.common.json, written);
  }
  return exit_code_of(outcomes);
}

}  // namespace
}  // namespace bench

void add_bench(Shell& shell) {
  auto a = std::make_shared<bench::BenchArguments>();
  CLI::App* command = add_command(shell, "bench", "Measure transfers of every kind beside the ceilings of this machine",
                                  bench::kBenchExamples, a->common);
  command->add_option("--row", a->rows, "Rows to run: ids with * and ?, several by commas")->capture_default_str();
  command->add_option("--backend", a->backend, "Rows of one backend alone: shm, tcp, verbs");
  command->add_option("--rounds", a->rounds, "Rounds of each row (default: 5, with --quick 2)")
      ->check(CLI::Range(1, 1000));
  command->add_flag("--quick", a->quick, "Short and rough: smaller arenas, less time");
  command->add_flag("--list", a->list, "Show the rows and their targets, run none");
  CLI::Option* report =
      command->add_option("--report", a->report, "Write a page with plots to this file, for a browser");
  command->add_option("--from", a->from, "Make the report of this file, which --json printed, and measure nothing")
      ->needs(report);
  command->add_option("--role", a->role)->group("");
  command->add_option("--control-fd", a->control_fd)->group("");
  on_run(shell, command, [a] { return bench::run(*a); });
  add_bench_coll(shell, *command);
}

}  // namespace hawser::cli
