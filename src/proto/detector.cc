#include "proto/detector.h"

#include <algorithm>

namespace hawser::proto {

Detector::Detector(const DetectorOptions& options, Instant now) : options_(options), heard_(now) {
  options_.missed = std::max(options_.missed, std::uint32_t{2});
  options_.idle_factor = std::max(options_.idle_factor, std::uint32_t{1});
  next_ = now + first_interval();
}

Duration Detector::first_interval() const {
  if (busy_) return options_.interval;
  return options_.interval > Duration::max() / options_.idle_factor ? Duration::max()
                                                                    : options_.interval * options_.idle_factor;
}

std::uint64_t Detector::intervals_until_failed() const {
  const std::uint64_t least = options_.missed;
  if (options_.interval <= Duration::zero() || options_.patience <= Duration::zero()) return least;
  const auto interval = static_cast<std::uint64_t>(options_.interval.count());
  const auto patience = static_cast<std::uint64_t>(options_.patience.count());
  return std::max(least, patience / interval + (patience % interval == 0 ? 0 : 1));
}

void Detector::set_busy(bool busy, Instant now) {
  if (busy == busy_) return;
  busy_ = busy;
  if (silent_intervals_ != 0) return;  // a ping is on its way: that goes at the quick pace anyway
  next_ = busy ? std::min(next_, now + options_.interval) : heard_ + first_interval();
}

bool Detector::on_heard(Instant now) {
  heard_ = now;
  if (failed_) return false;
  const bool was_suspect = suspect();
  silent_intervals_ = 0;
  next_ = now + first_interval();
  return was_suspect;
}

std::optional<Duration> Detector::on_pong(std::uint64_t nonce, Instant now) const {
  if (nonce == 0 || nonce != nonce_) return std::nullopt;
  return now - pinged_;
}

bool Detector::hasten(Instant now) {
  const bool may = !busy_ && silent_intervals_ == 0 && options_.idle_factor > 1 && next_ > now;
  if (!may || next_ > now + options_.interval) return false;
  next_ = now;
  return true;
}

DetectorAction Detector::poll(Instant now) {
  DetectorAction action;
  if (now < next_) return action;
  ++silent_intervals_;
  if (!options_.judged && silent_intervals_ >= options_.missed) {
    // A polled peer gets no further pings: they would only pile up in its socket until it looks.
    next_ = Instant::max();
    return action;
  }
  action.silent = now - heard_;
  if (silent_intervals_ >= intervals_until_failed()) {
    next_ = Instant::max();
    failed_ = true;
    action.kind = DetectorAction::Kind::kFailed;
    return action;
  }
  next_ = now + options_.interval;
  pinged_ = now;
  action.kind = silent_intervals_ == options_.missed ? DetectorAction::Kind::kSuspect : DetectorAction::Kind::kSendPing;
  action.nonce = ++nonce_;
  return action;
}

}  // namespace hawser::proto
