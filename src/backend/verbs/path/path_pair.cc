#include "backend/verbs/path/path_pair.h"

#include <algorithm>
#include <string>

#include "base/format.h"
#include "base/shown.h"

namespace hawser::backend::verbs {
namespace {

using Event = proto::QueuePairEvent;
using Action = proto::QueuePairAction;
using State = proto::QueuePairState;

/// A handshake message that was not answered is said again after this: the control stream loses none, but a peer may
/// have dropped it.
constexpr Duration kSayAgain = std::chrono::milliseconds(500);
/// What was posted comes back at once when a queue pair is in error; after this it is destroyed all the same.
constexpr Duration kDrainTime = std::chrono::milliseconds(200);
/// The longest pause between two attempts.
constexpr Duration kPauseMax = proto::BackoffOptions().longest;

}  // namespace

void PathPair::fault(const Status& cause, Instant now) {
  const State state = machine_.state();
  const bool running =
      state == State::kReady || state == State::kProving || state == State::kAccepted || state == State::kConnecting;
  if (!running) return;
  cause_ = cause;
  ways_.on_failed(cause.message());
  if (state == State::kReady) note_lost_packets();
  HAWSER_LOG(shared_.context.log, kInfo, "verbs: queue pair {} to {}: {}", place_.number, owner_.peer_name(),
             cause_.to_string());
  feed(Event::kFault, now);
  settle(now);
}

/// Small packets get through, or it would not have been ready.
void PathPair::note_lost_packets() {
  const std::uint8_t mtu = qp_.mtu();
  const bool shrinks = ways_.on_broken(mtu, qp_.lost_full(), qp_.carried_full());
  if (!qp_.lost_full() || qp_.carried_full()) return;
  std::string text = base::format("packets of {} bytes get no answer while small ones do", 128u << mtu);
  if (shrinks) text += base::format("; the next ones have {}", 128u << ways_.mtu_max());
  cause_ = Status(Code::kDisconnected, std::move(text)).with_scope(Scope::kPath).because(cause_);
}

void PathPair::on_connect(const wire::QueuePairConnect& message, Instant now) {
  if (message.epoch > machine_.epoch()) peer_ = message.endpoint;
  perform(machine_.on_connect(message.epoch), now);
}

void PathPair::on_accept(const wire::QueuePairAccept& message, Instant now) {
  if (message.epoch == machine_.epoch() && machine_.state() == State::kConnecting) peer_ = message.endpoint;
  perform(machine_.on_message(Event::kAccept, message.epoch), now);
}

void PathPair::on_ready_heard(const wire::QueuePairReady& message, Instant now) {
  if (machine_.state() == State::kBackoff && message.epoch == machine_.epoch()) {
    // The peer asks for an attempt. One that asks at each failure has no more attempts made than a long pause allows.
    if (now < next_ask_) return;
    next_ask_ = now + kPauseMax;
  }
  perform(machine_.on_message(Event::kReadyHeard, message.epoch), now);
}

void PathPair::on_broken(const wire::QueuePairBroken& message, Instant now) {
  if (message.epoch != machine_.epoch()) return;
  cause_ = Status(message.code, base::format("{} says: {}", owner_.peer_name(), base::shown(message.reason)));
  if (machine_.state() == State::kConnecting) ways_.on_met(qp_.gid().text(), "its address");
  ways_.on_failed(cause_.message());
  perform(machine_.on_message(Event::kBroken, message.epoch), now);
}

void PathPair::hurry(Instant now) {
  if (machine_.state() != State::kBackoff) return;
  backoff_.reset(Instant::max());
  feed(Event::kWant, now);
}

void PathPair::perform(std::span<const Action> actions, Instant now) {
  if (!actions.empty()) shared_.attention = true;
  for (const Action action : actions) {
    if (owner_.is_down()) return;
    const Status status = act(action, now);
    if (status.ok()) continue;
    fault(status, now);
    return;
  }
}

Status PathPair::act(Action action, Instant now) {
  switch (action) {
    case Action::kNone:
      break;
    case Action::kNextEpoch:
      machine_.next_epoch();
      break;
    case Action::kMake:
      return owner_.make(*this);
    case Action::kJoin:
      ways_.on_met(qp_.gid().text(), gid_of({.bytes = peer_.gid}).text());
      return qp_.join(peer_);
    case Action::kProve:
      return qp_.prove();
    case Action::kSendConnect:
    case Action::kSendAccept:
    case Action::kSendReady:
    case Action::kSendBroken:
      say(action);
      break;
    case Action::kDrain:
      qp_.drain();
      break;
    case Action::kReset:
      reset(now);
      break;
    case Action::kArm:
      arm(now);
      break;
    case Action::kArmBackoff:
      timer_ = backoff_.next(now, shared_.rng).value_or(now + kPauseMax);
      expires_ = Instant::max();
      break;
    case Action::kDisarm:
      timer_ = expires_ = Instant::max();
      break;
    case Action::kReportReady:
      report_ready(now);
      break;
    case Action::kReportLost:
      report_lost(now);
      break;
    case Action::kReportFenced:
      owner_.on_fenced(*this);
      break;
    case Action::kReportFailed:
      ++failures_;
      owner_.on_failed(*this);
      break;
  }
  return {};
}

void PathPair::say(Action action) {
  const std::uint32_t epoch = machine_.epoch();
  if (action == Action::kSendConnect) {
    owner_.say(wire::QueuePairConnect{.pair = place_.number,
                                      .epoch = epoch,
                                      .local = static_cast<std::uint8_t>(place_.lane),
                                      .remote = static_cast<std::uint8_t>(place_.remote),
                                      .pairs = owner_.count_of_pairs(),
                                      .endpoint = qp_.endpoint()});
  } else if (action == Action::kSendAccept) {
    owner_.say(wire::QueuePairAccept{.pair = place_.number, .epoch = epoch, .endpoint = qp_.endpoint()});
  } else if (action == Action::kSendReady) {
    owner_.say(wire::QueuePairReady{.pair = place_.number, .epoch = epoch});
  } else {
    owner_.say(wire::QueuePairBroken{.pair = place_.number,
                                     .epoch = epoch,
                                     .code = cause_.ok() ? Code::kTimedOut : cause_.code(),
                                     .reason = cause_.ok() ? "it did not become ready in time" : cause_.to_string()});
  }
}

void PathPair::arm(Instant now) {
  const bool draining = machine_.state() == State::kDraining;
  timer_ = draining ? Instant::max() : now + kSayAgain;
  expires_ = now + (draining ? kDrainTime : shared_.options.connect_timeout);
}

void PathPair::reset(Instant now) {
  owner_.before_reset(*this);
  std::vector<Flight> back;
  qp_.reset(&back);
  owner_.after_reset(*this, std::move(back), now);
}

void PathPair::close() {
  machine_.on(Event::kClose);
  reset(Instant::max());
}

void PathPair::report_ready(Instant now) {
  qp_.on_ready();
  ways_.on_proved();
  trial_.begin(now, qp_.carried());
  failures_ = 0;
  cause_ = Status();
  owner_.on_ready(*this);
}

/// One that carries nothing is not mended by being ready: its pauses grow on, and are not for ever.
void PathPair::report_lost(Instant now) {
  // Without a cause the peer ended it, and counts itself. A cancelled operation, or one that is at fault itself, says
  // nothing against it.
  const bool excused = cause_.ok() || cause_.code() == Code::kCancelled || qp_.is_fault_own();
  const bool has_worked =
      trial_.end({.at = now, .carried = qp_.carried(), .was_idle = qp_.is_idle(), .excused = excused});
  if (has_worked) backoff_.reset(Instant::max());
  owner_.on_lost(*this, has_worked, now);
}

Status PathPair::why_not() const {
  const std::string tried = ways_.tried();
  if (tried.find(';') == std::string::npos) return cause_;
  return Status(Code::kDisconnected, base::format("tried {}", tried)).with_scope(Scope::kPath).because(cause_);
}

bool PathPair::fits(const NicAddress& address) const {
  const auto is_its = [this](const Gid& gid) { return gid.index == qp_.gid().index && gid.bytes == qp_.gid().bytes; };
  return std::ranges::any_of(address.gids, is_its) && qp_.mtu() <= address.mtu;
}

std::size_t PathPair::run_timers(Instant now) {
  if (now >= expires_) {
    expires_ = timer_ = Instant::max();
    if (machine_.state() != State::kDraining) {
      cause_ = Status(Code::kTimedOut, "the handshake of the queue pair was not finished in time").because(cause_);
    }
    feed(Event::kExpired, now);
    return 1;
  }
  if (now < timer_) return 0;
  timer_ = now + kSayAgain;
  feed(Event::kTimer, now);
  return 1;
}

Instant PathPair::next_deadline() const { return std::min({timer_, expires_, lost_.next_deadline()}); }

}  // namespace hawser::backend::verbs
