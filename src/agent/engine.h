#pragma once

// The engine: sessions and transfers of one agent, moved on by whoever holds the lane's lock. Nothing here blocks,
// sleeps or reads a clock.
//
// A submission comes in by `accept`, its chunks go to paths by `offer`, their ends come back as port events, and
// `finalize` publishes the outcome. Everything between agents that is not bytes of a transfer is a session message
// (wire/session.h), sent in order by proto/link.h over whichever path carries control.
//
// Thread rule: confined to the lane.

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include <hawser/agent.h>

#include "agent/admission_ticket.h"
#include "agent/peer_core.h"
#include "agent/session.h"
#include "backend/backend.h"
#include "base/line_gate.h"
#include "base/rng.h"
#include "wire/session.h"

namespace hawser::agent {

class Core;
struct Attempt;

inline constexpr std::size_t kEventsAtOnce = 12;
inline constexpr std::uint32_t kHeldMax = 4096;  ///< Transfers that wait for their `after` word; beyond: kBusy.

/// Between two looks of a sleeper at the words that transfers wait for: anyone may store to them, and no bell tells of
/// it. The pause doubles while nothing comes.
inline constexpr Duration kHeldPause = std::chrono::microseconds(50);
inline constexpr Duration kHeldPauseMax = std::chrono::milliseconds(1);

inline constexpr std::uint64_t kPlainBit = std::uint64_t{1} << 63;  ///< Set in ids of transfers that nothing covers.

struct OpenBackend {
  std::string name;
  std::uint32_t number = 0;  ///< Of no other backend of this agent, not even of one that failed to open.
  std::shared_ptr<backend::Backend> backend;  ///< Shared with who tells it of a region, without the lane's lock.
  std::unique_ptr<backend::Port> port;
  const backend::Traits* traits = nullptr;
  std::uint32_t renewals = 0;  ///< How often what it says of regions has changed.
};

class Engine final : public Carrier {
 public:
  Engine(Core& core, base::Rng rng) : core_(core), rng_(rng) {}
  ~Engine();

  // Services.
  /// Before the first session. At most kServicesMax, each channel of one only.
  void add_service(Service& service);
  Sent carry(Session& session, std::uint32_t channel, std::span<const std::byte> head,
             std::span<const std::byte> body) override;
  void release_message(Session& session, std::uint32_t channel, std::size_t bytes) override;
  void serve(Session& session, Instant now) override;
  Session* session_with(const Peer& peer, Status* why) override;
  bool can_fetch(Session& session) const override;
  bool fetch(Session& session, std::uint64_t address, std::span<std::byte> into) override;
  Instant now() const override;
  void note_deadline() override;
  void note_end() override { ++finalized_; }
  /// Tells of the transfers of each session, and of every service, who waits for whom.
  void describe(const Visitor& visitor) const;

  // Backends.
  void add_backend(OpenBackend backend);
  std::vector<OpenBackend>& backends() { return backends_; }

  // Transfers.
  /// Takes a submission in. An error means that it was not taken and nothing happened.
  Status accept(Slot& slot, Instant now);
  /// Ends a submission that was left in the lane's ring and cannot be accepted.
  void refuse(Slot& slot, Status status, Instant now);
  /// `accept` by the submitting thread, which offers the chunks to the path and lets the port move them at once. Where
  /// nothing waits before it no list is touched that it would leave again.
  Status start(Slot& slot, Instant now);
  /// Moves the plan's one chunk here and now, all of it, where its path can and nothing waits before it. False: nothing
  /// was done, and a slot says why or waits.
  bool move_at_once(PlanCore& plan, const std::optional<std::string_view>& notify);
  /// The same for a slot that came through the lane's ring: in this turn.
  void serve_soon(PeerCore& peer) {
    if (peer.session) enlist(*peer.session);
  }
  /// Ends that one if it is in flight and was cancelled. False: nothing was done.
  bool apply_cancel(Slot& slot, Instant now);
  /// Looks at all transfers in flight in this way.
  std::size_t apply_cancels(Instant now);
  void cancel_region(const LocalRegion& region, Instant now);
  std::size_t end_label(std::uint64_t label, const Status& status, Instant now);
  std::uint32_t in_flight() const { return in_flight_count_; }
  void end_all(const Status& status, Instant now);

  // The turn.
  std::size_t turn(Instant now);
  /// Instead of a turn: a glance at the ports, at that alone where the last message came from if the others were looked
  /// at just now. False: there may be something to do, or it is time for a whole turn.
  bool nothing_new(Instant now);
  /// Sessions wait for the next turn.
  bool has_work() const { return !work_.empty(); }
  Instant next_deadline() const;
  bool prepare_sleep();

  // Peers.
  Session& session(const std::shared_ptr<PeerCore>& peer) {
    return peer->session != nullptr ? *peer->session : make_session(peer);
  }
  void want(Session& session, Instant now);
  void want_card(Session& session, Instant now);
  /// Whose card is here in full is asked for what changes: once in a session, and when it has a newer one than it told.
  void follow_card(Session& session, std::uint64_t revision);
  Status notify(Session& session, std::string_view text, Instant now);
  static Status no_room_to_notify(const PeerCore& peer);
  static Status no_room(const PeerCore& peer, std::uint32_t channel);
  Status send(Session& session, std::uint32_t channel, std::span<const std::byte> bytes, Instant now);
  /// What a thread left that did not get the lane's lock.
  void take_left_over(LeftOver left, Instant now);
  /// Ends the session. Where nothing of it is in flight, its paths go with the lane's next turn: a farewell and closing
  /// sockets cost more than all else, and the caller does not wait for them.
  void invalidate(Session& session, const Status& cause, Instant now);
  /// Opens a path to whoever listens there; `take_stranger` tells later what came of it.
  Result<std::uint64_t> open_stranger(std::string_view address, std::string_view name, const AdmissionTicket& ticket,
                                      Instant deadline, Instant now);
  /// Null peer with good status: not yet.
  Result<std::shared_ptr<PeerCore>> take_stranger(std::uint64_t number);
  void drop_stranger(std::uint64_t number);
  /// Opens the backend that leads to the peer and comes before those of the paths that are there. Gives the new path's
  /// serial; 0: there is none.
  std::uint64_t open_better_path(Session& session, Instant deadline, Instant now);
  /// Whether the path is still on its way: neither agreed upon nor gone.
  bool is_opening(Session& session, std::uint64_t serial);
  /// What waits for a pause to be over is tried in this turn; later pauses begin short again.
  void reconnect(Session& session, Instant now);
  Status open_channel(std::uint32_t channel, std::uint32_t credit);
  void release_notifications(const std::shared_ptr<PeerCore>& peer);
  void release_messages(Session& session, std::uint32_t channel, std::uint32_t messages, std::uint64_t bytes);
  void card_changed();
  /// A card of the peer was taken in: what is bound of regions that it names no more may go.
  void on_card_loaded(PeerCore& peer, const CardStore::Change& change, Instant now);
  /// The same for what this agent has bound of its own region.
  void on_own_region_closed(std::uint32_t index, std::uint32_t generation, Instant now);
  std::uint64_t peers_up() const;
  /// Whether every peer that is not down has acknowledged all that it was sent.
  bool is_flushed() const;

  /// Ports and backends are destroyed; what is still in flight ends.
  void shut_down(Instant now);

  // Closing.
  void begin_close(Instant now);
  bool closed() const;
  bool is_closing() const { return closing_; }

  /// The path that a plan would take now, or null with the reason. Binds the plan's regions.
  PathEntry* route(PlanCore& plan, Session& session, Status* why);
  /// Backends that lead to the peer, in order of preference; `why` gets one reason per other backend.
  std::vector<std::size_t> candidates(PeerCore& peer, std::vector<Status>* why = nullptr);
  Status refusal_of(PeerCore& peer, std::size_t backend);
  std::string address_of(PeerCore& peer, std::size_t backend);

  /// All that exist.
  const std::vector<Session*>& sessions() const { return sessions_; }

 private:
  friend class Core;
  struct Stranger {
    std::uint64_t number = 0;
    std::size_t backend = 0;
    backend::Path* path = nullptr;
    std::string name;
    std::shared_ptr<PeerCore> peer;
    Status failure;
  };
  enum class Offer : std::uint8_t { kAll, kBlocked, kEnded };

  Session& make_session(const std::shared_ptr<PeerCore>& peer);

  // engine_better.cc
  bool is_better_missing(Session& session);
  void seek_better_later(Session& session, Instant now);
  // engine_fences.cc
  void note_unsettled(PathEntry* entry, const Slot& slot, const backend::PortEvent& event);
  void on_lost(Session& session, const PathEntry& entry, Instant now);
  std::vector<std::size_t> fence_order(Session& session, LostPath& lost);
  void fence_later(Session& session, Instant now);
  std::size_t fence_lost(Session& session, Instant now);
  void on_fenced(Session& session, const base::Id128& lost);
  std::size_t seek_better(Session& session, Instant now);
  std::size_t let_go(Session& session, Instant now);
  void on_path_agreed(Session& session, PathEntry& entry, Instant now);
  void judge_trial(Session& session, PathEntry& entry, Instant now);
  proto::BackoffOptions pauses_before_opening(const Session& session) const;
  PathEntry* route_in_force(const Route& route, Session& session);

  // engine_at_once.cc
  /// The session of the plan's peer if transfers to it need not wait for anything.
  Session* free_session(const PlanCore& plan);
  bool move_and_tell(const PlanCore& plan, Session& session, const PathEntry& entry, std::string_view notify);
  bool move_alone(const PlanCore& plan, Session& session, const PathEntry& entry);
  /// Whether the next one that is over within submit is timed. A small one takes as long as reading the clock twice
  /// does, so only some are.
  static bool is_timed_at_once(const FlowCounters& flow, std::uint64_t bytes);
  bool tell_at_once(Session& session, const PathEntry& entry, std::uint64_t id, std::string_view notify);

  // engine_transfers.cc
  void link(Slot& slot, Session& session);
  Status enter(Slot& slot, Session& session, Instant now);
  void serve_now(PeerCore& peer, Instant now);
  void turn_control(Session& session, Instant now);
  Status admit(Slot& slot, Session& session, Instant now);
  Status admit_covered(Slot& slot, Session& session);
  std::size_t offer(Session& session, Instant now);
  Offer advance(Slot& slot, Session& session, Instant now);
  bool carries_arrivals(const PathEntry& entry, const Slot& slot) const;
  Offer offer_chunks(Slot& slot, PathEntry& entry, Instant now);
  Offer offer_only_chunk(Slot& slot, PathEntry& entry, Instant now);
  Offer offer_batches(Slot& slot, PathEntry& entry, std::span<backend::Chunk> batch, Instant now);
  static backend::Chunk chunk_of(const Slot& slot, std::uint32_t index, bool covered);
  static std::size_t fill_batch(const Slot& slot, bool covered, std::span<backend::Chunk> batch);
  static void count_taken(Slot& slot, std::span<const backend::Chunk> offered, const backend::Submitted& result);
  Offer conclude(Slot& slot, Session& session, Instant now);
  bool send_arrive(Slot& slot, Session& session, std::uint32_t chunks);
  bool send_all_visible(Slot& slot, Session& session);
  void on_chunk_done(const backend::PortEvent& event, Instant now);
  void end_early(Slot& slot, Status status, Instant now);
  void end_quiet(Slot& slot, Instant now);
  void finalize(Slot& slot, Status status, Instant now);
  void count_end(const Slot& slot, const Status& status, Instant now);
  void time_transfer(const Slot& slot, Session& session, Duration took);
  void note_time(Session& session, PathEntry* entry, const plan::Pieces& pieces, Duration took, bool was_alone);
  static Status overdue(const Slot& slot, Instant now);
  std::size_t expire(Instant now);

  // engine_held.cc
  bool after_reached(const Slot& slot) const;
  bool must_wait(const Slot& slot) const;
  static Status lost_leader(const Slot& slot);
  void hold(Slot& slot);
  void call_followers(Slot& leader);
  std::size_t serve_called(Instant now);
  void begin_held(Slot& slot, Instant now);
  void let_off(Slot& slot);
  std::size_t check_held(Instant now);
  void put_off_held();

  // engine_paths.cc
  void on_path_up(std::size_t backend, const backend::PortEvent& event, Instant now);
  void on_path_down(std::size_t backend, const backend::PortEvent& event, Instant now);

  // engine_quotas.cc
  void turn_away(std::size_t backend, const backend::PortEvent& event, const Status& why, Instant now);
  Status over_quota(Session& session, const Status& why, Instant now);
  bool speaks_for(PeerCore& peer, const backend::Identity& who, Instant now);
  void on_stranger_down(Stranger& stranger, const backend::PortEvent& event);
  void feed(Session& session, proto::SessionEvent event, const Status& cause, Instant now);
  void act(Session& session, proto::SessionAction action, const Status& cause, Instant now);
  bool open_next_path(Session& session, Instant now);
  std::vector<Attempt> attempts_of(Session& session);
  Status cannot_carry(Session& session, const PlanCore& plan);
  void give_verdict(Session& session, Instant now);
  /// When a peer that is refused all the time is taken for dead; Instant::max() for never.
  Instant dead_if_refused_at(const Session& session) const;
  Status status_of_failed(const Session& session, const Status& cause) const;
  void report_unreached(Session& session, const Status& cause);
  bool open_path(Session& session, std::size_t backend, Instant deadline, Instant now, const base::Id128& supersedes);
  void tell_of_path(LogLevel level, const Session& session, std::size_t backend, std::string_view what, Instant now);
  void give_up_superseded(Session& session, std::size_t backend, const backend::PortEvent& event);
  void adopt(Session& session, std::size_t backend, const backend::PortEvent& event, Instant now);
  void choose_control(Session& session, Instant now);
  void release(std::size_t backend, backend::Path* path);
  void release_now();
  /// Lets go of paths whose session was invalidated.
  void part();
  void release_paths(Session& session);
  void fail_transfers(Session& session, const Status& cause, Instant now);
  std::size_t run_timers(Instant now);
  void clear_alarms(Session& session) {
    for (SessionAlarm& alarm : session.alarms) timers_.clear(alarm);
  }
  std::size_t on_timer(Session& session, SessionTimer which, Instant now);
  void set_state(Session& session, PeerState state, const Status& cause, PeerEvent::Kind kind);

  // engine_messages.cc
  void on_message(const backend::PortEvent& event, Instant now);
  Status on_reliable(Session& session, const wire::Envelope& envelope, Instant now);
  Status on_plain(Session& session, const backend::Path* path, const wire::Envelope& envelope, Instant now);
  Status on_arrive(Session& session, const wire::Arrive& arrive);
  Status on_welcome(Session& session, PathEntry& entry, const wire::Welcome& welcome, Instant now);
  Status on_credit(Session& session, const wire::Credit& credit);
  Status on_send(Session& session, const wire::Send& send, Instant now);
  void on_arrival(const backend::PortEvent& event, Instant now);
  void on_uncounted(const backend::PortEvent& event);
  void deliver(Session& session, const std::optional<std::span<const std::byte>>& notify,
               const std::optional<wire::SignalBump>& signal);
  void bump(Session& session, const wire::SignalBump& signal);
  void deliver_waiting(Session& session, std::uint64_t cookie);
  void drop_waiting(Session& session, std::optional<std::uint64_t> cookie);
  std::uint64_t notify_room() const;
  void tell_notify_credit(Session& session);
  void release_notify(Session& session, std::uint64_t messages, std::uint64_t bytes);
  bool push_reliable(Session& session, std::span<const std::byte> head, std::span<const std::byte> body);
  bool send_pending(Session& session, backend::Path& path);
  void acknowledged(Session& session);
  static std::vector<wire::Credit> open_credits(Session& session);
  bool send_plain(Session& session, std::span<const std::byte> head, std::span<const std::byte> body);
  bool push_left_over(Session& session, const LeftOver& left);
  bool pump_unsent(Session& session, std::size_t* work);
  void set_unreached(Session& session, const Status& cause);
  std::size_t pump_messages(Session& session, Instant now);
  bool pump_credits(Session& session, std::size_t* work);
  bool pump_requests(Session& session, std::size_t* work);
  bool pump_ack(Session& session, Instant now, std::size_t* work);
  void send_welcome(Session& session, PathEntry& entry);
  void break_path(Session& session, const Status& cause, Instant now);
  bool is_released(const backend::Path* path) const;

  // engine_services.cc
  Service* service_of(std::uint32_t channel) const {
    return channel < service_by_channel_.size() ? service_by_channel_[channel] : nullptr;
  }
  bool pump_services(Session& session, std::size_t* work);
  void end_services(Session& session, const Status& status);
  std::size_t expire_services(Instant now, Instant* earliest);

  // engine_cards.cc
  Status on_card_request(Session& session, const wire::CardRequest& request);
  Status on_card_part(Session& session, const wire::CardPart& part, Instant now);
  bool pump_card(Session& session, std::size_t* work);
  void make_card(Session& session);
  void bury_soon(Session& session);
  void bury(Instant now);
  void drop_sessions();

  void enlist(Session& session);
  void block(Session& session, Instant now);
  void tell_awaited(Session& session, Instant now);
  std::size_t serve_sessions(std::size_t work, Instant now);
  bool favours_one(Instant now) const;
  std::size_t turn_ports(Instant now);
  std::size_t turn_port(std::size_t backend, Instant now);
  std::size_t poll_events(std::size_t backend, Instant now);
  Session* session_of(const backend::Path* path);
  void forget_path(const backend::Path* path);

  Core& core_;
  base::Rng rng_;
  std::vector<OpenBackend> backends_;
  std::unordered_map<const backend::Path*, Session*> by_path_;
  const backend::Path* last_path_ = nullptr;  ///< Of the last event: events of one path come in runs.
  Session* last_session_ = nullptr;
  std::vector<Stranger> strangers_;
  std::uint64_t next_stranger_ = 1;
  std::uint64_t next_serial_ = 1;
  std::vector<Session*> sessions_;  ///< All that exist.
  std::vector<Session*> work_;      ///< To be looked at in the next turn.
  std::vector<Session*> gone_;      ///< Down; forgotten as soon as no transfer refers to them.
  base::LineGate break_gate_;
  base::LineGate path_gate_;
  std::vector<Session*> blocked_;  ///< A path had no room; looked at again once something moved or a pause is over.
  Instant blocked_until_ = Instant::max();
  base::IntrusiveList<Slot, &Slot::flight_hook> in_flight_;
  base::IntrusiveList<Slot, &Slot::pending_hook> held_;    ///< Wait for their `after` word.
  base::IntrusiveList<Slot, &Slot::pending_hook> called_;  ///< Their leader is final. Nearly always empty.
  std::uint32_t held_count_ = 0;
  Duration held_pause_ = kHeldPause;       ///< Until they are looked at again by one who sleeps meanwhile.
  Instant look_at_held_ = Instant::max();  ///< When that is. Of no meaning while nobody sleeps.
  Instant turned_;                         ///< The last turn.
  std::size_t favourite_ = SIZE_MAX;       ///< The backend that had news last.
  Instant others_turned_;                  ///< The last turn of all ports.
  std::uint32_t turns_alone_ = 0;          ///< Of the favourite, since then.
  std::uint32_t in_flight_count_ = 0;
  Instant earliest_deadline_ = Instant::max();  ///< Not after the earliest one; exact after `expire`.
  SessionTimers timers_;
  std::map<std::uint32_t, std::uint32_t> open_channels_;  ///< And their credit.
  std::vector<Service*> services_;
  std::array<Service*, wire::kUserChannelMin> service_by_channel_{};
  std::size_t own_channels_ = 0;  ///< So many of the open channels are the services'.
  std::size_t finalized_ = 0;     ///< Since the last look of the lane.
  std::vector<std::pair<std::size_t, backend::Path*>> to_release_;
  std::vector<std::pair<std::size_t, backend::Path*>> parting_;  ///< Released by the next turn.
  /// Room for a port's events, empty between two polls: making so many anew would cost more than a turn does.
  std::array<backend::PortEvent, kEventsAtOnce> events_;
  bool in_events_ = false;    ///< Events of a port are being read.
  bool parts_later_ = false;  ///< What is released is parting.
  bool closing_ = false;
};

/// How much may wait unread on a channel that was opened with `credit` messages.
wire::CreditLimits channel_window(std::uint32_t credit);

}  // namespace hawser::agent
