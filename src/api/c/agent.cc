// The C ABI: agents, their backends and their progress.

#include <hawser/config.h>
#include <hawser/version.h>
#include <unistd.h>

#include <nlohmann/json.hpp>

#include "api/c/objects.h"

namespace hawser::api {

SharedDriver::SharedDriver(Driver its) : driver(std::move(its)), pid(::getpid()) {}

SharedDriver::~SharedDriver() {
  if (forked()) (void)new Driver(std::move(driver));  // Joining would wait for ever.
}

bool SharedDriver::forked() const { return pid != ::getpid(); }

AgentObject::~AgentObject() {
  if (!driver || driver->forked()) return;
  constexpr Duration kPatience = std::chrono::milliseconds(200);
  (void)agent.close(kPatience);
  (void)driver->driver.detach(agent);  // It may go on with others.
}

Status parents_handle(std::string_view call, std::string_view name) {
  return invalid(call, "the " + std::string(name) + " handle is the parent's, and this is a forked child")
      .with_advice("open what the child needs in the child");
}

namespace {

using Texts = ConfigSources::Texts;

Result<Texts> settings_of(const char* call, const hawser_param* params, std::size_t count, std::string_view name) {
  HAWSER_TRY(not_null(call, params, count, name));
  Texts texts;
  for (std::size_t i = 0; i < count; ++i) {
    if (params[i].key == nullptr || params[i].value == nullptr) {
      return invalid(call, std::string(name) + "[" + std::to_string(i) + "] has a null key or value");
    }
    texts[params[i].key] = params[i].value;
  }
  return texts;
}

LogSink sink_of(const hawser_agent_options& options) {
  if (options.log == nullptr) return {};
  return [log = options.log, context = options.log_context](LogLevel level, std::string_view line) {
    log(context, static_cast<int>(level), std::string(line).c_str());
  };
}

Result<AgentOptions> agent_options(const char* call, const hawser_agent_options& given) {
  ConfigSources sources;
  if ((given.flags & HAWSER_AGENT_NO_ENVIRONMENT) == 0) sources = ConfigSources::from_process();
  if (given.config_file != nullptr) sources.file = given.config_file;
  HAWSER_TRY_ASSIGN(sources.overrides, settings_of(call, given.settings, given.setting_count, "settings"));
  HAWSER_TRY_ASSIGN(LoadedConfig config, load_config(sources));
  if (!config.unknown_override.empty()) return invalid(call, "settings: " + config.unknown_override);
  if (given.name != nullptr) config.options.name = given.name;
  if (given.directory.id != 0) {
    HAWSER_TRY_ASSIGN(const auto directory, find<DirectoryObject>(call, given.directory));
    config.options.directory = directory->directory;
  }
  config.options.driven = (given.flags & HAWSER_AGENT_POLLED) == 0 || (given.flags & HAWSER_AGENT_LOOP) != 0;
  config.options.log.sink = sink_of(given);
  config.options.segments = segments_of(given);
  return std::move(config.options);
}

Result<std::shared_ptr<SharedDriver>> start_driver(unsigned threads, std::int64_t spin_ns) {
  DriverOptions with{.threads = threads};
  if (spin_ns > 0) with.spin = Duration(spin_ns);
  HAWSER_TRY_ASSIGN(Driver started, Driver::start(with));
  return std::make_shared<SharedDriver>(std::move(started));
}

/// Null: the agent is polled.
Result<std::shared_ptr<SharedDriver>> driver_of(const char* call, const hawser_agent_options& given) {
  const bool is_polled = (given.flags & HAWSER_AGENT_POLLED) != 0;
  if (given.driver.id == 0) {
    if (is_polled) return std::shared_ptr<SharedDriver>();
    return start_driver(1, given.spin_ns);
  }
  if (is_polled) return invalid(call, "HAWSER_AGENT_POLLED is set, and a driver is given");
  if (given.spin_ns != 0) return invalid(call, "spin_ns is set, and a driver is given, which has its own");
  HAWSER_TRY_ASSIGN(const auto driver, find<DriverObject>(call, given.driver));
  return driver->driver;
}

Status open(const char* call, const hawser_agent_options* options, hawser_agent* out) {
  constexpr std::size_t kLeast = offsetof(hawser_agent_options, config_file);  // As in version 1 of the C ABI.
  HAWSER_TRY(not_null(call, out, "out"));
  HAWSER_TRY_ASSIGN(const hawser_agent_options given, options_of(call, "hawser_agent_options", options, kLeast));
  constexpr std::uint32_t kFlags = HAWSER_AGENT_POLLED | HAWSER_AGENT_LOOP | HAWSER_AGENT_NO_ENVIRONMENT;
  if ((given.flags & ~kFlags) != 0) return invalid(call, "flags " + std::to_string(given.flags) + " has unknown bits");
  HAWSER_TRY_ASSIGN(AgentOptions its, agent_options(call, given));
  HAWSER_TRY_ASSIGN(std::shared_ptr<SharedDriver> driver, driver_of(call, given));
  HAWSER_TRY_ASSIGN(Agent agent, Agent::open(std::move(its)));
  if (driver) HAWSER_TRY(driver->driver.attach(agent));
  return give_handle(call, out, std::make_unique<AgentObject>(std::move(driver), std::move(agent)));
}

std::string json_of(const std::vector<BackendReport>& reports) {
  auto all = nlohmann::json::array();
  for (const BackendReport& report : reports) {
    nlohmann::json one = {{"name", report.name},
                          {"open", report.open},
                          {"params", report.params},
                          {"warnings", report.warnings},
                          {"address", report.address}};
    if (!report.open) one["code"] = static_cast<int>(report.cause.code());
    if (!report.open) one["cause"] = report.cause.to_string();
    all.push_back(std::move(one));
  }
  return all.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace
}  // namespace hawser::api

using namespace hawser;
using namespace hawser::api;

const char* hawser_version(void) { return HAWSER_VERSION; }
uint32_t hawser_c_abi(void) { return HAWSER_C_ABI; }

const char* hawser_code_name(int code) {
  if (code < 0 || code > HAWSER_FAILED) return "unknown";
  return to_string(static_cast<Code>(code)).data();  // A literal, so a zero follows.
}

int hawser_agent_open(const hawser_agent_options* options, hawser_agent* out) {
  return run(__func__, [&](const char* call) -> Status { return open(call, options, out); });
}

int hawser_agent_close(hawser_agent agent, int64_t timeout_ns) {
  return run(__func__, [&](const char* call) -> Status {
    HAWSER_TRY_ASSIGN(const auto its, find<AgentObject>(call, agent));
    return its->agent.close(timeout_of(timeout_ns));
  });
}

int hawser_agent_end_label(hawser_agent agent, uint64_t label, size_t* count) {
  return run(__func__, [&](const char* call) -> Status {
    HAWSER_TRY_ASSIGN(const auto its, find<AgentObject>(call, agent));
    HAWSER_TRY_ASSIGN(const std::size_t ended, its->agent.end(label));
    if (count != nullptr) *count = ended;
    return {};
  });
}

int hawser_agent_release(hawser_agent agent) { return release<AgentObject>(__func__, agent); }

int hawser_driver_open(const hawser_driver_options* options, hawser_driver* out) {
  return run(__func__, [&](const char* call) -> Status {
    HAWSER_TRY(not_null(call, out, "out"));
    HAWSER_TRY_ASSIGN(const hawser_driver_options given, options_of(call, "hawser_driver_options", options));
    HAWSER_TRY_ASSIGN(std::shared_ptr<SharedDriver> driver,
                      start_driver(given.threads == 0 ? 1 : given.threads, given.spin_ns));
    return give_handle(call, out, std::make_unique<DriverObject>(std::move(driver)));
  });
}

int hawser_driver_release(hawser_driver driver) { return release<DriverObject>(__func__, driver); }

int hawser_agent_add_backend(hawser_agent agent, const char* name, const hawser_param* params, size_t count) {
  return run(__func__, [&](const char* call) -> Status {
    HAWSER_TRY_ASSIGN(const auto its, find<AgentObject>(call, agent));
    HAWSER_TRY(not_null(call, name, "name"));
    HAWSER_TRY_ASSIGN(Texts texts, settings_of(call, params, count, "params"));
    return its->agent.add_backend({.name = name, .params = std::move(texts)});
  });
}

int hawser_agent_require_backend(hawser_agent agent, const char* name) {
  return run(__func__, [&](const char* call) -> Status {
    HAWSER_TRY_ASSIGN(const auto its, find<AgentObject>(call, agent));
    HAWSER_TRY(not_null(call, name, "name"));
    return its->agent.require_backend(name);
  });
}

int hawser_agent_backends(hawser_agent agent, hawser_buffer* json) {
  return run(__func__, [&](const char* call) -> Status {
    HAWSER_TRY_ASSIGN(const auto its, find<AgentObject>(call, agent));
    return give(call, json, json_of(its->agent.backends()));
  });
}

int hawser_agent_counters(hawser_agent agent, hawser_buffer* json) {
  return run(__func__, [&](const char* call) -> Status {
    HAWSER_TRY_ASSIGN(const auto its, find<AgentObject>(call, agent));
    return give(call, json, to_json(its->agent.counters()));
  });
}

int hawser_agent_explain(hawser_agent agent, hawser_plan plan, hawser_buffer* text) {
  return run(__func__, [&](const char* call) -> Status {
    HAWSER_TRY_ASSIGN(const auto its, find<AgentObject>(call, agent));
    HAWSER_TRY_ASSIGN(const auto which, find<PlanObject>(call, plan));
    return give(call, text, its->agent.explain(which->plan));
  });
}

int hawser_agent_poll(hawser_agent agent, size_t* work) {
  return run(__func__, [&](const char* call) -> Status {
    HAWSER_TRY_ASSIGN(const auto its, find<AgentObject>(call, agent));
    const std::size_t done = its->agent.poll();
    if (work != nullptr) *work = done;
    return {};
  });
}

int hawser_agent_wait(hawser_agent agent, int64_t timeout_ns, int* happened) {
  return run(__func__, [&](const char* call) -> Status {
    HAWSER_TRY_ASSIGN(const auto its, find<AgentObject>(call, agent));
    const bool some = its->agent.wait(timeout_of(timeout_ns));
    if (happened != nullptr) *happened = some ? 1 : 0;
    return {};
  });
}

int hawser_agent_event_fd(hawser_agent agent, int* fd) {
  return run(__func__, [&](const char* call) -> Status {
    HAWSER_TRY(not_null(call, fd, "fd"));
    HAWSER_TRY_ASSIGN(const auto its, find<AgentObject>(call, agent));
    const int its_fd = its->agent.event_fd();
    if (its_fd < 0) return Status(Code::kFailed, std::string(call) + ": there is no descriptor to be had");
    *fd = its_fd;
    return {};
  });
}
