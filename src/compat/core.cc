#include "compat/core.h"

#include <net/if.h>
#include <unistd.h>

#include <algorithm>

#include "agent/fork_guard.h"
#include "agent/inner.h"
#include "agent/inner_peers.h"
#include "base/format.h"
#include "base/inside.h"
#include "base/quantity.h"
#include "base/try.h"
#include "compat/environment.h"
#include "compat/posix_params.h"
#include "compat/ucx_params.h"
#include "wire/limits.h"

HAWSER_NAMESPACE_BEGIN
namespace compat {
namespace {

constexpr Duration kCloseTimeout = std::chrono::seconds(2);
constexpr std::size_t kLapsedMax = 4096;

ConfigSources::Texts environment_of(const AgentConfig& config) {
  return config.environment ? *config.environment : ConfigSources::from_process().environment;
}

bool is_interface(const std::string& name) { return ::if_nametoindex(name.c_str()) != 0; }

}  // namespace

AgentCore::AgentCore(std::string_view name, const AgentConfig& config, AgentOptions options, EtcdOptions etcd)
    : name_(name),
      config_(config),
      telemetry_(telemetry_wanted(environment_of(config), config.capture_telemetry)),
      pid_(::getpid()),
      forks_(agent::watch_forks()),
      options_(std::move(options)),
      etcd_(std::move(etcd)),
      log_(options_.log) {}

AgentCore::~AgentCore() {
  if (pid_ != ::getpid()) {
    if (driver_) (void)new Driver(std::move(*driver_));  // Its thread is not in this process: joining would hang.
    if (exchange_) (new std::shared_ptr<Exchange>(std::move(exchange_)))->get()->disown();
    (void)new metrics::Entry(std::move(page_));
    return;
  }
  page_ = metrics::Entry();  // A scrape and these threads use what follows.
  exchange_.reset();
  if (agent_) (void)agent_->close(kCloseTimeout);
}

Status AgentCore::close() {
  if (pid_ != ::getpid()) return {};
  closed_.store(true, std::memory_order_release);
  std::shared_ptr<Exchange> ending;
  {
    const std::lock_guard lock(exchange_mutex_);
    ending = std::move(exchange_);
  }
  ending.reset();  // Its threads use the agent. The port is free, and what was published is taken back.
  return has_backend() ? agent_->close(kCloseTimeout) : Status();
}

Result<std::shared_ptr<AgentCore>> AgentCore::open(std::string_view name, const AgentConfig& config) {
  if (!wire::is_agent_name(name)) {
    return refusal(NixlCode::kInvalidParam, "create_agent",
                   base::format("a name of {} bytes is not 1 to 255 bytes without control characters", name.size()));
  }
  EtcdOptions etcd;
  HAWSER_TRY_ASSIGN(AgentOptions options, agent_options(name, config, &etcd));
  HAWSER_TRY_ASSIGN(TelemetryExport exported, telemetry_export(environment_of(config)));
  const bool exchanges = config.listen_thread || !etcd.endpoints.empty();
  std::shared_ptr<AgentCore> core(new AgentCore(name, config, std::move(options), std::move(etcd)));
  if (const std::string note = telemetry_note(environment_of(config)); !note.empty()) {
    HAWSER_LOG(core->log_, kWarn, "create_agent: {}", note);
  }
  if (!exported.listen.empty()) core->open_exporter(std::move(exported));
  if (exchanges) HAWSER_TRY(core->open_exchange());
  return core;
}

/// Several processes of a host often get one port: those that come later go on without, and say so.
void AgentCore::open_exporter(TelemetryExport what) {
  exporter_.emplace(name_, std::move(what));
  Result<metrics::Entry> page =
      metrics::serve(exporter_->listen(), [this](metrics::Exposition& to) { exporter_->add_to(to); });
  if (page) {
    page_ = *std::move(page);
    HAWSER_LOG(log_, kInfo, "create_agent: telemetry of '{}' at http://{}/metrics", name_, page_.address());
    return;
  }
  HAWSER_LOG(log_, kWarn, "create_agent: telemetry of '{}' is not exported: {}", name_, page.error().to_string());
}

Status AgentCore::open_exchange() {
  Exchange::Setup setup{.name = name_, .directory = nullptr, .listen = {}, .log = log_};
  setup.everybody = options_.security == Security::kNone;
  if (!options_.identity.folder.empty() && !setup.everybody) {
    const auto unusable = [](const Status& why) {
      return refusal(NixlCode::kBackend, "create_agent", "the identity cannot be used", why);
    };
    Result<std::shared_ptr<identity::Authenticator>> own = identity();
    if (!own) return unusable(own.status());
    setup.identity = *std::move(own);
    setup.revocations = options_.directory;
    Result<std::unique_ptr<IdentityDesk>> desk = IdentityDesk::open(name_, setup.identity);
    if (!desk) return unusable(desk.status());
    setup.desk = *std::move(desk);
  }
  if (config_.listen_thread) setup.listen = config_.listen_port;
  if (!etcd_.endpoints.empty()) {
    Result<std::shared_ptr<Directory>> directory = hawser::etcd(etcd_);
    if (!directory) {
      return refusal(NixlCode::kBackend, "create_agent", "NIXL_ETCD_ENDPOINTS cannot be used", directory.status());
    }
    setup.directory = *std::move(directory);
  }
  Exchange::Links links{
      .load = [this](std::string_view blob, std::string_view label,
                     const std::function<bool()>& is_wanted) { return load(blob, &is_wanted, label); },
      .invalidate =
          [this](std::string_view name, const std::optional<base::Id128>& incarnation) {
            return lapse(name, [&] { return incarnation ? invalidate_one(name, *incarnation) : invalidate(name); });
          },
      .drop =
          [this](std::string_view name, std::string_view label, const std::function<bool()>& is_wanted) {
            return lapse(name, [&] { return drop(name, label, is_wanted); });
          },
      .metadata = [this] { return metadata("get_local_md", nullptr, nullptr); },
      .self = [this]() -> std::optional<Exchange::Self> {
        if (!has_backend()) return std::nullopt;
        const Peer us = agent_->self();
        return Exchange::Self{.incarnation = agent::inner::incarnation_of(us), .born = agent::inner::born_of(*agent_)};
      },
  };
  Result<std::unique_ptr<Exchange>> opened = Exchange::open(std::move(setup), std::move(links));
  if (!opened) return refusal(NixlCode::kBackend, "create_agent", "metadata cannot be exchanged", opened.status());
  exchange_ = *std::move(opened);
  return {};
}

/// The agent's by an authority, which the agent and the exchange share, whichever comes first. Null: it has none.
Result<std::shared_ptr<identity::Authenticator>> AgentCore::identity() {
  const std::lock_guard lock(identity_mutex_);
  if (identity_ == nullptr && !options_.identity.folder.empty()) {
    HAWSER_TRY_ASSIGN(identity_, identity::Authenticator::open({.agent = name_,
                                                                .folder = options_.identity.folder,
                                                                .names = options_.identity.names,
                                                                .period = options_.identity.look},
                                                               log_));
  }
  return identity_;
}

Result<std::shared_ptr<Exchange>> AgentCore::exchange(std::string_view call) {
  HAWSER_TRY(need_home(call));
  const std::lock_guard lock(exchange_mutex_);
  if (is_closed()) return refusal(NixlCode::kBackend, call, base::format("agent '{}' is closed", name_));
  if (!exchange_) HAWSER_TRY(open_exchange());
  return exchange_;
}

Status AgentCore::forget(std::string_view name) {
  HAWSER_TRY(need_home("invalidate_remote_md"));
  {
    const std::lock_guard lock(exchange_mutex_);
    if (exchange_) exchange_->forget(name);
  }
  const Status status = invalidate(name);
  const std::lock_guard lock(mutex_);
  const bool went = lapsed_.erase(std::string(name)) > 0;
  return went && code_of(status) == NixlCode::kNotFound ? Status() : status;
}

/// What the exchange of metadata invalidated, the user may be about to invalidate, too: that is no error of theirs.
/// It is noted before, for the user may see that the agent is gone before `end` has returned.
Status AgentCore::lapse(std::string_view name, const std::function<Status()>& end) {
  {
    const std::lock_guard lock(mutex_);
    if (lapsed_.size() == kLapsedMax) lapsed_.erase(lapsed_.begin());
    lapsed_.emplace(name);
  }
  Status status = end();
  const std::lock_guard lock(mutex_);
  if (!status.ok() || remotes_.contains(name)) lapsed_.erase(std::string(name));
  return status;
}

Status AgentCore::start() {
  const Result<std::shared_ptr<identity::Authenticator>> own = identity();
  // The agent tells what is wrong with its identity when it opens.
  HAWSER_TRY_ASSIGN(hawser::Agent agent, agent::inner::open_with_identity(options_, own ? *own : nullptr));
  if (config_.progress_thread) {
    HAWSER_TRY_ASSIGN(Driver driver, Driver::start());
    HAWSER_TRY(driver.attach(agent));
    driver_.emplace(std::move(driver));
  }
  agent_.emplace(std::move(agent));
  return {};
}

/// NIXL's clients have no call for it. What the user of the machine says goes first.
Status AgentCore::take_deadline(const Params& given) {
  const auto found = given.find(kDeadlineKey);
  if (found == given.end()) return {};
  const std::optional<Duration> deadline = base::parse_duration(found->second);
  if (!deadline || *deadline < std::chrono::milliseconds(1)) {
    return refusal(NixlCode::kInvalidParam, "create_backend", base::format("{}={}", found->first, found->second))
        .with_advice("give a duration from 1ms, such as 30s");
  }
  if (agent_ || options_.default_deadline != kNoDeadline) {
    HAWSER_LOG(log_, kWarn, "create_backend: {} changes nothing: {}", kDeadlineKey,
               agent_ ? "another backend was created before" : "a deadline is set (HAWSER_DEADLINE, or a file)");
    return {};
  }
  options_.default_deadline = *deadline;
  return {};
}

Status AgentCore::take_meaning(const Plugin& plugin, const Params& given, Params* file, std::string* wants_rdma) {
  if (takes(plugin, MemType::kFile)) {
    HAWSER_TRY_ASSIGN(PosixChoice choice, choose_for_posix(given));
    for (const std::string& warning : choice.warnings) HAWSER_LOG(log_, kWarn, "create_backend: POSIX: {}", warning);
    *file = std::move(choice.file);
    return {};
  }
  HAWSER_TRY_ASSIGN(UcxChoice choice, choose_for_ucx(given, is_interface));
  for (const std::string& warning : choice.warnings) HAWSER_LOG(log_, kWarn, "create_backend: UCX: {}", warning);
  *wants_rdma = std::move(choice.wants_rdma);
  if (!choice.devices.empty()) {
    Params& verbs = options_.backend_params["verbs"];
    const std::string_view set = agent_ ? "another backend was created before"
                                 : verbs.contains("devices")
                                     ? "the devices of the backend verbs are set (HAWSER_BACKEND_VERBS_DEVICES)"
                                     : std::string_view();
    if (!set.empty()) {
      HAWSER_LOG(log_, kWarn, "create_backend: UCX: the list of devices changes nothing: {}", set);
    } else {
      verbs["devices"] = std::move(choice.devices);
    }
  }
  if (choice.backends.empty()) return {};
  // What the user of the machine says about Hawser itself goes before what a client says about UCX.
  if (!options_.backends.empty() || agent_) {
    HAWSER_LOG(log_, kWarn, "create_backend: UCX: the list of transports changes nothing: {}",
               agent_ ? "another backend was created before" : "HAWSER_BACKENDS is set");
    return {};
  }
  for (std::string& name : choice.backends) options_.backends.push_back({.name = std::move(name), .params = {}});
  if (choice.is_lenient) options_.mode = OpenMode::kLenient;
  return {};
}

/// Who asked for RDMA is told that it is not there: what takes its place works, but is slower.
void AgentCore::tell_of_rdma(std::string_view wish) const {
  if (wish.empty()) return;
  for (const BackendReport& report : agent_->backends()) {
    if (report.name != "verbs" || report.open) continue;
    HAWSER_LOG(log_, kWarn, "create_backend: UCX: {}: RDMA is not used: {}", wish, report.cause.to_string());
  }
}

/// What the plugin needs of Hawser's own backends beyond those that an agent has anyway.
Status AgentCore::open_for(const Plugin& plugin, Params file) {
  if (!takes(plugin, MemType::kFile)) return {};
  if (agent_->has_backend("file")) {
    if (!file.empty()) {
      HAWSER_LOG(log_, kWarn, "create_backend: POSIX: its parameters change nothing: the backend file is open already");
    }
    return {};
  }
  // What the user of the machine says about Hawser itself goes before what a client says about POSIX.
  if (const auto set = options_.backend_params.find("file"); set != options_.backend_params.end()) {
    for (const auto& [key, value] : set->second) file.erase(key);
  }
  return agent_->add_backend({.name = "file", .params = std::move(file)});
}

Result<Backend> AgentCore::create_backend(std::string_view name, const Params& params) {
  const Plugin* const plugin = find_plugin(name);
  if (plugin == nullptr) {
    return refusal(NixlCode::kNotFound, "create_backend",
                   base::format("there is no plugin '{}'; {}", name, known_plugins()));
  }
  HAWSER_TRY(need_home("create_backend"));
  const std::lock_guard lock(mutex_);
  for (const CreatedBackend& one : backends_) {
    if (one.plugin != plugin) continue;
    return refusal(NixlCode::kInvalidParam, "create_backend",
                   base::format("agent '{}' has a backend {} already", name_, plugin->name));
  }
  CreatedBackend made{.plugin = plugin, .params = default_params(*plugin)};
  for (const auto& [key, value] : params) {
    if (!knows(*plugin, key)) {
      HAWSER_LOG(log_, kWarn, "create_backend: {} has no parameter '{}'; it is ignored", plugin->name, key);
    }
    made.params.insert_or_assign(key, value);
  }
  Params file;
  std::string wants_rdma;
  AgentOptions before = options_;
  Status meant = take_deadline(params);
  if (meant.ok()) meant = take_meaning(*plugin, params, &file, &wants_rdma);
  if (!meant.ok()) {
    options_ = std::move(before);
    return meant;
  }
  if (!agent_) {
    if (const Status status = start(); !status.ok()) {
      options_ = std::move(before);  // What was asked for is not there: the next call may ask for less.
      return refusal(NixlCode::kBackend, "create_backend",
                     base::format("{} does not open for agent '{}'", plugin->name, name_), status);
    }
  }
  if (const Status status = open_for(*plugin, std::move(file)); !status.ok()) {
    return refusal(NixlCode::kBackend, "create_backend",
                   base::format("{} does not open for agent '{}'", plugin->name, name_), status);
  }
  tell_of_rdma(wants_rdma);
  if (backends_.empty()) first_ = plugin;  // Published with the count.
  backends_.push_back(std::move(made));
  if (plugin->remote) remote_mask_.fetch_or(BackendMask{1} << (backends_.size() - 1), std::memory_order_acq_rel);
  backend_count_.store(backends_.size(), std::memory_order_release);
  return Backend(std::string(plugin->name), this);
}

std::vector<CreatedBackend> AgentCore::backends() const {
  const std::lock_guard lock(mutex_);
  return backends_;
}

Status AgentCore::need_home(std::string_view call) const {
  if (agent::forks_so_far() == forks_) [[likely]]
    return {};
  return refusal(NixlCode::kBackend, call,
                 base::format("agent '{}' was opened by process {}; this one is its child", name_, pid_))
      .with_advice("make an agent in each process, after the fork");
}

Status AgentCore::need_backend(std::string_view call) const {
  HAWSER_TRY(need_home(call));
  if (has_backend()) return {};
  return refusal(NixlCode::kBackend, call, base::format("agent '{}' has no backend yet", name_))
      .with_advice("create_backend comes first");
}

Result<BackendMask> AgentCore::mask_of(std::string_view call, const OptArgs* opt) const {
  if (opt == nullptr || opt->backends.empty()) return kAllBackends;
  BackendMask mask = 0;
  for (const Backend& wanted : opt->backends) {
    const auto found = std::find_if(backends_.begin(), backends_.end(),
                                    [&](const CreatedBackend& one) { return one.plugin->name == wanted.name(); });
    if (wanted.agent() != this || found == backends_.end()) {
      return refusal(NixlCode::kInvalidParam, call,
                     base::format("backend '{}' in the options is not one of agent '{}'", wanted.name(), name_));
    }
    mask |= BackendMask{1} << (found - backends_.begin());
  }
  return mask;
}

Result<BackendMask> AgentCore::backends_in(std::string_view call, const OptArgs* opt) const {
  if (opt == nullptr || opt->backends.empty()) return kAllBackends;
  HAWSER_TRY(need_home(call));
  const std::lock_guard lock(mutex_);
  return mask_of(call, opt);
}

Status AgentCore::need_remote(std::string_view call, const OptArgs* opt) const {
  HAWSER_TRY(need_home(call));
  HAWSER_TRY_ASSIGN(const BackendMask mask, backends_in(call, opt));
  if (!has_backend() || (mask & remote_mask_.load(std::memory_order_acquire)) != 0) return {};
  return refusal(NixlCode::kBackend, call,
                 mask == kAllBackends ? base::format("agent '{}' has no backend that reaches other agents", name_)
                                      : "none of the backends in the options reaches other agents")
      .with_advice("create the backend UCX, and name it or none");
}

Backend AgentCore::first_of(BackendMask mask) const {
  // Most agents have one, which stays the first for ever.
  if ((mask & 1) != 0 && has_backend()) return Backend(std::string(first_->name), this);
  const std::lock_guard lock(mutex_);  // Of calls that asked for their home before.
  for (std::size_t i = 0; i < backends_.size(); ++i) {
    if ((mask >> i & 1) != 0) return Backend(std::string(backends_[i].plugin->name), this);
  }
  return {};
}

std::string AgentCore::describe() const {
  if (const Status home = need_home("describe"); !home.ok()) return home.to_string();
  const std::lock_guard lock(mutex_);
  std::string names, peers;
  for (const CreatedBackend& one : backends_) names.append(names.empty() ? "" : ", ").append(one.plugin->name);
  for (const auto& [name, remote] : remotes_) peers.append(peers.empty() ? "" : ", ").append(name);
  return base::format("agent {}: backends [{}], {} registrations, remotes [{}]", name_, names, book_.entries().size(),
                      peers);
}

}  // namespace compat
HAWSER_NAMESPACE_END
