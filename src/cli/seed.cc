// hawser seed: where the ranks of worlds find one another, by a ticket or by a token that all of them have.

#include <fmt/format.h>
#include <poll.h>

#include <cstdio>
#include <memory>
#include <string>
#include <utility>

#include <hawser/seed.h>

#include "base/try.h"
#include "cli/command.h"
#include "cli/interrupt.h"
#include "cli/json_out.h"
#include "cli/reach.h"
#include "cli/status_exit.h"

namespace hawser::cli {
namespace {

constexpr int kSeedSliceMs = 100;

constexpr const char* kSeedExamples =
    "  hawser seed --listen 10.0.0.5:7000 --token-file ~/job.token\n"
    "  hawser seed --listen auto:7000 --address node1";

struct SeedArguments {
  Common common;
  Reach reach;
  std::string token_file;
  std::string address;  ///< Of this host, for the ranks.
  Duration lifetime = Duration::zero();
};

void tell_ready(const SeedArguments& a, const std::string& address) {
  if (a.common.json) {
    Json event = document("seed");
    event["event"] = "ready";
    event["address"] = address;
    print_line(event);
    return;
  }
  const std::string token = a.token_file.empty() ? "" : fmt::format(" HAWSER_TOKEN_FILE={}", a.token_file);
  fmt::print("for each rank: HAWSER_SEED={}{}\n", address, token);
  std::fflush(stdout);
}

Status serve_seed(const SeedArguments& a) {
  HAWSER_TRY_ASSIGN(AgentOptions options, agent_options(a.reach, a.common.config));
  HAWSER_TRY_ASSIGN(const WorldSeed seed, WorldSeed::open(std::move(options), a.token_file));
  tell_ready(a, seed.address(a.address));
  const Instant end = a.lifetime > Duration::zero() ? Clock::steady().now() + a.lifetime : Instant::max();
  while (!interrupted() && Clock::steady().now() < end) (void)::poll(nullptr, 0, kSeedSliceMs);
  return {};
}

}  // namespace

void add_seed(Shell& shell) {
  auto a = std::make_shared<SeedArguments>();
  CLI::App* command =
      add_command(shell, "seed", "Run a seed, where the ranks of worlds find one another", kSeedExamples, a->common);
  command->add_option("--name", a->reach.name, "Name of its agent (default: the configuration's, or seed)");
  command->add_option("--listen", a->reach.listen,
                      "Where it listens, as `hawser serve --listen` takes it (default: all addresses, any free port)");
  command->add_option("--token-file", a->token_file,
                      "A file of mode 0600, or fd:N, with a secret that all ranks have, too: at least 128 random bits, "
                      "22 characters of base64. Its address holds no ticket then");
  command->add_option("--address", a->address, "How ranks reach this host (default: its first address)");
  add_duration(command, "--for", a->lifetime, "End after this time (default: at Ctrl-C)");
  on_run(shell, command, [a] {
    catch_interrupts();
    const Status status = serve_seed(*a);
    return status.ok() ? kExitOk : fail("seed", a->common.json, status);
  });
}

}  // namespace hawser::cli
