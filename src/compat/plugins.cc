#include "compat/plugins.h"

#include <strings.h>

#include <algorithm>
#include <array>

HAWSER_NAMESPACE_BEGIN
namespace compat {
namespace {

constexpr std::array kUcxMems = {MemType::kDram, MemType::kVram};
constexpr std::array<ParamDefault, 3> kUcxDefaults = {
    {{"num_workers", "1"}, {"ucx_devices", ""}, {"ucx_error_handling_mode", "peer"}}};
constexpr std::array<std::string_view, 7> kUcxKeys = {
    "device_list",   "num_threads",        "split_batch_size", "ucx_num_device_channels",
    "engine_config", "ucx_ep_close_force", kDeadlineKey};
constexpr std::array<std::string_view, 1> kPosixKeys = {kDeadlineKey};

constexpr std::array kPosixMems = {MemType::kDram, MemType::kFile};
constexpr std::array<ParamDefault, 5> kPosixDefaults = {{{"use_aio", "false"},
                                                         {"use_uring", "false"},
                                                         {"use_posix_aio", "false"},
                                                         {"ios_pool_size", "65536"},
                                                         {"kernel_queue_size", "256"}}};

constexpr std::array<Plugin, 2> kPlugins = {
    {{.name = "UCX",
      .mems = kUcxMems,
      .defaults = kUcxDefaults,
      .keys = kUcxKeys,
      .answer = "an alias of Hawser's own choice of path (HAWSER_NIXL_UCX=auto): no UCX is used",
      .remote = true},
     {.name = "POSIX",
      .mems = kPosixMems,
      .defaults = kPosixDefaults,
      .keys = kPosixKeys,
      .answer = "Hawser's backend file (io_uring, or threads where that is not allowed)",
      .remote = false}}};

bool same(std::string_view a, std::string_view b) {
  return a.size() == b.size() && ::strncasecmp(a.data(), b.data(), a.size()) == 0;
}

}  // namespace

std::span<const Plugin> plugins() { return kPlugins; }

const Plugin* find_plugin(std::string_view name) {
  for (const Plugin& one : kPlugins) {
    if (same(one.name, name)) return &one;
  }
  return nullptr;
}

bool takes(const Plugin& plugin, MemType type) {
  return std::find(plugin.mems.begin(), plugin.mems.end(), type) != plugin.mems.end();
}

bool knows(const Plugin& plugin, std::string_view key) {
  return std::find(plugin.keys.begin(), plugin.keys.end(), key) != plugin.keys.end() ||
         std::any_of(plugin.defaults.begin(), plugin.defaults.end(), [&](const auto& one) { return one.key == key; });
}

Params default_params(const Plugin& plugin) {
  Params params;
  for (const ParamDefault& one : plugin.defaults) params.emplace(one.key, one.value);
  return params;
}

std::string known_plugins() {
  std::string text = "there is";
  for (const Plugin& one : kPlugins) text.append(&one == &kPlugins.front() ? " " : ", ").append(one.name);
  return text;
}

}  // namespace compat
HAWSER_NAMESPACE_END
