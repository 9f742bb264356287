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
#include "agent/region_extras.h"
#include "agent/region_names.h"
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
  /// Regions that were dropped while something used them, as a part of the lane.
  struct Sweep final : Part {
    explicit Sweep(Core& its_core) : core(its_core) {}
    std::size_t turn(Instant) override {
      set_jobs(true);  // It stays due until somebody has done them.
      return 0;
    }
    void run_jobs(Instant) override {
      if (take_jobs()) core.sweep_dropped();
    }
    void look_at(Instant when) { set_next(when); }
    void describe(const Visitor& visitor) const override;
    Core& core;
  } sweep{*this};

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

  // core_backends.cc
  Status open_backends();
  Status add_backend(const BackendSpec& spec);
  std::vector<BackendReport> reports() const {
    return disowned() ? std::vector<BackendReport>() : backend_reports.all();
  }
  /// How many there are. It only grows.
  std::uint32_t opened_backends() const { return opened_backends_.load(std::memory_order_acquire); }

  /// What this one says of regions has changed. Under the lane's lock.
  void renew_extras(OpenBackend& open);

  // core_regions.cc
  Result<Region> add_region(const RegionOptions& options);
  /// All of them, or none and `wrong` is the one that the error is about.
  Status add_regions(std::span<const RegionOptions> wanted, std::vector<Region>* made, std::size_t* wrong);
  Result<Region> allocate(const AllocateOptions& options);
  Result<Region> add_file(const FileOptions& options);
  /// Those that are open, and that all backends know.
  RegionBook::Entries registered() const { return region_book.open_entries(); }
  Status close_region(const std::shared_ptr<LocalRegion>& region, Duration timeout);
  /// The first error, after all that can be closed are; the rest may be closed again.
  Status close_regions(std::span<const std::shared_ptr<LocalRegion>> closing, Duration timeout);
  void drop_region(std::shared_ptr<LocalRegion> region);
  /// Ends the close of those that nobody uses any more. May wait for a device, but not under the lane's lock.
  void sweep_dropped();

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

  // core_backends.cc
  /// A backend that is being opened, and is not among the lane's yet.
  struct Arriving {
    OpenBackend open;
    base::Rng rng{0};
    std::string fresh;  ///< What it said of the region that it was told of last.
    /// The same of all that it was told of, by index and generation. Under the lane's lock.
    std::map<std::pair<std::uint32_t, std::uint32_t>, std::string> extras;
  };
  Status open_one(const BackendSpec& spec, BackendReport* report);
  Status announce(Arriving& arriving);
  Status open_announced(const backend::Factory& factory, const BackendSpec& spec, Arriving& arriving,
                        BackendReport* report);
  Status let_in(Arriving& arriving);
  /// Those in `rest` it has to be told of first; else it is among the lane's now.
  Status seat(Arriving& arriving, std::vector<std::shared_ptr<LocalRegion>>* rest) HAWSER_REQUIRES(in_lane);
  static Status tell_of(Arriving& arriving, const LocalRegion& region);
  static void note_told(Arriving& arriving, const LocalRegion& region);
  Status tell_of_all(Arriving& arriving, std::span<const std::shared_ptr<LocalRegion>> all);
  bool end_arriving(Arriving& arriving);
  std::vector<std::shared_ptr<LocalRegion>> untold(const Arriving& arriving) const HAWSER_REQUIRES(in_lane);

  // core_regions.cc
  using FreshEntry = std::shared_ptr<backend::RegionEntry>;  ///< Nobody else's until the table has it.
  /// What became of regions that were to be registered together: all of them, or why not, and which one is wrong.
  struct Registered {
    std::vector<std::shared_ptr<LocalRegion>> regions;
    Status status;
    std::size_t wrong = 0;
  };
  struct NamedBackend {
    std::string name;
    std::uint32_t number = 0;
    std::shared_ptr<backend::Backend> backend;  ///< Outlives the lane's own if the agent is closed meanwhile.
    std::uint32_t renewals = 0;                 ///< When it was listed: before it was told of the region.
  };
  /// A region that backends serve, and that is not in the books yet.
  struct Joining {
    std::shared_ptr<LocalRegion> region;
    std::size_t told = 0;  ///< Backends that serve it, or said that they do not: the first so many.
    RegionExtras extras;   ///< What they want in the card.
  };
  Registered register_regions(std::string_view call, std::span<const FreshEntry> entries, bool huge_pages);
  Result<Region> register_one(std::string_view call, backend::RegionEntry entry, bool huge_pages);
  Status check_region(const RegionOptions& region);
  /// Gives them keys, indices and generations; `backends` are those that are open now.
  Status enter_table(std::string_view call, std::span<const FreshEntry> entries, std::vector<NamedBackend>* backends,
                     std::size_t* wrong);
  /// An error when one refuses that must serve it.
  Status tell_backends(std::span<const NamedBackend> backends, Joining* joining);
  void book(std::span<Joining> joining) HAWSER_REQUIRES(in_lane);
  /// Whose word of regions has changed since it was listed: what it said of these may be old.
  void ask_again(std::span<Joining> joining, std::span<const NamedBackend> backends) HAWSER_REQUIRES(in_lane);
  /// False: backends opened since `backends` were listed, and are in it now; they have to be told first.
  bool book_if_all_are_told(std::string_view call, std::span<Joining> joining, std::vector<NamedBackend>* backends,
                            Status* status);
  void drop_unbooked(std::span<const FreshEntry> entries, std::span<const Joining> joining,
                     std::span<const NamedBackend> backends);
  Status need_file_backend();

  // core_closing.cc
  /// Nobody begins to use them any more.
  void begin_closing(std::span<const std::shared_ptr<LocalRegion>> closing) HAWSER_REQUIRES(in_lane);
  /// Begins to close them, and ends it for those that nobody uses.
  void close_the_quiet(std::span<const std::shared_ptr<LocalRegion>> closing);
  /// Has those of them that no transfer uses let go by backends to which that takes long, without the lane's lock
  /// meanwhile.
  void let_go(std::span<const std::shared_ptr<LocalRegion>> closing) HAWSER_REQUIRES(in_lane);
  Status finish_closing(const std::shared_ptr<LocalRegion>& region, Instant deadline);
  bool region_quiet(const LocalRegion& region, std::string* holder) HAWSER_REQUIRES(in_lane);
  void finish_regions(std::span<const std::shared_ptr<LocalRegion>> quiet) HAWSER_REQUIRES(in_lane);
  /// Nobody touches this memory any more. It may move pages, so no lock is held.
  void release_pages(const LocalRegion& region);
  std::shared_ptr<backend::ForeignPages> hold_pages(const RegionOptions& region);
  bool has_open(std::string_view backend);
  /// Whether some backend here can reach memory of that device.
  bool is_reached(Device device);
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

  std::vector<backend::Factory> factories_;
  std::shared_ptr<Core> keep_;                ///< Itself, in a forked child.
  std::atomic<bool> is_being_closed_{false};  ///< By one call of `close`, which alone touches the next one.
  bool has_begun_to_close_ = false;
  std::atomic<bool> is_unpublished_{false};  ///< Nothing is left to be taken from the directory, or it had its time.

  std::vector<std::shared_ptr<LocalRegion>> lingering_;  ///< Dropped but not quiet. Under the lane's lock.
  Duration sweep_pause_{};                               ///< Of the next sweep. Under the lane's lock.
  KeyPool keys_;                                         ///< Of regions. Under the lane's lock.
  std::atomic<std::uint32_t> opened_backends_{0};
  std::uint32_t backends_tried_ = 0;  ///< Under the lane's lock.
  std::vector<Arriving*> arriving_;   ///< Under the lane's lock.
  std::atomic<std::uint32_t> arrivals_ended_{0};
};

/// "host:port" with the host's name resolved. Blocks at most until `deadline`.
Result<std::string> resolve_address(std::string_view address, Instant deadline);

}  // namespace hawser::agent
