#pragma once

// The one table of options: name, variable, allowed form, meaning, and how each is set and written.
//
// Thread rule: constant data and pure functions.

#include <span>
#include <string>
#include <string_view>

#include <hawser/config.h>

namespace hawser::config {

/// Options under construction: what AgentOptions cannot hold as text stands beside it until the end.
struct Draft {
  LoadedConfig config;
  std::string directory = "none";
  std::string etcd_password_file;
  std::string listen;
};

struct Option {
  std::string_view name;
  std::string_view variable;  ///< In the environment.
  std::string_view form;      ///< The allowed form: "a duration ...". Follows "is not" in errors.
  std::string_view meaning;
  bool (*set)(Draft& draft, std::string_view text);  ///< False: not of the form.
  std::string (*get)(const Draft& draft);            ///< In canonical spelling; set() takes it.
};

std::span<const Option> options();
const Option* find_option(std::string_view name);
const Option* find_variable(std::string_view variable);

/// " Did you mean 'deadline'?" of a name, or of a variable, that no option has; empty: none is near.
std::string option_meant(std::string_view name);
std::string variable_meant(std::string_view variable);

}  // namespace hawser::config
