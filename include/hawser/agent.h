#pragma once

// An Agent is one named endpoint in a process: it owns backends, regions and what it knows of its peers.
//
// Thread rule: thread-safe. Without a Driver nothing happens by itself: `poll` and `wait` (of agents, transfers and
// queues) make progress on the caller's thread; `done()` only looks. A fork is survived: in the child every call
// answers kInvalid naming the process that opened the agent.

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <hawser/backends.h>
#include <hawser/completion.h>
#include <hawser/counters.h>
#include <hawser/directory.h>
#include <hawser/export.h>
#include <hawser/file.h>
#include <hawser/grant.h>
#include <hawser/log.h>
#include <hawser/memory.h>
#include <hawser/peer.h>
#include <hawser/status.h>
#include <hawser/time.h>
#include <hawser/transfer.h>

HAWSER_NAMESPACE_BEGIN

enum class OpenMode : std::uint8_t {
  kAuto,     ///< Strict when backends are named, lenient when the list is empty.
  kStrict,   ///< All named backends, or an error that lists each failure with its cause.
  kLenient,  ///< What works; `backends()` tells why others do not.
};

/// The level of protection: of bytes that leave this host, and of the agent against strangers. When two agents meet,
/// the stricter level counts for both.
enum class Security : std::uint8_t {
  /// Peers may connect that have this agent's card or ticket, or that are the same user on this host. TCP to other
  /// hosts is TLS 1.3: each end has proven to be who the card says. RDMA does not leave the host.
  kDefault,
  /// Every process that can reach its port may connect and use all of its memory. No byte is encrypted.
  kNone,
  /// As kDefault; but RDMA, which carries bytes in clear, may leave the host: for networks that nobody listens to.
  kAuthenticate,
  /// As kDefault, and TCP within this host is TLS, too.
  kEncrypt,
};

struct AgentLimits {
  std::uint32_t transfers = 65536;  ///< In flight or held at once; what is over when submit returns may need no place.
  std::uint32_t peers = 65536;
  std::uint32_t regions = 1u << 20;
  /// Grants that are open at once; each counts as a region, too.
  std::uint32_t grants = 65536;
  /// Notifications of one peer that wait in the inbox. Each takes its length and 64 bytes.
  std::uint32_t notification_bytes = 64u << 20;
  /// Notifications of all peers together. When this is full each peer may still have one of the largest size waiting.
  std::uint32_t notification_bytes_total = 256u << 20;
  std::uint32_t events = 4096;  ///< Peer events waiting; the oldest is dropped and counted.

  // What one peer may use of this agent at once, over tcp and quic together. The agent refuses the peer what is beyond,
  // with kBusy and the name of the limit, and goes on serving it and others. docs/security.md, "Quotas".
  /// Connections (paths) that the peer has opened. An agent needs one for each backend.
  std::uint32_t peer_connections = 16;
  /// Chunks that the peer reads or writes at the moment. An agent keeps within 72 on each connection.
  std::uint32_t peer_operations = 1024;
  /// Bytes of those chunks, at least 16 MiB. An agent keeps within 65 MiB on each connection.
  std::uint32_t peer_bytes = 512u << 20;
  /// Regions that a peer's card may tell of.
  std::uint32_t peer_regions = 1u << 20;
};

/// An authority vouches for the agent's identity by a certificate; docs/security.md, "Identities by an authority".
struct IdentityOptions {
  /// A folder with the agent's certificate, its key, the authorities that are trusted and a list of revoked
  /// certificates (tls.crt, tls.key, ca.crt, ca.crl, or the names that SPIRE's helper gives them). With a
  /// folder, the agent accepts over TCP only peers that prove an identity of the same domain, and processes of its own
  /// user on its host. Empty: the agent has no identity.
  std::string folder = {};
  /// Rules for names of agents: an identity may use the names that its certificate allows, and those of the rules. A
  /// rule is "IDENTITY=NAMES"; commas separate rules, and * stands for any characters.
  std::string names = {};
  /// The agent reads changed files again after this time at the latest. The sessions of revoked peers end then.
  Duration look = std::chrono::seconds(10);
};

struct AgentOptions {
  std::string name = {};  ///< 1 to 255 bytes, no control characters. Two of one name: docs/security.md, "Names".
  std::vector<BackendSpec> backends = {};  ///< In order of preference; empty: all that work here.
  /// By backend name, named in `backends` or not; a spec's own parameters overlay them.
  std::map<std::string, Params, std::less<>> backend_params = {};
  /// Folders with out-of-tree backends, libhawser_backend_<name>.so (see plugin.h). The first of a name counts.
  std::vector<std::string> plugin_paths = {};
  OpenMode mode = OpenMode::kAuto;
  std::shared_ptr<Directory> directory = {};  ///< Where the card is published and peers are found; may be null.
  std::string directory_prefix = "hawser/cards/";
  Security security = Security::kDefault;
  IdentityOptions identity = {};
  Duration default_deadline = std::chrono::seconds(30);
  /// To driven peers with a session. Three without an answer make a peer suspect.
  Duration heartbeat = std::chrono::milliseconds(250);
  /// How long connecting, and connecting again after a broken connection, is tried, and how long a driven peer may be
  /// silent. Until then its session lives, with all that is in flight.
  Duration peer_timeout = std::chrono::seconds(5);
  /// Told in the card: a Driver will run this agent (polled agents are not judged by heartbeats).
  bool driven = false;
  /// Re-map whole pages of registered private memory in place as shared, so that peers of this host map them. Nobody
  /// may write to the memory while it is being registered or closed; docs/config.md tells all conditions.
  bool adopt = false;
  /// Asked when memory of a device is registered that no segment told before covers: at most once for each port that
  /// registers it, by the thread that registers, while it holds no lock of the agent; several threads ask one after
  /// the other. It must not call the agent. Empty: no segments.
  SegmentProvider segments = {};
  AgentLimits limits = {};
  LogOptions log = {};
  /// Where the agent's status page is, which `hawser top` shows: "auto" (the folder of shm's sockets: hawser in
  /// XDG_RUNTIME_DIR or /run/user/<uid>, else /tmp/hawser-<uid>), a folder of this user's own, or "off". The page is
  /// readable by this user alone. An agent with a `clock` has none.
  std::string status_page = "auto";
  /// Whether the agent is told of by the status socket of this process, which answers `hawser top --live`, `hawser
  /// explain --live` and `hawser metrics`. There is one in each folder of status pages, of mode 0600, for processes of
  /// this user alone. Whichever thread makes progress for an agent answers, a little at a time. An agent without a
  /// status page has no part in it.
  bool status_socket = true;
  /// Where this process serves its figures for Prometheus, at /metrics: "ADDRESS:PORT", or "ADDRESS:FIRST-LAST" of
  /// which each process takes a free port (the log tells which). Agents of a process that name one place share a page.
  /// Everybody who reaches the port can read the page. Empty: nowhere. If the page cannot be served, the agent opens
  /// without it, and the log says why.
  std::string metrics = {};
  std::shared_ptr<const Clock> clock = {};  ///< Null: the host's monotonic clock.
  std::uint64_t seed = 0;                   ///< Zero: from the system. The simulator sets it.
};

class HAWSER_API Agent {
 public:
  /// Opens an agent with its backends. Errors: kInvalid (name, parameters), or the backends' failures.
  static Result<Agent> open(AgentOptions options);
  Agent() = default;
  explicit Agent(std::shared_ptr<agent::Core> core) : core_(std::move(core)) {}
  Agent(Agent&&) noexcept = default;
  Agent& operator=(Agent&& other) noexcept;
  ~Agent();  ///< Closes with a short deadline.

  std::string_view name() const;
  Incarnation incarnation() const;
  /// Ends all transfers, tells peers, closes regions and backends. Always returns; only kOk means that nothing touches
  /// any registered memory any more. kTimedOut names who still does: call again to wait further. What is in use when
  /// the handle goes is let go of, and Region::close tells so from then on.
  Status close(Duration timeout);

  // Memory.
  Result<Region> add_region(const RegionOptions& options);
  Result<Region> allocate(const AllocateOptions& options);
  /// A file as a region: the far side of plans with self(), and of peers' plans by tcp. Opens the backend "file"
  /// where backends were not named. Blocks as opening a file does.
  Result<Region> add_file(const FileOptions& options);

  // Peers.
  /// All that peers must know, as bytes. Regions may be limited to some, by index.
  Result<std::string> card() const;
  Result<std::string> partial_card(std::span<const std::uint32_t> regions) const;
  /// The changes since a revision (see card_revision). For a revision too old, the whole card.
  Result<std::string> card_delta(std::uint64_t since_revision) const;
  std::uint64_t card_revision() const;
  /// The text that a peer writes behind this agent's address to find it on another host: "name@host:port#TICKET". It
  /// holds the agent's public key and the secret of its card, so its holder may connect: treat it as a password. Empty
  /// where everybody may connect (Security::kNone).
  std::string ticket() const;
  /// Learns of a peer, or updates it: full, partial or delta. While a session with it is up, what changes of a full
  /// card comes by itself (PeerEvent::Kind::kCardChanged); of a partial one nothing does.
  Result<Peer> add_peer(std::span<const std::byte> card);
  Result<Peer> add_peer(std::string_view card) {
    return add_peer(std::as_bytes(std::span<const char>(card.data(), card.size())));
  }
  /// By name in the directory, or "name@host:port" met over tcp ("name@host:port#TICKET" on another host); then the
  /// best path that its card offers is opened. A name may hold '@'; one that reads as an address, with ':' behind the
  /// last '@', is found among loaded cards only.
  /// An incarnation that is known to have died is not given again: the call waits for its successor.
  Result<Peer> find_peer(std::string_view name, Duration timeout);
  /// Waits, too, until the peer has regions of all these names; kNotFound says which it has not.
  Result<Peer> find_peer(std::string_view name, std::span<const std::string_view> regions, Duration timeout);
  Result<Peer> find_peer(std::string_view name, std::initializer_list<std::string_view> regions, Duration timeout) {
    return find_peer(name, std::span<const std::string_view>(regions.begin(), regions.size()), timeout);
  }
  std::vector<Peer> peers() const;
  /// Forgets a peer: transfers to it end with kDisconnected, its plans fail. The peer is told with the next turn of a
  /// driver or the next poll, at the latest when the agent closes.
  Status invalidate(const Peer& peer);
  /// As Peer::import_grant, of whichever known peer made the grant. kNotFound: this agent does not know that peer.
  Result<GrantedRegion> import_grant(std::span<const std::byte> bytes) const;
  Result<GrantedRegion> import_grant(std::string_view bytes) const;
  /// This agent as its own peer, for loopback.
  Peer self() const;

  // Backends.
  Status add_backend(const BackendSpec& spec);
  std::vector<BackendReport> backends() const;
  bool has_backend(std::string_view name) const;
  Status require_backend(std::string_view name) const;

  // Plans.
  Result<Plan> plan_write(const Peer& peer, std::span<const LocalRange> source, std::span<const RemoteRange> target);
  Result<Plan> plan_read(const Peer& peer, std::span<const RemoteRange> source, std::span<const LocalRange> target);
  Result<Plan> plan_write(const Peer& peer, const RangeTable& source, std::span<const std::uint32_t> source_index,
                          const RangeTable& target, std::span<const std::uint32_t> target_index);
  Result<Plan> plan_read(const Peer& peer, const RangeTable& source, std::span<const std::uint32_t> source_index,
                         const RangeTable& target, std::span<const std::uint32_t> target_index);
  /// One plan for several pairs of tables (a region for each layer), of which it moves equal blocks: one transfer and
  /// one notification cover all of them.
  Result<Plan> plan_write(const Peer& peer, std::span<const RangeTable> source,
                          std::span<const std::uint32_t> source_index, std::span<const RangeTable> target,
                          std::span<const std::uint32_t> target_index);
  Result<Plan> plan_read(const Peer& peer, std::span<const RangeTable> source,
                         std::span<const std::uint32_t> source_index, std::span<const RangeTable> target,
                         std::span<const std::uint32_t> target_index);
  /// Which paths a plan takes, what it should cost, and why each other path was refused. Readable text.
  std::string explain(const Plan& plan) const;
  /// Ends with `status` all transfers that were submitted with this label and are not over, as Transfer::cancel does
  /// each: they become final once quiet. Gives how many. Errors: kInvalid (label 0, a good status).
  Result<std::size_t> end(std::uint64_t label, const Status& status = Status(Code::kCancelled, "its label was ended"));

  // News from peers, oldest first.
  std::optional<Notification> take_notification();
  /// Fills `out`'s strings in place (no allocation when they have room); returns the number taken.
  std::size_t take_notifications(std::span<Notification> out);
  std::optional<PeerEvent> take_event();
  /// Lets peers send on `channel` (>= 16): up to `credit` messages may wait here unread, per peer. Its messages come in
  /// the order in which a peer sent them. `priority` is the class of the channel: messages of a more urgent one do not
  /// wait for those of others, and may overtake them.
  /// 1024 channels at most; beyond: kBusy. Opening one again changes nothing; in another class it is kInvalid.
  Status open_channel(std::uint32_t channel, std::uint32_t credit = 64, Priority priority = Priority::kRealtime);
  std::optional<Message> take_message(std::uint32_t channel);
  /// Fills `out` in place, as take_notifications does: all of it at once costs little more than one.
  std::size_t take_messages(std::uint32_t channel, std::span<Message> out);

  // Signals: 64-bit words in regions of this agent. Reading acquires. Closing the region ends a wait with kInvalid.
  Result<std::uint64_t> read_signal(const LocalRange& word) const;
  Status wait_signal(const LocalRange& word, std::uint64_t at_least, Duration timeout);

  // Progress.
  Result<CompletionQueue> make_queue(std::size_t capacity = 4096);
  /// One bounded round of work without waiting; returns how much was done (0: nothing to do now).
  std::size_t poll();
  /// Makes progress until something happened (see CompletionKind) or `timeout` is over. True: something did.
  bool wait(Duration timeout);
  /// Becomes readable when `poll` has something to do or something happened. Owned by the agent.
  int event_fd() const;

  AgentCounters counters() const;

 private:
  friend struct Inside;
  std::shared_ptr<agent::Core> core_;
};

HAWSER_NAMESPACE_END
