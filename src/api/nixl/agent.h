#pragma once

// A NIXL agent on Hawser: an Agent with a Driver, the descriptors that were registered, and what was loaded of peers.
//
// NIXL names memory by address; Hawser by region and offset. A Book keeps which region stands for which addresses.
//
// Thread rule: thread-safe; one mutex guards the books, and no call waits for a peer under it.
// Lifetime: requests and prepared lists keep the agent's insides alive, so they may outlive the agent's handle.

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include <hawser/agent.h>
#include <hawser/driver.h>

#include "api/nixl/call.h"
#include "api/nixl/objects.h"

namespace hawser::nixl {

/// The one name that is answered by Hawser's own choice of path.
inline constexpr std::string_view kUcx = "UCX";

/// Which range stands for which addresses. The same addresses may be there several times.
template <typename Range>
class Book {
 public:
  struct Entry {
    std::uint64_t len = 0;
    Range range;  ///< Of the whole registration.
    std::uint64_t id = 0;
  };

  void add(int type, std::uint64_t dev, std::uint64_t addr, Entry entry) {
    longest_ = std::max(longest_, entry.len);
    entries_.emplace(Key{type, dev, addr}, std::move(entry));
  }
  /// Takes out one with exactly these values.
  std::optional<Entry> take(int type, std::uint64_t dev, std::uint64_t addr, std::uint64_t len) {
    auto [at, end] = entries_.equal_range(Key{type, dev, addr});
    for (; at != end; ++at) {
      if (at->second.len != len) continue;
      Entry taken = std::move(at->second);
      entries_.erase(at);
      return taken;
    }
    return std::nullopt;
  }
  /// A range for `desc`, which must lie in one registration; null when it lies in none.
  const Entry* covering(int type, const Desc& desc, std::uint64_t* offset) const {
    auto at = entries_.upper_bound(Key{type, desc.dev, desc.addr});
    while (at != entries_.begin()) {
      --at;
      const auto& [its_type, its_dev, its_addr] = at->first;
      if (its_type != type || its_dev != desc.dev || desc.addr - its_addr > longest_) return nullptr;
      *offset = desc.addr - its_addr;
      if (*offset <= at->second.len && desc.len <= at->second.len - *offset) return &at->second;
    }
    return nullptr;
  }
  bool has(int type, std::uint64_t dev, std::uint64_t addr, std::uint64_t len) const {
    auto [at, end] = entries_.equal_range(Key{type, dev, addr});
    return std::any_of(at, end, [&](const auto& one) { return one.second.len == len; });
  }
  bool empty() const { return entries_.empty(); }
  const auto& entries() const { return entries_; }

 private:
  using Key = std::tuple<int, std::uint64_t, std::uint64_t>;
  std::multimap<Key, Entry> entries_;
  std::uint64_t longest_ = 0;
};

/// What is known of one peer.
struct Remote {
  Peer peer;
  Book<RemoteRange> book;
};

/// A prepared list: ranges of this agent or of one peer, ready to be picked by index.
struct Prepared {
  std::optional<Peer> peer;  ///< None: local.
  std::vector<LocalRange> local;
  std::vector<RemoteRange> remote;
  std::size_t size() const { return peer ? remote.size() : local.size(); }
};

class AgentCore {
 public:
  struct Config {
    bool telemetry = false;
    bool driven = true;
  };

  static Result<std::shared_ptr<AgentCore>> open(std::string_view name, const Config& config);
  ~AgentCore();

  Agent& agent() { return agent_; }
  const std::string& name() const { return name_; }
  bool telemetry() const { return config_.telemetry; }
  /// Lets things move on, where no driver does.
  void poll() {
    if (!config_.driven) agent_.poll();
  }

  nixl_capi_status_t create_backend(const char* call, std::string_view name, const Texts& params);
  bool has_backend() const;
  Texts backend_params() const;

  nixl_capi_status_t register_memory(const char* call, const RegDlist& list);
  nixl_capi_status_t deregister(const char* call, const RegDlist& list);

  /// All, or those registrations that are listed.
  nixl_capi_status_t metadata(const char* call, const RegDlist* only, std::string* out);
  nixl_capi_status_t load(const char* call, std::string_view blob, std::string* name);
  nixl_capi_status_t invalidate(const char* call, std::string_view name);
  nixl_capi_status_t check(const char* call, std::string_view name, const XferDlist* list);
  nixl_capi_status_t connect(const char* call, std::string_view name);

  /// `peer` empty: local.
  nixl_capi_status_t prepare(const char* call, std::string_view peer, const XferDlist& list, Prepared* out);
  /// Whether a prepared list's peer is still the one known by that name.
  bool is_current(const Peer& peer);
  nixl_capi_status_t notify(const char* call, std::string_view peer, std::string_view text);
  void take_notifications(NotifMap* out);

 private:
  AgentCore(std::string_view name, const Config& config, Agent agent, std::optional<Driver> driver);
  /// The peer of that name, self included; empty when it is unknown or gone.
  std::optional<Peer> find_peer(std::string_view name);

  const std::string name_;
  const Config config_;
  const int pid_;
  std::optional<Driver> driver_;  ///< Outlives the agent.
  Agent agent_;
  mutable std::mutex mutex_;  ///< Over what follows.
  std::optional<Texts> ucx_;  ///< Its parameters, once it was created.
  Book<LocalRange> book_;
  std::map<std::uint64_t, Region> regions_;  ///< By Entry::id.
  std::uint64_t next_id_ = 1;
  std::map<std::string, Remote, std::less<>> remotes_;
};

/// Handles of the larger things.
struct AgentHandle final : api::Object {
  static constexpr std::uint8_t kKind = 20;
  static constexpr std::string_view kName = "agent";
  explicit AgentHandle(std::shared_ptr<AgentCore> its) : core(std::move(its)) {}
  const std::shared_ptr<AgentCore> core;
};

struct PreparedHandle final : api::Object {
  static constexpr std::uint8_t kKind = 21;
  static constexpr std::string_view kName = "prepared list";
  PreparedHandle(std::shared_ptr<AgentCore> its, Prepared its_list) : core(std::move(its)), list(std::move(its_list)) {}
  const std::shared_ptr<AgentCore> core;
  const Prepared list;
};

}  // namespace hawser::nixl
