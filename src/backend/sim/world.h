#pragma once

// World: the simulated universe of one seed. Virtual time, one queue of events, one generator of random numbers, and a
// trace whose hash tells whether two runs were the same.
//
// Nothing here runs by itself: `step` takes the earliest event, moves the clock to it and runs it. Events of the same
// instant run in the order in which they were made, so a seed gives the same run every time.
//
// Thread rule: one thread. Lifetime: outlives all hosts, streams and agents in it. Events that belong to something
// mortal hold it weakly or check that it still lives.

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <queue>
#include <string>
#include <string_view>
#include <vector>

#include <hawser/time.h>

#include "base/rng.h"

namespace hawser::sim {

/// Most events that may wait at once; more means that something makes them in a loop.
inline constexpr std::size_t kEventsMax = 1u << 20;

struct WorldOptions {
  std::uint64_t seed = 1;
  /// Gets each line of the trace, with its time; empty: only the hash is kept.
  std::function<void(Instant, std::string_view)> trace = {};
};

class World {
 public:
  explicit World(WorldOptions options);
  World(const World&) = delete;
  World& operator=(const World&) = delete;

  Instant now() const { return clock_->now(); }
  /// For AgentOptions::clock. Lives as long as anybody holds it.
  std::shared_ptr<const Clock> clock() const { return clock_; }
  base::Rng& rng() { return rng_; }

  /// An instant that has passed means now.
  void at(Instant when, std::function<void()> action);
  void after(Duration delay, std::function<void()> action) { at(now() + delay, std::move(action)); }

  /// Runs the earliest event. False: there is none.
  bool step();
  /// Runs all events up to `until`, then moves the clock there.
  void run_until(Instant until);
  void run_for(Duration span) { run_until(now() + span); }
  /// Runs until `done` holds, checked after each event. False: `until` came first, or nothing was left to happen.
  bool run_until(Instant until, const std::function<bool()>& done);

  /// One line of the trace: what happened to whom, with two numbers. Goes into the hash.
  void note(std::string_view what, std::string_view who, std::uint64_t a = 0, std::uint64_t b = 0);
  std::uint64_t trace_hash() const { return hash_; }
  std::uint64_t steps() const { return steps_; }
  /// A host gave something to the network, or to a ring of mapped memory.
  void count_send(std::uint32_t host) { ++sends_[host]; }
  std::uint64_t sends(std::uint32_t host) const {
    const auto found = sends_.find(host);
    return found == sends_.end() ? 0 : found->second;
  }
  std::size_t waiting() const { return events_.size(); }

 private:
  class VirtualClock final : public Clock {
   public:
    Instant now() const override { return now_; }
    void set(Instant now) { now_ = now; }

   private:
    Instant now_ = Instant::from_ns(1'000'000'000);  // Not zero: zero must not pass for "never".
  };
  struct Event {
    Instant when;
    std::uint64_t number;
    std::function<void()> action;
  };
  struct Later {
    bool operator()(const Event& a, const Event& b) const {
      return a.when != b.when ? a.when > b.when : a.number > b.number;
    }
  };
  void mix(std::uint64_t value);

  WorldOptions options_;
  std::shared_ptr<VirtualClock> clock_ = std::make_shared<VirtualClock>();
  base::Rng rng_;
  std::priority_queue<Event, std::vector<Event>, Later> events_;
  std::uint64_t next_number_ = 0;
  std::uint64_t steps_ = 0;
  std::map<std::uint32_t, std::uint64_t> sends_;
  std::uint64_t hash_ = 0xcbf29ce484222325U;
};

}  // namespace hawser::sim
