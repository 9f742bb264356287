#pragma once

// VerbsPath: the route to one peer. A control stream (a path of the stream port beside it) carries hellos, heartbeats
// and the handshake of queue pairs; queue pairs carry the bytes, and the first one the agents' messages (messages.h).
//
// It is up as long as the control stream is and some queue pair has been ready within `patience`. A queue pair that
// fails is mended by itself (path_pair.h): what was posted on it waits until nothing of it can land any more, and is
// posted again on whichever is ready. When the path goes down, what it had not ended is the agent's to send by another
// one.
//
// Thread rule: confined to the port's lane. Lifetime: owned by its port.

#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "backend/backend.h"
#include "backend/queue_pair_source.h"
#include "backend/verbs/memory/regions.h"
#include "backend/verbs/path/arrival_words.h"
#include "backend/verbs/path/awaited_watch.h"
#include "backend/verbs/path/bindings.h"
#include "backend/verbs/path/cancel_patience.h"
#include "backend/verbs/path/control_outbox.h"
#include "backend/verbs/path/pair_set.h"
#include "backend/verbs/path/path_pair.h"
#include "backend/verbs/path/port_shared.h"
#include "backend/verbs/path/strike_book.h"
#include "backend/verbs/path/told_ports.h"
#include "backend/verbs/queues/messages.h"
#include "wire/queue_pair.h"

namespace hawser::backend::verbs {

class VerbsPath final : public Path, public QueuePairSource, private PairOwner {
 public:
  VerbsPath(PortShared& shared, std::string peer_name) : shared_(shared), name_(std::move(peer_name)) {}
  ~VerbsPath() override = default;

  // Path.
  PathState state() const override { return state_; }
  Result<Binding*> bind(const RemoteRegionRef& region) override;
  void unbind(std::uint32_t index, std::uint32_t generation) override { bindings_.unbind(index, generation); }
  Submitted submit(std::span<const Chunk> chunks, Instant now) override;
  bool send(wire::Link link, std::span<const std::byte> head, std::span<const std::byte> body) override;
  bool carries_arrivals(std::uint64_t chunks) const override {
    return arrivals_.credits() > 0 && chunks <= proto::kImmediateChunksMax;
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
  /// See Port::describe.
  void describe_waits(const WaitVisitor& visitor) const;
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
  bool is_down() const override { return state_ == PathState::kDown; }
  /// The agent has heard of it, or asked for it.
  bool is_known() const { return told_up_ || !inbound_; }
  /// Posts what waits, runs timers.
  std::size_t turn(Instant now);
  bool has_work() const {
    return !outbox_.empty() || (!again_.empty() && ready_ > 0) ||
           (messages_ != nullptr && (messages_->has_work() || !message_fault_.ok())) || words_due_ || ports_.is_due();
  }
  Instant next_deadline() const;
  /// Tells the control stream whether somebody waits for the peer, if that is another than it was told.
  void tell_awaited(Instant now);
  bool has_number(std::uint32_t lane, std::uint32_t number) const { return pairs_.find(lane, number) != nullptr; }
  /// Whether something that was posted may use them.
  bool may_use(const KeysInUse& keys) const { return pairs_.may_use(keys); }

 private:
  // PairOwner.
  const std::string& peer_name() const override { return name_; }
  std::uint8_t count_of_pairs() const override { return static_cast<std::uint8_t>(pairs_.size()); }
  void say(const wire::QueuePairMessage& message) override;
  Status make(PathPair& pair) override;
  void before_reset(PathPair& pair) override;
  void after_reset(PathPair& pair, std::vector<Flight> back, Instant now) override;
  void on_ready(PathPair& pair) override;
  void on_lost(PathPair& pair, bool has_worked, Instant now) override;
  void on_fenced(PathPair& pair) override;
  void on_failed(PathPair& pair) override;

  // The handshake: what the peer says, by its kinds.
  void hear(const wire::RdmaPorts& ports, Instant now);
  void hear(const wire::QueuePairConnect& message, Instant now);
  void hear(const wire::QueuePairAccept& message, Instant now);
  void hear(const wire::QueuePairReady& message, Instant now);
  void hear(const wire::QueuePairBroken& message, Instant now);
  void hear(const wire::MessagesReceived& told, Instant now);
  void hear(const wire::ImmediatesCounted& told, Instant now);
  bool is_away(std::size_t lane) const { return ports_.was_away(lane) || shared_.lanes[lane]->is_away(); }
  wire::RdmaPorts own_ports() const;
  bool choose_pairs(std::uint64_t peer_host);
  std::unique_ptr<PathPair> make_pair(proto::QueuePairRole role, std::size_t number, std::uint32_t lane,
                                      std::uint32_t remote);
  void ask_for_attempts();
  QueuePairAttempt attempt_of(const PathPair& pair, std::span<const Gid> peer) const;
  bool has_more_ways(const PathPair& pair) const;
  Status link_failure(std::string_view what) const;
  std::size_t run_timers(Instant now);

  // Chunks.
  enum class Posted : std::uint8_t { kYes, kNoRoom, kEnded };
  Posted post(const Chunk& chunk, bool cancelled);
  QueuePair::Staged stage(const Chunk& chunk, const VerbsBinding& binding, Status* why);
  void flush(Instant now);
  std::size_t post_again(Instant now);
  void end(const Flight& flight, const Status& status);
  void force_cancelled(Instant now);
  bool is_awaited() const;
  void watch_mtu(Instant now);
  void look_at_mtu(Instant now);

  // The agents' messages: which carrier takes them (messages.h).
  static bool is_first(const PathPair& pair) { return pair.place().number == 0; }
  void open_messages();
  bool send_numbered(wire::Link link, std::span<const std::byte> head, std::span<const std::byte> body);
  std::size_t on_agent_message(std::span<const std::byte> bytes, Instant now);
  void on_message_completion(const Completed& completed, Instant now);
  void repost(Instant now);
  void turn_messages(Instant now);

  // Immediates: how the target of a covered write learns by itself that it landed (proto/immediate.h).
  std::uint32_t receives() const { return shared_.options.pair.immediates; }
  Status open_immediates(PathPair& pair);
  void on_immediate(PathPair& pair, const Completed& completed, Instant now);
  void tell_arrivals();
  void tell_counted();

  Status standing(Instant now) const;

  PortShared& shared_;
  std::string name_;
  PathState state_ = PathState::kConnecting;
  bool inbound_ = false;
  bool told_up_ = false;
  Path* control_ = nullptr;
  Identity peer_;
  base::Id128 session_, supersedes_;
  ControlOutbox outbox_;
  ToldPorts ports_;
  Bindings bindings_;
  std::unique_ptr<Messages> messages_;   ///< Null: messages have no numbers and go by the control stream.
  PairSet pairs_;                        ///< Goes before what it may receive into.
  std::uint32_t ready_ = 0;              ///< Of `pairs_`.
  Instant deadline_ = Instant::max();    ///< Of coming up.
  Instant lost_since_ = Instant::max();  ///< No queue pair is ready since then.
  std::deque<Flight> again_;             ///< To be posted again.
  StrikeBook strikes_;
  CancelPatience cancelled_;
  AwaitedWatch awaited_;
  bool held_back_ = false;               ///< Chunks were not taken because no queue pair was ready, and none was since.
  Instant mtu_at_ = Instant::max();      ///< While something is in flight: when to ask the ports for their MTU.
  Status message_fault_;                 ///< Of posting a message; the next turn breaks the first queue pair.
  std::vector<std::byte> message_head_;  ///< Scratch of send.
  ArrivalWords arrivals_;
  bool words_due_ = false;  ///< A queue pair's count is to be told.
  std::uint64_t counted_out_ = 0, uncounted_ = 0;
  Instant heard_ = Instant::min();  ///< The peer's last word on the control stream, and which.
  std::string_view last_word_;
  PathCounters counts_;
};

}  // namespace hawser::backend::verbs
