#pragma once

// QuicJudge: keeps the books of what users of connections did, and says what must not be: bytes that nobody wrote, ends
// that nobody caused, streams that wait without a reason.
//
// Thread rule: one thread. Lifetime: the run's.

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <hawser/status.h>

#include "quicsim/settings.h"

namespace hawser::quicsim {

enum class Side : std::size_t { kOpener = 0, kAcceptor = 1 };
constexpr Side other_of(Side side) { return side == Side::kOpener ? Side::kAcceptor : Side::kOpener; }
constexpr std::string_view to_string(Side side) { return side == Side::kOpener ? "opener" : "acceptor"; }

enum class Parting : std::uint8_t { kNone, kOrderly, kAborted };

/// The byte at that place of what one end of a stream writes.
std::byte byte_at(std::size_t connection, std::int64_t stream, Side writer, std::uint64_t at);
void fill(std::size_t connection, std::int64_t stream, Side writer, std::uint64_t at, std::span<std::byte> to);

/// What the user of one end of a stream did and was told.
struct HalfBook {
  bool is_open = false;
  std::uint64_t planned = 0, written = 0, read = 0;
  Parting parting = Parting::kNone;
  bool is_stuck = false;  ///< It does not read now.
  bool was_told_end = false, was_told_reset = false;
};
using StreamBook = std::array<HalfBook, 2>;

/// What happened to one end of a connection.
struct EndBook {
  bool is_up = false, has_ended = false;
  bool is_gone = false;  ///< The host is, or has forgotten the connection.
  Parting closed = Parting::kNone;
  bool is_clean = false;             ///< It closed once all was delivered.
  Instant heard = Instant::min();    ///< When a whole datagram came last,
  Instant lost = Instant::min();     ///< and when one that was to come got lost.
  Instant stopped = Instant::min();  ///< Until when it was held up.
  Instant late = Instant::min();     ///< When a packet of the handshake came last, though that was through here.
  std::array<std::byte, 32> binding = {};
};

struct Talk {
  std::array<EndBook, 2> ends;
  std::map<std::int64_t, StreamBook> streams;

  EndBook& end(Side side) { return ends[static_cast<std::size_t>(side)]; }
  const EndBook& end(Side side) const { return ends[static_cast<std::size_t>(side)]; }
  bool has_moved = false;  ///< Datagrams came from more than one address of the opener.

  bool is_over(Side side) const { return end(side).has_ended || end(side).is_gone; }
};

class QuicJudge {
 public:
  QuicJudge(sim::World& world, const Settings& settings) : world_(world), settings_(settings) {
    talks_.resize(settings.connections);
  }

  bool failed() const { return !failure_.empty(); }
  const std::string& failure() const { return failure_; }
  /// The first one counts.
  void fail(std::string_view what);

  Talk& talk(std::size_t connection) { return talks_[connection]; }
  HalfBook& half(std::size_t connection, std::int64_t stream, Side side) {
    return talks_[connection].streams[stream][static_cast<std::size_t>(side)];
  }

  void came_up(std::size_t connection, Side side, const std::array<std::byte, 32>& binding);
  void wrote(std::size_t connection, std::int64_t stream, Side side, std::size_t bytes);
  void read(std::size_t connection, std::int64_t stream, Side side, std::span<const std::byte> bytes);
  void told_end(std::size_t connection, std::int64_t stream, Side side);
  void told_reset(std::size_t connection, std::int64_t stream, Side side, const Status& why);
  /// `was_up`: the handshake was through.
  void ended(std::size_t connection, Side side, const Status& why, bool was_up);

  /// Something that nobody holds up has still to happen; why, for people. Empty: nothing.
  std::string has_work(std::size_t connection) const;
  bool is_settled() const;  ///< No connection has.
  std::string unsettled() const;

  std::uint64_t bytes() const { return bytes_; }
  std::uint64_t streams() const;

 private:
  std::string of(std::size_t connection, Side side) const;
  void check_why(std::size_t connection, Side side, const Status& why, bool was_up);
  void ended_idle(std::size_t connection, Side side);
  static bool is_troubled(const Talk& talk, Instant since);
  /// Whether all that the connections send may keep a cable busy for `time`, so that a handshake waits behind it.
  bool may_queue_for(Duration time) const;
  std::string stream_work(std::int64_t id, const StreamBook& stream, Side writer) const;

  sim::World& world_;
  const Settings& settings_;
  std::vector<Talk> talks_;
  std::string failure_;
  std::uint64_t bytes_ = 0;
};

}  // namespace hawser::quicsim
