#pragma once

// StreamPath: one session with a peer. It opens its streams, joins them with a Machine, and moves bytes in bounded
// steps.
//
// Life: opening (outbound: connect, hello; inbound: answer) -> up -> closing (saying goodbye) -> down. A path whose
// peer said goodbye hears the messages that the peer sent before and that are late; nothing is sent on it any more. An
// inbound path of the same host that lost its connection asks for a moment whether its opener still listens, before it
// is down. Once down it holds no stream, and stays readable until the port drops it.
//
// Thread rule: confined to the port's lane. Lifetime: owned by its port.

#include <array>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "backend/backend.h"
#include "backend/peer_guard.h"
#include "backend/stream/bulk_pace.h"
#include "backend/stream/connect_race.h"
#include "backend/stream/handshake.h"
#include "backend/stream/identity_watch.h"
#include "backend/stream/lobby.h"
#include "backend/stream/machine.h"
#include "backend/stream/opener_question.h"
#include "backend/stream/port.h"
#include "backend/stream/stream.h"
#include "backend/stream/turn_watch.h"
#include "proto/detector.h"
#include "proto/sign_of_life.h"

namespace hawser::backend::stream {

class StreamPath;

/// Heartbeats without an answer after which a path to a driven peer ends.
inline constexpr std::uint32_t kMissedMax = 3;

/// What Stream::owner points to: the path and its stream, or, without a path, a connection whose hello is awaited.
struct StreamOwner {
  StreamPath* path = nullptr;
  unsigned index = 0;
  bool readable = false;  ///< May have bytes: to be tried until it would block.
  bool blocked = false;   ///< A send took less than all; cleared when it becomes writable.
  bool hot = false;       ///< Moved bytes lately: tried in every turn, without being reported.
};

/// What the paths of one port share.
struct PortShared {
  const Context& context;
  const PortOptions& options;
  Network& network;
  EventQueue& events;
  FileDesk& files;
  std::vector<StreamPath*>& active;  ///< Those that the next turn visits.
  Lobby& lobby;                      ///< Unproven inbound ones are its guests.
  std::vector<iovec>& parts;         ///< Scratch for one call: kPartsMax once a path came up.
  BulkPace pace;
  bool has_silent_dead = false;       ///< An inbound path ended before the agent heard of it.
  Instant next_due = Instant::max();  ///< When some path or knock has to be turned by itself.
  base::Rng rng;
  TurnWatch watch = {};
};

/// Bytes that stream 0 moves in one call, where bulk has streams of its own,
inline constexpr std::uint64_t kControlStep = 256 * 1024;
/// and that all paths move in one turn beside their share of bulk; the other paths have theirs in the next.
inline constexpr std::uint64_t kControlTurn = 4 << 20;
/// Calls in which the rest of stream 0 is read once another stream has ended, and in all that of the others.
inline constexpr int kLastWordsSteps = 32;
/// Paths visited in one turn.
inline constexpr std::size_t kVisitsMax = 128;

class StreamPath final : public Path {
 public:
  explicit StreamPath(PortShared& shared);
  ~StreamPath() override;

  // Path.
  PathState state() const override;
  Result<Binding*> bind(const RemoteRegionRef& region) override;
  void unbind(std::uint32_t index, std::uint32_t generation) override;
  Submitted submit(std::span<const Chunk> chunks, Instant now) override;
  bool send(wire::Link link, std::span<const std::byte> head, std::span<const std::byte> body) override;
  bool send_first(std::span<const std::byte> head, std::span<const std::byte> body) override;
  bool send_last(std::span<const std::byte> head, std::span<const std::byte> body) override;
  unsigned queue_of(wire::Link link) const override;
  void cancel(std::uint64_t transfer) override;
  void give_up(const Status& why) override { go_down(why); }
  void set_awaited(bool awaited, Instant now) override;
  PathCounters counters() const override;
  std::string describe() const override;
  Status condition(Instant now) const override;

  // For the port.
  /// Starts connecting; what fails later ends in kPathDown.
  Status open(const PathTarget& target, Instant now);
  /// A peer's hello on stream 0 that was let in; what has still to be sent is sent from here on.
  /// `is_known_peer`: it goes on from a session that stood here, and need not say anything to be told of.
  /// `seat`: counts as one of its peer's connections until the path is down.
  void accept(std::unique_ptr<Handshake> shake, bool is_known_peer, PeerSeat seat, Instant now);
  /// Whether there is a place for that stream.
  Status can_attach(unsigned index) const;
  /// A further stream that was let in and names this session.
  void attach(std::unique_ptr<Handshake> shake, Instant now);
  bool is_session(const base::Id128& session) const { return !session.is_zero() && session == session_; }
  const Identity& peer() const { return peer_; }
  const base::Id128& token() const { return token_; }

  std::size_t turn(Instant now, Share& share);
  /// Says goodbye and ends when that is sent, or at once when there is nobody to say it to.
  void begin_close(Instant now);
  /// Ends everything now. `abort`: bytes under way are dropped, too.
  void go_down(const Status& why, bool abort = true);
  void say_goodbye(Code code, std::string_view reason);
  bool is_down() const { return phase_ == Phase::kDown; }
  /// Pings an idle peer in the next turn if that is due soon. True: the path must be turned.
  bool hasten_ping(Instant now) { return phase_ == Phase::kUp && detector_->hasten(now); }
  /// The agent has heard of it, or asked for it.
  bool is_known() const { return (told_up_ && !is_held_) || !inbound_; }
  /// The network has news of one of its streams.
  void on_ready(StreamOwner& owner);
  bool region_quiet(std::uint32_t index, std::uint32_t generation);
  /// Earliest time at which `turn` has something to do by itself.
  Instant next_deadline() const;
  /// False: it has something to do now.
  bool may_sleep() const;
  /// Whether turns should visit it although nobody reported it.
  bool wants_turns() const;
  void activate();
  bool is_active = false;

 private:
  enum class Phase : std::uint8_t { kOpening, kUp, kHearing, kAsking, kClosing, kDown };
  struct Lane {
    bool is_there() const { return shake != nullptr || stream != nullptr; }
    std::unique_ptr<Handshake> shake;  ///< Until the hellos are through,
    std::unique_ptr<Stream> stream;    ///< then the stream alone.
    std::string said;                  ///< Our hello, to which the stream may still refer.
    StreamOwner owner;
    Instant deadline = Instant::max();  ///< Of the hellos.
    std::uint64_t released() const {
      const std::uint64_t total = stream->released();
      return total > said.size() ? total - said.size() : 0;
    }
    Instant hot_until = Instant::min();
  };

  // Streams of links, where they are apart; see message_order.h.
  using LinkLanes = std::array<Lane, wire::kLinks>;
  Lane& lane(unsigned stream) { return is_link_stream(stream) ? (*link_lanes_)[stream - kStreamsMax] : lanes_[stream]; }
  /// Those that were begun. Calls `see(stream, lane)` with each, the most urgent first.
  template <typename See>
  void each_link_lane(See see) const {
    if (link_lanes_ == nullptr) return;
    for (unsigned i = 0; i < wire::kLinks; ++i) {
      if (Lane& each = (*link_lanes_)[i]; each.is_there()) see(kStreamsMax + i, each);
    }
  }
  bool may_have_link_streams() const { return streams_ > 1 && shared_.network.streams_are_apart(); }

  // path_open.cc
  wire::Hello our_hello(unsigned index) const;
  void try_places(Instant now);
  Status why_nowhere();
  void reject_place(const Status& why, Instant now);
  void note_places(Instant now);
  bool is_open() const { return shared_.context.security == Security::kNone; }
  bool is_through(const Handshake& shake) const {
    return shake.heard() && shake.said() && (inbound_ || shake.is_let_in());
  }
  Status step_shake(Lane& lane, Instant now);
  Status judge_answer(Handshake& shake);
  Status doubt(const Status& why);
  void learn_identity(ShownIdentity shown, Instant now);
  void adopt(unsigned index, std::unique_ptr<Handshake> shake, Instant deadline);
  std::size_t turn_opening(Instant now);
  void turn_shake(unsigned index, Instant now);
  void shake_failed(unsigned index, const Status& why, Instant now);
  bool is_the_peer(const wire::Hello& hello) const;
  Status check_answer(const wire::Hello& hello) const;
  void learn(const wire::Hello& hello);
  PeerClaim claim() const;
  void come_up(Instant now);
  void open_further(Instant now);
  void open_further_one(unsigned index, Instant now);
  void open_link_streams(Instant now);

  // path_turn.cc
  std::size_t turn_up(Instant now, Share& share);
  std::size_t move_control(Instant now, Share& share);
  std::size_t move_links(Instant now, Share& share, bool is_urgent);
  std::size_t move_bulk(Instant now, Share& share);
  std::size_t send_on(unsigned index, std::uint64_t bytes_max);
  std::size_t receive_on(unsigned index, std::uint64_t bytes_max);
  void answer_news(Instant now);
  void watch_identity(Instant now);
  void take_identity(const std::string& proof);
  void watch_peer(Instant now);
  Status silence(Duration time) const;
  void show_life(Instant now);
  void watch_memory(Instant now);
  std::size_t turn_closing(Instant now);
  void note_progress(unsigned index, std::size_t bytes, Instant now);
  void take_goodbye(const wire::PathBye& bye);
  std::size_t send_last_words();
  void begin_hearing();
  std::size_t turn_hearing(Instant now);
  std::size_t hear_last_words(unsigned index, int steps);
  void watch_opener(Instant now);
  /// Stream `index` has ended, and with it the path.
  void lose(unsigned index, const Status& why);
  Status lost(const Status& why) const;

  void begin_asking(const Status& why);
  std::size_t turn_asking(Instant now);
  Status opener_ended() const;

  void close_streams(bool abort);
  bool hears_nothing() const;
  bool may_sleep(unsigned stream, const Lane& lane) const;
  bool has_streams_to_open() const { return !inbound_ && machine_->has_unopened() && may_have_link_streams(); }

  PortShared& shared_;
  Phase phase_ = Phase::kOpening;
  bool inbound_ = false;
  bool told_up_ = false;
  bool is_known_peer_ = false;
  IdentityWatch identity_;
  bool is_doubted_ = false;  ///< Who answered the hello just now did not prove to be the peer.
  bool is_held_ = false;     ///< Inbound, and its opener said nothing yet behind its hello.
  bool heard_ = false;       ///< Something came in this turn,
  bool spoken_ = false;      ///< and something went out.
  Instant last_heard_ = Instant::min();
  bool skipped_bulk_ = false;
  bool awaited_ = false;    ///< See Path::set_awaited.
  bool is_silent_ = false;  ///< The agent was told so.
  unsigned streams_ = 1;
  unsigned next_bulk_ = 0;  ///< Lane that goes first.
  unsigned ack_turns_ = 0;  ///< Turns that acknowledgements have waited.
  PeerSeat seat_;           ///< From when the peer is known.
  std::array<Lane, kStreamsMax> lanes_;
  std::unique_ptr<LinkLanes> link_lanes_;  ///< From the first one on.
  std::optional<Machine> machine_;
  std::optional<proto::Detector> detector_;
  std::optional<proto::SignOfLife> sign_of_life_;
  Identity peer_;
  std::string name_;  ///< Of the peer as errors tell it: its name or where it should be.
  base::Id128 session_, token_, supersedes_, expects_;
  Known known_;                        ///< Secret and key, from the peer's card.
  StreamOwner race_owner_;             ///< Of streams on which no hello was said yet.
  std::unique_ptr<ConnectRace> race_;  ///< Outbound, until a hello was answered well.
  Status restarted_;                   ///< Another incarnation of the peer's name answered at a place.
  std::string place_;                  ///< Outbound: where the peer was reached.
  std::string places_note_;            ///< For people: places that were left out, and those that led elsewhere.
  Status misfit_;                      ///< Whoever answered at a place speaks no version of ours.
  bool refused_ = false;               ///< Each place refused the connection.
  bool is_here_ = false;               ///< See Network::is_here.
  Instant deadline_ = Instant::max();  ///< Of opening, of the opener's first word, of hearing, or of closing.
  std::string asks_at_;  ///< Inbound: where to ask, after a loss, whether the opener lives; empty: nowhere.
  Status lost_why_;      ///< While it asks: what the path ends with if the opener lives.
  std::optional<OpenerQuestion> question_;
  Instant quiet_by_ = Instant::max();  ///< When memory that was given back must be let go.
};

}  // namespace hawser::backend::stream
