// Two or more libnixl_capi.so, one after the other at every row: see docs/measurements.md.
//
// usage: nixl_capi_bench --lib hawser=PATH --lib nixl=PATH [--rows REGEX] [--seconds S] [--repeat N] [--json FILE]

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "contest.h"
#include "library.h"
#include "worker.h"

namespace nixl_bench {
namespace {

struct Arguments {
  std::vector<std::string> libraries;
  std::vector<std::string> environment;
  std::string rows = ".*";
  std::string json;
  bool list = false;
  bool no_ceilings = false;
  ContestOptions contest;
};

std::pair<std::string, std::string> split(const std::string& option, const std::string& text, char separator) {
  const std::size_t at = text.find(separator);
  if (at == 0 || at == std::string::npos) throw Failure(option + " " + text + ": there is no " + separator + " in it");
  return {text.substr(0, at), text.substr(at + 1)};
}

std::vector<LibraryEntry> libraries_of(const Arguments& arguments) {
  std::vector<LibraryEntry> all;
  std::set<std::string> names;
  for (const std::string& text : arguments.libraries) {
    const auto [name, path] = split("--lib", text, '=');
    if (!names.insert(name).second) throw Failure("--lib " + text + ": there is another " + name);
    all.push_back({.name = name, .path = path, .environment = {}});
  }
  for (const std::string& text : arguments.environment) {
    const auto [name, setting] = split("--env", text, ':');
    const auto found = std::find_if(all.begin(), all.end(),
                                    [&, wanted = name](const LibraryEntry& one) { return one.name == wanted; });
    if (found == all.end()) throw Failure("--env " + text + ": no --lib has that name");
    found->environment.push_back(split("--env", setting, '='));
  }
  return all;
}

void read_arguments(CLI::App& app, Arguments& arguments) {
  app.add_option("--lib", arguments.libraries, "NAME=PATH of a libnixl_capi.so; the last one is compared with");
  app.add_option("--env", arguments.environment, "NAME:VARIABLE=VALUE, for the processes of that library alone");
  app.add_option("--rows", arguments.rows, "A regular expression that a row's whole name matches");
  app.add_option("--json", arguments.json, "Where to write all figures");
  app.add_option("--seconds", arguments.contest.seconds, "Of one library's slice of a round")
      ->check(CLI::Range(0.001, 60.0));
  app.add_option("--repeat", arguments.contest.repeat, "Rounds of each row")->check(CLI::Range(1, 100));
  app.add_option("--arena", arguments.contest.arena, "Memory of each side")->transform(CLI::AsSizeValue(false));
  app.add_flag("--list", arguments.list, "Only names the rows");
  app.add_flag("--no-ceilings", arguments.no_ceilings, "Leaves out what the machine itself can do");
}

int compare(Arguments& arguments) {
  const std::vector<Measurement> measurements = matching(arguments.rows);
  if (arguments.list) {
    for (const Measurement& one : measurements) {
      for (const Row& row : one.rows) std::printf("%s\n", row.id.c_str());
    }
    return 0;
  }
  arguments.contest.libraries = libraries_of(arguments);
  arguments.contest.ceilings = !arguments.no_ceilings;
  if (arguments.contest.libraries.empty()) throw Failure("--lib NAME=PATH is missing");
  std::vector<std::string> names;
  for (const LibraryEntry& one : arguments.contest.libraries) names.push_back(one.name);
  Contest contest(arguments.contest);
  const std::vector<RowResult> results = contest.run(measurements);
  std::fputs(table(results, names).c_str(), stdout);
  if (!arguments.json.empty()) {
    std::ofstream file(arguments.json);
    file << to_json(results, names).dump(2) << "\n";
    if (!file.flush()) throw Failure("cannot write " + arguments.json);
  }
  return contest.failed() ? 1 : 0;
}

int run(int argc, char** argv) {
  if (argc == 3 && std::string_view(argv[1]) == "worker") return run_worker(std::atoi(argv[2]));
  CLI::App app("Compares libraries with NIXL's C interface, each in two processes of its own");
  Arguments arguments;
  read_arguments(app, arguments);
  CLI11_PARSE(app, argc, argv);
  try {
    return compare(arguments);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "nixl_capi_bench: %s\n", error.what());
    return 2;
  }
}

}  // namespace
}  // namespace nixl_bench

int main(int argc, char** argv) { return nixl_bench::run(argc, argv); }
