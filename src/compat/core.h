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
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <hawser/agent.h>
#include <hawser/compat/agent.h>
#include <hawser/driver.h>

#include "base/log.h"
#include "compat/backend_set.h"
#include "compat/exchange_seat.h"
#include "compat/home_process.h"
#include "compat/joined.h"
#include "compat/lapsed_names.h"
#include "compat/local_book.h"
#include "compat/long_feeder.h"
#include "compat/long_requests.h"
#include "compat/notification_inbox.h"
#include "compat/notification_sender.h"
#include "compat/pace.h"
#include "compat/plugins.h"
#include "compat/refusal.h"
#include "compat/remotes.h"
#include "compat/resolved.h"
#include "compat/spare_rooms.h"
#include "compat/telemetry.h"
#include "metrics/server.h"
#include "wire/card.h"

HAWSER_NAMESPACE_BEGIN
namespace compat {

struct PreparedCore;
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

  // Backends.
  Result<Backend> create_backend(std::string_view name, const Params& params);
  std::vector<CreatedBackend> backends() const;
  bool has_backend() const { return backends_.has_any(); }
  /// kBackend in a child of the process that opened the agent, whose locks and threads are the parent's.
  Status need_home(std::string_view call) const;
  /// kBackend when there is none yet, or in a child.
  Status need_backend(std::string_view call) const;
  /// Those that `opt` names, or all. kInvalidParam when one is another agent's.
  Result<BackendMask> backends_in(std::string_view call, const OptArgs* opt) const;
  /// kBackend when none of those that `opt` names (or of all) has metadata, connections and notifications.
  Status need_remote(std::string_view call, const OptArgs* opt) const;
  BackendMask movers(MemType ours, MemType theirs, bool is_self) const {
    return backends_.movers(ours, theirs, is_self);
  }
  /// The first backend in `mask`, in the order of creation.
  Backend first_of(BackendMask mask) const;

  // Memory.
  Status register_memory(const RegDescList& list, const OptArgs* opt);
  Status deregister_memory(const RegDescList& list, const OptArgs* opt);
  Result<QueryResponses> query_mem(const RegDescList& list, const OptArgs* opt) const;

  // Metadata.
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

  // Peers.
  bool check(std::string_view name, const XferDescList* list);
  Status invalidate(std::string_view name);
  /// Only that incarnation: what is known of another one stays, and that is no error.
  Status invalidate_one(std::string_view name, const base::Id128& incarnation);
  /// As Remotes::drop. `is_wanted` as in load.
  Status drop(std::string_view name, std::string_view label, const std::function<bool()>& is_wanted);
  std::vector<std::string> remote_names() const;
  Status connect(std::string_view name);
  /// As Remotes::current.
  Status current(std::string_view call, const Peer& peer);

  // Notifications.
  Status notify(std::string_view name, std::string_view text);
  Status take_notifications(NotificationMap& into);
  bool may_have_notifications() const;
  NotificationSender& sender() { return sender_; }
  void join_long(LongRequest* request) { long_requests_.join(request); }
  void leave_long(LongRequest* request);
  /// Its client may not look at it: where a thread of the agent's makes progress, so does what it has to send.
  void feed_long() {
    if (config_.progress_thread) feeder_.feed();
  }
  void advance() {
    if (!long_requests_.empty()) advance_all();
  }
  /// A driver moves things on, and nothing waits for somebody to look.
  bool is_at_rest() const { return config_.progress_thread && long_requests_.empty(); }

  // Lists.
  /// An empty name: local.
  Result<PreparedList> prepare(std::string_view call, std::string_view name, MemType type, std::span<const Desc> list,
                               const OptArgs* opt, const std::shared_ptr<AgentCore>& self);
  Result<PreparedList> prepare(std::string_view call, std::string_view name, MemType type,
                               std::span<const StridedDesc> rows, const OptArgs* opt,
                               const std::shared_ptr<AgentCore>& self);
  /// Both sides of one request, which nobody keeps. `name` is not empty.
  Status prepare_pair(std::string_view call, const XferDescList& local, std::string_view name,
                      const XferDescList& remote, const OptArgs* opt, PreparedPair& pair);
  /// The same in one look at the lists. None where they are not of the kind that this can, or something is wrong with
  /// them: prepare_pair and what follows it say what.
  std::optional<JoinedLists> join_lists(const XferDescList& local, std::string_view name, const XferDescList& remote,
                                        const OptArgs* opt);
  /// Room for the rows of lists.
  SpareRooms& rooms() { return rooms_; }

  /// Metadata that travels by itself. Made at the first call, where neither an etcd nor a listen thread was asked for.
  Result<std::shared_ptr<Exchange>> exchange(std::string_view call);
  /// The user's word: unlike `invalidate` it also ends the following of what was fetched.
  Status forget(std::string_view name);

  std::string describe() const;

 private:
  AgentCore(std::string_view name, const AgentConfig& config, AgentOptions options, EtcdOptions etcd);
  void open_exporter(TelemetryExport what);
  Exchange::Links exchange_links();
  Status start(const AgentOptions& options);
  /// Runs `end`, which lets an agent go, so that the user's own invalidation of it is no error afterwards.
  Status lapse(std::string_view name, const std::function<Status()>& end);
  void tell_of_rdma(std::string_view wish) const;
  Status open_for(const Plugin& plugin, Params file);
  Status close_all(std::span<LocalSpot> closing, std::string_view call);
  /// Takes some out of the book, to `closing`; `answer` becomes the error of one that is not there.
  template <typename Closing>
  void take_spots(std::string_view call, const RegDescList& list, std::span<const RegDesc> some, BackendMask mask,
                  Closing* closing, Status* answer);
  /// A younger incarnation's card came: the connected one has probably died, which is noticed in a moment.
  void await_end(std::string_view name, const wire::Card& younger);
  /// The peer of that name, self included.
  Result<Peer> need_peer(std::string_view call, std::string_view name);
  /// Under the mutex.
  template <typename Row>
  Status resolve_list(std::string_view call, std::string_view name, MemType type, std::span<const Row> list,
                      const OptArgs* opt, ResolvedList& resolved);
  template <typename Row>
  Status resolve_of(std::string_view call, std::string_view name, std::span<const Row> list, ResolvedList& resolved);
  template <typename Row>
  Result<PreparedList> prepare_any(std::string_view call, std::string_view name, MemType type,
                                   std::span<const Row> list, const OptArgs* opt,
                                   const std::shared_ptr<AgentCore>& self);
  void advance_all();

  const std::string name_;
  const AgentConfig config_;
  const bool telemetry_;
  const HomeProcess home_;
  const AgentOptions options_;  ///< What the user of the machine said.
  const base::Logger log_;
  std::optional<Telemetry> exporter_;
  metrics::Entry page_;           ///< Goes before the exporter.
  std::optional<Driver> driver_;  ///< Outlives the agent.
  std::optional<hawser::Agent> agent_;
  Pace pace_;

  std::mutex making_mutex_;   ///< Over registering memory, one call at a time. Taken before mutex_.
  mutable std::mutex mutex_;  ///< Over what follows, and over opening the agent.
  BackendSet backends_;
  LocalBook book_;
  Remotes remotes_;
  LapsedNames lapsed_;

  NotificationSender sender_;
  LongFeeder feeder_{[this] {
    advance();
    return !long_requests_.empty();
  }};
  LongRequests long_requests_;  ///< Requests join and leave under their own mutex.
  SpareRooms rooms_;
  std::atomic<bool> closed_{false};
  NotificationInbox inbox_;
  ExchangeSeat exchange_;
};

}  // namespace compat
HAWSER_NAMESPACE_END
