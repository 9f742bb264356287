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

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "backend/backend.h"
#include "backend/peer_guard.h"
#include "backend/stream/bulk_pace.h"
#include "backend/stream/handshake.h"
#include "backend/stream/identity_watch.h"
#include "backend/stream/lobby.h"
#include "backend/stream/machine.h"
#include "backend/stream/opener_question.h"
#include "backend/stream/path_hellos.h"
#include "backend/stream/path_streams.h"
#include "backend/stream/peer_watch.h"
#include "backend/stream/place_search.h"
#include "backend/stream/port.h"
#include "backend/stream/stream.h"
#include "backend/stream/turn_watch.h"

namespace hawser::backend::stream {

class StreamPath;

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
  bool send_aside(wire::Link link, std::span<const std::byte> head, std::span<const std::byte> body) override;
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
  /// See Port::describe.
  void describe_waits(const WaitVisitor& visitor) const;
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
  bool is_session(const base::Id128& session) const { return !session.is_zero() && session == terms_.session; }
  const Identity& peer() const { return peer_; }
  const base::Id128& token() const { return terms_.token; }

  std::size_t turn(Instant now, Share& share);
  /// Says goodbye and ends when that is sent, or at once when there is nobody to say it to.
  void begin_close(Instant now);
  /// Ends everything now. `abort`: bytes under way are dropped, too.
  void go_down(const Status& why, bool abort = true);
  void say_goodbye(Code code, std::string_view reason);
  bool is_down() const { return phase_ == Phase::kDown; }
  /// Pings an idle peer in the next turn if that is due soon. True: the path must be turned.
  bool hasten_ping(Instant now) { return phase_ == Phase::kUp && watch_->hasten(now); }
  /// The agent has heard of it, or asked for it.
  bool is_known() const { return (told_up_ && !is_held_) || !terms_.is_inbound; }
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
  bool may_have_link_streams() const { return streams_.count() > 1 && shared_.network.streams_are_apart(); }
  bool has_streams_to_open() const { return !terms_.is_inbound && machine_->has_unopened() && may_have_link_streams(); }

  // How it comes up.
  std::size_t turn_opening(Instant now);
  void try_places(Instant now);
  void reject_place(const Status& why, PlaceSearch::Found found, Instant now);
  void note_places(Instant now);
  void adopt(unsigned index, std::unique_ptr<Handshake> shake, Instant deadline);
  void turn_shake(unsigned index, Instant now);
  void shake_failed(unsigned index, const Status& why, Instant now);
  void learn_identity(ShownIdentity shown, Instant now);
  PeerClaim claim() const;
  void come_up(Instant now);
  void open_further(Instant now);
  void open_further_one(unsigned index, Instant now);
  void open_link_streams(Instant now);

  // At work.
  std::size_t turn_up(Instant now, Share& share);
  std::size_t move_control(Instant now, Share& share);
  std::size_t move_links(Instant now, Share& share, bool is_urgent);
  std::size_t move_bulk(Instant now, Share& share);
  std::size_t send_on(unsigned index, std::uint64_t bytes_max);
  std::size_t receive_on(unsigned index, std::uint64_t bytes_max);
  void answer_news(Instant now);
  void watch_identity(Instant now);
  void take_identity(const std::string& proof);
  void watch_opener(Instant now);
  void watch_peer(Instant now);
  void watch_memory(Instant now);

  // How it ends.
  void take_goodbye(const wire::PathBye& bye);
  std::size_t turn_closing(Instant now);
  std::size_t send_last_words();
  /// Stream `index` has ended, and with it the path.
  void lose(unsigned index, const Status& why);
  Status lost(const Status& why) const;
  void begin_hearing();
  std::size_t turn_hearing(Instant now);
  std::size_t hear_last_words(unsigned index, int steps);
  bool hears_nothing() const;
  void begin_asking(const Status& why);
  std::size_t turn_asking(Instant now);
  Status opener_ended() const;

  PortShared& shared_;
  Phase phase_ = Phase::kOpening;
  bool told_up_ = false;
  bool is_known_peer_ = false;
  bool is_held_ = false;  ///< Inbound, and its opener said nothing yet behind its hello.
  bool skipped_bulk_ = false;
  bool awaited_ = false;               ///< See Path::set_awaited.
  bool is_refused_elsewhere_ = false;  ///< See PlaceSearch::Verdict.
  unsigned next_bulk_ = 0;             ///< Stream that goes first.
  unsigned ack_turns_ = 0;             ///< Turns that acknowledgements have waited.
  PeerSeat seat_;                      ///< From when the peer is known.
  PathStreams streams_{this};
  std::optional<Machine> machine_;  ///< Once it was up,
  std::optional<PeerWatch> watch_;  ///< as this.
  IdentityWatch identity_;
  Identity peer_;
  std::string name_;  ///< Of the peer as errors tell it: its name or where it should be.
  SessionTerms terms_;
  PathHellos hellos_;
  StreamOwner search_owner_;             ///< Of streams on which no hello was said yet.
  std::unique_ptr<PlaceSearch> search_;  ///< Outbound, until a hello was answered well.
  std::string place_;                    ///< Outbound: where the peer was reached.
  std::string places_note_;              ///< For people: places that were left out, and those that led elsewhere.
  Instant began_ = Instant::min();       ///< To open.
  Instant deadline_ = Instant::max();    ///< Of opening, of the opener's first word, of hearing, or of closing.
  std::string asks_at_;  ///< Inbound: where to ask, after a loss, whether the opener lives; empty: nowhere.
  Status lost_why_;      ///< While it asks: what the path ends with if the opener lives.
  std::optional<OpenerQuestion> question_;
  Instant quiet_by_ = Instant::max();  ///< When memory that was given back must be let go.
};

}  // namespace hawser::backend::stream
