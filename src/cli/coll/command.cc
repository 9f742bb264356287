// hawser bench coll: times of collectives beside the cost model, and a cost model of this machine's own.
//
// The process that the user started starts the ranks, each by the same command with --as-rank, as `hawser run` would.
// Rank 0 prints one line of JSON for it. Under `hawser run` or another launcher the command is a rank itself.

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/fd.h"
#include "base/try.h"
#include "cli/bench/disturbance.h"
#include "cli/coll/call.h"
#include "cli/coll/command.h"
#include "cli/coll/own_core.h"
#include "cli/coll/report.h"
#include "cli/interrupt.h"
#include "cli/rank_run.h"
#include "cli/status_exit.h"
#include "identity/whole_file.h"

namespace hawser::cli {
namespace coll {
namespace {

constexpr const char* kCollExamples =
    "  hawser bench coll -n 4\n"
    "  hawser bench coll -n 2 --operation all_reduce --bytes 8,64K,16M --backend tcp\n"
    "  hawser bench coll -n 4 --tune --output costs.toml\n"
    "  hawser collectives --ranks 4 --cost-model costs.toml\n"
    "  hawser bench coll --hosts node1:4,node2:4 --tune --output costs.toml\n"
    "  HAWSER_COST_MODEL=costs.toml hawser run -n 4 python train.py";

struct CollArguments {
  Common common;
  std::uint32_t ranks = 0;
  std::string hosts, ssh = "ssh", address;
  std::string backend, operation, cost_model, output;
  std::vector<std::string> bytes = {"8", "4K", "64K", "1M", "16M"};
  std::size_t repetitions = 500, rounds = 9;
  bool mapped = false, pin = false, tune = false, as_rank = false;
};

/// Where a launcher has started it, and the user asks for no ranks.
std::optional<std::uint32_t> own_rank(const CollArguments& a) {
  const Result<LaunchedRank> launched = launched_rank(ConfigSources::from_process());
  const bool is_one = launched && (a.as_rank || (a.ranks == 0 && a.hosts.empty()));
  return is_one ? std::optional(launched->rank) : std::nullopt;
}

Result<Place> place_of(const World& world, const LoadedConfig& config) {
  Place place;
  for (std::uint32_t rank = 0; rank < world.size(); ++rank) place.hosts.push_back(world.host(rank));
  for (const ConfigValue& value : config.values) {
    if (value.name == "backends") place.backends = value.value;
  }
  place.cost_model = world.cost_model();
  for (const auto& [name, value] : world.costs()) {
    for (const schedule::CostField& field : schedule::kCostFields) {
      if (field.name == name) place.model.*field.value = value;
    }
  }
  return place;
}

Status wrong_results(std::uint64_t wrong) {
  return wrong == 0 ? Status() : Status(Code::kCorrupt, fmt::format("{} elements of results are wrong", wrong));
}

Result<Json> run_bench(const CollArguments& a, World& world, const Place& place) {
  constexpr std::size_t kLeast = 5;
  Meter meter(world);
  std::vector<Measured> all;
  std::uint64_t wrong = 0;
  const std::vector<schedule::Operation> usual = {schedule::Operation::kBarrier,   schedule::Operation::kBroadcast,
                                                  schedule::Operation::kReduce,    schedule::Operation::kAllReduce,
                                                  schedule::Operation::kAllGather, schedule::Operation::kReduceScatter,
                                                  schedule::Operation::kAllToAll};
  const std::optional<schedule::Operation> one = operation_named(a.operation);
  for (const schedule::Operation operation : one ? std::vector<schedule::Operation>{*one} : usual) {
    for (const std::uint64_t bytes :
         operation == schedule::Operation::kBarrier ? std::vector<std::uint64_t>{0} : sizes_of(a.bytes)) {
      HAWSER_TRY_ASSIGN(Measured got, meter.measure({.operation = operation, .bytes = bytes, .mapped = a.mapped},
                                                    Meter::repetitions_of(bytes, kLeast, a.repetitions)));
      wrong += got.wrong;
      all.push_back(std::move(got));
    }
  }
  HAWSER_TRY(wrong_results(wrong));
  return bench_json(place, all);
}

Result<Json> run_tune(const CollArguments& a, World& world, Place place) {
  const bool is_one_host = std::ranges::count(place.hosts, place.hosts[0]) == std::ssize(place.hosts);
  if (is_one_host && !a.backend.empty() && a.backend != "shm") {
    return Status(Code::kInvalid, fmt::format("{} within one host says nothing of a network", a.backend))
        .with_advice("give --hosts, or leave out --backend to measure what ranks of one host use");
  }
  HAWSER_TRY_ASSIGN(Tuned tuned, coll::tune(world, a.rounds));
  HAWSER_TRY(wrong_results(tuned.wrong));
  if (world.rank() != 0) return Json();
  tuned.file.backends = place.backends;
  return tune_json(place, tuned);
}

/// Of rank 0 the report.
Result<Json> measure(const CollArguments& a) {
  ConfigSources sources = ConfigSources::from_process();
  if (!a.common.config.empty()) sources.file = a.common.config;
  if (!a.backend.empty()) sources.overrides["backends"] = a.backend;
  if (!a.cost_model.empty()) sources.overrides["cost_model"] = a.cost_model;
  HAWSER_TRY_ASSIGN(const LoadedConfig config, load_config(sources));
  HAWSER_TRY_ASSIGN(WorldOptions options, launched_world(sources));
  HAWSER_TRY_ASSIGN(World world, World::open(std::move(options)));
  HAWSER_TRY_ASSIGN(Place place, place_of(world, config));
  std::optional<OwnCore> core;
  if (a.pin || a.tune) core.emplace(world.local_rank(), world.local_size());
  place.pinned = core && core->is_kept();
  Result<Json> report = a.tune ? run_tune(a, world, std::move(place)) : run_bench(a, world, place);
  const Status status = world.shutdown(std::chrono::seconds(10));
  if (report && !status.ok()) return status;
  return report;
}

/// Before minutes of measuring, not after them.
Status check_output(const std::string& path) {
  if (path.empty()) return {};
  if (std::filesystem::is_directory(path)) {
    return Status(Code::kInvalid, fmt::format("'{}' is a folder: --output takes a file", path));
  }
  const std::filesystem::path folder = std::filesystem::absolute(path).parent_path();
  if (::access(folder.c_str(), W_OK | X_OK) == 0) return {};
  return base::errno_status(Code::kInvalid, fmt::format("--output: making a file in '{}'", folder.string()), errno);
}

/// What the user sees, and the file.
int show(const CollArguments& a, const Json& report) {
  if (!a.output.empty()) {
    const Status written = identity::write_whole_file(a.output, report.at("tune").at("file").get<std::string>());
    if (!written.ok()) return fail(kBenchColl, a.common.json, written);
  }
  if (a.common.json) {
    print(report);
    return kExitOk;
  }
  fmt::print("{}", to_text(report));
  if (!a.tune) return kExitOk;
  if (a.output.empty()) {
    fmt::print("\n{}", report.at("tune").at("file").get<std::string>());
  } else {
    fmt::print("Written to {}. Use it: HAWSER_COST_MODEL={}, or the option cost_model.\n", a.output, a.output);
  }
  return kExitOk;
}

int be_a_rank(const CollArguments& a, std::uint32_t rank) {
  const Result<Json> report = measure(a);
  if (!a.as_rank) {
    if (!report) return fail(kBenchColl, a.common.json, report.error());
    return rank == 0 ? show(a, *report) : kExitOk;
  }
  Json told = report ? *report : document(kBenchColl);
  if (!report) {
    told["ok"] = false;
    told["error"] = to_json(report.error());
  }
  print_line(told);
  return report ? kExitOk : exit_code(report.error());
}

std::vector<std::string> rank_command(const CollArguments& a, const std::string& program) {
  std::vector<std::string> words = {program, "bench", "coll", "--as-rank"};
  const auto add = [&](const char* option, const std::string& value) {
    if (!value.empty()) words.insert(words.end(), {option, value});
  };
  add("--config", a.common.config);
  add("--backend", a.backend);
  add("--operation", a.operation);
  add("--bytes", fmt::format("{}", fmt::join(a.bytes, ",")));
  add("--repetitions", std::to_string(a.repetitions));
  add("--rounds", std::to_string(a.rounds));
  if (a.mapped) words.emplace_back("--mapped");
  if (a.pin) words.emplace_back("--pin");
  if (a.tune) words.emplace_back("--tune");
  return words;
}

/// The file is this host's, so it goes to the ranks by what is in it: only by a rank of this host.
Result<Json> run_ranks(const CollArguments& a) {
  std::error_code error;
  const std::string program = std::filesystem::read_symlink("/proc/self/exe", error).string();
  if (error) return Status(Code::kNotFound, "where this program lies is unknown");
  LaunchOptions launch{.ranks = a.ranks, .address = a.address, .config_file = a.common.config};
  if (launch.ranks == 0 && a.hosts.empty()) launch.ranks = 2;
  HAWSER_TRY(place_on_hosts(a.hosts, a.ssh, launch));
  if (!a.cost_model.empty()) {
    const std::string path = std::filesystem::absolute(a.cost_model).string();
    ::setenv("HAWSER_COST_MODEL", path.c_str(), 1);
  }
  launch.command = rank_command(a, program);
  std::map<std::uint32_t, std::string> told;
  RankRun ranks(launch, std::string(kBenchColl), [&](std::uint32_t rank, int which, std::string_view line) {
    if (which == 0) {
      told[rank] += line;
    } else {
      fmt::print(stderr, "[{}] {}\n", rank, line);
    }
  });
  HAWSER_TRY_ASSIGN(const int code, ranks.run());
  const std::uint32_t rank = ranks.failed_first().value_or(0);
  Json report = Json::parse(told[rank], nullptr, false);
  if (!report.is_object() || (code == 0) != report.value("ok", false)) {
    return Status(Code::kFailed, fmt::format("rank {} ended with exit code {} and without a report", rank, code));
  }
  if (code != 0) return status_from(report["error"]);
  return report;
}

int run_coll(const CollArguments& a) {
  if (!a.output.empty() && !a.tune) {
    return fail(kBenchColl, a.common.json,
                Status(Code::kInvalid, "--output is for the file of --tune").with_advice("--json prints the figures"));
  }
  const std::optional<std::uint32_t> rank = own_rank(a);
  const Status place = rank.value_or(0) == 0 ? check_output(a.output) : Status();
  if (!place.ok()) return fail(kBenchColl, a.common.json, place);
  if (rank) return be_a_rank(a, *rank);
  catch_interrupts();
  const auto before = bench::read_cpu();
  Result<Json> report = run_ranks(a);
  const auto after = bench::read_cpu();
  if (!report) return fail(kBenchColl, a.common.json, report.error());
  const auto others = before && after ? bench::others_share(*before, *after) : std::nullopt;
  if (others) (*report)["others_cpu"] = *others;
  return show(a, *report);
}

}  // namespace
}  // namespace coll

void add_bench_coll(Shell& shell, CLI::App& bench) {
  auto a = std::make_shared<coll::CollArguments>();
  CLI::App* command =
      add_subcommand(bench, "coll", "Measure collectives beside the cost model, or measure a model of this machine",
                     coll::kCollExamples, a->common);
  command->add_option("-n,--ranks", a->ranks, "How many, each a process (default: 2, or the hosts' slots)")
      ->check(CLI::Range(1U, kRanksMax));
  command->add_option("--hosts", a->hosts,
                      "Hosts that share the ranks, as `hawser run` takes them (default: this host)");
  command->add_option("--ssh", a->ssh, "What starts ranks on other hosts, called with a host and a command")
      ->capture_default_str();
  command->add_option("--address", a->address, "How other hosts reach this one (default: its first address)");
  command->add_option("--backend", a->backend, "Backends of the ranks, such as shm or tcp (default: their own choice)");
  command->add_option("--operation", a->operation, "One of them alone, such as all_reduce")
      ->check(coll::wrong_operation);
  command->add_option("--bytes", a->bytes, "Sizes, several by commas: of the tensor, or of all ranks' blocks together")
      ->delimiter(',')
      ->check(coll::wrong_size)
      ->capture_default_str();
  command->add_flag("--mapped", a->mapped, "Buffers in memory that the ranks of a host map (World.empty)");
  command->add_flag("--pin", a->pin, "Each rank keeps to a core of its own, where there are enough (--tune does so)");
  command->add_option("--repetitions", a->repetitions, "Of small operations; fewer of large ones")
      ->check(CLI::Range(1, 1'000'000))
      ->capture_default_str();
  command->add_option("--cost-model", a->cost_model,
                      "The model to compare with, a file of --tune (default: the option cost_model)");
  command->add_flag("--tune", a->tune,
                    "Measure the values of the cost model, by each algorithm, and print a file of them");
  command->add_option("--rounds", a->rounds, "Of --tune: how often everything is measured")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  command->add_option("--output", a->output, "Of --tune: where the file is written instead");
  command->add_flag("--as-rank", a->as_rank)->group("");
  on_run(shell, command, [a] { return coll::run_coll(*a); });
}

}  // namespace hawser::cli
