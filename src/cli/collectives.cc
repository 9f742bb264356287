// hawser collectives: by which algorithm each collective goes, and what the model says that it costs.

#include <fmt/format.h>

#include <cstdio>
#include <memory>

#include "base/quantity.h"
#include "cli/collectives_view.h"
#include "cli/command.h"
#include "cli/json_out.h"
#include "cli/status_exit.h"

namespace hawser::cli {
namespace {

constexpr std::uint32_t kModelRanksMax = 65'536;
constexpr std::uint64_t kBytesMax = std::uint64_t{1} << 50;

constexpr const char* kCollectivesExamples =
    "  hawser collectives --ranks 8\n"
    "  hawser collectives --ranks 16 --hosts 2 --operation all_reduce --bytes 8,64K,16M\n"
    "  hawser collectives --ranks 8 --json | jq '.rows[] | {operation, bytes, by: .choices[0].algorithm}'";

struct CollectivesArguments {
  Common common;
  std::uint32_t ranks = 8, hosts = 1;
  std::vector<std::string> bytes = {"8", "4K", "64K", "1M", "64M"};
  std::string operation;
  bool reproducible = false;
};

/// Nothing: there is none of that name. `names` gets those that there are.
std::optional<schedule::Operation> operation_named(std::string_view name, std::string* names = nullptr) {
  std::optional<schedule::Operation> found;
  for (int number = 0; number <= static_cast<int>(schedule::Operation::kExclusiveScan); ++number) {
    const auto each = static_cast<schedule::Operation>(number);
    if (schedule::to_string(each) == name) found = each;
    if (names != nullptr) *names += fmt::format("{}{}", names->empty() ? "" : ", ", schedule::to_string(each));
  }
  return found;
}

std::string wrong_operation(const std::string& name) {
  std::string names;
  return operation_named(name, &names) ? "" : fmt::format("'{}' is none of {}", name, names);
}

std::string wrong_size(const std::string& text) {
  const auto size = base::parse_size(text);
  if (!size) return fmt::format("'{}' is not {}", text, base::kSizeForm);
  return *size <= kBytesMax ? "" : fmt::format("'{}' is above {}", text, base::format_size(kBytesMax));
}

int run_collectives(const CollectivesArguments& a) {
  std::vector<std::uint64_t> sizes;
  for (const std::string& text : a.bytes) sizes.push_back(base::parse_size(text).value_or(0));
  if (a.hosts > a.ranks) {
    return fail("collectives", a.common.json,
                Status(Code::kInvalid, fmt::format("{} hosts have no {} ranks between them", a.hosts, a.ranks))
                    .with_advice("give at least as many --ranks as --hosts"));
  }
  const CollectivesReport report =
      collectives_report(a.ranks, a.hosts, sizes, operation_named(a.operation), a.reproducible);
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
      ->check(wrong_size)
      ->capture_default_str();
  command->add_option("--operation", a->operation, "One of them alone, such as all_reduce")->check(wrong_operation);
  command->add_flag("--reproducible", a->reproducible, "Results with the same bits from any algorithm and placement");
  on_run(shell, command, [a] { return run_collectives(*a); });
}

}  // namespace hawser::cli
