#pragma once

// The core of an agent: what all its handles share.
//
// Locks, and their order: lane_access.h.
//
// Thread rule: thread-safe but for `engine`, which is confined to the lane.

#include <atomic>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include <hawser/agent.h>

#include "agent/arena_book.h"
#include "agent/atomic_service.h"
#include "agent/backend_opener.h"
#include "agent/backend_reports.h"
#include "agent/engine.h"
#include "agent/inbox.h"
#include "agent/key_pool.h"
#include "agent/lane.h"
#include "agent/lane_access.h"
#include "agent/life.h"
#include "agent/open.h"
#include "agent/own_card.h"
#include "agent/past_flow.h"
#include "agent/peer_book.h"
#include "agent/peer_core.h"
#include "agent/peer_status.h"
#include "agent/presence.h"
#include "agent/queue.h"
#include "agent/queue_list.h"
#include "agent/region_book.h"
#include "agent/region_closer.h"
#include "agent/region_extras.h"
#include "agent/region_maker.h"
#include "agent/region_names.h"
#include "agent/region_registrar.h"
#include "agent/slot.h"
#include "agent/status_teller.h"
#include "backend/backend.h"
#include "base/histogram.h"
#include "base/log.h"
#include "identity/authenticator.h"
#include "metrics/server.h"
#include "tls/key_pair.h"

namespace hawser::agent {

/// Who made the card.
backend::Identity identity_of(const wire::Card& card);

class Core : public std::enable_shared_from_this<Core> {
 public:
  static Result<std::shared_ptr<Core>> open(AgentOptions options, std::vector<backend::Factory> factories, Hooks hooks);
  ~Core();

  const AgentOptions options;
  const Hooks hooks;
  const std::shared_ptr<const Clock> clock;
  std::optional<tls::KeyPair> keys;  ///< Of this incarnation; there once the core is open.
  /// The agent's identity by an authority; null: it has none. Confined to the lane once the core is open.
  std::unique_ptr<identity::Authenticator> authenticator;
  backend::Identity identity;  ///< `driven` changes under the lane's lock.
  Life life{options.name};
  base::Logger log;
  backend::RegionTable regions;
  SlotPool* const slots;
  Inbox inbox;
  Lane lane;
  Engine engine;
  AtomicService atomics{engine, regions, inbox};  ///< Under the lane's lock, as the engine.
  std::shared_ptr<Service> tenant;                ///< Of a layer above (Hooks::tenant); may be null.
  Presence presence;                              ///< Under the lane's lock.
  StatusTeller status_teller{*this};              ///< Under the lane's lock.
  metrics::Entry metrics;                         ///< Where AgentOptions::metrics asked for one.
  PastFlow past;                                  ///< Under the lane's lock.
  PeerBook peer_book{options.name, options.limits.peers};
  RegionBook region_book;
  RegionNames region_names;
  ArenaBook arenas;
  OwnCard own_card;
  BackendReports backend_reports;
  QueueList queues;

 private:
  /// What members ask of each other and of the engine, each by an interface of its own.
  class Rest;
  const std::unique_ptr<Rest> rest_;

 public:
  BackendOpener backend_opener;
  RegionCloser region_closer;
  RegionRegistrar region_registrar;
  RegionMaker region_maker;
  Instant now() const { return clock->now(); }
  // See Life.
  Status not_forked(std::string_view call) const { return life.not_forked(call); }
  Status usable(std::string_view call) const { return life.usable(call); }
  bool disowned() const { return life.disowned(); }
  bool is_closed() const { return life.is_closed(); }
  /// What hellos and cards say from now on of who runs this agent (AgentOptions::driven), for layers above that bring a
  /// thread with them. Peers that greeted it before keep what they heard. core_cards.cc
  void say_driven(bool driven);
  // core_shutdown.cc
  /// kOk only once nobody touches any region. On kTimedOut the agent is closing, and the call may be made again: it
  /// waits further. Of several calls at a time one does it, and the others wait for what becomes of it.
  Status close(Duration timeout);
  /// Once it is closed, when no turn comes any more: ends what was submitted meanwhile.
  void refuse_what_is_left() HAWSER_REQUIRES(in_lane);
  /// For the last handle: the same, but what is in use then is let go of, and nobody will know when that ends.
  void close_for_good(Duration timeout);

  // See BackendOpener.
  std::vector<BackendReport> reports() const {
    return disowned() ? std::vector<BackendReport>() : backend_reports.all();
  }
  std::uint32_t opened_backends() const { return backend_opener.opened(); }
  /// Under the lane's lock: the engine calls it in its turns, and tells sessions itself.
  void renew_extras(OpenBackend& open);

  // words.cc
  /// Good once the word, which lies in a region of this agent, is at least so much; kInvalid when the region is closed.
  Status wait_for_word(LocalRegion& region, std::uint64_t offset, std::uint64_t at_least, Instant deadline);

  // core_cards.cc
  std::uint64_t card_revision() const { return own_card.revision(); }
  Result<std::string> card_since(std::uint64_t revision) const { return own_card.since(revision); }
  struct Loaded {
    std::shared_ptr<PeerCore> peer;
    CardStore::Change change;
  };
  /// Any thread; `take_card` also lets go of what the card names no more, and so must not be called under the lane.
  Result<Loaded> load_card(std::span<const std::byte> bytes);
  Result<Loaded> load_card(wire::Card card);
  Result<std::shared_ptr<PeerCore>> take_card(std::span<const std::byte> bytes);
  Result<std::shared_ptr<PeerCore>> take_card(wire::Card card);
  /// take_card, but a peer that is down begins anew.
  Result<std::shared_ptr<PeerCore>> add_peer(wire::Card card);
  std::uint64_t known_revision(PeerCore& peer) const;

  // core_peers.cc
  // See PeerBook and peer_status.h.
  Result<std::shared_ptr<PeerCore>> meet(const backend::Identity& who) { return peer_book.meet(who); }
  std::vector<std::shared_ptr<PeerCore>> peers() const {
    return disowned() ? std::vector<std::shared_ptr<PeerCore>>() : peer_book.all();
  }
  const std::shared_ptr<PeerCore>& self() const { return peer_book.self(); }
  void forget(const PeerCore& peer);
  Status down_status(PeerCore& peer) const { return agent::down_status(peer); }
  static Status gone_status(const PeerCore& peer, const Status& cause) { return agent::gone_status(peer, cause); }
  void note_death(const PeerCore& peer, const Status& why) { peer_book.note_death(peer, why); }
  void note_life(const PeerCore& peer) { peer_book.note_life(peer); }
  /// Waits, too, until the peer has regions of these names.
  Result<std::shared_ptr<PeerCore>> find_peer(std::string_view name, std::span<const std::string_view> wanted,
                                              Instant deadline);
  Status await_regions(const std::shared_ptr<PeerCore>& peer, std::span<const std::string_view> names,
                       Instant deadline);

  void hint(CompletionKind kind, std::uint64_t cookie) { queues.hint(kind, cookie); }
  /// The user took these: their places go back to the sender.
  void release(const std::shared_ptr<PeerCore>& peer, std::size_t bytes);
  AgentCounters counters();

  /// Only system calls: runs in a forked child.
  void disown_after_fork();

 private:
  Core(AgentOptions its_options, std::vector<backend::Factory> factories, Hooks its_hooks);

  /// Sessions and the directory hear of the card's new revision.
  void tell_of_card() HAWSER_REQUIRES(in_lane);
  Result<std::shared_ptr<PeerCore>> find_once(std::string_view name, Instant deadline);
  Result<std::shared_ptr<PeerCore>> find_in_directory(std::string_view name, Instant deadline);
  Status not_in_directory(std::string_view name, const Status& last) const;
  /// The answer, or nothing at the deadline.
  std::optional<DirectoryEvent> ask_directory(Ticket ticket, Instant deadline);
  /// The same while no lane turns: before the agent is open, or after.
  std::optional<DirectoryEvent> ask_alone(Ticket ticket, Instant deadline);
  std::uint64_t learn_born(std::uint64_t clock_ns, Instant deadline);
  /// One look. Null: there is no card of a peer that may live; `why_not` may tell more.
  Result<std::shared_ptr<PeerCore>> look_in_directory(std::string_view name, Instant deadline, Status* why_not);
  Result<std::shared_ptr<PeerCore>> find_at_address(std::string_view name, std::string_view address, Instant deadline);
  /// A peer that was found by one backend's address may be reached better by another: that is opened, too.
  void seek_better_path(const std::shared_ptr<PeerCore>& peer, Instant deadline);
  Status wait_for_card(const std::shared_ptr<PeerCore>& peer, Instant deadline);
  enum class Leave : std::uint8_t { kNothing, kWhatIsUsed };
  Status close(Duration timeout, Leave leave);
  Status close_now(Instant deadline, Leave leave);
  void shut_down();
  Status release_everything(Instant deadline);
  /// False: the deadline was too short for it, and it may be tried again.
  bool unpublish(Instant deadline);
  void await_presence(Instant deadline);

  std::shared_ptr<Core> keep_;                ///< Itself, in a forked child.
  std::atomic<bool> is_being_closed_{false};  ///< By one call of `close`, which alone touches the next one.
  bool has_begun_to_close_ = false;
  std::atomic<bool> is_unpublished_{false};  ///< Nothing is left to be taken from the directory, or it had its time.

  KeyPool region_keys_ HAWSER_GUARDED_BY(in_lane);
};

/// "host:port" with the host's name resolved. Blocks at most until `deadline`.
Result<std::string> resolve_address(std::string_view address, Instant deadline);

}  // namespace hawser::agent
