#pragma once

// The commands of `hawser`, one a file. Each adds its subcommand to the root; its callback leaves the exit code behind.

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include <hawser/config.h>
#include <hawser/time.h>
#include <CLI/CLI.hpp>

namespace hawser::cli {

struct Shell {
  CLI::App& root;
  int exit_code = 0;  ///< The value that main returns.
  /// Of `run`: what follows the first --, which is no concern of the parser.
  std::vector<std::string> behind_dashes = {};
};

/// Options of every command.
struct Common {
  bool json = false;
  std::string config;  ///< A TOML file; empty: the one that HAWSER_CONFIG names.
};

/// A subcommand with --json and --config, its description and examples (one a line) in --help.
CLI::App* add_command(Shell& shell, const std::string& name, const std::string& description,
                      const std::string& examples, Common& common);
/// A command below another one. Messages name both: "bench coll".
CLI::App* add_subcommand(CLI::App& parent, const std::string& name, const std::string& description,
                         const std::string& examples, Common& common);
/// The configuration in force: defaults, file, environment.
Result<LoadedConfig> configuration(const std::string& file, ConfigSources::Texts overrides = {});
/// Prints what the configuration warns of to stderr.
void tell_warnings(const LoadedConfig& config);
/// Runs `body` when the command was given, without one of those below it, and keeps its exit code.
void on_run(Shell& shell, CLI::App* command, std::function<int()> body);

/// A check: a whole number that is written in digits, from `least` on, and no more than 64 bits hold.
CLI::Validator whole_number(std::uint64_t least = 0);
/// Options with units; what does not parse is a usage error that names the option.
CLI::Option* add_size(CLI::App* command, const std::string& name, std::uint64_t& value, const std::string& description);
CLI::Option* add_duration(CLI::App* command, const std::string& name, Duration& value, const std::string& description);

void add_info(Shell& shell);
void add_doctor(Shell& shell);
void add_topo(Shell& shell);
void add_demo(Shell& shell);
void add_bench(Shell& shell);
void add_serve(Shell& shell);
void add_seed(Shell& shell);
void add_ping(Shell& shell);
void add_run(Shell& shell);
void add_cp(Shell& shell);
void add_sim(Shell& shell);
void add_top(Shell& shell);
void add_explain(Shell& shell);
void add_metrics_command(Shell& shell);
void add_ca(Shell& shell);
void add_collectives(Shell& shell);

}  // namespace hawser::cli
