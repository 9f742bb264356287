// Which backends to have: the list, and the grammar of its variables.

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <set>

#include <hawser/compat/nixl_agent.h>

#include "base/format.h"
#include "base/quantity.h"
#include "compat/switch_word.h"

HAWSER_NAMESPACE_BEGIN
namespace compat {
namespace {

constexpr std::string_view kPrefix = "DYN_KVBM_NIXL_BACKEND_";

/// Names of NIXL's plugins: a variable's name ends where the longest one does. Not all are answered here.
constexpr std::array<std::string_view, 14> kNames = {"AZURE_BLOB", "GDS",     "GDS_MT",    "GPUNETIO", "GUSLI",
                                                     "HF3FS",      "INFINIA", "LIBFABRIC", "MOONCAKE", "OBJ",
                                                     "POSIX",      "UCCL",    "UCX",       "UCX_MO"};

std::string to_upper(std::string_view text) {
  std::string upper(text);
  std::transform(upper.begin(), upper.end(), upper.begin(), [](char c) { return c >= 'a' && c <= 'z' ? c - 32 : c; });
  return upper;
}

/// The variables read so far.
struct Draft {
  std::map<std::string, bool> switches;
  std::map<std::string, Params> params;
  std::vector<std::string> errors;

  void set_switch(const std::string& variable, const std::string& name, std::string_view text) {
    const std::optional<bool> on = parse_switch(text);
    if (!on) return errors.push_back(base::format("{} = \"{}\" is not {}", variable, text, kSwitchWords));
    const auto [at, fresh] = switches.try_emplace(name, *on);
    if (!fresh && at->second != *on) errors.push_back(base::format("{}: {} is switched on and off", variable, name));
  }
  void set_param(const std::string& variable, const std::string& name, std::string_view key, std::string_view text) {
    const auto [at, fresh] = params[name].try_emplace(base::to_lower(key), text);
    if (!fresh && at->second != text) {
      errors.push_back(base::format("{}: parameter {} of {} is set to two values", variable, at->first, name));
    }
  }
};

/// The longest of `names` that `rest` begins with, an underscore and more after it. Empty: none.
template <typename Names>
std::string_view longest_name(const Names& names, std::string_view rest) {
  std::string_view best;
  for (const auto& entry : names) {
    const std::string_view name = entry;
    const bool fits = rest.size() > name.size() + 1 && rest.starts_with(name) && rest[name.size()] == '_';
    if (fits && name.size() > best.size()) best = name;
  }
  return best;
}

/// What stands after the prefix, in upper case, with its variable and text.
struct Variable {
  std::string rest, variable, text;
};

/// Those whose names say what they are. The others may, once all switches are known.
bool read_plain(const Variable& one, Draft& draft) {
  if (const std::size_t at = one.rest.find("__"); at != std::string::npos && at > 0 && at + 2 < one.rest.size()) {
    draft.set_param(one.variable, one.rest.substr(0, at), one.rest.substr(at + 2), one.text);
    return true;
  }
  const bool is_name = std::find(kNames.begin(), kNames.end(), one.rest) != kNames.end();
  if (is_name || one.rest.find('_') == std::string::npos) {
    draft.set_switch(one.variable, one.rest, one.text);
    return true;
  }
  const std::string_view name = longest_name(kNames, one.rest);
  if (name.empty()) return false;
  draft.set_param(one.variable, std::string(name), std::string_view(one.rest).substr(name.size() + 1), one.text);
  return true;
}

/// A name with underscores that no plugin of NIXL has: a switch of its own, or a parameter of one that is switched.
void read_strange(const Variable& one, const std::set<std::string, std::less<>>& switched, Draft& draft) {
  const std::string_view name = longest_name(switched, one.rest);
  const bool is_word = parse_switch(one.text).has_value();
  if (!name.empty() && is_word) {
    const std::string key = base::to_lower(std::string_view(one.rest).substr(name.size() + 1));
    draft.errors.push_back(base::format(
        "{} may be the switch of {} or parameter {} of {}; for the parameter write {}{}__{}, and for the switch leave "
        "{} to a config in the program",
        one.variable, one.rest, key, name, kPrefix, name, to_upper(key), one.rest));
  } else if (!name.empty()) {
    draft.set_param(one.variable, std::string(name), std::string_view(one.rest).substr(name.size() + 1), one.text);
  } else if (is_word) {
    draft.set_switch(one.variable, one.rest, one.text);
  } else {
    draft.errors.push_back(
        base::format("{} = \"{}\": no backend has a name that it begins with; to switch {} it must be {}", one.variable,
                     one.text, one.rest, kSwitchWords));
  }
}

}  // namespace

NixlBackendConfig::NixlBackendConfig(const std::map<std::string, Params>& backends) {
  for (const auto& [name, params] : backends) with_backend_params(name, params);
}

Result<NixlBackendConfig> NixlBackendConfig::from_env() {
  return from_environment(ConfigSources::from_process().environment);
}

Result<NixlBackendConfig> NixlBackendConfig::from_environment(const ConfigSources::Texts& environment) {
  Draft draft;
  std::vector<Variable> strange;
  for (const auto& [variable, text] : environment) {
    if (!variable.starts_with(kPrefix) || variable.size() == kPrefix.size() || base::trim(text).empty()) continue;
    Variable one{
        .rest = to_upper(std::string_view(variable).substr(kPrefix.size())), .variable = variable, .text = text};
    if (!read_plain(one, draft)) strange.push_back(std::move(one));
  }
  std::set<std::string, std::less<>> switched;
  for (const auto& [name, on] : draft.switches) switched.insert(name);
  for (const Variable& one : strange) {
    const bool is_switch = longest_name(switched, one.rest).empty() && parse_switch(one.text).has_value();
    if (is_switch) read_strange(one, switched, draft);
  }
  for (const auto& [name, on] : draft.switches) switched.insert(name);
  for (const Variable& one : strange) {
    if (!switched.contains(one.rest)) read_strange(one, switched, draft);
  }
  NixlBackendConfig config;
  for (const auto& [name, on] : draft.switches) {
    if (on) config.with_backend_params(name, draft.params[name]);
  }
  for (const auto& [name, params] : draft.params) {
    if (draft.switches.contains(name)) continue;
    draft.errors.push_back(base::format("parameter {} of {} is set, but {}{} is not: set it to true or false",
                                        params.begin()->first, name, kPrefix, name));
  }
  if (draft.errors.empty()) return config;
  std::string text;
  for (const std::string& error : draft.errors) text.append(text.empty() ? "" : "; ").append(error);
  return Status(Code::kInvalid, "NIXL backends: " + text);
}

NixlBackendConfig& NixlBackendConfig::with_backend(std::string_view name) {
  return has_backend(name) ? *this : with_backend_params(name, {});
}

NixlBackendConfig& NixlBackendConfig::with_backend_params(std::string_view name, Params params) {
  const std::string upper = to_upper(name);
  for (Entry& entry : entries_) {
    if (entry.name != upper) continue;
    entry.params = std::move(params);
    return *this;
  }
  entries_.push_back({.name = upper, .params = std::move(params)});
  return *this;
}

NixlBackendConfig& NixlBackendConfig::merge(const NixlBackendConfig& other) {
  const NixlBackendConfig copy = other;  // It may be this one.
  for (const Entry& entry : copy) with_backend_params(entry.name, entry.params);
  return *this;
}

std::vector<std::string> NixlBackendConfig::backends() const {
  std::vector<std::string> names;
  for (const Entry& entry : entries_) names.push_back(entry.name);
  return names;
}

const Params* NixlBackendConfig::backend_params(std::string_view name) const {
  const std::string upper = to_upper(name);
  for (const Entry& entry : entries_) {
    if (entry.name == upper) return &entry.params;
  }
  return nullptr;
}

}  // namespace compat
HAWSER_NAMESPACE_END
