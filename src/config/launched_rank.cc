// This process's rank, as its launcher tells it.

#include <array>
#include <charconv>
#include <optional>
#include <string_view>

#include <hawser/config.h>
#include <hawser/topology.h>

#include "base/format.h"
#include "base/try.h"

namespace hawser::config {
namespace {

/// The variables of one launcher. An empty name: it has none.
struct Launcher {
  std::string_view name, rank, size, local_rank, run, restart;
};

/// Those that others may set beside their own come last: torchrun and Slurm start launchers, too.
constexpr std::string_view kPmixRank = "PMIX_RANK", kWorldSize = "HAWSER_WORLD_SIZE";
constexpr std::array<Launcher, 7> kLaunchers = {{
    {"hawser run", "HAWSER_WORLD_RANK", "HAWSER_WORLD_SIZE", "HAWSER_WORLD_LOCAL_RANK", "HAWSER_WORLD_NAME", ""},
    {"Open MPI", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK", "PMIX_NAMESPACE", ""},
    {"MPICH", "PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "PMI_KVS", ""},
    // PMIx tells each process its number, but not how many there are.
    {"PMIx", kPmixRank, kWorldSize, "", "PMIX_NAMESPACE", ""},
    {"torchrun", "RANK", "WORLD_SIZE", "LOCAL_RANK", "TORCHELASTIC_RUN_ID", "TORCHELASTIC_RESTART_COUNT"},
    {"Slurm", "SLURM_PROCID", "SLURM_NTASKS", "SLURM_LOCALID", "SLURM_JOB_ID", "SLURM_STEP_ID"},
    // Kubernetes tells each pod of an indexed job its number, but not how many there are.
    {"Kubernetes", "JOB_COMPLETION_INDEX", kWorldSize, "", "HAWSER_WORLD_NAME", ""},
}};

std::string_view text_of(const ConfigSources::Texts& environment, std::string_view variable) {
  const auto found = environment.find(variable);
  return found == environment.end() ? std::string_view() : std::string_view(found->second);
}

/// A launcher of PMIx within another launcher's job, whose variables its processes inherit: all of them would be one
/// rank. And one alone, which does not tell how many ranks there are.
Status check_pmix(const ConfigSources::Texts& environment, std::string_view rank_variable) {
  const std::string_view rank = text_of(environment, kPmixRank);
  if (rank.empty() || rank_variable == kPmixRank || rank == text_of(environment, rank_variable)) return {};
  const bool is_alone = rank_variable.empty();
  const std::string what =
      is_alone
          ? base::format("PMIX_RANK = {} tells this process its rank, and nothing tells how many ranks there are", rank)
          : base::format("PMIX_RANK = {} and {} = {} differ", rank, rank_variable, text_of(environment, rank_variable));
  return Status(Code::kInvalid, what)
      .with_advice(
          "set HAWSER_WORLD_SIZE to the number of ranks, and HAWSER_SEED or HAWSER_DIRECTORY to where they "
          "find one another");
}

/// A topology as nexar writes it, in this library's words.
std::string of_nexar(std::string_view text) {
  constexpr std::string_view kRegular = "k_regular:";
  if (text == "full_mesh") return "full";
  if (text.starts_with(kRegular)) return "regular:" + std::string(text.substr(kRegular.size()));
  return std::string(text);
}

Result<std::uint32_t> number_of(const ConfigSources::Texts& environment, std::string_view variable) {
  const std::string_view text = text_of(environment, variable);
  std::uint32_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error == std::errc() && end == text.data() + text.size() && !text.empty()) return number;
  return Status(Code::kInvalid, base::format("{} = '{}' is no number from 0 to {}", variable, text, UINT32_MAX));
}

constexpr std::string_view kSeed = "HAWSER_SEED", kTopology = "HAWSER_TOPOLOGY", kTokenFile = "HAWSER_TOKEN_FILE";
constexpr std::string_view kNexarTopology = "NEXAR_TOPOLOGY";                            ///< It means the same.
constexpr std::string_view kMasterAddress = "MASTER_ADDR", kMasterPort = "MASTER_PORT";  ///< torchrun's.

std::string run_of(const ConfigSources::Texts& environment, const Launcher& launcher) {
  std::string run(text_of(environment, launcher.run));
  const std::string_view restart = text_of(environment, launcher.restart);
  if (!restart.empty()) run.append(".").append(restart);
  return run;
}

Result<LaunchedRank> read(const ConfigSources::Texts& environment, const Launcher& launcher) {
  LaunchedRank launched{.launcher = std::string(launcher.name), .run = run_of(environment, launcher)};
  const auto take = [&](std::string_view variable, std::uint32_t* into) -> Status {
    const Result<std::uint32_t> number = number_of(environment, variable);
    if (!number) return number.error();
    *into = *number;
    return {};
  };
  if (Status bad = take(launcher.rank, &launched.rank); !bad.ok()) return bad;
  if (Status bad = take(launcher.size, &launched.size); !bad.ok()) return bad;
  if (launched.rank >= launched.size) {
    return Status(Code::kInvalid,
                  base::format("{} = {} is not one of the ranks 0 to {} that {} = {} tells", launcher.rank,
                               launched.rank, std::int64_t{launched.size} - 1, launcher.size, launched.size));
  }
  if (text_of(environment, launcher.local_rank).empty()) return launched;
  if (Status bad = take(launcher.local_rank, &launched.local_rank); !bad.ok()) return bad;
  return launched;
}

}  // namespace

bool tells_of_rank(std::string_view variable) {
  for (const std::string_view its : {kSeed, kTopology, kTokenFile, kNexarTopology, kMasterAddress, kMasterPort}) {
    if (variable == its) return true;
  }
  for (const Launcher& each : kLaunchers) {
    for (const std::string_view name : {each.rank, each.size, each.local_rank, each.run, each.restart}) {
      if (!name.empty() && variable == name) return true;
    }
  }
  return false;
}

}  // namespace hawser::config

HAWSER_NAMESPACE_BEGIN

Result<LaunchedRank> launched_rank(const ConfigSources& sources) {
  for (const config::Launcher& launcher : config::kLaunchers) {
    const auto has = [&](std::string_view variable) { return !config::text_of(sources.environment, variable).empty(); };
    // A pod may be one for another reason, and PMIx may be below Slurm, which tells more.
    const bool needs_size = launcher.size == config::kWorldSize && launcher.rank != "HAWSER_WORLD_RANK";
    if (!has(launcher.rank) || (needs_size && !has(launcher.size))) continue;
    const bool is_inherited = launcher.name == "torchrun" || launcher.name == "Slurm";
    if (is_inherited) HAWSER_TRY(config::check_pmix(sources.environment, launcher.rank));
    return config::read(sources.environment, launcher);
  }
  HAWSER_TRY(config::check_pmix(sources.environment, {}));
  return Status(Code::kNotFound, "no launcher has told this process its rank")
      .with_advice("start it by `hawser run`, mpirun, torchrun or srun, or give rank and size");
}

std::string launched_seed(const ConfigSources& sources) {
  return std::string(config::text_of(sources.environment, config::kSeed));
}

std::string launched_meeting(const ConfigSources& sources) {
  const std::string_view host = config::text_of(sources.environment, config::kMasterAddress);
  const Result<std::uint32_t> port = config::number_of(sources.environment, config::kMasterPort);
  if (host.empty() || !port || *port >= UINT16_MAX) return {};
  const bool is_v6 = host.find(':') != std::string_view::npos && !host.starts_with('[');
  const std::string next = std::to_string(*port + 1);
  return is_v6 ? "[" + std::string(host) + "]:" + next : std::string(host) + ":" + next;
}

std::string launched_token_file(const ConfigSources& sources) {
  const std::string_view seed = config::text_of(sources.environment, config::kSeed);
  const bool has_use = !seed.empty() && seed.find('#') == std::string_view::npos;
  return has_use ? std::string(config::text_of(sources.environment, config::kTokenFile)) : std::string();
}

Result<Topology> launched_topology(const ConfigSources& sources) {
  std::string_view variable = config::kTopology;
  std::string text(config::text_of(sources.environment, variable));
  if (text.empty()) {
    variable = config::kNexarTopology;
    text = config::of_nexar(config::text_of(sources.environment, variable));
  }
  if (text.empty()) return Topology();
  Result<Topology> topology = parse_topology(text);
  if (topology) return topology;
  return Status(Code::kInvalid, std::string(variable) + " is wrong").because(topology.error());
}

HAWSER_NAMESPACE_END
