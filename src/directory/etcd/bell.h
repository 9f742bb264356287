#pragma once

// Bell: tells sleepers that something happened. A ring before they slept is not missed: they say how often they
// had heard it, or the bell remembers it for each thread (`attend`, `wait_for_news`), so that what one thread is told
// is not lost for another. Once closed it lets nobody sleep.
//
// Thread rule: any thread.

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>

#include <hawser/time.h>

#include "base/mutex.h"

namespace hawser::directory::etcd {

class Bell {
 public:
  void ring() {
    base::MutexLock lock(mutex_);
    ++count_;
    rung_.notify_all();
  }
  void close() {
    base::MutexLock lock(mutex_);
    closed_ = true;
    rung_.notify_all();
  }
  bool is_closed() {
    base::MutexLock lock(mutex_);
    return closed_;
  }
  std::uint64_t count() {
    base::MutexLock lock(mutex_);
    return count_;
  }
  /// Until it has rung more than `heard` times, is closed, or it is `until`. Returns how often it has rung.
  std::uint64_t wait(std::uint64_t heard, Instant until) {
    base::MutexLock lock(mutex_);
    while (count_ == heard && !closed_ && rung_.wait_until(mutex_, until)) continue;
    return count_;
  }

  /// From here on this thread hears it, unless it does already.
  void attend() {
    if (!heard()) remember(count());
  }
  /// Until it has rung since this thread attended, or was last told of it here: true then. For a thread that does not
  /// attend, from now on.
  bool wait_for_news(Instant until) {
    attend();
    const std::uint64_t told = *heard();
    const std::uint64_t rang = wait(told, until);
    remember(rang);
    return rang != told;
  }

 private:
  struct Heard {
    std::uint64_t bell = 0;  ///< 0: none.
    std::uint64_t count = 0;
  };
  /// A thread that attends more hears the one it attended first anew.
  static constexpr std::size_t kAttendedMax = 8;

  /// The latest first.
  static std::array<Heard, kAttendedMax>& of_this_thread() {
    static thread_local std::array<Heard, kAttendedMax> heard;
    return heard;
  }
  static std::uint64_t next_id() {
    static std::atomic<std::uint64_t> last{0};
    return last.fetch_add(1, std::memory_order_relaxed) + 1;
  }
  Heard* found() const { return std::ranges::find(of_this_thread(), id_, &Heard::bell); }
  std::optional<std::uint64_t> heard() const {
    const Heard* const at = found();
    return at == of_this_thread().end() ? std::nullopt : std::optional(at->count);
  }
  void remember(std::uint64_t count) const {
    auto& all = of_this_thread();
    Heard* at = found();
    if (at == all.end()) --at;
    std::rotate(all.begin(), at, at + 1);
    all.front() = {.bell = id_, .count = count};
  }

  const std::uint64_t id_ = next_id();  ///< Not its address, where another may lie later.
  base::Mutex mutex_;
  base::CondVar rung_;
  std::uint64_t count_ HAWSER_GUARDED_BY(mutex_) = 0;
  bool closed_ HAWSER_GUARDED_BY(mutex_) = false;
};

}  // namespace hawser::directory::etcd
