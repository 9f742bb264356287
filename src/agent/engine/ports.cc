#include "agent/engine/ports.h"

#include <algorithm>

namespace hawser::agent {
namespace {

constexpr std::size_t kEventRoundsMax = 96;  ///< Per port and turn.
constexpr std::uint32_t kTurnsAlone = 16;    ///< Turns that may leave something out, in a row.

}  // namespace

bool Ports::favours_one(Instant now, bool is_busy) const {
  constexpr Duration kOthersRest = std::chrono::nanoseconds(500);
  return favourite_ < backends_.size() && !is_busy && turns_alone_ < kTurnsAlone && now - others_turned_ < kOthersRest;
}

bool Ports::nothing_new(Instant now, bool is_busy) {
  if (turns_alone_ >= kTurnsAlone) return false;
  const auto has_news = [now](const OpenBackend& backend) { return backend.port->has_news(now); };
  const bool alone = favours_one(now, is_busy);
  if (alone ? has_news(backends_[favourite_]) : std::ranges::any_of(backends_, has_news)) return false;
  if (!alone) others_turned_ = now;
  ++turns_alone_;
  return true;
}

std::size_t Ports::turn(Instant now, bool is_busy) {
  if (favours_one(now, is_busy)) {
    ++turns_alone_;
    const std::size_t work = turn_only(favourite_, now);
    return work + poll(favourite_, now);
  }
  turns_alone_ = 0;
  others_turned_ = now;
  std::size_t work = 0;
  for (std::size_t i = 0; i < backends_.size(); ++i) {
    work += turn_only(i, now);
    work += poll(i, now);
  }
  return work;
}

std::size_t Ports::poll(std::size_t backend, Instant now) {
  std::size_t work = 0;
  for (std::size_t round = 0; round < kEventRoundsMax; ++round) {
    const std::size_t count = backends_[backend].port->poll(events_);
    if (count != 0) favourite_ = backend;
    releases_.begin_reading();
    for (std::size_t i = 0; i < count; ++i) {
      listener_.on_event(backend, events_[i], now);
      events_[i] = backend::PortEvent();  // Ports fill in what differs from an empty one.
    }
    releases_.end_reading();
    work += count;
    if (count < events_.size()) break;
  }
  return work;
}

Instant Ports::next_deadline() const {
  Instant next = Instant::max();
  for (const OpenBackend& backend : backends_) next = std::min(next, backend.port->next_deadline());
  return next;
}

bool Ports::prepare_sleep() {
  bool is_idle = true;
  for (OpenBackend& backend : backends_) is_idle = backend.port->prepare_sleep() && is_idle;
  return is_idle;
}

}  // namespace hawser::agent
