#pragma once

// ShmPath: the route to one agent of this host, from either end. Chunks are copied by whoever submits them, messages go
// through rings, everything else over a unix socket.
//
// Life: connecting -> greeting -> up -> draining (the peer left or was dropped; its last messages are still read) ->
// down, by the tables of stage.h. A path that the agent released while its peer may still be inside our memory lives on
// as a ghost, unknown to the agent, until the peer has closed its end or died.
//
// Thread rule: confined to its port's lane. Lifetime: owned by the port.

#include <algorithm>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "backend/backend.h"
#include "backend/chunk_queue.h"
#include "backend/shm/binding.h"
#include "backend/shm/control.h"
#include "backend/shm/cross_memory.h"
#include "backend/shm/fork_list.h"
#include "backend/shm/gate.h"
#include "backend/shm/greeting.h"
#include "backend/shm/heartbeat.h"
#include "backend/shm/inbox.h"
#include "backend/shm/link.h"
#include "backend/shm/message_rings.h"
#include "backend/shm/packet.h"
#include "backend/shm/peer_regions.h"
#include "backend/shm/peer_socket.h"
#include "backend/shm/pin.h"
#include "backend/shm/region_server.h"
#include "backend/shm/stage.h"
#include "backend/shm/views.h"
#include "backend/shm/watches.h"

namespace hawser::backend::shm {

class ShmPort;

class ShmPath final : public Path {
 public:
  /// An outbound path; call start().
  ShmPath(ShmPort& port, const PathTarget& target, std::string socket_path);
  /// An inbound one: a visitor said `open` and its checks passed so far; call admit().
  ShmPath(ShmPort& port, ForkFd socket, const Open& open);
  ~ShmPath() override;

  PathState state() const override;
  Result<Binding*> bind(const RemoteRegionRef& region) override;
  void unbind(std::uint32_t index, std::uint32_t generation) override;
  Submitted submit(std::span<const Chunk> chunks, Instant now) override;
  Result<std::unique_ptr<View>> view(Binding& region) override;
  bool move_at_once(const Chunk& chunk) override;
  bool can_fetch() const override { return stage_ == Stage::kUp && cross_status_.ok(); }
  bool fetch(std::uint64_t address, std::span<std::byte> into) override;
  bool send(wire::Link link, std::span<const std::byte> head, std::span<const std::byte> body) override;
  bool each_untaken(const SeeMessage& see) const override;
  bool each_whole_untaken(const SeeMessage& see) const override;
  void stop_taking() override { rings_.stop_taking(); }
  void cancel(std::uint64_t transfer) override;
  void give_up(const Status& why) override { end(why); }
  void set_awaited(bool awaited, Instant now) override;
  PathCounters counters() const override;
  std::string describe() const override;

  // For the port.
  /// See Port::describe.
  void describe_waits(const WaitVisitor& visitor) const;
  Stage stage() const { return stage_; }
  base::Id128 session() const { return greeting_.session(); }
  const Identity& peer() const { return peer_; }
  /// Tries to connect (again).
  void start(Instant now);
  /// Takes what came with `open`, answers it and comes up. Bad: the visitor is to be told why.
  Status admit(Packet& packet, const Open& open);
  /// After a refused admit().
  ForkFd take_socket() { return socket_.give_back(); }
  /// When start() is to be tried again or the path gives up; Instant::max() when it does not wait.
  Instant next_deadline() const;
  void check_deadline(Instant now);
  void on_socket(std::uint32_t events);
  void on_process_end();

  /// The peer rang: it may ask whether this process runs.
  void answer_heartbeat();
  /// Asks the peer when that is due, and ends the path when it did not answer for too long.
  void watch_peer(Instant now);
  Instant next_heartbeat() const { return stage_ == Stage::kUp ? heartbeat_.next() : Instant::max(); }
  /// Asks an idle peer now if that is due soon. True: watch_peer has something to do.
  bool hasten_heartbeat(Instant now) { return stage_ == Stage::kUp && heartbeat_.hasten(now); }

  /// Works on a job of this path; ends it when it is finished. Returns what it cost of `limit`.
  std::uint64_t work(Job& job, const TurnBudget& budget, std::uint64_t limit);
  /// Sends what is left of a message in parts. False: there is no room now.
  bool flush_outbox();
  std::size_t receive(std::span<PortEvent> out, Inbox& inbox);
  bool has_message() const { return has_read_stage() && rings_.ready(); }
  bool arm() { return !has_read_stage() || rings_.arm(); }
  /// The agent has dealt with all messages that receive() gave out: the peer may know, and write over them.
  void give_back() { rings_.give_back(); }
  bool holds_taken() const { return rings_.holds_taken(); }
  /// Before sleeping: false when the send that was refused would be taken now.
  bool await_room() { return stage_ != Stage::kUp || rings_.await_room(); }
  bool has_refused() const { return rings_.has_refused(); }
  /// The send that was refused would be taken now. True once: then nothing has been refused.
  bool take_room() { return stage_ != Stage::kUp || rings_.take_room(); }
  void ring_own_door();

  /// Ends all chunks; then what the peer sent before is read; then the path is down. Tells the peer.
  void end(Status why);
  void finish_draining();
  /// The agent forgot this path. True: it must stay as a ghost.
  bool release();
  /// Whether the peer may still be inside our memory.
  bool is_peer_quiet() const { return is_peer_quiet_; }
  /// Whether its pin says that it is inside; `holder` gets who.
  bool holds(std::uint32_t index, std::uint32_t generation, std::string* holder) const;

  bool is_hot = false;       ///< Polled each turn; kept by the port.
  bool was_touched = false;  ///< Since the port last looked for a path to cool.
  bool is_blocked = false;   ///< A send was refused; kept in the port's list.

 private:
  class Pin;
  bool has_read_stage() const { return stage_ == Stage::kUp || stage_ == Stage::kDraining; }

  Status greet();
  Status look_at_peer();
  void adopt(Greeting::Ends ends);
  Status watch_all();
  /// What the peer said of itself in its `open` or `accept`.
  template <typename Said>
  void learn(const Said& said);
  void come_up(const Probe& probe);
  void report_down();
  void handle(Packet& packet);
  void on_accept(Packet& packet, const Accept& message);
  void on_bind(const Bind& message);
  void on_bound(Packet& packet, const Bound& message);
  void ask_regions();
  void send_reply();
  void on_peer_left();
  void close_socket();

  void begin_heartbeats();
  void note_silence(PortEvent::Kind kind, Status status);
  Status silence(Duration silent, Scope scope) const;

  std::uint32_t copy_at_once(std::span<const Chunk> chunks, std::uint64_t bytes_max, std::uint64_t& left);
  bool call_at_once(const ShmBinding& target, const Chunk& chunk);
  BufferState buffer_state(const Job& job) const;
  bool enqueue(const Chunk& chunk);
  void end_job(Job& job, Status status);
  void end_jobs(const Status& why);
  std::uint64_t work_mapped(Job& job, const ShmBinding& target, std::uint64_t limit);
  std::uint64_t work_foreign(Job& job, const ShmBinding& target, std::uint64_t limit);
  Status move_ends(const ShmBinding& target, const Chunk& chunk);
  Status left_process() const;
  void count_chunk(const Chunk& chunk);
  bool note_put(bool was_refused, Put result);
  Status named(Status status) const;

  static constexpr std::uint32_t kJobsMax = 64;            ///< Chunks taken and not ended.
  static constexpr std::uint64_t kAtOnceMax = 256 * 1024;  ///< Bytes copied by one submit.
  static constexpr std::uint64_t kAloneFactor = 16;        ///< What is alone may be so much larger than what may wait.
  /// Bytes copied between two looks for messages, past the caches and through them: 2 and 5 us.
  static constexpr std::uint64_t kStreamStep = 32 * 1024;
  static constexpr std::uint64_t kQuietStreamStep = 256 * 1024;  ///< Each step costs 0.2 us beside its copy.
  static constexpr std::uint64_t kCachedStep = 256 * 1024;
  static constexpr std::size_t kBurst = 32;  ///< Messages of one path in one poll.

  ShmPort& port_;
  Stage stage_ = Stage::kConnecting;
  bool is_inbound_ = false;
  bool is_peer_quiet_ = true;
  PinFence fence_ = PinFence::kFull;
  bool knows_ends_ = false;  ///< The peer understands a region that is mapped but for its ends.

  // Hot: what submit and send touch.
  std::uint32_t job_count_ = 0;
  Link link_;
  MessageRings rings_;
  PathCounters counts_;
  Views views_;  ///< Begun only where the peer looks at their pins. They lie in the link.

  // Session.
  Greeting greeting_;
  base::Id128 supersedes_;  ///< Inbound: the session that its opener replaces by this one.
  Identity peer_;
  Instant began_ = Instant::min();          ///< To connect.
  Instant released_ = Instant::min();       ///< By the agent; then it is a ghost.
  Instant refused_since_ = Instant::min();  ///< The oldest send that found no room, if one is refused now.
  Instant waiting_since_ = Instant::min();  ///< The first of `waiting_`.
  Instant deadline_ = Instant::max();
  Instant retry_at_ = Instant::max();
  PeerSocket socket_;
  ForkFd my_door_;
  ForkFd peer_door_;
  PeerGates gates_;
  CrossMemory cross_;
  bool is_torn_ = false;  ///< A chunk was moved in part, and is or was submitted anew: no job can say "untouched".
  Status cross_status_;
  Status end_status_;
  std::optional<Bye> bye_;
  Heartbeat heartbeat_{link_};
  Watch door_watch_{Watch::Kind::kDoor, this};

  PeerRegions regions_;
  RegionServer server_;
  bool has_served_ = false;                       ///< See ServedRegions.
  base::IntrusiveList<Job, &Job::hook> waiting_;  ///< Chunks whose region is not known yet.
};

}  // namespace hawser::backend::shm
