// ShmPath's heartbeats. A process that died is noticed by its pidfd and its socket; one that is stopped keeps both, so
// it is asked, by a word in the link and a ring of its doorbell, whether its lane still turns. Only of driven peers is
// that expected.

#include <sys/eventfd.h>

#include <chrono>
#include <utility>

#include "backend/shm/path.h"
#include "backend/shm/port.h"
#include "base/format.h"

namespace hawser::backend::shm {
namespace {

// As over tcp: docs/errors.md says for all backends when a silent peer is suspect, and when it is given up.
constexpr std::uint32_t kMissedMax = 3;
constexpr std::uint32_t kIdleFactor = 10;

}  // namespace

void ShmPath::begin_heartbeats() {
  const Duration interval = port_.shared().context.heartbeat;
  if (!peer_.driven || interval <= Duration::zero()) return;
  detector_.emplace(proto::DetectorOptions{.interval = interval,
                                           .missed = kMissedMax,
                                           .patience = port_.shared().context.peer_timeout,
                                           .idle_factor = kIdleFactor,
                                           .judged = true},
                    port_.now());
  port_.heartbeat_at(detector_->next_timeout());
}

void ShmPath::set_awaited(bool awaited, Instant now) {
  is_awaited_ = awaited;
  if (!detector_ || stage_ != Stage::kUp) return;
  detector_->set_busy(awaited || is_unread_, now);
  port_.heartbeat_at(detector_->next_timeout());
}

/// Somebody waits for the peer as long as it has not taken what was sent.
void ShmPath::note_unread() {
  is_unread_ = true;
  detector_->set_busy(true, port_.now());
  port_.heartbeat_at(detector_->next_timeout());
}

void ShmPath::answer_heartbeat() {
  if (stage_ != Stage::kUp) return;
  const std::uint64_t asked = link_.their_ping().load(std::memory_order_acquire);
  if (asked == link_.my_pong().load(std::memory_order_relaxed)) return;
  link_.my_pong().store(asked, std::memory_order_release);
  if (detector_) note_heard(port_.now());  // Its lane turns, so it need not be asked.
}

void ShmPath::note_heard(Instant now) {
  const bool was_suspect = detector_->on_heard(now);
  if (was_suspect && std::exchange(is_silent_, false)) note_silence(PortEvent::Kind::kPathHeard, {});
}

void ShmPath::note_silence(PortEvent::Kind kind, Status status) {
  PortEvent event;
  event.kind = kind;
  event.path = this;
  event.status = std::move(status);
  port_.push(std::move(event));
}

bool ShmPath::was_heard() {
  const bool answered = last_ping_ != 0 && link_.their_pong().load(std::memory_order_acquire) == last_ping_;
  const bool sent = counts_.messages_in != heard_in_;
  if (answered) last_ping_ = 0;
  heard_in_ = counts_.messages_in;
  return answered || sent;
}

Instant ShmPath::next_heartbeat() const {
  return detector_ && stage_ == Stage::kUp ? detector_->next_timeout() : Instant::max();
}

void ShmPath::watch_peer(Instant now) {
  if (next_heartbeat() > now) return;
  is_unread_ = !producer_.is_drained();
  detector_->set_busy(is_awaited_ || is_unread_, now);
  if (was_heard()) note_heard(now);
  const proto::DetectorAction action = detector_->poll(now);
  if (action.kind == proto::DetectorAction::Kind::kNone) return;
  const auto silent_ms = std::chrono::duration_cast<std::chrono::milliseconds>(action.silent).count();
  // No proof of death, and so no kDisconnected.
  const auto silence = [&](Scope scope) {
    return Status(Code::kTimedOut, base::format("{} has been silent for {} ms", peer_.name, silent_ms))
        .with_scope(scope)
        .with_peer(peer_.name)
        .with_advice(
            "its process is stopped or overloaded; AgentOptions::peer_timeout of this agent says how long "
            "silence may last");
  };
  if (action.kind == proto::DetectorAction::Kind::kFailed) return end(silence(Scope::kPeer));
  last_ping_ = action.nonce;
  link_.my_ping().store(action.nonce, std::memory_order_release);
  static_cast<void>(::eventfd_write(peer_door_.get(), 1));
  if (action.kind != proto::DetectorAction::Kind::kSuspect) return;
  is_silent_ = true;
  note_silence(PortEvent::Kind::kPathSilent, silence(Scope::kPath));
}

}  // namespace hawser::backend::shm
