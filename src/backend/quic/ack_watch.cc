#include "backend/quic/ack_watch.h"

namespace hawser::backend::quic {
namespace {

/// QUIC doubles its timeout each time: 1 + 2 + 4.
constexpr int kTimeoutsAsked = 7;
constexpr unsigned kMisses = 3;

}  // namespace

void AckWatch::note_sent(Instant now, Duration timeout) {
  if (look_at_ != Instant::max()) return;
  since_ = now;
  look_at_ = now + kTimeoutsAsked * timeout;
  misses_ = 0;
}

bool AckWatch::note_heard(Instant now, Duration timeout) {
  if (now < look_at_) return false;
  look_at_ = now + timeout;
  return ++misses_ % kMisses == 0;
}

}  // namespace hawser::backend::quic
