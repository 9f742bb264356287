// hawser info: versions, backends, devices, limits, and the configuration in force with where each value came from.

#include <fmt/format.h>
#include <hawser/agent.h>
#include <hawser/compat/agent.h>
#include <hawser/version.h>

#include <filesystem>
#include <memory>
#include <thread>

#include "base/copy.h"
#include "base/try.h"
#include "cli/command.h"
#include "cli/json_out.h"
#include "cli/plugins.h"
#include "cli/rdma_view.h"
#include "cli/status_exit.h"
#include "cli/system_limits.h"
#include "cli/table.h"
#include "cli/topo_scan.h"
#include "cli/units.h"
#include "identity/files.h"
#include "wire/hello.h"

namespace hawser::cli {
namespace {

constexpr const char* kInfoExamples =
    "  hawser info\n"
    "  hawser info --json | jq .backends";

struct Facts {
  LoadedConfig config;
  std::vector<BackendReport> backends;
  std::vector<BackendReport> unnamed;  ///< Plug-ins that this configuration does not open.
  Status agent;                        ///< Why there is no agent, else good.
  std::vector<TopoDevice> devices;
  backend::verbs::Survey rdma;
  std::vector<Limit> limits;
};

Result<Facts> gather(const std::string& file) {
  Facts facts;
  HAWSER_TRY_ASSIGN(facts.config, configuration(file));
  tell_warnings(facts.config);
  AgentOptions options = facts.config.options;
  options.name = identity::name_beneath(options.identity.folder, "info");
  options.directory.reset();  // A look must not publish.
  options.mode = OpenMode::kLenient;
  const std::vector<PluginFolder> folders = plugin_folders(options.plugin_paths);
  Result<Agent> agent = Agent::open(std::move(options));
  facts.agent = agent.status();
  if (agent) {
    facts.backends = agent->backends();
    facts.unnamed = try_other_plugins(*agent, folders);
  }
  if (auto topology = scan_topology()) {
    facts.devices = std::move(topology->devices);
    facts.rdma = std::move(topology->rdma);
  }
  facts.limits = system_limits();
  return facts;
}

std::string kernel_names() {
  std::string text;
  for (const base::CopyKernels* kernel : base::all_kernels()) {
    text += fmt::format("{}{}", text.empty() ? "" : ", ", kernel->name);
  }
  return text;
}

std::string params_text(const Params& params) {
  std::string text;
  for (const auto& [key, value] : params) text += fmt::format("{}{}={}", text.empty() ? "" : " ", key, value);
  return text;
}

void print_text(const Facts& facts) {
  fmt::print("hawser {}, wire and cards version {} to {}, copies by {} (of {})\n\n", version(), wire::kVersionMin,
             wire::kVersionMax, base::kernels().name, kernel_names());
  Table backends({{"backend"}, {"state"}, {"address or reason"}, {"parameters"}});
  for (const BackendReport& report : facts.backends) {
    backends.add({report.name, report.open ? "open" : "not open",
                  report.open ? report.address : report.cause.to_string(), params_text(report.params)});
  }
  for (const BackendReport& report : facts.unnamed) {
    backends.add({report.name, report.open ? "when named" : "not open",
                  report.open ? report.address : report.cause.to_string(), params_text(report.params)});
  }
  fmt::print("{}", backends.to_string());
  for (const BackendReport& report : facts.backends) {
    for (const std::string& warning : report.warnings) fmt::print("{}: {}\n", report.name, warning);
  }
  if (!facts.agent.ok()) fmt::print("no agent: {}\n", facts.agent.to_string());
  Table nixl({{"nixl plugin"}, {"answered by"}});
  for (const compat::PluginNote& note : compat::plugin_notes()) nixl.add({note.name, note.answer});
  fmt::print("\n{}", nixl.to_string());
  Table devices({{"device"}, {"name"}, {"what"}});
  devices.add({"host", "memory", short_size(available_memory()) + " free"});
  for (const TopoDevice& device : facts.devices) devices.add({device.kind, device.name, device.detail});
  fmt::print("\n{}", devices.to_string());
  if (const std::string ports = rdma_ports_text(facts.rdma); !ports.empty()) fmt::print("\n{}", ports);
  if (const std::string counts = rdma_counters_text(facts.rdma); !counts.empty()) fmt::print("\n{}", counts);
  Table limits({{"limit"}, {"value"}});
  for (const Limit& limit : facts.limits) limits.add({limit.name, limit.value});
  fmt::print("\n{}", limits.to_string());
  Table config({{"option"}, {"value"}, {"origin"}});
  for (const ConfigValue& value : facts.config.values) config.add({value.name, value.value, value.origin});
  fmt::print("\n{}", config.to_string());
}

Json backend_json(const BackendReport& report, bool in_use) {
  Json json = {{"name", report.name}, {"open", report.open}, {"in_use", in_use}, {"address", report.address}};
  json["error"] = to_json(report.cause);
  json["params"] = Json::object();
  for (const auto& [key, value] : report.params) json["params"][key] = value;
  json["warnings"] = report.warnings;
  return json;
}

void print_json(const Facts& facts) {
  Json json = document("info");
  json["ok"] = facts.agent.ok();
  json["error"] = to_json(facts.agent);
  json["version"] = version();
  json["wire"] = {{"min", wire::kVersionMin}, {"max", wire::kVersionMax}};
  json["copy_kernel"] = base::kernels().name;
  json["backends"] = Json::array();
  for (const BackendReport& report : facts.backends) json["backends"].push_back(backend_json(report, report.open));
  for (const BackendReport& report : facts.unnamed) json["backends"].push_back(backend_json(report, false));
  json["nixl_plugins"] = Json::object();
  for (const compat::PluginNote& note : compat::plugin_notes()) json["nixl_plugins"][note.name] = note.answer;
  json["memory_available"] = available_memory();
  json["devices"] = Json::array();
  for (const TopoDevice& device : facts.devices) {
    json["devices"].push_back({{"kind", device.kind}, {"name", device.name}, {"detail", device.detail}});
  }
  json["rdma"] = rdma_json(facts.rdma);
  json["limits"] = Json::object();
  for (const Limit& limit : facts.limits)
    json["limits"][limit.name] = limit.number ? Json(*limit.number) : Json(limit.value);
  json["config"] = Json::array();
  for (const ConfigValue& value : facts.config.values) {
    json["config"].push_back({{"name", value.name}, {"value", value.value}, {"origin", value.origin}});
  }
  json["warnings"] = facts.config.warnings;
  print(json);
}

int run_info(const Common& common) {
  const Result<Facts> facts = gather(common.config);
  if (!facts) return fail("info", common.json, facts.error());
  if (common.json) {
    print_json(*facts);
  } else {
    print_text(*facts);
  }
  if (!facts->agent.ok()) fmt::print(stderr, "hawser info: {}\n", facts->agent.to_string());
  return exit_code(facts->agent);
}

}  // namespace

void add_info(Shell& shell) {
  auto common = std::make_shared<Common>();
  CLI::App* command =
      add_command(shell, "info", "Show versions, backends, devices, limits and configuration", kInfoExamples, *common);
  on_run(shell, command, [common] { return run_info(*common); });
}

}  // namespace hawser::cli
