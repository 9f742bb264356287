#pragma once

// The core of an agent: what all its handles share.
//
// Locks, in the order in which they may be taken: the lane's lock, `mutex_` (regions' and peers' books), a peer's
// mutex. No lock is held across user code.
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

#include "agent/atomic_service.h"
#include "agent/departed.h"
#include "agent/engine.h"
#include "agent/engine_host.h"
#include "agent/inbox.h"
#include "agent/key_pool.h"
#include "agent/lane.h"
#include "agent/open.h"
#include "agent/peer_core.h"
#include "agent/presence.h"
#include "agent/queue.h"
#include "agent/region_extras.h"
#include "agent/slot.h"
#include "agent/status_teller.h"
#include "backend/backend.h"
#include "base/histogram.h"
#include "base/log.h"
#include "identity/authenticator.h"
#include "metrics/server.h"
#include "tls/key_pair.h"

namespace hawser::agent {

/// Flow of peers that were forgotten, so that the agent's totals never shrink. Under the lane's lock.
struct PastFlow {
  FlowCounters flow;                         ///< Without its latency.
  std::unique_ptr<base::Histogram> latency;  ///< From the first one on: it takes 4 KiB.
  void add(const Session& session);
};

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
  backend::Identity identity;  ///< `driven` changes under the lane's lock and `mutex_`.
  base::Logger log;
  backend::RegionTable regions;
  SlotPool* const slots;
  Inbox inbox;
  Lane lane;
  EngineHost host{*this};
  Engine engine;
  AtomicService atomics{engine.carrier(), regions, inbox};  ///< Under the lane's lock, as the engine.
  std::shared_ptr<Service> tenant;                          ///< Of a layer above (Hooks::tenant); may be null.
  Presence presence;                                        ///< Under the lane's lock.
  StatusTeller status_teller{*this};                        ///< Under the lane's lock.
  metrics::Entry metrics;                                   ///< Where AgentOptions::metrics asked for one.
  PastFlow past;
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
  /// Good, or kInvalid because this is a forked child. There no lock may be taken: who held it at the fork is gone.
  Status not_forked(std::string_view call) const;
  /// The same, or kInvalid because the agent is closed.
  Status usable(std::string_view call) const;
  /// In a child of the process that opened it: nothing works any more.
  bool disowned() const { return slots->disowned(); }
  bool is_closed() const { return closed_.load(std::memory_order_seq_cst); }
  /// What hellos and cards say from now on of who runs this agent (AgentOptions::driven), for layers above that bring a
  /// thread with them. Peers that greeted it before keep what they heard. core_cards.cc
  void say_driven(bool driven) HAWSER_EXCLUDES(mutex_);
  // core_shutdown.cc
  /// kOk only once nobody touches any region. On kTimedOut the agent is closing, and the call may be made again: it
  /// waits further. Of several calls at a time one does it, and the others wait for what becomes of it.
  Status close(Duration timeout);
  /// Once it is closed, when no turn comes any more: ends what was submitted meanwhile.
  void refuse_what_is_left() HAWSER_REQUIRES(lane);
  /// For the last handle: the same, but what is in use then is let go of, and nobody will know when that ends.
  void close_for_good(Duration timeout);

  // core_backends.cc
  Status open_backends();
  Status add_backend(const BackendSpec& spec);
  std::vector<BackendReport> reports() const;
  /// How many there are. It only grows.
  std::uint32_t opened_backends() const { return opened_backends_.load(std::memory_order_acquire); }

  /// What this one says of regions has changed. Under the lane's lock.
  void renew_extras(OpenBackend& open) HAWSER_EXCLUDES(mutex_);

  // core_regions.cc
  Result<Region> add_region(const RegionOptions& options);
  /// All of them, or none and `wrong` is the one that the error is about.
  Status add_regions(std::span<const RegionOptions> wanted, std::vector<Region>* made, std::size_t* wrong);
  Result<Region> allocate(const AllocateOptions& options);
  Result<Region> add_file(const FileOptions& options);
  /// Those that are open, and that all backends know.
  std::vector<std::shared_ptr<const backend::RegionEntry>> registered() const HAWSER_EXCLUDES(mutex_);
  Status close_region(const std::shared_ptr<LocalRegion>& region, Duration timeout);
  /// The first error, after all that can be closed are; the rest may be closed again.
  Status close_regions(std::span<const std::shared_ptr<LocalRegion>> closing, Duration timeout);
  void drop_region(std::shared_ptr<LocalRegion> region);
  /// Ends the close of those that nobody uses any more. May wait for a device, but not under the lane's lock.
  void sweep_dropped() HAWSER_EXCLUDES(mutex_);

  // words.cc
  /// Good once the word, which lies in a region of this agent, is at least so much; kInvalid when the region is closed.
  Status wait_for_word(LocalRegion& region, std::uint64_t offset, std::uint64_t at_least, Instant deadline);

  // core_cards.cc
  Result<std::string> card() const;
  Result<std::string> partial_card(std::span<const std::uint32_t> indices) const;
  Result<std::string> card_since(std::uint64_t revision) const;
  /// The same, appended to `out`, which may hold anything after an error.
  Status append_card(std::string* out) const { return append_card_since(0, out); }
  Status append_partial_card(std::span<const std::uint32_t> indices, std::string* out) const;
  std::uint64_t card_revision() const { return revision_.load(std::memory_order_acquire); }
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
  /// The peer of that incarnation, made if it was unknown. kBusy at limits.peers.
  Result<std::shared_ptr<PeerCore>> meet(const backend::Identity& who);
  /// Null: unknown.
  std::shared_ptr<PeerCore> known_peer(const base::Id128& incarnation) const;
  std::vector<std::shared_ptr<PeerCore>> peers() const;
  void forget(const PeerCore& peer);
  const std::shared_ptr<PeerCore>& self() const { return self_; }
  Status down_status(PeerCore& peer) const;
  /// What a call about the peer answers, or a transfer to it ends with, once `cause` put it down.
  static Status gone_status(const PeerCore& peer, const Status& cause);
  /// Waits, too, until the peer has regions of these names.
  Result<std::shared_ptr<PeerCore>> find_peer(std::string_view name, std::span<const std::string_view> wanted,
                                              Instant deadline);
  Status await_regions(const std::shared_ptr<PeerCore>& peer, std::span<const std::string_view> names,
                       Instant deadline);
  /// It died, by what its path said; or it is there.
  void note_death(const PeerCore& peer, const Status& why);
  void note_life(const PeerCore& peer);

  // Queues get hints of what else happened.
  void add_queue(const std::shared_ptr<QueueCore>& queue);
  void hint(CompletionKind kind, std::uint64_t cookie);
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
  Status open_one(const BackendSpec& spec, BackendReport* report) HAWSER_EXCLUDES(mutex_);
  Status announce(Arriving& arriving);
  Status open_announced(const backend::Factory& factory, const BackendSpec& spec, Arriving& arriving,
                        BackendReport* report) HAWSER_EXCLUDES(mutex_);
  Status let_in(Arriving& arriving) HAWSER_EXCLUDES(mutex_);
  /// Those in `rest` it has to be told of first; else it is among the lane's now.
  Status seat(Arriving& arriving, std::vector<std::shared_ptr<LocalRegion>>* rest) HAWSER_REQUIRES(lane)
      HAWSER_EXCLUDES(mutex_);
  static Status tell_of(Arriving& arriving, const LocalRegion& region);
  static void note_told(Arriving& arriving, const LocalRegion& region);
  Status tell_of_all(Arriving& arriving, std::span<const std::shared_ptr<LocalRegion>> all);
  bool end_arriving(Arriving& arriving);
  std::vector<std::shared_ptr<LocalRegion>> untold(const Arriving& arriving) const HAWSER_REQUIRES(lane)
      HAWSER_EXCLUDES(mutex_);

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
  Registered register_regions(std::string_view call, std::span<const FreshEntry> entries, bool huge_pages)
      HAWSER_EXCLUDES(mutex_);
  Result<Region> register_one(std::string_view call, backend::RegionEntry entry, bool huge_pages)
      HAWSER_EXCLUDES(mutex_);
  Status check_region(const RegionOptions& region);
  /// Takes the names of those that have one: all or none. Who fails later gives them back.
  Status take_names(std::string_view call, std::span<const FreshEntry> entries, std::size_t* wrong)
      HAWSER_EXCLUDES(mutex_);
  void give_names_back(std::span<const FreshEntry> entries) HAWSER_REQUIRES(mutex_);
  /// Gives them keys, indices and generations; `backends` are those that are open now.
  Status enter_table(std::string_view call, std::span<const FreshEntry> entries, std::vector<NamedBackend>* backends,
                     std::size_t* wrong) HAWSER_EXCLUDES(mutex_);
  /// An error when one refuses that must serve it.
  Status tell_backends(std::span<const NamedBackend> backends, Joining* joining);
  void book(std::span<Joining> joining) HAWSER_REQUIRES(lane) HAWSER_EXCLUDES(mutex_);
  /// Whose word of regions has changed since it was listed: what it said of these may be old.
  void ask_again(std::span<Joining> joining, std::span<const NamedBackend> backends) HAWSER_REQUIRES(lane);
  /// False: backends opened since `backends` were listed, and are in it now; they have to be told first.
  bool book_if_all_are_told(std::string_view call, std::span<Joining> joining, std::vector<NamedBackend>* backends,
                            Status* status) HAWSER_EXCLUDES(mutex_);
  void drop_unbooked(std::span<const FreshEntry> entries, std::span<const Joining> joining,
                     std::span<const NamedBackend> backends) HAWSER_EXCLUDES(mutex_);
  Status need_file_backend();

  // core_closing.cc
  /// Nobody begins to use them any more.
  void begin_closing(std::span<const std::shared_ptr<LocalRegion>> closing) HAWSER_REQUIRES(lane);
  /// Begins to close them, and ends it for those that nobody uses.
  void close_the_quiet(std::span<const std::shared_ptr<LocalRegion>> closing);
  /// Has those of them that no transfer uses let go by backends to which that takes long, without the lane's lock
  /// meanwhile.
  void let_go(std::span<const std::shared_ptr<LocalRegion>> closing) HAWSER_REQUIRES(lane);
  Status finish_closing(const std::shared_ptr<LocalRegion>& region, Instant deadline);
  bool region_quiet(const LocalRegion& region, std::string* holder) HAWSER_REQUIRES(lane);
  void finish_regions(std::span<const std::shared_ptr<LocalRegion>> quiet) HAWSER_REQUIRES(lane);
  /// Nobody touches this memory any more. It may move pages, so no lock is held.
  void release_pages(const LocalRegion& region);
  std::shared_ptr<backend::ForeignPages> hold_pages(const RegionOptions& region);
  /// The allocation that these bytes lie in, where peers may map it with these rights. Null: there is none.
  std::shared_ptr<backend::Arena> arena_of(std::span<const std::byte> bytes, Rights rights) HAWSER_EXCLUDES(mutex_);
  void note_arena(const std::shared_ptr<backend::Arena>& arena) HAWSER_EXCLUDES(mutex_);
  bool has_open(std::string_view backend);
  /// Whether some backend here can reach memory of that device.
  bool is_reached(Device device);
  void changed(std::uint32_t index, std::uint32_t generation, bool removed) HAWSER_REQUIRES(lane, mutex_);
  class BookSource;
  using RegionEntryPtr = std::shared_ptr<const backend::RegionEntry>;
  Status append_card_since(std::uint64_t revision, std::string* out) const;
  Status encode_card(const wire::Card& head, std::span<const backend::RegionEntry* const> entries,
                     std::string* out) const HAWSER_REQUIRES(mutex_);
  Status encode_card(const wire::Card& head, const std::vector<RegionEntryPtr>& entries, std::string* out) const
      HAWSER_REQUIRES(mutex_);
  wire::Card card_head() const HAWSER_REQUIRES(mutex_);
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
  std::vector<std::shared_ptr<LocalRegion>> booked_regions();
  void shut_down();
  Status release_everything(Instant deadline);
  /// False: the deadline was too short for it, and it may be tried again.
  bool unpublish(Instant deadline);
  void await_presence(Instant deadline);

  struct BookedRegion {
    std::weak_ptr<LocalRegion> region;
    bool is_there = false;  ///< Until its close is finished.
    RegionExtras extras;
  };
  BookedRegion& booked(std::uint32_t index) HAWSER_REQUIRES(mutex_) {
    if (index >= booked_.size()) booked_.resize(index + 1);  // Indices are dense.
    return booked_[index];
  }
  bool is_booked(std::uint32_t index) const HAWSER_REQUIRES(mutex_) {
    return index < booked_.size() && booked_[index].is_there;
  }

  /// An open backend, as cards name it.
  struct CardBackend {
    std::uint32_t number = 0;
    std::string name;
    std::string address;
  };

  struct Change {
    std::uint64_t revision = 0;
    std::uint32_t index = 0;
    std::uint32_t generation = 0;
    bool removed = false;
  };

  std::vector<backend::Factory> factories_;
  const pid_t opener_;
  std::shared_ptr<PeerCore> self_;
  std::shared_ptr<Core> keep_;  ///< Itself, in a forked child.
  std::atomic<bool> closed_{false};
  std::atomic<bool> closing_{false};
  std::atomic<bool> is_being_closed_{false};  ///< By one call of `close`, which alone touches the next one.
  bool has_begun_to_close_ = false;
  std::atomic<bool> is_unpublished_{false};  ///< Nothing is left to be taken from the directory, or it had its time.

  mutable base::Mutex mutex_;
  std::vector<BackendReport> reports_ HAWSER_GUARDED_BY(mutex_);
  std::vector<CardBackend> card_backends_ HAWSER_GUARDED_BY(mutex_);
  std::unordered_map<base::Id128, std::shared_ptr<PeerCore>> peers_ HAWSER_GUARDED_BY(mutex_);
  std::vector<BookedRegion> booked_ HAWSER_GUARDED_BY(mutex_);  ///< By index.
  std::set<std::string, std::less<>> region_names_ HAWSER_GUARDED_BY(mutex_);
  Departed departed_ HAWSER_GUARDED_BY(mutex_);
  std::deque<Change> changes_ HAWSER_GUARDED_BY(mutex_);
  /// Memory that `allocate` gave, by its first byte. Some may be gone.
  std::map<std::uintptr_t, std::weak_ptr<backend::Arena>> arenas_ HAWSER_GUARDED_BY(mutex_);
  std::size_t arenas_max_ HAWSER_GUARDED_BY(mutex_) = 64;  ///< Those that are gone are looked for beyond.
  std::vector<std::weak_ptr<QueueCore>> queues_ HAWSER_GUARDED_BY(mutex_);
  std::vector<std::shared_ptr<LocalRegion>> lingering_;  ///< Dropped but not quiet. Under the lane's lock.
  Duration sweep_pause_{};                               ///< Of the next sweep. Under the lane's lock.
  KeyPool keys_;                                         ///< Of regions. Under the lane's lock.
  std::atomic<std::uint64_t> revision_{1};
  std::atomic<std::uint32_t> opened_backends_{0};
  std::uint32_t backends_tried_ = 0;  ///< Under the lane's lock.
  std::vector<Arriving*> arriving_;   ///< Under the lane's lock.
  std::atomic<std::uint32_t> arrivals_ended_{0};
  std::atomic<bool> has_queues_{false};
};

/// "host:port" with the host's name resolved. Blocks at most until `deadline`.
Result<std::string> resolve_address(std::string_view address, Instant deadline);

}  // namespace hawser::agent
