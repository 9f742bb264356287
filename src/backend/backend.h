#pragma once

// The backend contract: all that the agent needs of a way to move bytes, and all that a backend may do.
//
// A Backend is one per agent and thread-safe (control path). A Port is its lane-confined part: it never blocks, never
// calls up, and reports by values that the lane pulls with `poll`. A Path is its route to one peer; it is owned by the
// port, and reached only under the lane's lock.
//
// Order of a lane's turn: port.turn(now) moves bytes; port.poll(out) yields what happened. `submit` and `send` may do
// work at once, and tell so in their result; they never deliver events themselves.
//
// What each side guarantees:
//   B1. A chunk that `submit` took ends in exactly one of: counted in Submitted.done, or one kChunkDone event.
//   B2. After that end the path does not touch the chunk's local memory any more.
//   B3. Pieces and binding of a taken chunk stay valid until its end (the agent holds plan and regions).
//   B4. A message that `send` took arrives once and in order as long as the path is up; it may be lost only with the
//       path.
//   B5. A path that went down ends all its chunks (their own events first), then reports kPathDown once.
//   B6. A kPathUp of a path opened with `supersedes` means: at the peer nothing of the superseded session lands any
//       more, if it was one of the same backend. The peer's agent drops one of another backend when it hears of the new
//       path, before it greets on it.
//   B7. The target applies a chunk only while the region's entry stands in its RegionTable with that key, and re-checks
//       at the start of every turn in which it touches the memory.

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <hawser/agent.h>  // Security
#include <hawser/backends.h>
#include <hawser/counters.h>
#include <hawser/memory.h>
#include <hawser/status.h>
#include <hawser/time.h>
#include <hawser/transfer.h>

#include "backend/device_kinds.h"
#include "backend/peer_guard.h"
#include "backend/region_table.h"
#include "backend/waiting.h"
#include "base/id128.h"
#include "base/log.h"
#include "base/rng.h"
#include "wire/hello.h"
#include "wire/link.h"

namespace hawser::identity {
class Authenticator;
}
namespace hawser::tls {
class KeyPair;
}

namespace hawser::backend {

/// Who an agent is; what its ports say in their hellos and what they learn from a peer's.
struct Identity {
  std::string name;
  base::Id128 incarnation;
  std::array<std::byte, 32> public_key{};
  std::uint64_t born = 0;  ///< Nanoseconds since 1970 by its own clock. Orders the incarnations of one name.
  base::Id128 admission;   ///< Secret that its card carries: a peer that proves to have it may connect. Never logged.
  bool driven = false;
  std::uint16_t version_min = wire::kVersionMin, version_max = wire::kVersionMax;
};

/// Abilities as data.
struct Traits {
  std::string_view name;
  bool same_host_only = false;  ///< Reaches processes of this host only.
  bool self_only = false;       ///< Reaches this agent only.
  /// Regions in memory of these kinds; of several devices of a kind all.
  DeviceKinds reaches{DeviceKind::kHost};
  bool direct = false;  ///< The initiator copies by itself: a chunk that is done is visible at the target.
  /// Covered chunks yield kArrival at the target (else the agent tells it when all are done).
  bool carries_arrivals = false;
  /// A message is lost only with its path: nothing needs to be kept for sending again. Its paths have each_untaken and
  /// each_whole_untaken.
  bool lossless = false;
  /// Taking a chunk is moving it, as far as it goes without an answer: a turn right after it would find nothing to do.
  bool moves_in_submit = false;
  /// The target side knows which peer an access comes from, and keeps others from regions with a RegionEntry::holder.
  /// A backend that does not is not told of such regions.
  bool checks_holder = false;
  /// What `cancel` ends reads no memory from then on, and what region_quiet was asked of is written no more, whatever
  /// they say of their ends. A region of memory of this process needs no add_region.
  bool quits_at_once = false;
  bool lets_go_slowly = false;               ///< To forget a region takes calls that may wait: see Backend::let_go.
  std::uint64_t chunk_bytes_max = 1u << 20;  ///< Preferred largest chunk.
  std::uint32_t chunk_pieces_max = 256;      ///< Most pieces in one chunk.
  std::uint64_t inline_bytes_max = 0;        ///< Transfers up to this size are worth doing inside submit.
  Duration quiesce_max = Duration::zero();   ///< From cancel to quiet, at most.
  double latency_ns = 0;                     ///< First estimates for the planner: time of a small chunk,
  double bytes_per_ns = 1;                   ///< and bandwidth.
  double piece_ns = 0;                       ///< Cost of each further piece.
};

/// One contiguous part of a chunk. For a write `local` is only read.
struct Piece {
  std::byte* local = nullptr;
  std::uint64_t remote = 0;  ///< Offset in the remote region, bytes.
  std::uint64_t size = 0;    ///< Bytes.
};

/// A region of a peer as its card tells it.
struct RemoteRegionRef {
  std::uint32_t index = 0;
  std::uint32_t generation = 0;
  base::Id128 key;
  std::uint64_t size = 0;
  Rights rights = Rights::kNone;
  Device device;
  std::string_view extra;  ///< This backend's own bytes of the card entry; often empty.
};

/// What a path knows about one remote region. Made by Path::bind, owned by the path, valid until it is released.
class Binding {
 public:
  virtual ~Binding() = default;
};

/// Most views of one path at once.
inline constexpr std::uint32_t kViewsMax = 16;

/// A look into a region of a peer, for reading only: see Path::view. While it lives the owner's close of the region
/// waits for it, as for a chunk that is being copied, until the path ends.
///
/// Thread rule: the lane's. Lifetime: it may outlive its path.
class View {
 public:
  virtual ~View() = default;
  /// The part of the region that is mapped here. Empty once the path has ended: nothing holds the region open then, and
  /// what was read since the last look counts for nothing.
  virtual std::span<const std::byte> bytes() const = 0;
  /// Where that part begins in the region, bytes.
  virtual std::uint64_t first() const = 0;
  /// The view holds the region open no more, and is none of those that a path can give out. Until the path ends `bytes`
  /// can be read as before; once the owner has closed the region they mean nothing. For memory that tells by itself
  /// whether it still means something.
  virtual void let_go() = 0;
};

/// Bytes of a chunk that need not wait: copying it costs less than a turn does, so it passes those that are blocked.
inline constexpr std::uint64_t kSmallChunk = 4096;

struct Chunk {
  Operation op = Operation::kWrite;
  Priority priority = Priority::kBulk;
  /// Yields kArrival {transfer, index} at the target, where the backend carries arrivals.
  bool covered = false;
  /// A write of which the peer is told (notification, signal): probably it reads these bytes at once.
  bool read_next = false;
  /// A write to a file: ends only once it is on the device. Other memory has no such state.
  bool durable = false;
  /// A path that was lost carried it before. It may have landed there and be counted, so its bytes are the only ones
  /// that may be written to its place, also when it is cancelled now.
  bool again = false;
  std::uint32_t index = 0;     ///< Number within its transfer; the same when it is sent again.
  std::uint64_t transfer = 0;  ///< Unique within the initiator's incarnation; never 0.
  std::uint64_t cookie = 0;    ///< Comes back in kChunkDone.
  Binding* target = nullptr;   ///< The remote region; all pieces lie in it.
  std::span<const Piece> pieces;
  std::uint64_t bytes = 0;  ///< Sum of the pieces' sizes.
};

/// Result of Path::submit: of the chunks given, the first `taken` are accepted, the first `done` of those have ended
/// well already. taken < given is back-pressure: offer the rest again in a later turn.
struct Submitted {
  std::uint32_t taken = 0;
  std::uint32_t done = 0;
};

class Path;
class QueuePairSource;

struct PortEvent {
  enum class Kind : std::uint8_t {
    kChunkDone = 1,  ///< cookie, status.
    kMessage = 2,    ///< bytes: valid until the next call into the port.
    kArrival = 3,    ///< transfer, chunk: a covered chunk of the peer is visible here.
    kPathUp = 4,     ///< peer, session, inbound.
    kUncounted = 6,  ///< transfer: kArrivals of its covered chunks were lost with their way, though the chunks ended.
    kRegions = 7,    ///< No path. What the backend says of regions in the card has changed: Backend::told.
    kPathDown = 5,   ///< status: why. Scope::kPeer: this incarnation is gone for good (docs/errors.md lists what
    ///< proves that), or (kTimedOut) was silent for Context::peer_timeout. Else another try may help, but not by this
    ///< backend where it says kUnsupported or kDenied with Scope::kPath: it does not lead there.
    kPathSilent = 8,  ///< status: why. The peer missed its heartbeats: the path stays as it is, and it is asked on.
    kPathHeard = 9,   ///< After kPathSilent: the peer was heard again.
  };
  Kind kind = Kind::kChunkDone;
  bool inbound = false;
  /// kChunkDone of a covered chunk that ended well: no kArrival tells of it, so the agent tells that all is visible.
  bool uncounted = false;
  /// kChunkDone of a write that ended badly while its path stays up: the peer has not said whether its bytes land, so
  /// they may, until it has or this path has been superseded. The path itself lets nothing pass that they could hurt.
  bool unsettled = false;
  /// kPathDown of a path that never came up: a host answered everywhere that nobody listens, which proves nothing here.
  bool refused = false;
  Path* path = nullptr;
  std::uint64_t cookie = 0;
  std::uint64_t transfer = 0;
  std::uint32_t chunk = 0;
  std::span<const std::byte> bytes;
  const Identity* peer = nullptr;  ///< Valid as long as the path.
  base::Id128 session;             ///< Names this path at both ends.
  base::Id128 supersedes;          ///< kPathUp, inbound: what this replaces, maybe of another backend.
  Status status;
};

enum class PathState : std::uint8_t { kConnecting = 1, kUp = 2, kDown = 3 };

/// Where to open a path to.
struct PathTarget {
  std::string_view peer;       ///< Name, for errors; checked against the hello when not empty.
  base::Id128 incarnation;     ///< Expected; zero: whoever answers.
  std::string_view address;    ///< The peer's Backend::address(), from its card, or what a user typed.
  base::Id128 supersedes;      ///< Session that must be dead at the peer before this one is up; zero: none.
  Instant deadline;            ///< Connecting ends in kPathDown by then.
  base::Id128 admission = {};  ///< The secret in the peer's card; zero: it has none, or its card is not known.
  std::array<std::byte, 32> public_key = {};  ///< The key in the peer's card; zero: it is not known.
};

/// At least so much of a message Path::each_untaken shows.
inline constexpr std::size_t kMessageBegin = 48;
using SeeMessage = std::function<void(std::span<const std::byte> begin)>;

/// Route to one peer. Confined to its port's lane.
class Path {
 public:
  virtual ~Path() = default;
  virtual PathState state() const = 0;
  /// Idempotent per (index, generation). Errors are final for this region on this path (kUnsupported, kDenied), or say
  /// that the path is gone (kDisconnected, Scope::kPath) and that kPathDown is on its way.
  virtual Result<Binding*> bind(const RemoteRegionRef& region) = 0;
  /// The region is gone from the peer's card: its binding will not be used again.
  virtual void unbind(std::uint32_t index, std::uint32_t generation) = 0;
  virtual Submitted submit(std::span<const Chunk> chunks, Instant now) = 0;
  /// Lets this process read a region where it lies, if the region is mapped here. Nothing waits: kBusy where the peer
  /// is still being asked for the region, or kViewsMax views of the path are held; a later try may work. kUnsupported:
  /// the region is not mapped, and chunks are the way. kDenied: its owner closed it, or gave no right to read it.
  virtual Result<std::unique_ptr<View>> view(Binding& region) {
    static_cast<void>(region);
    return Status(Code::kUnsupported, "this backend maps no memory of its peers");
  }
  /// Moves the whole chunk before it returns, as if it was submitted and done, or leaves everything as it is (false),
  /// also where it would fail: submit tells why. For small chunks that nothing covers.
  virtual bool move_at_once(const Chunk& chunk) {
    static_cast<void>(chunk);
    return false;
  }
  /// Where the backend carries arrivals: whether this path does so for a transfer of so many chunks. Constant while the
  /// path is up.
  virtual bool carries_arrivals(std::uint64_t chunks) const {
    static_cast<void>(chunks);
    return true;
  }
  /// Sends `head` + `body` (at most kMessageMax + 1 KiB together) as one message. False: no room for one of that link
  /// now; try in a later turn. Messages of a link keep their order. Those of other links may come before or after them.
  virtual bool send(wire::Link link, std::span<const std::byte> head, std::span<const std::byte> body) = 0;
  /// As `send`. Nobody waits for this message by itself, so a path that moves bulk in small steps while messages are
  /// about need not do so for its sake.
  virtual bool send_aside(wire::Link link, std::span<const std::byte> head, std::span<const std::byte> body) {
    return send(link, head, body);
  }
  /// Sends a message that comes before all that are sent after it, by whatever link: a greeting.
  virtual bool send_first(std::span<const std::byte> head, std::span<const std::byte> body) {
    return send(Priority::kRealtime, head, body);
  }
  /// Sends a message that comes after all that were sent before it, by whatever link: a goodbye. It is the last one.
  virtual bool send_last(std::span<const std::byte> head, std::span<const std::byte> body) {
    return send(Priority::kBulk, head, body);
  }
  /// Links of one number (less than 32) share the room for their messages: where there is none for one of them, the
  /// others' have to wait, so that none waits for ever.
  virtual unsigned queue_of(wire::Link link) const {
    static_cast<void>(link);
    return 0;
  }
  /// Shows what may be lost with a lossless path, up or down. Calls `see` once for each message that `send` took and of
  /// which this end does not know that the peer's agent took it: with its first kMessageBegin bytes, or all of it. The
  /// order is not told. An agent takes a message when it is done with what Port::poll gave it, not when it copies the
  /// message. False: this path does not know, so the peer may have taken none.
  virtual bool each_untaken(const SeeMessage& see) const {
    static_cast<void>(see);
    return false;
  }
  /// The agent calls this when a lossless path is down, to send its messages again by another path. It shows the same
  /// messages as each_untaken, each of them whole, and those of each link in the order in which they went. It leaves
  /// out a message of which a part is gone. The peer may still take what is shown. False: as each_untaken.
  virtual bool each_whole_untaken(const SeeMessage& see) const {
    static_cast<void>(see);
    return false;
  }
  /// This agent takes no message of this path any more. Messages that it has not dealt with, and those that still come,
  /// stay untaken, and the peer's each_untaken shows them. The agent calls this before release_path, which may come
  /// later.
  virtual void stop_taking() {}
  /// Whether `fetch` is likely to work.
  virtual bool can_fetch() const { return false; }
  /// Copies what lies at `address` in the peer's process, which need not be registered, before it returns. False: this
  /// path cannot, or nothing lies there; `into` may have changed then.
  virtual bool fetch(std::uint64_t address, std::span<std::byte> into) {
    static_cast<void>(address), static_cast<void>(into);
    return false;
  }
  /// Ends all chunks of `transfer` (kCancelled) as fast as B2 allows; events tell when.
  virtual void cancel(std::uint64_t transfer) = 0;
  /// Ends the path now: when this returns, nothing of it lands at this end any more; its chunks' ends and kPathDown
  /// come as events. A backend that cannot do it leaves it out, and is fenced by its own sessions alone.
  virtual void give_up(const Status& why) { static_cast<void>(why); }
  /// What waits for another attempt is tried now.
  virtual void reconnect(Instant now) { static_cast<void>(now); }
  /// Somebody waits for the peer beyond what this path itself has in flight: until told otherwise, a failure detector
  /// judges the peer at the pace of a busy path. Said by the agent, and of a control stream by the path that it serves.
  virtual void set_awaited(bool awaited, Instant now) { static_cast<void>(awaited), static_cast<void>(now); }
  /// Null: this kind of path has no queue pairs.
  virtual const QueuePairSource* queue_pairs() const { return nullptr; }
  /// For the error of what did not end in time: what stands against the path's work, as far as is known here (a queue
  /// pair that is not ready, a bound that is full, how long the peer has said nothing). Good: nothing is known.
  virtual Status condition(Instant now) const {
    static_cast<void>(now);
    return {};
  }
  virtual PathCounters counters() const = 0;
  /// One line for people: addresses, sockets, mapped regions.
  virtual std::string describe() const = 0;
};

/// How much one turn may do before others have theirs.
struct TurnBudget {
  std::uint64_t copy_bytes = 1024 * 1024;         ///< Copied by the CPU in user space.
  std::uint64_t kernel_copy_bytes = 1024 * 1024;  ///< Copied by one kernel call.
};

class Port {
 public:
  virtual ~Port() = default;
  /// Starts connecting. The path ends up in kPathUp or kPathDown. Owned by the port until release_path.
  virtual Result<Path*> open_path(const PathTarget& target, Instant now) = 0;
  /// The agent drops the path: it is closed if it is up, and the pointer dies. When this returns, the path touches no
  /// local memory any more (while the port closes: or region_quiet tells of it); no event comes later, of no chunk.
  virtual void release_path(Path* path) = 0;
  /// Moves bytes within the budget. Returns how much was done; 0 means nothing to do now.
  virtual std::size_t turn(Instant now, const TurnBudget& budget) = 0;
  virtual std::size_t poll(std::span<PortEvent> out) = 0;
  /// A glance before a turn: false when a turn and a poll would find nothing now. Cheaper than they are, or true. It
  /// may do a part of the turn; what came of it the next poll tells.
  virtual bool has_news(Instant now) {
    static_cast<void>(now);
    return true;
  }
  /// When `turn` must run even without outside events; Instant::max() for never.
  virtual Instant next_deadline() const = 0;
  /// A descriptor that is readable when there is work, once prepare_sleep returned true; -1 when there is none.
  virtual int wait_fd() const = 0;
  /// Arms doorbells before the lane sleeps. False: there is work, do not sleep.
  virtual bool prepare_sleep() = 0;
  /// These regions of this agent were closed in the RegionTable: nothing may begin to touch them any more. For ports
  /// that have to tell somebody of it, and do that once for all; region_quiet alone must do as well.
  virtual void regions_closing(std::span<const RegionId> ids) { static_cast<void>(ids); }
  /// Whether anything of this port still touches region `index` (of this agent, as target). `holder` gets who.
  /// Called after the region's entry was closed in the RegionTable; polled by the closer.
  virtual bool region_quiet(std::uint32_t index, std::uint32_t generation, std::string* holder) = 0;
  /// Stops listening, tells peers. `turn` goes on until idle() or the agent's patience ends; then the port is
  /// destroyed.
  virtual void begin_close(Instant now) = 0;
  virtual bool idle() const = 0;
  /// What went over each of its devices.
  virtual std::vector<DeviceCounters> devices() const { return {}; }
  /// What its listener did with those who connected; nothing where it has no listener.
  virtual std::optional<AdmissionCounters> admissions() const { return std::nullopt; }
  /// What of this port's own waits for somebody, a line for each peer and kind: answers to connects, room that a peer
  /// has to make, a peer that is silent. Chunks are not among it: the agent tells of transfers. For people, so it may
  /// take as long as a look at all paths.
  virtual void describe(const WaitVisitor& visitor) const = 0;
};

/// What a backend is opened with. References outlive it.
struct Context {
  const Identity& identity;
  RegionTable& regions;
  const base::Logger& log;
  base::Rng rng;  ///< Own stream, split from the agent's seed.
  Security security = Security::kDefault;
  Duration heartbeat;
  Duration peer_timeout = std::chrono::seconds(5);  ///< How long a path bears the silence of a driven peer.
  const Clock& clock;                               ///< For control-path work only; turns get `now`.
  /// The user's (AgentOptions::segments); may be empty. Called without any lock of the agent.
  SegmentProvider segments = {};
  const tls::KeyPair* keys = nullptr;  ///< To the identity's public key. Null: nothing can be covered by TLS.
  /// The agent's identity by an authority; null: it has none.
  identity::Authenticator* authenticator = nullptr;
  /// What peers may use, and the names they hold: one for all of the agent's backends.
  std::shared_ptr<PeerGuard> guard = std::make_shared<PeerGuard>();
};

class Backend {
 public:
  virtual ~Backend() = default;
  virtual const Traits& traits() const = 0;
  /// For the card: what a peer's backend of this name needs to open a path. Opaque to all others.
  virtual std::string address() const = 0;
  /// The same for people.
  virtual std::string readable_address() const = 0;
  /// Whether a path from here to a peer with this address can work at all (same host?), and why not.
  virtual Status reachable(std::string_view peer_address) const = 0;
  /// Called for each region when it is registered, and for existing ones when the backend is added later. Returns this
  /// backend's bytes for the region's card entry (mostly empty). May take long: called by any thread, without the
  /// lane's lock.
  virtual Result<std::string> add_region(const RegionEntry& region) = 0;
  virtual void remove_region(const RegionEntry& region) = 0;
  /// This region was closed in the RegionTable, and no transfer of this agent uses it. Asked by the closing thread (of
  /// one that was dropped while it was used: by who turned the lane), where the traits say so, without the lane's lock
  /// and so beside the port's turns, once or more before region_quiet, which alone must do as well.
  virtual void let_go(const RegionEntry& region) { static_cast<void>(region); }
  /// The bytes that add_region gave, as they are now; asked after PortEvent::Kind::kRegions. Does not block.
  virtual std::string told(const RegionEntry& region) const {
    static_cast<void>(region);
    return {};
  }
  /// One per lane; called once for now.
  virtual Result<std::unique_ptr<Port>> open_port() = 0;
  /// Those in force, defaults included. The agent asks once, when the backend is open: the backend keeps none.
  virtual Params take_params() = 0;
  virtual std::vector<std::string> warnings() const = 0;
  /// Called in the child after fork: close descriptors without telling peers. Must only make system calls.
  virtual void disown_after_fork() = 0;
};

/// How the agent finds backends: a table of factories, built by the caller; no global registry.
struct Factory {
  std::string_view name;
  /// Opened when no backends are named. Higher goes first.
  int default_rank = 0;
  std::function<Result<std::unique_ptr<Backend>>(const Context& context, const Params& params)> open;
};

}  // namespace hawser::backend
