#pragma once

// Shutdown closes an agent, once, whoever asks and however often.
//
//   open ──close──▶ closing ──nobody uses a region──▶ closed
//                      └──the deadline: kTimedOut, and the next call goes on from here
//
// A close that runs out of time while somebody still uses a region leaves the ports open: they alone can tell when that
// ends, and the next call asks them. Once no region is in use the rest goes, whether peers heard of it or not. Of
// several calls at a time one closes the agent, and the others wait for what becomes of it.
//
// Thread rule: thread-safe. Not under the lane's lock.

#include <atomic>
#include <cstdint>
#include <string>

#include <hawser/status.h>

#include "agent/lane_access.h"
#include "agent/life.h"

namespace hawser::agent {

class Shutdown {
 public:
  /// The steps, in this order, by one thread at a time and without the lane's lock.
  class Steps {
   public:
    /// Takes the agent's card out of the directory. False: there was no time for it, and it may be tried again.
    virtual bool unpublish(Instant deadline) = 0;
    /// Once: what was sent and submitted before is taken in, and nothing more.
    virtual void begin() = 0;
    /// Waits until nobody uses a region, and until peers heard of the end. An error says who did not.
    virtual Status release(Instant deadline) = 0;
    /// True while somebody uses a region.
    virtual bool is_used() = 0;
    /// Once: the agent ends, and whatever is in use is let go of. Ends its Life.
    virtual void finish() = 0;

   protected:
    ~Steps() = default;
  };

  Shutdown(LaneAccess& lane, const Clock& clock, std::string agent, Life& life, Steps& steps)
      : lane_(lane), clock_(clock), agent_(std::move(agent)), life_(life), steps_(steps) {}

  /// kOk only once nobody touches any region. On kTimedOut the agent is closing, and the call may be made again: it
  /// waits further.
  Status close(Duration timeout) HAWSER_EXCLUDES(in_lane);
  /// For the last handle: the same, but what is in use then is let go of, and nobody will know when that ends.
  void close_for_good(Duration timeout) HAWSER_EXCLUDES(in_lane);

 private:
  enum class Leave : std::uint8_t { kNothing, kWhatIsUsed };
  Status close(Duration timeout, Leave leave);
  Status go_on(Instant deadline, Leave leave);

  LaneAccess& lane_;
  const Clock& clock_;
  const std::string agent_;
  Life& life_;
  Steps& steps_;
  std::atomic<bool> is_busy_{false};  ///< A call of `close` goes on, and it alone touches the next one.
  bool has_begun_ = false;
  std::atomic<bool> is_unpublished_{false};  ///< Nothing is left to be taken from the directory, or it had its time.
};

}  // namespace hawser::agent
