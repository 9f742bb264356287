#include "runtime/court_clock.h"

#include <algorithm>
#include <utility>

namespace hawser::runtime {
namespace {

/// So long a court waits for ranks that do not answer.
constexpr Duration kCourtMax = std::chrono::seconds(1);

}  // namespace

CourtClock::CourtClock(Mailbox& mailbox, Duration heartbeat, Duration peer_timeout, Hooks hooks)
    : mailbox_(mailbox), heartbeat_(heartbeat), peer_timeout_(peer_timeout), hooks_(std::move(hooks)) {
  alarm_.listener = this;
}

CourtClock::~CourtClock() { mailbox_.clear_deadline(alarm_); }

/// As long as something is undecided, its time runs.
void CourtClock::watch(bool is_open) {
  if (!is_open) {
    mailbox_.clear_deadline(alarm_);
    stage_ = Stage::kNone;
  } else if (stage_ == Stage::kNone) {
    stage_ = Stage::kSettling;
    mailbox_.set_deadline(alarm_, mailbox_.now() + std::min(2 * heartbeat_, kCourtMax / 2));
  }
}

void CourtClock::on_late(Operation&, Instant now) {
  if (stage_ == Stage::kSettling) {
    stage_ = Stage::kGivingUp;
    mailbox_.set_deadline(alarm_, now + std::min(peer_timeout_, kCourtMax));
    hooks_.settle();
  } else {
    stage_ = Stage::kNone;
    hooks_.give_up();
  }
}

}  // namespace hawser::runtime
