#include "backend/shm/heartbeat.h"

#include <utility>

namespace hawser::backend::shm {
namespace {

// As over tcp: docs/errors.md says for all backends when a silent peer is suspect, and when it is given up.
constexpr std::uint32_t kMissedMax = 3;
constexpr std::uint32_t kIdleFactor = 10;

}  // namespace

void Heartbeat::begin(Duration interval, Duration patience, Instant now) {
  detector_.emplace(
      proto::DetectorOptions{
          .interval = interval, .missed = kMissedMax, .patience = patience, .idle_factor = kIdleFactor, .judged = true},
      now);
  detector_->set_busy(is_awaited_, now);
}

void Heartbeat::set_awaited(bool awaited, Instant now) {
  is_awaited_ = awaited;
  if (detector_) detector_->set_busy(awaited || is_unread_, now);
}

void Heartbeat::note_unread(Instant now) {
  is_unread_ = true;
  if (detector_) detector_->set_busy(true, now);
}

bool Heartbeat::answer(Instant now) {
  const std::uint64_t asked = link_.their_ping().load(std::memory_order_acquire);
  if (asked == link_.my_pong().load(std::memory_order_relaxed)) return false;
  link_.my_pong().store(asked, std::memory_order_release);
  return detector_ && note_heard(now);  // Its lane turns, so it need not be asked.
}

bool Heartbeat::note_heard(Instant now) { return detector_->on_heard(now) && std::exchange(is_silent_, false); }

bool Heartbeat::was_heard(std::uint64_t messages_in) {
  const bool answered = last_ping_ != 0 && link_.their_pong().load(std::memory_order_acquire) == last_ping_;
  const bool sent = messages_in != heard_in_;
  if (answered) last_ping_ = 0;
  heard_in_ = messages_in;
  return answered || sent;
}

Heartbeat::Look Heartbeat::look(std::uint64_t messages_in, bool is_drained, Instant now) {
  Look seen;
  if (next() > now) return seen;
  is_unread_ = !is_drained;
  detector_->set_busy(is_awaited_ || is_unread_, now);
  if (was_heard(messages_in)) seen.is_heard_again = note_heard(now);
  const proto::DetectorAction action = detector_->poll(now);
  seen.silent = action.silent;
  switch (action.kind) {
    case proto::DetectorAction::Kind::kNone:
      return seen;
    case proto::DetectorAction::Kind::kFailed:
      seen.verdict = Verdict::kFailed;
      return seen;
    case proto::DetectorAction::Kind::kSendPing:
      seen.verdict = Verdict::kAsk;
      break;
    case proto::DetectorAction::Kind::kSuspect:
      seen.verdict = Verdict::kSuspect;
      is_silent_ = true;
      break;
  }
  last_ping_ = action.nonce;
  link_.my_ping().store(action.nonce, std::memory_order_release);
  return seen;
}

}  // namespace hawser::backend::shm
