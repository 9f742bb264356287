// Checks of devices, of the configuration, and of the backends opened with it. See doctor_checks.h.

#include <fmt/format.h>
#include <hawser/agent.h>
#include <hawser/compat/agent.h>

#include <filesystem>
#include <optional>
#include <thread>

#include "agent/inner.h"
#include "base/dylib.h"
#include "cli/command.h"
#include "cli/doctor_checks.h"
#include "cli/plugins.h"
#include "identity/files.h"

namespace hawser::cli {
namespace {

std::vector<std::string> entries(const char* folder, std::string_view prefix = {}) {
  std::vector<std::string> names;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
    std::string name = entry.path().filename().string();
    if (name.starts_with(prefix)) names.push_back(std::move(name));
  }
  return names;
}

std::string loaded(const Result<base::Dylib>& library) {
  return library ? fmt::format("{} loads", library->name()) : "its library does not load";
}

Finding cuda() {
  const auto devices = entries("/dev", "nvidia");
  const auto driver = base::Dylib::open({"libcuda.so.1"});
  const bool half = !devices.empty() && !driver;
  return {"devices.cuda", half ? Verdict::kWarn : Verdict::kOk,
          devices.empty() ? fmt::format("no device; {}", loaded(driver)) : loaded(driver),
          "GPU memory as regions; without a driver regions are host memory",
          half ? "container: --gpus all (the driver's libraries come with it)" : ""};
}

Finding curl() {
  const auto library = base::Dylib::open({"libcurl.so.4", "libcurl-gnutls.so.4"});
  return {"etcd.libcurl", library ? Verdict::kOk : Verdict::kWarn, loaded(library),
          "directories in etcd are reached by it", library ? "" : "sudo apt-get install libcurl4"};
}

Finding backend_finding(const BackendReport& report) {
  const std::string address = report.address.empty() ? "" : fmt::format(" at {}", report.address);
  Finding finding{"backend." + report.name, report.open ? Verdict::kOk : Verdict::kFail,
                  report.open ? "opens" + address : report.cause.to_string(),
                  "one way to move bytes; an agent opens all that work",
                  report.open ? "" : std::string(report.cause.advice())};
  if (report.open && !report.warnings.empty()) {
    finding.verdict = Verdict::kWarn;
    finding.found += fmt::format("; {}", fmt::join(report.warnings, "; "));
  }
  return finding;
}

/// Asks the directory for a key that nobody has.
void check_directory(Directory& directory, Findings& findings) {
  constexpr Duration kDeviceWait = std::chrono::seconds(3);
  const Clock& clock = Clock::steady();
  const Instant from = clock.now(), end = from + kDeviceWait;
  const auto answer =
      agent::inner::ask(directory, directory.get("hawser/doctor"), end, [] { std::this_thread::yield(); });
  const bool is_good = answer && (answer->status.ok() || answer->status.code() == Code::kNotFound);
  const double ms = static_cast<double>((clock.now() - from).count()) / 1e6;
  findings.push_back({"directory", is_good ? Verdict::kOk : Verdict::kFail,
                      is_good  ? fmt::format("{} answers in {:.1f} ms", directory.kind(), ms)
                      : answer ? answer->status.to_string()
                               : fmt::format("{} gives no answer in 3 s", directory.kind()),
                      "agents publish their cards there and find their peers",
                      is_good ? "" : "etcdctl --endpoints HOST:PORT endpoint health, if it is etcd"});
}

void check_plugins(Agent& agent, std::span<const PluginFolder> folders, Findings& findings) {
  for (const PluginFolder& folder : folders) {
    findings.push_back({"plugins", folder.error.empty() ? Verdict::kOk : Verdict::kWarn,
                        folder.error.empty() ? fmt::format("{} in {}", folder.names.size(), folder.path)
                                             : fmt::format("folder {}: {}", folder.path, folder.error),
                        "out-of-tree backends are looked for in the folders of plugin_path",
                        folder.error.empty() ? "" : "make it readable, or take it out of HAWSER_PLUGIN_PATH"});
  }
  for (const BackendReport& report : try_other_plugins(agent, folders)) {
    Finding finding = backend_finding(report);
    finding.found += "; not in use, as this configuration does not name it";
    if (finding.verdict == Verdict::kFail) finding.verdict = Verdict::kWarn;
    findings.push_back(std::move(finding));
  }
}

}  // namespace

void check_devices(Findings& findings) {
  findings.push_back(curl());
  findings.push_back(cuda());
}

namespace {

void check_nixl(Findings& findings) {
  for (const compat::PluginNote& note : compat::plugin_notes()) {
    const bool ok = note.refusal.ok();
    findings.push_back({"nixl." + note.name, ok ? Verdict::kOk : Verdict::kWarn,
                        ok ? note.answer : "nobody answers: " + std::string(note.refusal.message()),
                        "clients of NIXL name their plugins, which Hawser's own backends answer for",
                        std::string(note.refusal.advice())});
  }
}

}  // namespace

void check_configuration(const std::string& file, Findings& findings) {
  check_nixl(findings);
  const char* why = "options come from a file, from HAWSER_ variables and from the program, in this order";
  auto config = configuration(file);
  if (!config) {
    findings.push_back(
        {"config", Verdict::kFail, config.error().to_string(), why, std::string(config.error().advice())});
    return;
  }
  findings.push_back({"config", config->warnings.empty() ? Verdict::kOk : Verdict::kWarn,
                      config->warnings.empty() ? fmt::format("{} options in force", config->values.size())
                                               : fmt::format("{}", fmt::join(config->warnings, "; ")),
                      why, config->warnings.empty() ? "" : "hawser info   (lists every option and its origin)"});
  AgentOptions options = std::move(config->options);
  options.name = identity::name_beneath(options.identity.folder, "doctor");
  if (options.directory) check_directory(*options.directory, findings);
  options.directory.reset();  // A look must not publish.
  options.mode = OpenMode::kLenient;
  const bool named = !options.backends.empty();
  const std::vector<PluginFolder> folders = plugin_folders(options.plugin_paths);
  auto agent = Agent::open(std::move(options));
  if (!agent) {
    findings.push_back({"backend", Verdict::kFail, agent.error().to_string(), "no agent can be opened at all",
                        std::string(agent.error().advice())});
    return;
  }
  for (const BackendReport& report : agent->backends()) {
    findings.push_back(backend_finding(report));
    // Nobody asked for what this machine has no hardware for.
    if (!report.open && !named && report.cause.code() == Code::kUnsupported) findings.back().verdict = Verdict::kWarn;
  }
  check_plugins(*agent, folders, findings);
}

}  // namespace hawser::cli
