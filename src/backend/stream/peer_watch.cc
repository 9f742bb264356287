#include "backend/stream/peer_watch.h"

#include <utility>

#include "base/format.h"

namespace hawser::backend::stream {

PeerWatch::PeerWatch(const Options& options, Instant now)
    : detector_({.interval = options.heartbeat,
                 .missed = kMissedMax,
                 .patience = options.patience,
                 .idle_factor = 10,
                 .judged = options.is_driven},
                now),
      sign_of_life_(options.heartbeat, now),
      last_heard_(now) {}

bool PeerWatch::take_heard(Instant now) {
  if (!heard_) return false;
  last_heard_ = now;
  return detector_.on_heard(now) && std::exchange(is_told_, false);
}

bool PeerWatch::owes_sign(Instant now, bool has_unsent) {
  if (spoken_ || has_unsent) {
    sign_of_life_.on_spoken(now);
    return false;
  }
  return heard_ && sign_of_life_.on_heard(now);
}

Status silence_of(std::string_view peer, Duration time) {
  const auto silent_ms = std::chrono::duration_cast<std::chrono::milliseconds>(time).count();
  return Status(Code::kTimedOut, base::format("{} has been silent for {} ms", peer, silent_ms))
      .with_peer(peer)
      .with_advice(
          "its process is stopped or overloaded, or the network to it is cut; AgentOptions::peer_timeout of "
          "this agent says how long silence may last");
}

}  // namespace hawser::backend::stream
