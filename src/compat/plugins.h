#pragma once

// What answers to NIXL's plugin names here. One table; a plugin is a name, the memory that it takes, its parameters and
// what it can do.
//
// Thread rule: constant data and pure functions.

#include <cstdint>
#include <span>
#include <string_view>

#include <hawser/compat/agent.h>

HAWSER_NAMESPACE_BEGIN
namespace compat {

/// Of every plugin: how long a transfer may take.
inline constexpr std::string_view kDeadlineKey = "hawser_deadline";

struct ParamDefault {
  std::string_view key, value;
};

struct Plugin {
  std::string_view name;                   ///< Upper case.
  std::span<const MemType> mems;           ///< What it registers.
  std::span<const ParamDefault> defaults;  ///< What get_plugin_params shows.
  std::span<const std::string_view> keys;  ///< Further ones that are known; any other warns.
  std::string_view answer;                 ///< What stands behind it here.
  bool remote = false;                     ///< Reaches other agents, so it has metadata and notifications.
};

/// In the order in which they are listed.
std::span<const Plugin> plugins();
/// In either case; null when there is none.
const Plugin* find_plugin(std::string_view name);
bool takes(const Plugin& plugin, MemType type);
bool knows(const Plugin& plugin, std::string_view key);
Params default_params(const Plugin& plugin);
/// "there is UCX, POSIX"
std::string known_plugins();

/// Backends of one agent as bits, by their place in the order of creation.
using BackendMask = std::uint32_t;
inline constexpr std::size_t kBackendsMax = 32;

}  // namespace compat
HAWSER_NAMESPACE_END
