#pragma once

// A peer: another agent, known by its card. Its incarnation tells a restarted agent of the same name apart.
//
// Thread rule: thread-safe; a Peer is a cheap handle.

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <hawser/export.h>
#include <hawser/memory.h>
#include <hawser/status.h>
#include <hawser/time.h>

HAWSER_NAMESPACE_BEGIN

class GrantedRegion;  // hawser/grant.h

/// Random 128-bit id drawn when an agent opens.
struct Incarnation {
  std::array<std::byte, 16> bytes{};
  friend bool operator==(const Incarnation&, const Incarnation&) = default;
  friend auto operator<=>(const Incarnation&, const Incarnation&) = default;
};
HAWSER_API std::string to_string(const Incarnation& incarnation);

enum class PeerState : std::uint8_t {
  kKnown = 1,    ///< Its card is here; no session yet.
  kUp = 2,       ///< A proven session stands.
  kSuspect = 3,  ///< Its heartbeats are missing, or its connection broke. Its session may go on.
  kDown = 4,     ///< Gone: died, closed, restarted or invalidated. Final for this incarnation.
};

/// How far a peer's agent has taken the messages that were sent to it on one channel. "Taken" means that the message is
/// in the agent's inbox, or that a service of the agent has it. It does not mean that the peer's program has read it.
struct Acknowledged {
  std::uint32_t channel = 0;
  /// The peer's agent has taken all messages up to this number (see Peer::send). Of later ones nothing is known: they
  /// may be lost. 0: none is known to be taken.
  std::uint64_t number = 0;
  friend bool operator==(const Acknowledged&, const Acknowledged&) = default;
};

class HAWSER_API Peer {
 public:
  Peer() = default;
  explicit Peer(std::shared_ptr<agent::PeerCore> core) : core_(std::move(core)) {}

  std::string_view name() const;
  Incarnation incarnation() const;
  PeerState state() const;
  bool is_self() const;
  bool valid() const { return core_ != nullptr; }

  /// A region by name, or by its number in the card. kNotFound says which names there are.
  Result<RemoteRange> region(std::string_view name) const;
  Result<RemoteRange> region(std::uint32_t index) const;
  /// Waits until the peer has regions of all these names. Peers register when it suits them: until then the session
  /// tells of each new region, or the peer's card in the directory is looked at again. kNotFound names what is missing.
  Status await_regions(std::span<const std::string_view> names, Duration timeout) const;
  Status await_regions(std::initializer_list<std::string_view> names, Duration timeout) const {
    return await_regions(std::span<const std::string_view>(names.begin(), names.size()), timeout);
  }
  /// All names; anonymous regions are listed as "#index".
  std::vector<std::string> region_names() const;

  RemoteRange range(std::string_view region, std::uint64_t offset, std::uint64_t size) const;
  RangeTable table(std::string_view region, std::uint64_t block_bytes) const;
  RangeTable table(std::string_view region, std::span<const StridedRange> ranges) const;
  RangeTable table(std::string_view region, StridedRange ranges) const {
    return table(region, std::span<const StridedRange>(&ranges, 1));
  }
  /// For a region that the peer may not have registered yet: await_regions, then `table`.
  RangeTable table(std::string_view region, std::uint64_t block_bytes, Duration timeout) const;
  RangeTable table(std::string_view region, std::span<const StridedRange> ranges, Duration timeout) const;
  /// A table whose bytes came from RangeTable::encode at the peer.
  RangeTable import_table(std::span<const std::byte> bytes) const;
  /// A part of this peer's memory by a grant that the peer made: see hawser/grant.h.
  Result<GrantedRegion> import_grant(std::span<const std::byte> bytes) const;
  Result<GrantedRegion> import_grant(std::string_view bytes) const;

  /// Opens paths now instead of at first use and waits until one is up and the peer has greeted: then it is known which
  /// channels the peer has opened. kUnsupported: no path leads to the peer from here; it names each backend's reason.
  Status connect(Duration timeout) const;
  /// Does at once what the agent would only do after a pause: tries again to reach a peer whose paths are down, to
  /// connect queue pairs that failed, and to open the backend that comes before the one in use. Waits for nothing
  /// (`connect` does), and breaks nothing that works. kDisconnected when the peer is down for good.
  Status reconnect() const;
  /// Sends a notification that belongs to no transfer. Copied; kBusy when the peer's inbox has no room for it.
  Status notify(std::string_view text) const;
  /// Sends a message on a channel (>= 16) that the peer opened. Up to kMessageMax bytes, in order per channel. Never
  /// waits: kBusy when the channel has no room, when the peer has not opened it or has not greeted yet (after `connect`
  /// it has).
  ///
  /// The result is the number of the message: on each channel of each peer 1, 2, 3 and so on, in the order in which the
  /// channel's messages go out. A message that is refused takes none. Numbers begin anew with a new session, and so
  /// with a new incarnation: a Peer that was down is another one then. If several threads send on one channel, each
  /// gets the number of its own message.
  ///
  /// Accepted is not delivered: what the peer's agent had not taken when its session ends is lost. `acknowledged`, and
  /// the event that tells that the peer is down, say which messages it took for sure.
  Result<std::uint64_t> send(std::uint32_t channel, std::span<const std::byte> bytes) const;
  /// As above, and waits up to `timeout` for the greeting, for the channel to be opened and for room.
  Result<std::uint64_t> send(std::uint32_t channel, std::span<const std::byte> bytes, Duration timeout) const;
  /// The number of the last message on the channel of which this agent knows that the peer's agent took it, and all
  /// before it (see Acknowledged); 0: none. Also of a peer that is down. Looks at each message on its way, so it
  /// is not for every message: a microsecond for some tens of them.
  std::uint64_t acknowledged(std::uint32_t channel) const;
  /// That number for each channel on which this agent sent anything in this session. Channels come in rising order.
  std::vector<Acknowledged> acknowledged() const;
  /// True once the peer has told that the channel is open. False before it greeted.
  bool opened(std::uint32_t channel) const;

 private:
  friend struct Inside;
  std::shared_ptr<agent::PeerCore> core_;
};

/// The largest message and notification, on every backend.
inline constexpr std::size_t kMessageMax = 64 * 1024;

struct PeerEvent {
  enum class Kind : std::uint8_t {
    kUp = 1,
    kSuspect = 2,
    kDown = 3,
    kCardChanged = 4,
    /// `peer` is this agent itself: a newer agent of its name holds the directory's key. Nobody finds this one by name
    /// until that key is free again. Its sessions go on.
    kDisplaced = 5,
  };
  Kind kind = Kind::kUp;
  Peer peer;
  Status cause;  ///< For kDown, kSuspect and kDisplaced: why.
  /// For kDown: how far the peer's agent took what was sent on each channel in this session. By rising channel; those
  /// on which nothing was sent are left out.
  std::vector<Acknowledged> acknowledged;
};

struct Notification {
  Peer peer;         ///< Who sent it.
  std::string text;  ///< May hold any bytes.
};

struct Message {
  Peer peer;
  std::uint32_t channel = 0;
  std::string bytes;
};

HAWSER_NAMESPACE_END
