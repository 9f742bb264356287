#include "backend/plugin/plugin.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <filesystem>
#include <memory>
#include <set>
#include <utility>

#include "backend/plugin/plugin_backend.h"
#include "base/dylib.h"
#include "base/format.h"
#include "base/try.h"

namespace hawser::backend {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kPrefix = "libhawser_backend_";
constexpr std::string_view kSuffix = ".so";
constexpr std::size_t kNameMax = 32;
constexpr std::size_t kTableRoom = 4096;  // More than any ABI's table, so that one of another ABI does no harm.
constexpr std::size_t kPluginsMax = 64;   // In one folder; others are passed over with a warning.
constexpr int kBrokenRank = 1;            // So that an agent that opens all it finds reports those that do not load.

constexpr std::array<std::string_view, 12> kBackendNames = {
    "open",       "close",         "traits",    "address", "readable_address", "reachable",
    "add_region", "remove_region", "open_port", "params",  "warnings",         "disown_after_fork",
};
constexpr std::array<std::string_view, 11> kPortNames = {
    "close",   "open_path",     "release_path", "turn",        "poll", "next_deadline",
    "wait_fd", "prepare_sleep", "region_quiet", "begin_close", "idle",
};
constexpr std::array<std::string_view, 8> kPathNames = {
    "state", "bind", "unbind", "submit", "send", "cancel", "counters", "describe",
};

constexpr std::string_view kRename = "rename the file, or the backend in it: libhawser_backend_<name>.so";
constexpr std::string_view kBuildAgain = "build it again with the hawser/plugin.h of this hawser";

/// A size and function pointers, nothing else: all sizes must be ours and no pointer null.
template <typename Api, std::size_t kCount>
Status check_api(const std::string& origin, std::string_view what, const Api* api,
                 const std::array<std::string_view, kCount>& names) {
  static_assert(sizeof(Api) == sizeof(std::size_t) + kCount * sizeof(void*));
  if (api == nullptr)
    return Status(Code::kInvalid, base::format("plug-in {}: it has no table '{}'", origin, what))
        .with_advice(kBuildAgain);
  if (api->size != sizeof(Api)) {
    return Status(Code::kInvalid,
                  base::format("plug-in {}: its table '{}' has {} bytes, not {}", origin, what, api->size, sizeof(Api)))
        .with_advice(kBuildAgain);
  }
  std::array<void*, kCount> functions;
  std::memcpy(functions.data(), reinterpret_cast<const std::byte*>(api) + sizeof(std::size_t), sizeof(functions));
  for (std::size_t i = 0; i < kCount; ++i) {
    if (functions[i] != nullptr) continue;
    return Status(Code::kInvalid, base::format("plug-in {}: function '{}.{}' is null", origin, what, names[i]))
        .with_advice(kBuildAgain);
  }
  return {};
}

bool is_backend_name(std::string_view name) {
  const auto fits = [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_'; };
  return !name.empty() && name.size() <= kNameMax && std::ranges::all_of(name, fits);
}

Status check_table(const std::string& origin, const std::string& expected_name, const hawser_plugin_table& table) {
  if (table.abi != HAWSER_PLUGIN_ABI) {
    return Status(Code::kUnsupported, base::format("plug-in {}: it has ABI {}, this hawser loads ABI {}", origin,
                                                   table.abi, HAWSER_PLUGIN_ABI))
        .with_advice(kBuildAgain);
  }
  if (table.size != sizeof(table)) {
    return Status(Code::kInvalid,
                  base::format("plug-in {}: its table has {} bytes, not {}", origin, table.size, sizeof(table)))
        .with_advice(kBuildAgain);
  }
  const bool readable = table.name.data != nullptr && table.name.size <= kNameMax;
  const std::string_view name = readable ? std::string_view(table.name.data, table.name.size) : std::string_view();
  if (!is_backend_name(name) || name != expected_name) {
    return Status(Code::kInvalid, base::format("plug-in {}: it calls itself '{}', not '{}' as its file does", origin,
                                               is_backend_name(name) ? name : "?", expected_name))
        .with_advice(kRename);
  }
  HAWSER_TRY(check_api(origin, "backend", table.backend, kBackendNames));
  HAWSER_TRY(check_api(origin, "port", table.port, kPortNames));
  return check_api(origin, "path", table.path, kPathNames);
}

/// The <name> in .../libhawser_backend_<name>.so, or nothing.
std::string name_in(const fs::path& file) {
  const std::string base = file.filename().string();
  if (!base.starts_with(kPrefix) || !base.ends_with(kSuffix)) return {};
  const std::string name = base.substr(kPrefix.size(), base.size() - kPrefix.size() - kSuffix.size());
  return is_backend_name(name) ? name : std::string();
}

Factory broken_factory(std::string name, const Status& why) {
  struct Broken {
    std::string name;
    Status why;
  };
  auto broken = std::make_shared<const Broken>(Broken{std::move(name), why});
  return {broken->name, kBrokenRank,
          [broken](const Context&, const Params&) -> Result<std::unique_ptr<Backend>> { return broken->why; }};
}

void scan(const std::string& folder, std::set<std::string>& names, FoundPlugins& found) {
  std::error_code error;
  std::vector<fs::path> files;
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
    if (!name_in(at->path()).empty()) files.push_back(at->path());
  }
  if (error) {
    found.warnings.push_back(base::format("plug-in folder {} cannot be read: {}", folder, error.message()));
  }
  std::ranges::sort(files);
  if (files.size() > kPluginsMax) {
    found.warnings.push_back(
        base::format("plug-in folder {} has {} plug-ins, only the first {} count", folder, files.size(), kPluginsMax));
    files.resize(kPluginsMax);
  }
  for (const fs::path& file : files) {
    std::string name = name_in(file);
    if (!names.insert(name).second) {
      found.warnings.push_back(base::format("plug-in {} is passed over: there is another '{}'", file.string(), name));
      continue;
    }
    Result<Factory> loaded = load_plugin(file.string());
    found.factories.push_back(loaded ? *std::move(loaded) : broken_factory(std::move(name), loaded.error()));
  }
}

}  // namespace

Result<Factory> plugin_factory(const std::string& origin, const std::string& expected_name, PluginEntry* entry) {
  union {
    hawser_plugin_table table;
    std::array<std::byte, kTableRoom> room;
  } out{.room = {}};
  out.table = {};
  out.table.size = sizeof(out);
  out.table.abi = UINT32_MAX;
  const std::uint32_t code = entry(&plugin_host(), &out.table);
  if (code != HAWSER_PLUGIN_OK) {
    return Status(Code::kUnsupported, base::format("plug-in {}: it refuses this hawser, whose ABI is {} (its code: {})",
                                                   origin, HAWSER_PLUGIN_ABI, code))
        .with_advice(kBuildAgain);
  }
  HAWSER_TRY(check_table(origin, expected_name, out.table));
  auto library = std::make_shared<PluginLibrary>();
  library->name = expected_name;
  library->origin = origin;
  library->default_rank = out.table.default_rank;
  library->backend = *out.table.backend;
  library->port = *out.table.port;
  library->path = *out.table.path;
  return Factory{library->name, library->default_rank, [library](const Context& context, const Params& params) {
                   return PluginBackend::open(library, context, params);
                 }};
}

Result<Factory> load_plugin(const std::string& file) {
  const std::string name = name_in(file);
  if (name.empty()) {
    return Status(Code::kInvalid, base::format("plug-in {}: its file must be {}<name>{}, with a name of lower case "
                                               "letters, digits and underscores",
                                               file, kPrefix, kSuffix));
  }
  // Without a slash the loader would look elsewhere.
  const std::string path = file.find('/') == std::string::npos ? "./" + file : file;
  Result<base::Dylib> library = base::Dylib::open({path});
  if (!library) {
    return Status(Code::kNotFound, base::format("plug-in {} could not be loaded", file))
        .because(library.error())
        .with_advice(base::format("ldd {} tells which libraries it lacks", file));
  }
  library->keep_loaded();
  const Result<PluginEntry*> entry = library->symbol<PluginEntry>(HAWSER_PLUGIN_SYMBOL);
  if (!entry) {
    return Status(Code::kNotFound, base::format("plug-in {} is none of ABI {}", file, HAWSER_PLUGIN_ABI))
        .because(entry.error())
        .with_advice(kBuildAgain);
  }
  return plugin_factory(file, name, *entry);
}

FoundPlugins find_plugins(std::span<const std::string> folders) {
  FoundPlugins found;
  std::set<std::string> names;
  for (const std::string& folder : folders) scan(folder, names, found);
  return found;
}

}  // namespace hawser::backend
