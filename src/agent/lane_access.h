#pragma once

// What the members of an agent ask of its lane: the lock, and waiting for what turns do.
//
// Locks, in the order in which a thread may take them: the lane's lock, then the lock of one book (PeerBook,
// RegionBook, RegionNames, ArenaBook, OwnCard, BackendReports, QueueList), then a peer's mutex, then spin locks. A book
// calls no other book while it holds its lock, so no thread holds the locks of two books. No lock is held across user
// code.
//
// Thread rule: thread-safe.

#include <functional>

#include <hawser/time.h>

#include "base/thread_annotations.h"

namespace hawser::agent {

/// The type of `in_lane`. It has no state: only Clang's analysis reads it.
class HAWSER_CAPABILITY("lane") InLane {};

/// "This thread holds the lane's lock." One name serves the lanes of all agents: no thread of the library holds two of
/// them at a time, and Clang cannot know that two members refer to the same lane.
inline InLane in_lane;

/// For code that is under the lock by the rule of its caller, where Clang cannot see it: a test without a lane, a turn.
inline void assume_in_lane() HAWSER_ASSERT_HELD(in_lane) {}

class LaneAccess {
 public:
  virtual void lock() HAWSER_ACQUIRE(in_lane) = 0;
  virtual void unlock() HAWSER_RELEASE(in_lane) = 0;
  /// Makes progress, or waits for the driver to, until `reached` or the deadline; answers what `reached` says last.
  /// `reached` must be cheap and thread-safe.
  virtual bool wait_until(const std::function<bool()>& reached, Instant deadline) HAWSER_EXCLUDES(in_lane) = 0;
  /// Ends the sleep of the thread that leads the lane.
  virtual void wake() = 0;
  /// Something that waiting threads look for has happened.
  virtual void news() = 0;
  /// The same, by no turn of the lane: a thread that leads it and sleeps looks again, too.
  virtual void news_from_outside() = 0;

  /// Waits until `until`, or until something happened that may be what the caller looks for.
  void pause(Instant until) HAWSER_EXCLUDES(in_lane) {
    wait_until([] { return false; }, until);
  }

 protected:
  ~LaneAccess() = default;
};

/// Holds the lane's lock for a scope.
class HAWSER_SCOPED_CAPABILITY InLaneGuard {
 public:
  explicit InLaneGuard(LaneAccess& lane) HAWSER_ACQUIRE(in_lane) : lane_(lane) { lane_.lock(); }
  ~InLaneGuard() HAWSER_RELEASE() { lane_.unlock(); }
  InLaneGuard(const InLaneGuard&) = delete;
  InLaneGuard& operator=(const InLaneGuard&) = delete;

 private:
  LaneAccess& lane_;
};

}  // namespace hawser::agent
