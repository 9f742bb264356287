#pragma once

// LongFeeder: looks at requests with long notifications while their client does not, so that what found no room when it
// was posted goes on once there is some. It has a thread of its own, for as long as there is such a request.
//
// Thread rule: thread-safe. Lifetime: what it looks at outlives it. Fork: a child has no such thread, and begins none.

#include <atomic>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>

#include <hawser/export.h>
#include <hawser/time.h>

HAWSER_NAMESPACE_BEGIN
namespace compat {

class LongFeeder {
 public:
  static constexpr Duration kLookEvery = std::chrono::milliseconds(5);

  /// `look` looks at all of them. False: there are none left.
  explicit LongFeeder(std::function<bool()> look) : look_(std::move(look)) {}
  LongFeeder(const LongFeeder&) = delete;
  LongFeeder& operator=(const LongFeeder&) = delete;
  ~LongFeeder() { stop(); }

  /// There is one now. Nothing happens after `stop`.
  void feed();
  /// Waits for a look that is under way. Not from within one.
  void stop();
  /// In a forked child: the thread is the parent's.
  void disown();

 private:
  void run();

  const std::function<bool()> look_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::thread thread_;
  bool is_wanted_ = false;   ///< Since the last look.
  bool is_running_ = false;  ///< The thread will look once more.
  bool is_stopped_ = false;
};

}  // namespace compat
HAWSER_NAMESPACE_END
