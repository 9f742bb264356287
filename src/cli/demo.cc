// hawser demo: two processes move the KV cache of a model from one to the other. See demo_run.h.

#include <fmt/format.h>

#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <memory>
#include <sstream>

#include "base/quantity.h"
#include "base/try.h"
#include "cli/command.h"
#include "cli/demo_control.h"
#include "cli/demo_decode.h"
#include "cli/demo_report.h"
#include "cli/demo_run.h"
#include "cli/interrupt.h"
#include "cli/json_out.h"
#include "cli/rank_launcher.h"
#include "cli/status_exit.h"
#include "cli/system_limits.h"

namespace hawser::cli {
namespace {

constexpr std::uint64_t kMemoryDefaultMax = 2ull << 30;  // bytes a side
constexpr std::uint64_t kDemoMemoryShare =
    5;  // of what is free: two sides, scratch for the ceiling, and the rest for others

constexpr const char* kDemoExamples =
    "  hawser demo --model llama-3.1-8b\n"
    "  hawser demo --model deepseek-v3 --backend tcp --requests 64 --json\n"
    "  hawser demo --layers 48 --kv-heads 4 --head-dim 128 --prompt-tokens 512 --block-tokens 32\n"
    "  HAWSER_SECURITY=encrypt hawser demo --host node2";

struct DemoArguments {
  Common common;
  std::string model = "llama-3.1-8b";
  std::uint32_t layers = 0, kv_heads = 0, head_dim = 0, dtype_bytes = 2;
  std::uint32_t block_tokens = 16;
  std::string tokens = "64-1024";
  std::vector<std::string> backends;
  bool no_verify = false, no_ceiling = false;
  std::string host, ssh = "ssh", remote_hawser;
  std::string role;
  int control_fd = -1;
  DemoOptions demo;
};

std::uint64_t default_memory() {
  const std::uint64_t free = available_memory();
  return free == 0 ? kMemoryDefaultMax : std::min(kMemoryDefaultMax, free / kDemoMemoryShare);
}

Result<Geometry> geometry_of(const DemoArguments& a) {
  Geometry geometry;
  if (a.layers == 0 && a.kv_heads == 0 && a.head_dim == 0) {
    HAWSER_TRY_ASSIGN(geometry, model_geometry(a.model));
  } else if (a.layers == 0 || a.kv_heads == 0 || a.head_dim == 0) {
    return Status(Code::kInvalid, "an own geometry needs --layers, --kv-heads and --head-dim together");
  } else {
    geometry = {"own geometry", a.layers, 2, std::uint64_t{a.kv_heads} * a.head_dim * a.dtype_bytes};
  }
  geometry.block_tokens = a.block_tokens;
  return geometry;
}

Result<Workload> work_of(DemoArguments& a) {
  DemoOptions& demo = a.demo;
  HAWSER_TRY_ASSIGN(demo.geometry, geometry_of(a));
  HAWSER_TRY_ASSIGN(demo.tokens, parse_tokens(a.tokens));
  if (demo.memory == 0) demo.memory = default_memory();
  demo.verify = !a.no_verify;
  demo.ceiling = !a.no_ceiling && a.host.empty();  // Its loops are of this host.
  demo.progress = !a.common.json;
  demo.config = a.common.config;
  return arrange(demo.geometry, draw_requests(demo.requests, demo.tokens, a.block_tokens, demo.seed), demo.memory);
}

Status first_failure(const std::vector<RunReport>& runs) {
  for (const RunReport& run : runs) {
    if (!run.status.ok()) return run.status;
  }
  return Status();
}

/// What starts the decode process on the other host: as `hawser run --hosts` starts ranks.
Result<std::vector<std::string>> far_command(const DemoArguments& a) {
  if (a.host.empty()) return std::vector<std::string>();
  if (a.host.starts_with('-')) return Status(Code::kInvalid, "--host: a host's name does not begin with '-'");
  std::vector<std::string> command;
  std::istringstream words(a.ssh);
  for (std::string word; words >> word;) command.push_back(word);
  if (command.empty()) return Status(Code::kInvalid, "--ssh: no command is given that reaches the other host");
  std::error_code error;
  const std::string own = std::filesystem::read_symlink("/proc/self/exe", error).string();
  command.push_back(a.host);
  command.push_back(shell_word(a.remote_hawser.empty() ? own : a.remote_hawser) + " demo --role decode");
  return command;
}

int run_demo(DemoArguments& a) {
  if (a.role == "decode") {
    return a.control_fd < 0 ? run_decode(Control(base::Fd(STDIN_FILENO), base::Fd(STDOUT_FILENO)))
                            : run_decode(Control(base::Fd(a.control_fd)));
  }
  Result<std::vector<std::string>> far = far_command(a);
  if (!far) return fail("demo", a.common.json, far.error());
  a.demo.far_command = *std::move(far);
  const Result<Workload> work = work_of(a);
  if (!work) return fail("demo", a.common.json, work.error());
  const Result<LoadedConfig> config = configuration(a.common.config);
  if (!config) return fail("demo", a.common.json, config.error());
  tell_warnings(*config);
  if (a.backends.empty())
    a.backends = a.host.empty() ? std::vector<std::string>{"shm", "tcp"} : std::vector<std::string>{"tcp"};
  catch_interrupts();
  std::vector<RunReport> runs;
  for (const std::string& backend : a.backends) {
    if (interrupted()) break;
    runs.push_back(run_backend(a.demo, *work, base::to_lower(backend)));
  }
  if (a.common.json) {
    print(report_json(a.demo, *work, runs));
  } else {
    fmt::print("{}", report_text(a.demo, *work, runs));
  }
  std::fflush(stdout);
  const Status failure = first_failure(runs);
  if (!failure.ok()) fmt::print(stderr, "hawser demo: {}\n", failure.to_string());
  return exit_code(failure);
}

void add_geometry(CLI::App* command, DemoArguments& a) {
  command->add_option("--model", a.model, "The model whose KV cache moves: " + model_names())->capture_default_str();
  command->add_option("--layers", a.layers, "Own geometry: layers")->check(CLI::Range(1, 4096));
  command->add_option("--kv-heads", a.kv_heads, "Own geometry: heads of keys and values")->check(CLI::Range(1, 4096));
  command->add_option("--head-dim", a.head_dim, "Own geometry: values in a head")->check(CLI::Range(1, 65536));
  command->add_option("--dtype-bytes", a.dtype_bytes, "Own geometry: bytes of a value")->check(CLI::Range(1, 16));
  command->add_option("--block-tokens", a.block_tokens, "Tokens in a block")
      ->check(CLI::Range(1, 65536))
      ->capture_default_str();
}

void add_load(CLI::App* command, DemoArguments& a) {
  DemoOptions& demo = a.demo;
  command->add_option("--requests", demo.requests, "Requests to move")
      ->check(CLI::Range(1, 1000000))
      ->capture_default_str();
  command->add_option("--prompt-tokens", a.tokens, "Tokens of a request: a number, or a range to draw from")
      ->capture_default_str();
  command->add_option("--concurrency", demo.concurrency, "Requests under way at a time")
      ->check(CLI::Range(1, 1024))
      ->capture_default_str();
  command->add_option("--passes", demo.warm_passes, "Warm passes after the cold one")
      ->check(CLI::Range(0, 1000))
      ->capture_default_str();
  add_size(command, "--memory", demo.memory, "KV cache on each side (default: at most 2 GiB, a fifth of what is free)");
  command->add_option("--seed", demo.seed, "Of lengths, block tables and contents")
      ->check(whole_number())
      ->capture_default_str();
  add_duration(command, "--timeout", demo.timeout,
               "For each pass, and each answer of the second process (default 60s)");
}

}  // namespace

void add_demo(Shell& shell) {
  auto a = std::make_shared<DemoArguments>();
  CLI::App* command = add_command(shell, "demo", "Two processes move a model's KV cache, verified by checksum",
                                  kDemoExamples, a->common);
  add_geometry(command, *a);
  add_load(command, *a);
  command->add_option("--backend", a->backends, "shm, tcp or auto; may be repeated (default: shm, then tcp)");
  command->add_flag("--no-verify,!--verify", a->no_verify, "Leave the checksums out");
  command->add_flag("--no-ceiling,!--ceiling", a->no_ceiling, "Leave the raw loops out");
  command->add_option("--host", a->host, "Where the second process runs (default: here)");
  command->add_option("--ssh", a->ssh, "What starts it there, called with the host and a command")
      ->capture_default_str();
  command->add_option("--remote-hawser", a->remote_hawser, "The program hawser there (default: where it is here)");
  command->add_option("--role", a->role)->group("");  // hidden: the second process
  command->add_option("--control-fd", a->control_fd)->group("");
  on_run(shell, command, [a] { return run_demo(*a); });
}

}  // namespace hawser::cli
