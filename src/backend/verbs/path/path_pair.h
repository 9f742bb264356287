#pragma once

// PathPair: one queue pair of a path and its life: it carries out what proto/queue_pair.h says.
//
// What it means for the path that a queue pair is ready, lost or fenced is the owner's business. So are the messages to
// the peer and what was posted.
//
// Thread rule: confined to the port's lane. Lifetime: owned by its path, which outlives it.

#include <cstdint>
#include <span>
#include <vector>

#include "backend/verbs/path/lost_flights.h"
#include "backend/verbs/path/port_shared.h"
#include "backend/verbs/path/way_search.h"
#include "backend/verbs/queues/queue_pair.h"
#include "proto/backoff.h"
#include "proto/queue_pair.h"
#include "proto/trial.h"
#include "wire/queue_pair.h"

namespace hawser::backend::verbs {

class PathPair;

/// What a queue pair needs of its path.
class PairOwner {
 public:
  /// Nothing is done for a path that is down.
  virtual bool is_down() const = 0;
  virtual const std::string& peer_name() const = 0;
  virtual std::uint8_t count_of_pairs() const = 0;
  virtual void say(const wire::QueuePairMessage& message) = 0;
  /// Makes the queue pair for a new attempt, with its receives.
  virtual Status make(PathPair& pair) = 0;
  /// The queue pair is about to be reset, and with it goes what its completion queues still hold.
  virtual void before_reset(PathPair& pair) = 0;
  /// It was, and these had not ended. `now` is Instant::max() when the path goes down.
  virtual void after_reset(PathPair& pair, std::vector<Flight> back, Instant now) = 0;
  virtual void on_ready(PathPair& pair) = 0;
  /// It was ready and is not any more. `has_worked`: it had carried something, or time enough to.
  virtual void on_lost(PathPair& pair, bool has_worked, Instant now) = 0;
  /// Nothing of earlier connections lands any more.
  virtual void on_fenced(PathPair& pair) = 0;
  /// An attempt failed.
  virtual void on_failed(PathPair& pair) = 0;

 protected:
  ~PairOwner() = default;
};

/// Where a queue pair is among those of its path.
struct PairPlace {
  std::uint8_t number = 0;
  std::uint32_t lane = 0;        ///< Of the port's lanes.
  std::uint32_t remote = 0;      ///< Place in the peer's list of ports.
  std::uint64_t mbit_per_s = 0;  ///< Of the slower of both ports; 0: unknown.
};

class PathPair {
 public:
  /// A path of which each queue pair broke so often in a row without having carried anything is given up.
  static constexpr std::uint32_t kTrialsMax = 8;

  PathPair(PortShared& shared, PairOwner& owner, proto::QueuePairRole role, const PairPlace& place)
      : shared_(shared),
        owner_(owner),
        place_(place),
        qp_(*shared.lanes[place.lane], shared.options.pair),
        machine_(role) {}
  PathPair(const PathPair&) = delete;
  PathPair& operator=(const PathPair&) = delete;

  // What happens to it.
  void feed(proto::QueuePairEvent event, Instant now) { perform(machine_.on(event), now); }
  /// A call failed, a completion was an error, the device or its port went.
  void fault(const Status& cause, Instant now);
  /// What was posted has come back.
  void settle(Instant now) {
    if (machine_.state() == proto::QueuePairState::kDraining && qp_.is_drained()) {
      feed(proto::QueuePairEvent::kDrained, now);
    }
  }
  void on_connect(const wire::QueuePairConnect& message, Instant now);
  void on_accept(const wire::QueuePairAccept& message, Instant now);
  void on_ready_heard(const wire::QueuePairReady& message, Instant now);
  void on_broken(const wire::QueuePairBroken& message, Instant now);
  /// If it waits before the next attempt, it waits no longer.
  void hurry(Instant now);
  /// How many of its times had come.
  std::size_t run_timers(Instant now);
  /// Its path is down.
  void close();

  // What it is.
  const PairPlace& place() const { return place_; }
  std::uint32_t lane() const { return place_.lane; }
  std::uint32_t remote() const { return place_.remote; }
  QueuePair& qp() { return qp_; }
  const QueuePair& qp() const { return qp_; }
  proto::QueuePairState state() const { return machine_.state(); }
  bool is_ready() const { return machine_.is_ready(); }
  std::uint32_t epoch() const { return machine_.epoch(); }
  /// The peer's end of it, as it was told.
  const wire::QueuePairEndpoint& peer() const { return peer_; }
  WaySearch& ways() { return ways_; }
  const WaySearch& ways() const { return ways_; }
  /// What was posted on an earlier connection.
  LostFlights& lost() { return lost_; }
  const LostFlights& lost() const { return lost_; }
  /// Why it is not ready.
  const Status& cause() const { return cause_; }
  /// The same, and where several ways were tried what became of each.
  Status why_not() const;
  /// Attempts that failed since it was ready.
  std::uint32_t failures() const { return failures_; }
  /// It broke too often in a row without having carried anything.
  bool is_worn() const { return trial_.failed() >= kTrialsMax; }
  /// Whether it is made with one of these addresses, and its packets leave the port.
  bool fits(const NicAddress& address) const;
  /// Of its timers and of what it lost.
  Instant next_deadline() const;

 private:
  void perform(std::span<const proto::QueuePairAction> actions, Instant now);
  Status act(proto::QueuePairAction action, Instant now);
  void say(proto::QueuePairAction action);
  void arm(Instant now);
  void reset(Instant now);
  void report_ready(Instant now);
  void report_lost(Instant now);
  void note_lost_packets();

  PortShared& shared_;
  PairOwner& owner_;
  const PairPlace place_;
  QueuePair qp_;
  proto::QueuePairMachine machine_;
  wire::QueuePairEndpoint peer_;
  Status cause_;
  LostFlights lost_;
  proto::Backoff backoff_{{}, Instant::max()};
  proto::Trial trial_;
  WaySearch ways_;
  Instant timer_ = Instant::max(), expires_ = Instant::max();
  Instant next_ask_ = Instant::min();  ///< Before, the peer's asking for an attempt is not heard.
  std::uint32_t failures_ = 0;
};

}  // namespace hawser::backend::verbs
