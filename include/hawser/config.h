#pragma once

// Options from outside the program: a TOML file, environment variables, and what the caller sets. One table of options,
// one parser, used at the edge (command line, C, Python, your own main); the library itself reads no environment.
//
//   auto config = hawser::load_config(hawser::ConfigSources::from_process());
//   auto agent = hawser::Agent::open(config->options);
//
// Later ones win: defaults < file < environment < overrides. `hawser info` prints every value with its origin, and
// docs/config.md lists all options. Unknown options warn; wrong values are errors that name the place, the value and
// the allowed form.
//
// Thread rule: values. from_process reads the environment: call it before other threads change it.

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include <hawser/agent.h>
#include <hawser/export.h>
#include <hawser/status.h>

HAWSER_NAMESPACE_BEGIN

struct Topology;
struct WorldOptions;

struct ConfigSources {
  using Texts = std::map<std::string, std::string, std::less<>>;

  std::string file = {};   ///< TOML. Empty: the one that HAWSER_CONFIG names, or none.
  Texts environment = {};  ///< Those whose names do not begin with HAWSER_ are ignored.
  Texts overrides = {};    ///< By option name ("deadline", "backend.tcp.connections"); as from a command line.
  /// Names that HAWSER_BACKEND_<NAME>_<PARAM> is matched with, longest first; backends named in the file or in
  /// HAWSER_BACKENDS are added.
  std::vector<std::string> known_backends = {"shm", "verbs", "tcp", "quic", "loopback", "sim", "file"};

  /// This process's environment; no file, no overrides.
  HAWSER_API static ConfigSources from_process();
};

/// One option in force.
struct ConfigValue {
  std::string name;    ///< As in the file: "deadline", "backend.tcp.lanes".
  std::string value;   ///< In canonical spelling.
  std::string origin;  ///< "default", "/etc/hawser.toml:7", "HAWSER_DEADLINE" or "caller".
};

struct LoadedConfig {
  AgentOptions options;
  EtcdOptions etcd;                   ///< What the options etcd.* say, for who opens an etcd of its own.
  std::string cost_model;             ///< For WorldOptions::cost_model.
  std::vector<ConfigValue> values;    ///< All options of the table, then the backends' parameters.
  std::vector<std::string> warnings;  ///< Unknown options and variables, each with its place.
  /// The first warning of `ConfigSources::overrides`; empty: all of them are options. A variable may be meant for
  /// another program, but what the caller wrote is meant for Hawser: C and Python refuse it.
  std::string unknown_override;
};

/// Opens the directory, too, when one is given. Errors: kInvalid (all wrong values in one text), kNotFound (no such
/// file), or the directory's.
HAWSER_API Result<LoadedConfig> load_config(const ConfigSources& sources);

/// The values as a table for people: name, value, origin.
HAWSER_API std::string to_string(const LoadedConfig& config);

/// Every option with its meaning, variable, allowed form and default, for people. docs/config.md is made of it.
HAWSER_API std::string config_reference();

/// Which of how many ranks this process is.
struct LaunchedRank {
  std::uint32_t rank = 0, size = 0;
  std::uint32_t local_rank = 0;  ///< Among those of this host; 0 where nobody tells.
  /// The launcher: "hawser run", "Open MPI", "MPICH", "PMIx", "torchrun", "Slurm", "Kubernetes".
  std::string launcher = {};
  std::string run = {};  ///< Tells one run from another; may be empty.
};

/// As the environment says that `hawser run`, mpirun, torchrun or srun set. Errors: kNotFound (none of them did),
/// kInvalid (what they set contradicts itself).
HAWSER_API Result<LaunchedRank> launched_rank(const ConfigSources& sources);
/// HAWSER_SEED, for WorldOptions::seed: `hawser run --hosts` sets it. A password. Empty: none is set.
HAWSER_API std::string launched_seed(const ConfigSources& sources);
/// Where torchrun's ranks can meet without torch: MASTER_ADDR and the port behind MASTER_PORT, for WorldOptions::seed
/// with `serves_seed`. Empty: they are not set.
HAWSER_API std::string launched_meeting(const ConfigSources& sources);
/// HAWSER_TOKEN_FILE, for WorldOptions::token_file. Empty: none is set, or HAWSER_SEED is not, or has a ticket.
HAWSER_API std::string launched_token_file(const ConfigSources& sources);
/// HAWSER_TOPOLOGY, for WorldOptions::topology: a text of parse_topology. The full one where it is not set.
HAWSER_API Result<Topology> launched_topology(const ConfigSources& sources);
/// For World::open (include <hawser/world.h>): rank, size and seed as the launcher tells (torchrun's: launched_meeting,
/// if nothing else says where), a name that tells this run's world from others, topology, cost model, and the agent's
/// options of `sources`. Errors: those of launched_rank, launched_topology and load_config.
HAWSER_API Result<WorldOptions> launched_world(const ConfigSources& sources);

HAWSER_NAMESPACE_END
