// hawser collectives: by which algorithm each collective goes, and what the model says that it costs.

#include <fmt/format.h>

#include <cstdio>
#include <memory>

#include "cli/coll/call.h"
#include "cli/coll/origin.h"
#include "cli/collectives_view.h"
#include "cli/command.h"
#include "cli/json_out.h"
#include "cli/status_exit.h"

namespace hawser::cli {
namespace {

constexpr std::uint32_t kModelRanksMax = 65'536;

constexpr const char* kCollectivesExamples =
    "  hawser collectives --ranks 8\n"
    "  hawser collectives --ranks 16 --hosts 2 --operation all_reduce --bytes 8,64K,16M\n"
    "  hawser collectives --ranks 8 --cost-model costs.toml\n"
    "  hawser collectives --ranks 8 --json | jq '.rows[] | {operation, bytes, by: .choices[0].algorithm}'";

struct CollectivesArguments {
  Common common;
  std::uint32_t ranks = 8, hosts = 1;
  std::vector<std::string> bytes = {"8", "4K", "64K", "1M", "64M"};
  std::string operation, cost_model;
  bool reproducible = false;
};

int run_collectives(const CollectivesArguments& a) {
  if (a.hosts > a.ranks) {
    return fail("collectives", a.common.json,
                Status(Code::kInvalid, fmt::format("{} hosts have no {} ranks between them", a.hosts, a.ranks))
                    .with_advice("give at least as many --ranks as --hosts"));
  }
  const Result<LoadedConfig> config = configuration(a.common.config);
  if (!config) return fail("collectives", a.common.json, config.error());
  const Result<coll::CostOrigin> costs = coll::cost_origin(a.cost_model.empty() ? config->cost_model : a.cost_model);
  if (!costs) return fail("collectives", a.common.json, costs.error());
  const CollectivesReport report = collectives_report(a.ranks, a.hosts, coll::sizes_of(a.bytes),
                                                      coll::operation_named(a.operation), a.reproducible, *costs);
  if (a.common.json) {
    print(to_json(report));
  } else {
    fmt::print("{}", to_text(report));
  }
  return kExitOk;
}

}  // namespace

void add_collectives(Shell& shell) {
  auto a = std::make_shared<CollectivesArguments>();
  CLI::App* command =
      add_command(shell, "collectives", "Tell by which algorithm each collective goes, and what it costs by the model",
                  kCollectivesExamples, a->common);
  command->add_option("--ranks", a->ranks, "Ranks of the world")
      ->check(CLI::Range(1U, kModelRanksMax))
      ->capture_default_str();
  command->add_option("--hosts", a->hosts, "Hosts that share them evenly")
      ->check(CLI::Range(1U, kModelRanksMax))
      ->capture_default_str();
  command->add_option("--bytes", a->bytes, "Sizes, several by commas: of the tensor, or of all ranks' blocks together")
      ->delimiter(',')
      ->check(coll::wrong_size)
      ->capture_default_str();
  command->add_option("--operation", a->operation, "One of them alone, such as all_reduce")
      ->check(coll::wrong_operation);
  command->add_flag("--reproducible", a->reproducible, "Results with the same bits from any algorithm and placement");
  command->add_option("--cost-model", a->cost_model,
                      "Choose by this file of `hawser bench coll --tune` (default: the option cost_model; else what is "
                      "built in)");
  on_run(shell, command, [a] { return run_collectives(*a); });
}

}  // namespace hawser::cli
