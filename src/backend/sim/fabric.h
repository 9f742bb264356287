#pragma once

// Fabric: the links between hosts. Each direction of a pair has latency, bandwidth, jitter, loss and cuts of its own.
//
// Time on a link is alpha-beta: a segment leaves when those before it have left, takes size / bandwidth to leave, and
// arrives after latency and jitter. Loss is what a reliable stream makes of it: the segment comes later, by the time
// of a retransmission. What would arrive while the link is cut waits until it is healed.
//
// Thread rule: the world's. Lifetime: the world's.

#include <cstdint>
#include <functional>
#include <map>
#include <utility>
#include <vector>

#include <hawser/time.h>

#include "backend/sim/world.h"

namespace hawser::sim {

struct LinkOptions {
  Duration latency = std::chrono::microseconds(10);
  double bytes_per_ns = 1.0;
  Duration jitter_max = Duration::zero();
  double loss = 0;                                     ///< Chance that a segment must be sent again.
  Duration retransmit = std::chrono::milliseconds(2);  ///< What that costs.
};

class Fabric {
 public:
  explicit Fabric(World& world) : world_(world) {}

  void set_default(const LinkOptions& options) { default_ = options; }
  const LinkOptions& default_options() const { return default_; }
  void set_link(std::uint32_t from, std::uint32_t to, const LinkOptions& options);

  /// When `size` bytes handed over now arrive; occupies the link.
  Instant arrival(std::uint32_t from, std::uint32_t to, std::uint64_t size);
  /// The same for what is too small to occupy it: connects, window updates, resets.
  Instant arrival_small(std::uint32_t from, std::uint32_t to);

  void cut(std::uint32_t from, std::uint32_t to);
  void heal(std::uint32_t from, std::uint32_t to);
  void heal_all();
  bool is_cut(std::uint32_t from, std::uint32_t to) const;
  /// Runs `action` at its time if the link is whole then, else once it is healed.
  void deliver(std::uint32_t from, std::uint32_t to, Instant when, std::function<void()> action);

 private:
  using Way = std::pair<std::uint32_t, std::uint32_t>;
  struct Link {
    LinkOptions options;
    Instant free_at = Instant::min();
    bool cut = false;
    std::vector<std::function<void()>> held;  ///< In order of arrival; bounded by what streams have in flight.
  };
  Link& link(std::uint32_t from, std::uint32_t to);
  Duration noise(const LinkOptions& options);

  World& world_;
  LinkOptions default_;
  std::map<Way, Link> links_;
};

}  // namespace hawser::sim
