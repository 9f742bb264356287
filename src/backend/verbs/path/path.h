#pragma once

// VerbsPath: the route to one peer. A control stream (a path of the stream port beside it) carries hellos, heartbeats
// and the handshake of queue pairs; queue pairs carry the bytes, and the first one the agents' messages (messages.h).
//
// It is up as long as the control stream is and some queue pair has been ready within `patience`. A queue pair that
// fails is mended by itself (proto/queue_pair.h): what was posted on it waits until nothing of it can land any more,
// and is posted again on whichever is ready. When the path goes down, what it had not ended is the agent's to send by
// another one.
//
// Thread rule: confined to the port's lane. Lifetime: owned by its port.

#include <deque>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "backend/backend.h"
#include "backend/queue_pair_source.h"
#include "backend/stream/events.h"
#include "backend/verbs/memory/regions.h"
#include "backend/verbs/path/way_search.h"
#include "backend/verbs/queues/messages.h"
#include "backend/verbs/queues/queue_pair.h"
#include "proto/backoff.h"
#include "proto/queue_pair.h"
#include "proto/trial.h"
#include "wire/queue_pair.h"

namespace hawser::backend::verbs {

/// What the paths of one port share.
struct PortShared {
  const Context& context;
  const VerbsOptions& options;
  const Pairing& pairing;
  std::vector<std::unique_ptr<NicLane>>& lanes;
  stream::EventQueue& events;
  std::uint64_t host = 0;
  base::Rng rng;
  bool attention = false;  ///< Some path's timers or queues changed: the next turn looks at all paths.
};

/// A region of the peer, as each of the peer's ports reaches it.
class VerbsBinding final : public Binding {
 public:
  std::uint64_t size = 0;
  Rights rights = Rights::kNone;
  std::vector<RemoteKey> keys;  ///< By the peer's port.
  std::size_t told = 0;         ///< Bytes of the card that they are from.
  bool has_key(std::uint32_t port) const { return port < keys.size() && keys[port] != RemoteKey(); }
};

class VerbsPath final : public Path, public QueuePairSource {
 public:
  VerbsPath(PortShared& shared, std::string peer_name) : shared_(shared), name_(std::move(peer_name)) {}
  ~VerbsPath() override = default;

  // Path.
  PathState state() const override { return state_; }
  Result<Binding*> bind(const RemoteRegionRef& region) override;
  void unbind(std::uint32_t index, std::uint32_t generation) override;
  Submitted submit(std::span<const Chunk> chunks, Instant now) override;
  bool send(wire::Link link, std::span<const std::byte> head, std::span<const std::byte> body) override;
  bool carries_arrivals(std::uint64_t chunks) const override {
    return credits_ > 0 && chunks <= proto::kImmediateChunksMax;
  }
  void cancel(std::uint64_t transfer) override;
  void give_up(const Status& why) override { go_down(why); }
  void reconnect(Instant now) override;
  void set_awaited(bool awaited, Instant now) override;
  const QueuePairSource* queue_pairs() const override { return this; }
  Result<QueuePairView> queue_pair(const Binding& target, const Piece& piece) const override;
  PathCounters counters() const override;
  std::string describe() const override;
  Status condition(Instant now) const override;

  // For the port.
  void open(Path* control, Instant deadline);
  void accept(Path* control, Instant now);
  Path* control() const { return control_; }
  void forget_control() { control_ = nullptr; }
  /// The control stream is through.
  void on_control_up(const PortEvent& event);
  /// A message of the peer's path. How many bytes stand before the agent's own; 0: it is not for the agent, or not now.
  std::size_t on_message(std::span<const std::byte> bytes, Instant now);
  void on_completion(std::uint32_t lane, const ibv_wc& wc, Instant now);
  /// A port of this host went, or its device.
  void on_lane_fault(std::uint32_t lane, const Status& why, Instant now);
  /// A port of this host has other addresses. True: a queue pair was at one that is gone; it is made anew.
  bool on_address_change(std::uint32_t lane, const Status& why, Instant now);
  void go_down(const Status& why, bool refused = false);
  bool is_down() const { return state_ == PathState::kDown; }
  /// The agent has heard of it, or asked for it.
  bool is_known() const { return told_up_ || !inbound_; }
  /// Posts what waits, runs timers.
  std::size_t turn(Instant now);
  bool has_work() const {
    return !outgoing_.empty() || (!again_.empty() && ready_ > 0) ||
           (messages_ != nullptr && (messages_->has_work() || !message_fault_.ok())) || words_due_ || ports_due_;
  }
  Instant next_deadline() const;
  /// Tells the control stream, whose heartbeats judge the peer and which sees no chunks, whether somebody waits for it.
  void tell_awaited(Instant now);
  bool has_number(std::uint32_t lane, std::uint32_t number) const;
  /// Whether something that was posted may use them.
  bool may_use(const KeysInUse& keys) const;

 private:
  struct Pair {
    Pair(NicLane& its_lane, const QueuePairOptions& options, proto::QueuePairRole role, std::uint32_t lane_index,
         std::uint32_t remote_port)
        : qp(its_lane, options), machine(role), lane(lane_index), remote(remote_port) {}
    QueuePair qp;
    proto::QueuePairMachine machine;
    std::uint32_t lane;            ///< Of the port's lanes.
    std::uint32_t remote;          ///< Place in the peer's list of ports.
    std::uint64_t mbit_per_s = 0;  ///< Of the slower of both ports; 0: unknown.
    wire::QueuePairEndpoint peer;
    Status cause;              ///< Why it is not ready.
    std::vector<Flight> lost;  ///< Posted on an earlier connection; wait for the fence.
    std::uint32_t lost_epoch = 0;
    Instant stuck_at = Instant::max();  ///< Then what is `lost` has waited too long for the fence.
    proto::Backoff backoff{{}, Instant::max()};
    proto::Trial trial;
    WaySearch ways;
    Instant timer = Instant::max(), expires = Instant::max();
    Instant quiet_at = Instant::max();  ///< From then on nothing of `lost` is on its way any more.
    Instant next_ask = Instant::min();  ///< Before, the peer's asking for an attempt is not heard.
    std::uint32_t failures = 0;         ///< Attempts that failed since it was ready.
  };

  /// Handshake messages that the control stream had no room for.
  static constexpr std::size_t kOutgoingMax = 4 * wire::kPairsMax;

  // path_connect.cc
  std::unique_ptr<Pair> make_pair(proto::QueuePairRole role, std::uint32_t lane, std::uint32_t remote);
  void on_ports(const wire::RdmaPorts& ports, Instant now);
  void update_ports(const wire::RdmaPorts& ports);
  wire::RdmaPorts told_ports() const;
  bool is_away(std::size_t lane) const { return were_away_[lane] || shared_.lanes[lane]->is_away(); }
  bool choose_pairs(const wire::RdmaPorts& told);
  void on_connect(const wire::QueuePairConnect& message, Instant now);
  void on_accept(const wire::QueuePairAccept& message, Instant now);
  void on_ready_heard(const wire::QueuePairReady& message, Instant now);
  void ask_for_attempts();
  void feed(std::size_t index, proto::QueuePairEvent event, Instant now);
  void perform(std::size_t index, std::span<const proto::QueuePairAction> actions, Instant now);
  Status act(std::size_t index, proto::QueuePairAction action, Instant now);
  void arm(Pair& pair, Instant now);
  void reset(Pair& pair, Instant now);
  std::size_t end_quiet(Pair& pair, Instant now);
  Status strike(Flight& flight);
  void fenced(Pair& pair);
  void report_ready(Pair& pair, Instant now);
  void report_lost(Pair& pair, Instant now);
  void report_failed(Pair& pair);
  Status why_not(const Pair& pair) const;
  void say(const wire::QueuePairMessage& message);
  std::size_t run_timers(Instant now);
  void fault(std::size_t index, const Status& cause, Instant now);
  static void note_lost_packets(Pair& pair);
  Status link_failure(std::string_view what) const;

  // path.cc
  bool is_awaited() const;
  std::uint64_t rail_speed(std::uint32_t lane, std::uint32_t remote) const;
  enum class Posted : std::uint8_t { kYes, kNoRoom, kEnded };
  Posted post(const Chunk& chunk, bool cancelled);
  /// The ready one of the port that is nearest to the chunk's memory here, then the one that would have it done first:
  /// by its rail's speed and what is under way on it. Not one of those `passed` (bits), which it joins; or null.
  Pair* best_pair(const Chunk& chunk, const VerbsBinding& binding, std::uint64_t* passed) const;
  /// Whether a ready queue pair leads to a port with a key, or none is ready.
  bool is_reached(const VerbsBinding& binding) const;
  QueuePair::Staged stage(const Chunk& chunk, const VerbsBinding& binding, Status* why);
  void flush(Instant now);
  void watch_mtu(Instant now);
  void look_at_mtu(Instant now);
  void end(const Flight& flight, const Status& status);
  void send_outgoing();

  // path_info.cc
  QueuePairCounters counters_of(const Pair& pair) const;
  std::string condition_of(std::size_t index) const;
  Status standing(Instant now) const;

  // path_messages.cc
  void open_messages();
  bool send_numbered(wire::Link link, std::span<const std::byte> head, std::span<const std::byte> body);
  bool is_first(const Pair& pair) const { return !pairs_.empty() && pairs_[0].get() == &pair; }
  Status make(Pair& pair);
  std::vector<Gid> peer_gids(const Pair& pair) const;
  std::uint32_t ways_of(const Pair& pair) const;
  QueuePairAttempt attempt_of(const Pair& pair, std::span<const Gid> peer) const;
  std::size_t on_agent_message(std::span<const std::byte> bytes, Instant now);
  void on_message_completion(const Completed& completed, Instant now);
  void turn_messages(Instant now);

  // path_immediates.cc
  std::uint32_t receives() const { return shared_.options.pair.immediates; }
  Status open_immediates(Pair& pair);
  void on_immediate(Pair& pair, const Completed& completed, Instant now);
  void settle_immediates(Pair& pair);
  void on_counted(const wire::ImmediatesCounted& told);
  void end_counted(Pair& pair, std::uint64_t counted);
  void tell_arrivals();
  void tell_counted();
  wire::ImmediatesCounted counted(Pair& pair) const;
  void repost(Instant now);
  std::size_t post_again(Instant now);
  void force_cancelled(Instant now);

  PortShared& shared_;
  std::string name_;
  PathState state_ = PathState::kConnecting;
  bool inbound_ = false;
  bool told_up_ = false;
  Path* control_ = nullptr;
  Identity peer_;
  base::Id128 session_, supersedes_;
  std::vector<wire::RdmaPort> ports_;   ///< The peer's.
  Status message_fault_;                ///< Of posting a message; the next turn breaks the first queue pair.
  std::unique_ptr<Messages> messages_;  ///< Null: the messages have no numbers and go by the control stream.
  std::uint32_t credits_ = 0;           ///< The peer's receives for immediates on each queue pair; 0: none are used.
  bool words_due_ = false;              ///< A queue pair's count is to be told.
  bool ports_told_ = false;
  std::uint32_t lanes_told_ = 0;  ///< Ports that this end had when the path came up: the peer knows of no others.
  std::vector<bool> were_away_;   ///< Of these: the peer was told that they are not there.
  bool ports_due_ = false;        ///< Our ports' addresses are to be told again.
  std::vector<proto::ImmediateCounter::Chunk> arrived_;  ///< Before the path was up: at most all receives.
  std::uint64_t counted_out_ = 0, counted_in_ = 0, uncounted_ = 0;
  std::vector<std::unique_ptr<Pair>> pairs_;
  std::uint32_t ready_ = 0;
  bool held_back_ = false;    ///< Chunks were not taken because no queue pair was ready, and none was since.
  bool agent_waits_ = false;  ///< For the peer, with nothing in flight here (set_awaited).
  bool is_awaited_ = false;   ///< So the control stream was told.
  /// While it is, and not because the agent says so: when to look whether it still is.
  Instant awaited_until_ = Instant::max();
  Instant deadline_ = Instant::max();    ///< Of coming up.
  Instant lost_since_ = Instant::max();  ///< No queue pair is ready since then.
  Instant cancel_by_ = Instant::max();   ///< When what was cancelled must be quiet.
  Instant mtu_at_ = Instant::max();      ///< While something is in flight: when to ask the ports for their MTU.
  bool cancel_asked_ = false;
  std::deque<Flight> again_;
  std::map<std::uint64_t, std::uint32_t>
      struck_;                        ///< By cookie of what has not ended: how often a queue pair broke at it.
  std::deque<std::string> outgoing_;  ///< At most kOutgoingMax.
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::unique_ptr<VerbsBinding>> bindings_;
  std::vector<std::byte> head_;     ///< Scratch of send.
  Instant heard_ = Instant::min();  ///< The peer's last word on the control stream, and which.
  std::string_view last_word_;
  PathCounters counts_;
};

/// How a cancelled chunk ends.
Status cancelled();

}  // namespace hawser::backend::verbs
