// hawser: the command line. Parses, runs one command, returns its exit code.

#include <fmt/format.h>
#include <hawser/version.h>

#include <algorithm>
#include <cstdio>
#include <exception>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/secret_text.h"
#include "cli/command.h"
#include "cli/json_out.h"
#include "cli/output.h"
#include "cli/status_exit.h"
#include "cli/usage_error.h"
#include "cli/wrap.h"

namespace hawser::cli {
namespace {

/// Gives how many arguments are left for the parser.
int take_behind_dashes(int argc, char** argv, Shell& shell) {
  constexpr std::string_view kCommand = "run", kDashes = "--";
  if (argc < 2 || argv[1] != kCommand) return argc;
  const auto dashes = std::find(argv + 2, argv + argc, kDashes);
  if (dashes == argv + argc) return argc;
  shell.behind_dashes.assign(dashes + 1, argv + argc);
  return static_cast<int>(dashes - argv);
}

/// Help that fits a terminal.
class Formatter : public CLI::Formatter {
 public:
  std::string make_help(const CLI::App* app, std::string name, CLI::AppFormatMode mode) const override {
    return wrap(CLI::Formatter::make_help(app, std::move(name), mode));
  }
};

/// On stderr, and as an object on stdout where the call has --json in it.
int tell_wrong_usage(const CLI::App& app, const std::vector<std::string>& arguments, const CLI::ParseError& error) {
  const auto [command, its_text] = explain_usage(app, arguments, error);
  const std::string text = base::without_tickets(its_text);
  fmt::print(stderr, "hawser{}{}: {}\n", command.empty() ? "" : " ", command, text);
  const auto dashes = std::ranges::find(arguments, "--");  // Behind them all is another program's.
  if (std::find(arguments.begin(), dashes, "--json") != dashes) {
    Json json = document(command.empty() ? "usage" : command);
    json["ok"] = false;
    json["error"] = to_json(Status(Code::kInvalid, text));
    print(json);
  }
  return kExitUsage;
}

int run(int argc, char** argv) {
  CLI::App app("Hawser moves bytes between the memories of a cluster.", "hawser");
  app.formatter(std::make_shared<Formatter>());
  app.set_version_flag("--version", fmt::format("hawser {}", version()));
  app.require_subcommand(1);
  app.footer("\n`hawser COMMAND --help` shows a command's options and examples.\n" + exit_code_help());

  Shell shell{app};
  add_info(shell);
  add_doctor(shell);
  add_topo(shell);
  add_demo(shell);
  add_bench(shell);
  add_serve(shell);
  add_seed(shell);
  add_ping(shell);
  add_cp(shell);
  add_run(shell);
  add_collectives(shell);
  add_sim(shell);
  add_top(shell);
  add_explain(shell);
  add_metrics_command(shell);
  add_ca(shell);
  const std::vector<std::string> all(argv + std::min(argc, 1), argv + argc);
  const std::vector<std::string> taken(argv + std::min(argc, 1), argv + take_behind_dashes(argc, argv, shell));
  std::vector<std::string> last_first(taken.rbegin(), taken.rend());  // As the parser wants them.
  // Everybody on this host reads them, in `ps` and /proc.
  std::for_each(argv, argv + argc, base::overwrite_tickets);
  try {
    app.parse(std::move(last_first));
  } catch (const CLI::Success& asked) {  // For help, or the version.
    return app.exit(asked) == 0 ? kExitOk : kExitUsage;
  } catch (const CLI::ParseError& error) {
    return tell_wrong_usage(app, all, error);
  }
  return shell.exit_code;
}

}  // namespace
}  // namespace hawser::cli

int main(int argc, char** argv) {
  hawser::cli::open_missing_streams();
  try {
    const int code = hawser::cli::run(argc, argv);
    const hawser::Status written = hawser::cli::finish_output();
    if (written.ok()) return code;
    fmt::print(stderr, "hawser: {}\n", written.to_string());
    return code == hawser::cli::kExitOk ? hawser::cli::exit_code(written) : code;
  } catch (const std::exception& error) {
    fmt::print(stderr, "hawser: {}\n", error.what());
    return hawser::cli::exit_code(hawser::Code::kFailed);
  }
}
