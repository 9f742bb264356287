#pragma once

// PeerWatch: whether the peer of a path that is up still speaks, and whether this end owes it a sign. It decides; the
// path sends. In a turn: begin_turn, then what was heard and spoken, then take_heard, owes_sign and poll in this order.
//
// Thread rule: confined to the port's lane.

#include <cstdint>
#include <string_view>

#include <hawser/status.h>
#include <hawser/time.h>

#include "proto/detector.h"
#include "proto/sign_of_life.h"

namespace hawser::backend::stream {

/// Heartbeats without an answer after which a path to a driven peer ends.
inline constexpr std::uint32_t kMissedMax = 3;

class PeerWatch {
 public:
  struct Options {
    Duration heartbeat;
    Duration patience;  ///< Silence that means failed.
    bool is_driven = true;
  };
  PeerWatch(const Options& options, Instant now);

  void begin_turn() { heard_ = spoken_ = false; }
  void note_heard() { heard_ = true; }
  void note_spoken() { spoken_ = true; }
  /// Somebody waits for the peer.
  void set_busy(bool busy, Instant now) { detector_.set_busy(busy, now); }
  void on_pong(std::uint64_t nonce, Instant now) { static_cast<void>(detector_.on_pong(nonce, now)); }
  bool hasten(Instant now) { return detector_.hasten(now); }

  /// Takes note of what came in this turn. True: it ends a silence of which the agent was told.
  bool take_heard(Instant now);
  /// `has_unsent`: something waits to be sent, which is a sign, too, and another one would only wait behind it.
  bool owes_sign(Instant now, bool has_unsent);
  proto::DetectorAction poll(Instant now) { return detector_.poll(now); }
  /// What waits to be sent asks as well, and more questions would only pile up behind it.
  bool may_ask(bool has_unsent) const { return !detector_.suspect() || !has_unsent; }
  /// The agent was told of the silence.
  void note_told() { is_told_ = true; }

  Instant next_timeout() const { return detector_.next_timeout(); }
  Instant last_heard() const { return last_heard_; }
  /// The agent was told that the peer is silent, and nothing was heard since.
  bool is_silent() const { return is_told_ && detector_.suspect(); }
  /// When the path ends, if nothing is heard.
  Instant fails_at() const { return detector_.fails_at(); }

 private:
  proto::Detector detector_;
  proto::SignOfLife sign_of_life_;
  Instant last_heard_;  ///< At first its hello.
  bool heard_ = false;  ///< In this turn.
  bool spoken_ = false;
  bool is_told_ = false;
};

/// No proof of death, and so no kDisconnected.
Status silence_of(std::string_view peer, Duration time);

}  // namespace hawser::backend::stream
