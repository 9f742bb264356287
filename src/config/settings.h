#pragma once

// Settings: options as texts, each with the place it was read from. All sources are brought into this one form before
// anything is parsed, so a file, the environment and a caller obey the same rules.
//
// Thread rule: values and pure functions.

#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <hawser/config.h>
#include <hawser/status.h>

namespace hawser::config {

struct Setting {
  std::string text;
  std::string origin;  ///< As in ConfigValue.
};

/// By option name: "deadline", "limits.peers", "backend.tcp.lanes".
using Settings = std::map<std::string, Setting, std::less<>>;

/// Begins the names of backends' parameters; the parameter follows the last dot.
inline constexpr std::string_view kBackendPrefix = "backend.";

/// Faults and unknown words, each with its place. They are collected so that a user mends all at once.
struct Findings {
  std::vector<std::string> errors;
  std::vector<std::string> warnings;
  std::string unknown_override;  ///< The first warning of what the caller gave.
};

/// The settings of a TOML document. `path` is for messages only. Lists become texts with commas.
Settings read_toml(std::string_view document, std::string_view path, Findings& findings);

/// The settings of HAWSER_ variables. Empty ones count as not set. `backends` are the known names, in lower case.
Settings read_environment(const ConfigSources::Texts& environment, std::span<const std::string> backends,
                          Findings& findings);

/// `over` wins.
void overlay(Settings& settings, Settings over);

/// Backends named in the settings: in the list, and by their parameters.
std::vector<std::string> backends_named(const Settings& settings);

/// The words between commas, trimmed, in lower case. False when one is empty.
bool split_words(std::string_view text, std::vector<std::string>& words);

}  // namespace hawser::config
