// hawser run: starts a program as the ranks of a world, on this host and by ssh on others.
// hawser run-rank: what it starts there.

#include <fmt/format.h>

#include <cstdio>
#include <memory>
#include <string>

#include "cli/command.h"
#include "cli/interrupt.h"
#include "cli/json_out.h"
#include "cli/rank_guard.h"
#include "cli/rank_launcher.h"
#include "cli/rank_run.h"
#include "cli/status_exit.h"

namespace hawser::cli {
namespace {

constexpr const char* kRunExamples =
    "  hawser run -n 4 python train.py\n"
    "  hawser run -n 2 --directory etcd://10.0.0.5:2379 -- ./program --its-own options\n"
    "  hawser run --hosts node1:8,node2:8 --bind-to core python train.py";

struct RunArguments {
  Common common;
  LaunchOptions launch;
  std::string hosts;
  std::string ssh = "ssh";
  std::string bind_to = "none";
};

void print_line_text(std::uint32_t rank, int which, std::string_view line) {
  std::FILE* const to = which == 0 ? stdout : stderr;
  fmt::print(to, "[{}] {}\n", rank, line);
  std::fflush(to);
}

void print_line_json(std::uint32_t rank, int which, std::string_view line) {
  Json event = document("run");
  event["event"] = which == 0 ? "output" : "error_output";
  event["rank"] = rank;
  event["line"] = line;
  print_line(event);
}

void print_end(const RankRun& ranks, int exit_code) {
  Json event = document("run");
  event["event"] = "end";
  event["exit_code"] = exit_code;
  event["failed_first"] = ranks.failed_first() ? Json(*ranks.failed_first()) : Json();
  print_line(event);
}

int run(RunArguments& a) {
  catch_interrupts();
  if (const Status bad = place_on_hosts(a.hosts, a.ssh, a.launch); !bad.ok()) return fail("run", a.common.json, bad);
  a.launch.config_file = a.common.config;
  a.launch.binds_to_cores = a.bind_to == "core";
  RankRun ranks(a.launch, "run", a.common.json ? print_line_json : print_line_text);
  const Result<int> code = ranks.run();
  if (!code) return fail("run", a.common.json, code.error());
  if (a.common.json) print_end(ranks, *code);
  return *code;
}

}  // namespace

void add_run(Shell& shell) {
  auto a = std::make_shared<RunArguments>();
  CLI::App* command = add_command(shell, "run", "Start a program as the ranks of a world, on this host or several",
                                  kRunExamples, a->common);
  command->add_option("-n,--ranks", a->launch.ranks, "How many (default: as many as the hosts have slots)")
      ->check(CLI::Range(1U, kRanksMax));
  command->add_option("--directory", a->launch.directory,
                      "Where ranks find one another, as the option `directory` takes it (default: a new folder)");
  add_duration(command, "--grace", a->launch.grace, "Between SIGTERM and SIGKILL for the others (default 5s)");
  command->add_option("--hosts", a->hosts,
                      "Hosts that share the ranks, name:slots with commas between them, or a file of lines "
                      "`name slots=N` (default: this host)");
  command->add_option("--ssh", a->ssh, "What starts ranks on other hosts, called with a host and a command")
      ->capture_default_str();
  command->add_option("--address", a->launch.address, "How other hosts reach this one (default: its first address)");
  command->add_option("--token-file", a->launch.token_file,
                      "A file of mode 0600, or fd:N, with the secret by which the ranks know one another: at least 128 "
                      "random bits, 22 characters of base64 (default: with --hosts, a new one)");
  command->add_option("--remote-hawser", a->launch.remote_hawser,
                      "The program hawser on the other hosts (default: where it is here)");
  command
      ->add_option("--bind-to", a->bind_to,
                   "core: each rank runs on its share of its host's cores, and two ranks share none; none: where the "
                   "kernel puts it")
      ->check(CLI::IsMember({"core", "none"}))
      ->capture_default_str();
  command->prefix_command();
  on_run(shell, command, [a, command, &shell] {
    a->launch.command = command->remaining();
    a->launch.command.insert(a->launch.command.end(), shell.behind_dashes.begin(), shell.behind_dashes.end());
    if (!a->launch.command.empty()) return run(*a);
    return fail("run", a->common.json,
                Status(Code::kInvalid, "no program is given").with_advice("hawser run -n 4 PROGRAM [ARGUMENTS]"));
  });
  CLI::App* guard = shell.root.add_subcommand("run-rank", "What `hawser run --hosts` starts on another host");
  guard->group("");  // Not in --help: people have no use for it.
  on_run(shell, guard, guard_rank);
}

}  // namespace hawser::cli
