#pragma once

// AgentCore: what the handles of one compat agent share. A hawser::Agent with a Driver, the backends that were created,
// the descriptors that were registered, and what was loaded of peers.
//
// The Agent opens with the first backend, because that one's parameters may say which ways to peers are wanted.
//
// Thread rule: thread-safe; one mutex guards the books, and no call waits for a peer under it.
// Lifetime: registrations, prepared lists and requests keep it alive, so they may outlive every handle.

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include <hawser/agent.h>
#include <hawser/compat/agent.h>
#include <hawser/driver.h>

#include "base/line_gate.h"
#include "base/log.h"
#include "compat/book.h"
#include "compat/exchange.h"
#include "compat/outgoing.h"
#include "compat/pace.h"
#include "compat/parts.h"
#include "compat/plugins.h"
#include "compat/refusal.h"
#include "compat/remote.h"
#include "compat/room_watch.h"
#include "compat/telemetry.h"
#include "metrics/server.h"
#include "plan/row_table.h"
#include "wire/card.h"

HAWSER_NAMESPACE_BEGIN
namespace compat {

/// One backend of the agent; its place among them is its bit.
struct CreatedBackend {
  const Plugin* plugin = nullptr;
  Params params;  ///< In force, defaults included.
};

/// A registration of this agent's. Without a region where it is of no bytes, which is there to be deregistered alone.
struct LocalSpot {
  Region owner;                                ///< Closes it.
  std::shared_ptr<agent::LocalRegion> region;  ///< The same.
  std::uint64_t offset = 0;
  std::uint32_t index = 0;  ///< In the card.
  bool is_synced = false;   ///< A file: what is written there ends on its device.
};

struct JoinedLists;
struct PreparedPair;

class AgentCore {
 public:
  static Result<std::shared_ptr<AgentCore>> open(std::string_view name, const AgentConfig& config);
  ~AgentCore();

  const std::string& name() const { return name_; }
  bool telemetry() const { return telemetry_; }
  /// Null where nothing is exported.
  Telemetry* exporter() { return exporter_ ? &*exporter_ : nullptr; }
  const base::Logger& log() const { return log_; }
  const AgentConfig& config() const { return config_; }
  /// Only once there is a backend.
  hawser::Agent& agent() { return *agent_; }
  /// Lets things move on, where no driver does.
  void poll() {
    if (!config_.progress_thread) agent_->poll();
  }
  /// The same for who asks again for what it knows: a client that does nothing else must learn of a peer's death by
  /// that, but one that asks a million times in a second pays for few turns.
  void poll_at_times() {
    if (!config_.progress_thread && pace_.is_due()) agent_->poll();
  }

  // core.cc
  Result<Backend> create_backend(std::string_view name, const Params& params);
  std::vector<CreatedBackend> backends() const;
  bool has_backend() const { return backend_count_.load(std::memory_order_acquire) != 0; }
  /// kBackend in a child of the process that opened the agent, whose locks and threads are the parent's.
  Status need_home(std::string_view call) const;
  /// kBackend when there is none yet, or in a child.
  Status need_backend(std::string_view call) const;
  /// Those that `opt` names, or all. kInvalidParam when one is another agent's.
  Result<BackendMask> backends_in(std::string_view call, const OptArgs* opt) const;
  /// kBackend when none of those that `opt` names (or of all) has metadata, connections and notifications.
  Status need_remote(std::string_view call, const OptArgs* opt) const;
  /// Those of the agent that move bytes between such memories, whoever registered them: what reaches no other agent
  /// moves between memory and files of this one.
  BackendMask movers(MemType ours, MemType theirs, bool is_self) const {
    const BackendMask remote = remote_mask_.load(std::memory_order_acquire);
    const bool is_storage = is_self && (ours == MemType::kFile) != (theirs == MemType::kFile);
    return is_storage ? kAllBackends : remote;
  }
  /// The first backend in `mask`, in the order of creation.
  Backend first_of(BackendMask mask) const;

  // memory.cc
  Status register_memory(const RegDescList& list, const OptArgs* opt);
  Status deregister_memory(const RegDescList& list, const OptArgs* opt);
  Result<QueryResponses> query_mem(const RegDescList& list, const OptArgs* opt) const;

  // metadata.cc
  /// All, or those registrations that are listed.
  Result<std::string> metadata(std::string_view call, const RegDescList* only, const OptArgs* opt) const;
  /// `is_wanted` is asked under the mutex, before anything changes: kCancelled when it says no. By `label` comes what
  /// `drop` takes away again; without one, what stays until the agent is invalidated.
  Result<std::string> load(std::string_view blob, const std::function<bool()>* is_wanted = nullptr,
                           std::string_view label = {});

  /// Ends all transfers, tells peers, closes regions: what is left of requests answers that. Good, too, when it was
  /// closed before, and in a child.
  Status close();
  bool is_closed() const { return closed_.load(std::memory_order_acquire); }

  // peers.cc
  bool check(std::string_view name, const XferDescList* list);
  Status invalidate(std::string_view name);
  /// Only that incarnation: what is known of another one stays, and that is no error.
  Status invalidate_one(std::string_view name, const base::Id128& incarnation);
  /// What came by that label alone goes; the whole agent if nothing else of it came, or if the label is empty and
  /// something came without one. `is_wanted` as in load.
  Status drop(std::string_view name, std::string_view label, const std::function<bool()>& is_wanted);
  std::vector<std::string> remote_names() const;
  Status connect(std::string_view name);
  /// Good while a prepared list's peer is the one known by that name. Else kRemoteDisconnect, once, when it died, and
  /// kNotFound from then on or when it was invalidated or loaded anew.
  Status current(std::string_view call, const Peer& peer);

  // notifications.cc
  Status notify(std::string_view name, std::string_view text);
  Status take_notifications(NotificationMap& into);
  bool may_have_notifications() const;
  /// kNotSupported when it is longer than the longest notification.
  static Status check_length(std::string_view call, std::string_view text);
  Outgoing& outgoing() { return outgoing_; }
  RoomWatch& room_watch() { return room_watch_; }
  /// Requests with long notifications. What they have under way ends when somebody looks at them, and others may wait
  /// for that: so each look at one is a look at all.
  void join_long(RequestCore* request);
  void leave_long(RequestCore* request);
  void advance() {
    if (long_count_.load(std::memory_order_acquire) != 0) advance_all();
  }

  /// A driver moves things on, and nothing waits for somebody to look.
  bool is_at_rest() const { return config_.progress_thread && long_count_.load(std::memory_order_acquire) == 0; }

  // prepared.cc
  /// An empty name: local.
  Result<PreparedList> prepare(std::string_view call, std::string_view name, MemType type, std::span<const Desc> list,
                               const OptArgs* opt, const std::shared_ptr<AgentCore>& self);
  Result<PreparedList> prepare(std::string_view call, std::string_view name, MemType type,
                               std::span<const StridedDesc> rows, const OptArgs* opt,
                               const std::shared_ptr<AgentCore>& self);

  /// Both sides of one request, which nobody keeps. `name` is not empty.
  Status prepare_pair(std::string_view call, const XferDescList& local, std::string_view name,
                      const XferDescList& remote, const OptArgs* opt, PreparedPair& pair);

  // joined.cc
  /// The same in one look at the lists. None where they are not of the kind that this can, or something is wrong with
  /// them: prepare_pair and what follows it say what.
  std::optional<JoinedLists> join_lists(const XferDescList& local, std::string_view name, const XferDescList& remote,
                                        const OptArgs* opt);

  /// Room for the rows of a list, of one that is gone if there is any.
  std::vector<plan::RowBlock> take_room();
  void keep_room(std::vector<plan::RowBlock> room);

  /// Metadata that travels by itself. Made at the first call, where neither an etcd nor a listen thread was asked for.
  Result<std::shared_ptr<Exchange>> exchange(std::string_view call);
  /// The user's word: unlike `invalidate` it also ends the following of what was fetched.
  Status forget(std::string_view name);

  std::string describe() const;

 private:
  AgentCore(std::string_view name, const AgentConfig& config, AgentOptions options, EtcdOptions etcd);
  void open_exporter(TelemetryExport what);
  Status open_exchange();
  Result<std::shared_ptr<identity::Authenticator>> identity();
  Status start();
  /// Runs `end`, which lets an agent go, so that the user's own invalidation of it is no error afterwards.
  Status lapse(std::string_view name, const std::function<Status()>& end);
  /// Parameters that say something about Hawser's own backends; `file` gets those of the backend file, `wants_rdma`
  /// what asked for RDMA.
  Status take_deadline(const Params& given);
  Status take_meaning(const Plugin& plugin, const Params& given, Params* file, std::string* wants_rdma);
  void tell_of_rdma(std::string_view wish) const;
  Status open_for(const Plugin& plugin, Params file);
  /// backends_in, under the mutex.
  Result<BackendMask> mask_of(std::string_view call, const OptArgs* opt) const;
  /// The backends that register memory of that type. Under the mutex.
  Result<BackendMask> takers(std::string_view call, MemType type, const OptArgs* opt) const;
  struct Making;
  Status make_spots(const RegDescList& list, Making* making);
  /// On an error `wrong` is the descriptor that it is about, and `made` may have some before it.
  Status add_regions(std::span<const RegDesc> list, Making* making, std::vector<Region>* made, std::size_t* wrong);
  Result<Region> add_file(const RegDesc& desc, Making* making);
  /// Takes their regions.
  Status check_registered(std::string_view call, const RegDescList& list, BackendMask mask) const;
  Status close_all(std::span<LocalSpot> closing, std::string_view call);
  /// Under the mutex.
  Status let_go(std::string_view call, std::string_view name);
  using Remotes = std::map<std::string, Remote, std::less<>>;
  /// Which of the incarnations of the name is talked to. False: none lives. Under the mutex.
  bool settle(Remote& remote);
  /// Where the copy of that peer's belongs: it may be a rival's. Under the mutex.
  Result<Remote*> place_of(std::string_view call, std::string_view name, Peer peer);
  void forget_rival(Remote& remote);
  /// A younger incarnation's card came: the connected one has probably died, which is noticed in a moment.
  void await_end(std::string_view name, const wire::Card& younger);
  /// Another incarnation of the name than the copy's is `chosen`.
  static Status outranked(std::string_view call, const Peer& chosen);
  /// The peer of that name, self included; empty when it is unknown or gone. Under the mutex.
  std::optional<Peer> find_peer(std::string_view name);
  Result<Peer> need_peer(std::string_view call, std::string_view name);
  /// Under the mutex.
  template <typename Row>
  Status resolve_list(std::string_view call, std::string_view name, MemType type, std::span<const Row> list,
                      const OptArgs* opt, PreparedCore& prepared);
  template <typename Row>
  Result<PreparedList> prepare_any(std::string_view call, std::string_view name, MemType type,
                                   std::span<const Row> list, const OptArgs* opt,
                                   const std::shared_ptr<AgentCore>& self);
  void advance_all();
  void take_marked(const Notification& one, NotificationMap& into);
  void forget_parts(std::span<const void* const> gone);
  static Status mirror_regions(std::string_view call, const Peer& self, PreparedCore& prepared);

  const std::string name_;
  const AgentConfig config_;
  const bool telemetry_;
  const int pid_;
  const std::uint32_t forks_;  ///< When it was opened.
  AgentOptions options_;       ///< For start().
  const EtcdOptions etcd_;     ///< For open_exchange().
  const base::Logger log_;
  std::optional<Telemetry> exporter_;
  metrics::Entry page_;           ///< Goes before the exporter.
  std::optional<Driver> driver_;  ///< Outlives the agent.
  std::optional<hawser::Agent> agent_;
  std::atomic<std::size_t> backend_count_{0};
  std::atomic<BackendMask> remote_mask_{0};  ///< Those that reach other agents.
  const Plugin* first_ = nullptr;            ///< Of the first backend; constant from then on.
  Pace pace_;

  std::mutex making_mutex_;   ///< Over registering memory, one call at a time. Taken before mutex_.
  mutable std::mutex mutex_;  ///< Over what follows, and over opening the agent.
  std::vector<CreatedBackend> backends_;
  Book<LocalSpot> book_;
  Remotes remotes_;
  /// Invalidated by the exchange and not by the user; at most kLapsedMax.
  std::set<std::string, std::less<>> lapsed_;
  Outgoing outgoing_;
  RoomWatch room_watch_;
  base::LineGate line_gate_;
  /// Over what follows. Taken by requests under their own mutex, which `advance` therefore only tries; what it looks at
  /// may leave, so it is taken twice.
  std::recursive_mutex long_mutex_;
  std::set<RequestCore*> long_;
  std::atomic<std::size_t> long_count_{0};
  std::atomic<bool> closed_{false};
  /// What came of long notifications of one peer.
  struct Incoming {
    Incoming(Peer its_peer, AssemblyBudget* budget) : peer(std::move(its_peer)), assembler(budget) {}
    Peer peer;
    Assembler assembler;
  };
  std::mutex incoming_mutex_;  ///< Over taking notifications, which must stay in order, and over what follows.
  AssemblyBudget incoming_budget_;
  std::atomic<bool> has_incoming_{false};
  std::map<const void*, Incoming> incoming_;        ///< By peer; only those of which something waits for its end.
  std::mutex rooms_mutex_;                          ///< Over the next one. Taken under mutex_, too.
  std::vector<std::vector<plan::RowBlock>> rooms_;  ///< At most kRoomsMax.
  std::mutex exchange_mutex_;                       ///< Over making and ending it.
  std::shared_ptr<Exchange> exchange_;
  std::mutex identity_mutex_;  ///< Over the next one. Taken under the others.
  std::shared_ptr<identity::Authenticator> identity_;
};

}  // namespace compat
HAWSER_NAMESPACE_END
