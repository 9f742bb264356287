#pragma once

// Ports: the open backends' ports, turned in the order in which news is likely.
//
// An idle turn is what a message is found by, so it looks where the last one came from, and at the other ports only
// when that was a little ago. While anything is in flight each turn is for all.
//
// Thread rule: confined to the lane.

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include <hawser/time.h>

#include "agent/engine/open_backend.h"
#include "agent/engine/path_releases.h"

namespace hawser::agent {

/// The ports' owner hears their events by this.
class PortListener {
 public:
  virtual void on_event(std::size_t backend, const backend::PortEvent& event, Instant now) = 0;

 protected:
  ~PortListener() = default;
};

class Ports {
 public:
  explicit Ports(PortListener& listener) : listener_(listener) {}

  void add(OpenBackend backend) { backends_.push_back(std::move(backend)); }
  std::vector<OpenBackend>& all() { return backends_; }
  const std::vector<OpenBackend>& all() const { return backends_; }
  std::size_t size() const { return backends_.size(); }
  OpenBackend& operator[](std::size_t backend) { return backends_[backend]; }
  const backend::Traits& traits(std::size_t backend) const { return *backends_[backend].traits; }
  PathReleases& releases() { return releases_; }

  /// Turns all of them, or the one that had news last. `is_busy`: something is in flight.
  std::size_t turn(Instant now, bool is_busy);
  /// Instead of a turn: a glance. False: there may be something to do, or it is time for a whole turn.
  bool nothing_new(Instant now, bool is_busy);
  /// Turns that one; its events stay for the next turn.
  std::size_t turn_only(std::size_t backend, Instant now) {
    return backends_[backend].port->turn(now, backend::TurnBudget());
  }
  /// Something was sent by it that is likely to be answered.
  void expect_answer(std::size_t backend) {
    if (backend != favourite_) others_turned_ = Instant::min();
  }

  Instant next_deadline() const;
  /// Arms all doorbells. False: one has work.
  bool prepare_sleep();

 private:
  static constexpr std::size_t kEventsAtOnce = 4;

  bool favours_one(Instant now, bool is_busy) const;
  std::size_t poll(std::size_t backend, Instant now);

  PortListener& listener_;
  std::vector<OpenBackend> backends_;
  PathReleases releases_{backends_};
  std::size_t favourite_ = SIZE_MAX;  ///< The backend that had news last.
  Instant others_turned_;             ///< The last turn of all ports.
  std::uint32_t turns_alone_ = 0;     ///< Of the favourite, since then.
  /// Room for a port's events, empty between two polls: making so many anew would cost more than a turn does.
  std::array<backend::PortEvent, kEventsAtOnce> events_;
};

}  // namespace hawser::agent
