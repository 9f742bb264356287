#include "api/nixl/agent.h"

#include <hawser/config.h>
#include <strings.h>
#include <unistd.h>

#include <array>

namespace hawser::nixl {
namespace {

// NIXL has no deadlines; what takes longer than this is never heard of again, and its user has given up.
constexpr Duration kDeadline = std::chrono::hours(1);
constexpr Duration kCloseTimeout = std::chrono::seconds(2);
constexpr std::string_view kUcxMode = "HAWSER_NIXL_UCX";

constexpr std::array<std::string_view, 9> kUcxKeys = {
    "ucx_error_handling_mode", "num_workers",   "ucx_devices",       "device_list", "num_threads", "split_batch_size",
    "ucx_num_device_channels", "engine_config", "ucx_ep_close_force"};

bool is_ucx(std::string_view name) {
  return name.size() == kUcx.size() && ::strncasecmp(name.data(), kUcx.data(), kUcx.size()) == 0;
}

}  // namespace

AgentCore::AgentCore(std::string_view name, const Config& config, Agent agent, std::optional<Driver> driver)
    : name_(name), config_(config), pid_(::getpid()), driver_(std::move(driver)), agent_(std::move(agent)) {}

AgentCore::~AgentCore() {
  if (pid_ != ::getpid()) {
    if (driver_) (void)new Driver(std::move(*driver_));  // Its thread is not in this process: joining would hang.
    return;
  }
  (void)agent_.close(kCloseTimeout);
}

Result<std::shared_ptr<AgentCore>> AgentCore::open(std::string_view name, const Config& config) {
  ConfigSources sources = ConfigSources::from_process();
  if (const auto mode = sources.environment.find(kUcxMode); mode != sources.environment.end()) {
    if (mode->second != "auto") {
      return Status(Code::kUnsupported, "HAWSER_NIXL_UCX=" + mode->second + ": there is no backend ucx in this build")
          .with_advice("unset it, or set it to auto: UCX is then answered by Hawser's own choice of path");
    }
    sources.environment.erase(mode);
  }
  Result<LoadedConfig> loaded = load_config(sources);
  if (!loaded) return loaded.error();
  AgentOptions options = std::move(loaded->options);
  options.name = name;
  options.driven = config.driven;
  if (!sources.environment.contains("HAWSER_DEADLINE")) options.default_deadline = kDeadline;
  Result<Agent> agent = Agent::open(std::move(options));
  if (!agent) return agent.error();
  std::optional<Driver> driver;
  if (config.driven) {
    Result<Driver> started = Driver::start();
    if (!started) return started.error();
    if (const Status status = started->attach(*agent); !status.ok()) return status;
    driver.emplace(std::move(*started));
  }
  return std::shared_ptr<AgentCore>(new AgentCore(name, config, std::move(*agent), std::move(driver)));
}

nixl_capi_status_t AgentCore::create_backend(const char* call, std::string_view name, const Texts& params) {
  if (!is_ucx(name)) {
    return refuse(call, NIXL_CAPI_ERROR_BACKEND, "no plugin '" + std::string(name) + "'; there is UCX");
  }
  const std::lock_guard lock(mutex_);
  if (ucx_) return refuse(call, NIXL_CAPI_ERROR_BACKEND, "agent '" + name_ + "' has a backend UCX already");
  for (const auto& [key, value] : params) {
    if (std::find(kUcxKeys.begin(), kUcxKeys.end(), key) == kUcxKeys.end()) {
      say_warning(call, "UCX has no parameter '" + key + "'; it is ignored");
    }
  }
  ucx_ = params;
  return NIXL_CAPI_SUCCESS;
}

bool AgentCore::has_backend() const {
  const std::lock_guard lock(mutex_);
  return ucx_.has_value();
}

Texts AgentCore::backend_params() const {
  const std::lock_guard lock(mutex_);
  return ucx_.value_or(Texts());
}

nixl_capi_status_t AgentCore::register_memory(const char* call, const RegDlist& list) {
  const std::lock_guard lock(mutex_);
  if (!ucx_) return refuse(call, NIXL_CAPI_ERROR_NOT_FOUND, "the agent has no backend yet");
  if (list.type != NIXL_CAPI_MEM_DRAM && list.type != NIXL_CAPI_MEM_VRAM) {
    return refuse(call, NIXL_CAPI_ERROR_NOT_FOUND, "no backend takes memory of that type; UCX takes DRAM and VRAM");
  }
  std::vector<Region> made;
  for (const RegDesc& desc : list.all) {
    RegionOptions options{.bytes = {reinterpret_cast<std::byte*>(desc.addr), desc.len}};
    if (list.type == NIXL_CAPI_MEM_VRAM) {
      options.device = {.kind = DeviceKind::kCuda, .ordinal = static_cast<std::uint32_t>(desc.dev)};
    }
    Result<Region> region = agent_.add_region(options);
    // All or nothing: those made before close themselves.
    if (!region) return refuse(call, NIXL_CAPI_ERROR_BACKEND, region.error().to_string());
    made.push_back(std::move(*region));
  }
  for (std::size_t i = 0; i < made.size(); ++i) {
    const RegDesc& desc = list.all[i];
    book_.add(list.type, desc.dev, desc.addr, {.len = desc.len, .range = made[i].range(0, desc.len), .id = next_id_});
    regions_.emplace(next_id_++, std::move(made[i]));
  }
  return NIXL_CAPI_SUCCESS;
}

nixl_capi_status_t AgentCore::deregister(const char* call, const RegDlist& list) {
  std::vector<Region> closing;
  nixl_capi_status_t answer = NIXL_CAPI_SUCCESS;
  {
    const std::lock_guard lock(mutex_);
    for (const RegDesc& desc : list.all) {
      const auto entry = book_.take(list.type, desc.dev, desc.addr, desc.len);
      if (!entry) {
        answer = refuse(call, NIXL_CAPI_ERROR_NOT_FOUND, "a descriptor is not registered (any more)");
        continue;
      }
      const auto region = regions_.find(entry->id);
      closing.push_back(std::move(region->second));
      regions_.erase(region);
    }
  }
  // The caller frees the memory next, so what still uses it must be over.
  for (Region& region : closing) {
    const Status status = region.close(kCloseTimeout);
    if (!status.ok() && answer == NIXL_CAPI_SUCCESS) answer = refuse(call, NIXL_CAPI_ERROR_BACKEND, status.to_string());
  }
  return answer;
}

std::optional<Peer> AgentCore::find_peer(std::string_view name) {
  if (name == name_) return agent_.self();
  const auto found = remotes_.find(name);
  if (found == remotes_.end()) return std::nullopt;
  if (found->second.peer.state() != PeerState::kDown) return found->second.peer;
  // It died or was restarted; whoever asks again is told to load its new metadata.
  remotes_.erase(found);
  return std::nullopt;
}

bool AgentCore::is_current(const Peer& peer) {
  if (peer.is_self()) return true;
  const std::lock_guard lock(mutex_);
  const auto found = remotes_.find(peer.name());
  return found != remotes_.end() && found->second.peer.core() == peer.core() && peer.state() != PeerState::kDown;
}

nixl_capi_status_t AgentCore::check(const char* call, std::string_view name, const XferDlist* list) {
  const std::lock_guard lock(mutex_);
  (void)call;  // A question, so no line of text about its answer.
  if (!find_peer(name) || name == name_) return NIXL_CAPI_ERROR_NOT_FOUND;
  if (list == nullptr) return NIXL_CAPI_SUCCESS;
  const Book<RemoteRange>& book = remotes_.find(name)->second.book;
  for (const Desc& desc : list->all) {
    std::uint64_t offset = 0;
    if (book.covering(list->type, desc, &offset) == nullptr) return NIXL_CAPI_ERROR_NOT_FOUND;
  }
  return NIXL_CAPI_SUCCESS;
}

nixl_capi_status_t AgentCore::invalidate(const char* call, std::string_view name) {
  const std::lock_guard lock(mutex_);
  const auto found = remotes_.find(name);
  if (found == remotes_.end()) {
    return refuse(call, NIXL_CAPI_ERROR_INVALID_PARAM, "nothing is known of agent '" + std::string(name) + "'");
  }
  const Peer peer = found->second.peer;
  remotes_.erase(found);
  const Status status = agent_.invalidate(peer);
  return status.ok() ? NIXL_CAPI_SUCCESS : refuse(call, NIXL_CAPI_ERROR_BACKEND, status.to_string());
}

nixl_capi_status_t AgentCore::connect(const char* call, std::string_view name) {
  std::optional<Peer> peer;
  {
    const std::lock_guard lock(mutex_);
    peer = find_peer(name);
  }
  if (!peer) {
    return refuse(call, NIXL_CAPI_ERROR_NOT_FOUND, "no metadata of agent '" + std::string(name) + "' is loaded");
  }
  if (peer->is_self()) return NIXL_CAPI_SUCCESS;
  const Status status = peer->connect(std::chrono::seconds(10));
  return status.ok() ? NIXL_CAPI_SUCCESS : refuse(call, NIXL_CAPI_ERROR_BACKEND, status.to_string());
}

nixl_capi_status_t AgentCore::prepare(const char* call, std::string_view name, const XferDlist& list, Prepared* out) {
  const std::lock_guard lock(mutex_);
  if (list.all.empty()) return refuse(call, NIXL_CAPI_ERROR_INVALID_PARAM, "the list is empty");
  const auto fill = [&](const auto& book, auto& ranges) {
    ranges.reserve(list.all.size());
    for (const Desc& desc : list.all) {
      std::uint64_t offset = 0;
      const auto* const entry = book.covering(list.type, desc, &offset);
      if (entry == nullptr) {
        return refuse(call, NIXL_CAPI_ERROR_NOT_FOUND,
                      "descriptor " + std::to_string(ranges.size()) + " lies in no registered memory");
      }
      ranges.push_back(entry->range);
      ranges.back().offset += offset;
      ranges.back().size = desc.len;
    }
    return NIXL_CAPI_SUCCESS;
  };
  if (name.empty()) return fill(book_, out->local);
  out->peer = find_peer(name);
  if (!out->peer) {
    return refuse(call, NIXL_CAPI_ERROR_NOT_FOUND, "no metadata of agent '" + std::string(name) + "' is loaded");
  }
  if (!out->peer->is_self()) return fill(remotes_.find(name)->second.book, out->remote);
  // The agent's own memory, seen from its other side.
  std::vector<LocalRange> own;
  if (const auto status = fill(book_, own); status != NIXL_CAPI_SUCCESS) return status;
  for (std::size_t i = 0; i < own.size(); ++i) {
    if (i > 0 && own[i].region == own[i - 1].region) {  // Neighbours mostly are of one region.
      out->remote.push_back({.region = out->remote.back().region, .offset = own[i].offset, .size = own[i].size});
      continue;
    }
    const auto region = std::find_if(regions_.begin(), regions_.end(),
                                     [&](const auto& one) { return one.second.core() == own[i].region; });
    const Result<RemoteRange> remote = out->peer->region(region->second.index());
    if (!remote) return refuse(call, remote.error());
    out->remote.push_back({.region = remote->region, .offset = own[i].offset, .size = own[i].size});
  }
  return NIXL_CAPI_SUCCESS;
}

}  // namespace hawser::nixl
