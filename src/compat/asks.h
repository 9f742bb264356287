#pragma once

// Asks: questions to metadata listeners, many at once. A peer that says nothing delays nobody but itself.
//
// A question is asked again until its time is over while nobody listens there, or the listener closes without an
// answer: both ends of a pair mostly start at once. What changes metadata at one address (a load, an invalidation)
// goes there in the order in which it was handed in. What only asks waits for nothing.
//
// Thread rule: thread-safe. A thread of its own asks, and calls `done` there under its lock: it must not call back.
// Lifetime: that thread ends with it.

#include <atomic>
#include <cstddef>
#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include <hawser/time.h>

#include "base/address.h"
#include "base/events.h"
#include "base/mutex.h"
#include "compat/ask_link.h"
#include "compat/frame.h"

HAWSER_NAMESPACE_BEGIN
namespace compat {

inline constexpr std::size_t kAsksMax = 256;                         ///< At once.
inline constexpr std::size_t kAskBytesMax = std::size_t{128} << 20;  ///< Of their questions, and again of answers.
inline constexpr Duration kAskTime = std::chrono::seconds(5);        ///< For one, from when it is begun.

struct AskJob {
  std::string call;
  std::string name;  ///< Of the agent whose metadata is asked for; else empty.
  Frame frame;
  base::SocketAddress address;
};

class Asks {
 public:
  using Done = std::function<void(const AskJob& job, Result<Frame> answer)>;
  static Result<std::unique_ptr<Asks>> open(Trust trust, Done done);
  ~Asks();
  Asks(const Asks&) = delete;
  Asks& operator=(const Asks&) = delete;

  /// kBusy at a bound.
  Status add(AskJob job);
  /// Nobody wants that agent's metadata any more: `done` is not called for it from here on.
  void forget(std::string_view name);
  /// In a forked child: the thread is not here.
  void disown();

 private:
  struct One {
    AskJob job;
    std::string question;
    Instant deadline = Instant::max();  ///< Once it was begun.
    Instant retry_at = Instant::min();
    Duration pause = {};
    Status lost;  ///< Why the last try failed.
    std::optional<AskLink> link;
    bool is_forgotten = false;
  };

  Asks(base::EventFd wake, Trust trust, Done done);
  void run();
  /// Sleeps until something is to be done. Which of them are ready.
  std::vector<const One*> await();
  /// True: it is over.
  bool step(One& one, bool is_ready, Instant now) HAWSER_REQUIRES(mutex_);
  bool try_again(One& one, Instant now) HAWSER_REQUIRES(mutex_);
  bool must_wait(const One& one) const HAWSER_REQUIRES(mutex_);
  void bound_answers() HAWSER_REQUIRES(mutex_);
  Instant next_of(const One& one) const HAWSER_REQUIRES(mutex_);

  const base::EventFd wake_;
  const Trust trust_;
  const Done done_;
  std::atomic<bool> stop_{false};
  base::Mutex mutex_;
  std::list<One> all_ HAWSER_GUARDED_BY(mutex_);  ///< In the order in which they were handed in; at most kAsksMax.
  std::size_t bytes_ HAWSER_GUARDED_BY(mutex_) = 0;
  std::thread thread_;
};

}  // namespace compat
HAWSER_NAMESPACE_END
