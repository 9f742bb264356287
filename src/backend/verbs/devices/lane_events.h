#pragma once

// LaneEvents: what the devices of a port's lanes tell of themselves: ports that go down or change their addresses,
// failures, and devices that are gone. Events are the device's, and it has several ports, so each says whom it
// concerns.
//
// Thread rule: confined to the port's lane. Lifetime: the lanes and the user outlive it.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "backend/verbs/queues/queue_pair.h"
#include "base/log.h"

namespace hawser::backend::verbs {

/// The port as LaneEvents knows it: what uses the lanes.
class LaneUser {
 public:
  /// What was made on this lane does not work any more, for this reason.
  virtual void on_lane_fault(std::uint32_t lane, const Status& why, Instant now) = 0;
  /// The port has other addresses. True: something was at one that is gone.
  virtual bool on_address_change(std::uint32_t lane, const Status& why, Instant now) = 0;
  /// Events of the device, which is the first lane's of it, cannot be read any more; it was probably taken away.
  virtual void on_deaf(std::uint32_t device, Instant now) = 0;
  /// Its events can be read.
  virtual void on_heard(std::uint32_t device) = 0;

 protected:
  ~LaneUser() = default;
};

class LaneEvents {
 public:
  using Lanes = std::vector<std::unique_ptr<NicLane>>;
  /// Events are asked for only so often: it is a system call, and after a sleep they are asked for anyway.
  static constexpr Duration kPollEvery = std::chrono::milliseconds(5);

  LaneEvents(Lanes& lanes, const base::Logger& log, LaneUser& user) : lanes_(lanes), log_(log), user_(user) {}

  /// How many there were.
  std::size_t poll(Instant now);
  Instant next_poll() const { return next_poll_; }

 private:
  void on_event(std::uint32_t device, const ibv_async_event& event, Instant now);
  void on_port_event(std::uint32_t lane, ibv_event_type type, Instant now);
  void on_device_fault(std::uint32_t device, Code code, std::string_view what, Instant now);
  void on_no_event(std::uint32_t device, int error, Instant now);
  void report_fault(std::uint32_t lane, Code code, std::string_view what, Instant now);
  void refresh_address(std::uint32_t lane, Instant now);

  Lanes& lanes_;
  const base::Logger& log_;
  LaneUser& user_;
  Instant next_poll_ = Instant::min();
};

}  // namespace hawser::backend::verbs
