#include "cli/usage_error.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "base/shown.h"

namespace hawser::cli {
namespace {

constexpr std::size_t kWordMax = 64;  ///< A longer word is nobody's mistyped one.

/// Damerau's and Levenshtein's distance, where no part is edited twice ("optimal string alignment").
std::size_t distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> before(b.size() + 1), last(b.size() + 1), now(b.size() + 1);
  std::iota(last.begin(), last.end(), 0);
  for (std::size_t i = 1; i <= a.size(); ++i) {
    now[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      now[j] = std::min({last[j] + 1, now[j - 1] + 1, last[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1)});
      const bool is_swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
      if (is_swapped) now[j] = std::min(now[j], before[j - 2] + 1);
    }
    before.swap(last);
    last.swap(now);
  }
  return last[b.size()];
}

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

std::string meant(const std::string& near) { return near.empty() ? "" : fmt::format(" Did you mean '{}'?", near); }

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
                              meant(nearest(option, option_names(command))), help_of(name))};
  }
  std::string what = error.what();
  while (what.ends_with('\n') || what.ends_with('.')) what.pop_back();
  return {name, fmt::format("{}. {}", base::shown(what), help_of(name))};
}

}  // namespace

std::string nearest(std::string_view word, const std::vector<std::string>& candidates) {
  if (word.empty() || word.size() > kWordMax) return {};
  std::string best;
  std::size_t least = std::max<std::size_t>(word.size() / 3, 1) + 1;  // As near as this counts no more.
  for (const std::string& candidate : candidates) {
    const std::size_t edits = candidate.starts_with(word) ? 1 : distance(word, candidate);
    if (edits >= least) continue;
    least = edits;
    best = candidate;
  }
  return best;
}

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
    const std::string near = meant(nearest(*first, names));
    return {"", fmt::format("there is no command '{}'.{} {}", base::shown(*first), near, help_of(""))};
  }
  return explain_in(*root.get_subcommand(*first), *first, {first + 1, arguments.end()}, error);
}

}  // namespace hawser::cli
