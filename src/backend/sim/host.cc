#include "backend/sim/host.h"

#include <algorithm>
#include <utility>

namespace hawser::sim {

std::shared_ptr<Host> Host::create(World& world, std::string name, std::uint32_t number) {
  return std::shared_ptr<Host>(new Host(world, std::move(name), number));
}

void Host::schedule(Instant when) {
  if (when >= due_ || when == Instant::max()) return;
  due_ = when;
  world_.at(when, [weak = weak_from_this(), ticket = ++ticket_] {
    if (const auto self = weak.lock()) self->turn(ticket);
  });
}

void Host::wake() {
  if (state_ == State::kRunning && !turning_ && !blocking_) {
    schedule(world_.now() + pace_);
  } else {
    woken_ = true;
  }
}

void Host::turn(std::uint64_t ticket) {
  if (ticket != ticket_ || state_ != State::kRunning || !turn_) return;
  due_ = Instant::max();
  if (blocking_) {
    woken_ = true;
    return;
  }
  woken_ = false;
  turning_ = true;
  ++turns_;
  const Turned turned = turn_(world_.now());
  turning_ = false;
  if (state_ != State::kRunning) return;
  if (turned.more || woken_) {
    schedule(world_.now() + pace_);
  } else {
    // A timer that is due already must not stop the clock: time passes between any two turns.
    schedule(std::max(turned.next, world_.now() + pace_));
  }
}

void Host::stop() {
  if (state_ != State::kRunning) return;
  state_ = State::kStopped;
  due_ = Instant::max();
  ++ticket_;
}

void Host::resume() {
  if (state_ != State::kStopped) return;
  state_ = State::kRunning;
  wake();  // Its timers may have passed meanwhile.
}

void Host::pause(Instant until) {
  constexpr Duration kPauseMax = std::chrono::milliseconds(100);  // A caller that waits for ever comes again.
  blocking_ = true;
  woken_ = false;
  world_.run_until(std::min(until, world_.now() + kPauseMax), [this] { return woken_ || state_ == State::kDead; });
  blocking_ = false;
  if (state_ == State::kRunning) wake();
}

void Host::die() {
  state_ = State::kDead;
  turn_ = nullptr;
  due_ = Instant::max();
  ++ticket_;
}

}  // namespace hawser::sim
