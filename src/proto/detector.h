#pragma once

// The failure detector of one connection: after an interval of silence it pings, after `missed` intervals of silence it
// suspects the peer, and after `patience` it declares the peer failed. Whatever is heard counts, so a busy connection
// sends no pings.
//
// Intervals are counted as they are polled, not computed from the clock: if this process itself stood still for an
// hour, that is one missed interval, and the peer gets the others to answer.
//
// In a turn: first on_heard for what came in, then poll.
// Thread rule: one thread at a time.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>

#include <hawser/time.h>

namespace hawser::proto {

/// In one turn a port asks at most so many peers before their time: more would make the turn long.
inline constexpr std::size_t kHastenedMax = 32;

struct DetectorOptions {
  Duration interval = std::chrono::milliseconds(250);
  std::uint32_t missed = 3;  ///< Silent intervals that make it suspect; at least 2, so that there was a ping.
  Duration patience = Duration::zero();  ///< Silence that means failed, in whole intervals; `missed` of them at least.
  std::uint32_t idle_factor = 8;  ///< How much longer the first silent interval may be when nobody waits for the peer.
  bool judged = true;             ///< False for a polled peer: pinged (so that a dead host is noticed), never judged.
};

struct DetectorAction {
  enum class Kind : std::uint8_t {
    kNone = 0,
    kSendPing = 1,
    kFailed = 2,
    kSuspect = 3,  ///< And send a ping.
  };
  Kind kind = Kind::kNone;
  std::uint64_t nonce = 0;             ///< The number that the ping carries and its answer repeats.
  Duration silent = Duration::zero();  ///< kSuspect, kFailed: how long nothing was heard.
};

class Detector {
 public:
  Detector(const DetectorOptions& options, Instant now);

  /// Somebody waits for the peer: transfers in flight, or it is watched.
  void set_busy(bool busy, Instant now);
  /// Anything came from the peer. Returns true when it had been suspect.
  bool on_heard(Instant now);
  /// The answer to a ping, which on_heard is told of like of all else. The round trip, if it is that of the last ping.
  std::optional<Duration> on_pong(std::uint64_t nonce, Instant now) const;
  /// kSuspect is answered once for each silence. kFailed is answered once; after it there is only kNone.
  DetectorAction poll(Instant now);
  /// Moves the ping of an idle peer to `now` if it would come within an interval. A port that wakes for one peer asks
  /// others in the same turn, and so wakes less often. True: poll has something to do now.
  bool hasten(Instant now);
  /// poll has answered kSuspect, and nothing was heard since.
  bool suspect() const { return options_.judged && silent_intervals_ >= options_.missed; }
  Instant last_heard() const { return heard_; }
  /// When it fails, if nothing is heard.
  Instant fails_at() const { return heard_ + std::max(options_.patience, options_.missed * options_.interval); }
  /// When poll has something to do; Instant::max() for never.
  Instant next_timeout() const { return next_; }

 private:
  Duration first_interval() const;
  std::uint64_t intervals_until_failed() const;

  DetectorOptions options_;
  Instant heard_;
  Instant next_;
  Instant pinged_;
  std::uint64_t nonce_ = 0;
  std::uint64_t silent_intervals_ = 0;
  bool busy_ = false;
  bool failed_ = false;
};

}  // namespace hawser::proto
