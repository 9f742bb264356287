#include "cli/usage_error.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/nearest.h"
#include "base/shown.h"

namespace hawser::cli {
namespace {

std::vector<std::string> command_names(const CLI::App& root) {
  std::vector<std::string> names;
  for (const CLI::App* command : root.get_subcommands([](const CLI::App*) { return true; })) {
    names.push_back(command->get_name());
  }
  return names;
}

/// Without those that people do not call.
std::vector<std::string> shown_names(const CLI::App& root) {
  std::vector<std::string> names = command_names(root);
  std::erase_if(names, [&](const std::string& name) { return root.get_subcommand(name)->get_group().empty(); });
  return names;
}

std::vector<std::string> option_names(const CLI::App& command) {
  std::vector<std::string> names;
  for (const CLI::Option* option : command.get_options()) {
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  }
  return names;
}

std::string help_of(const std::string& command) {
  return command.empty() ? "`hawser --help` lists the commands."
                         : fmt::format("`hawser {} --help` shows what it takes.", command);
}

/// The first of `words` that looks like an option and is none of the command's; empty: there is none.
std::string unknown_option(const CLI::App& command, const std::vector<std::string>& words) {
  for (const std::string& word : words) {
    if (word == "--") break;
    if (!word.starts_with('-') || word.size() < 2) continue;
    if (word[1] >= '0' && word[1] <= '9') continue;  // A number, which the option before it refused.
    const std::string name = word.substr(0, word.find('='));
    const bool is_short = !name.starts_with("--");
    if (command.get_option_no_throw(is_short ? name.substr(0, 2) : name) == nullptr) return name;
  }
  return {};
}

/// Within the command of that name, or one below it.
UsageError explain_in(const CLI::App& command, const std::string& name, const std::vector<std::string>& rest,
                      const CLI::ParseError& error) {
  const std::vector<std::string> below = command_names(command);
  const bool goes_on = !rest.empty() && std::ranges::find(below, rest.front()) != below.end();
  if (goes_on) {
    return explain_in(*command.get_subcommand(rest.front()), name + " " + rest.front(), {rest.begin() + 1, rest.end()},
                      error);
  }
  const std::string option = unknown_option(command, rest);
  if (!option.empty()) {
    return {name, fmt::format("there is no option '{}'.{} {}", base::shown(option),
                              base::did_you_mean(option, option_names(command)), help_of(name))};
  }
  std::string what = error.what();
  while (what.ends_with('\n') || what.ends_with('.')) what.pop_back();
  return {name, fmt::format("{}. {}", base::shown(what), help_of(name))};
}

}  // namespace

UsageError explain_usage(const CLI::App& root, const std::vector<std::string>& arguments,
                         const CLI::ParseError& error) {
  const std::vector<std::string> names = command_names(root);
  const auto first = std::ranges::find_if(arguments, [](const std::string& word) { return !word.starts_with('-'); });
  if (first == arguments.end()) {
    const std::string option = unknown_option(root, arguments);
    if (!option.empty()) return {"", fmt::format("there is no option '{}'. {}", base::shown(option), help_of(""))};
    return {"", fmt::format("a command is needed: one of {}. {}", fmt::join(shown_names(root), ", "), help_of(""))};
  }
  if (std::ranges::find(names, *first) == names.end()) {
    const std::string near = base::did_you_mean(*first, names);
    return {"", fmt::format("there is no command '{}'.{} {}", base::shown(*first), near, help_of(""))};
  }
  return explain_in(*root.get_subcommand(*first), *first, {first + 1, arguments.end()}, error);
}

}  // namespace hawser::cli
