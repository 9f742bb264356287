#pragma once

// The bounded queue behind CompletionQueue. Thread-safe.
//
// A transfer's place is reserved at submit, so pushing its completion cannot fail; other entries (kNotification,
// kMessage, kPeer, kRoom) are hints that merge: at most one of a kind and cookie waits at a time, in places kept for
// them. There are as many different ones as open channels, and three.

#include <atomic>
#include <cstdint>
#include <memory>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include <hawser/completion.h>

#include "agent/fork_guard.h"
#include "base/events.h"
#include "base/spin.h"

namespace hawser::agent {

class Core;

class QueueCore {
 public:
  static Result<std::shared_ptr<QueueCore>> make(std::weak_ptr<Core> core, std::size_t capacity);

  bool reserve();
  /// Gives back a place that nothing was pushed to. It is room for who was refused one meanwhile.
  void unreserve();
  /// Fills a reserved place.
  void push(Completion completion);
  /// Nothing new when such a hint waits already.
  void hint(CompletionKind kind, std::uint64_t cookie);
  std::size_t poll(std::span<Completion> out);
  bool empty() const { return waiting_.load(std::memory_order_acquire) == 0; }

  int event_fd();
  std::size_t capacity() const { return capacity_; }
  std::shared_ptr<Core> agent_core() const { return core_.lock(); }

 private:
  QueueCore(std::weak_ptr<Core> core, std::size_t capacity, base::EventFd event)
      : core_(std::move(core)), capacity_(capacity), ring_(capacity + kHints), event_(std::move(event)) {}
  using Hint = std::pair<CompletionKind, std::uint64_t>;
  void put(Completion completion) HAWSER_REQUIRES(lock_);
  void put_hint(const Hint& hint) HAWSER_REQUIRES(lock_);
  /// Those who were refused a place may wait for this. No lane turned, so nobody else wakes them.
  void tell_of_room();
  static constexpr std::size_t kHints = 64;

  /// In a child of the process that made it. Its lock may be held for ever there, and its descriptor is the parent's.
  bool is_forked() const { return forks_ != forks_so_far(); }

  const std::weak_ptr<Core> core_;
  const std::size_t capacity_;
  const std::uint32_t forks_ = watch_forks();
  base::SpinLock lock_;
  std::vector<Completion> ring_ HAWSER_GUARDED_BY(lock_);
  std::size_t head_ HAWSER_GUARDED_BY(lock_) = 0;
  std::size_t count_ HAWSER_GUARDED_BY(lock_) = 0;
  std::vector<Hint> hints_ HAWSER_GUARDED_BY(lock_);  ///< Those that wait in the ring.
  std::set<Hint> later_ HAWSER_GUARDED_BY(lock_);     ///< Those that found no place there.
  std::size_t reserved_ HAWSER_GUARDED_BY(lock_) = 0;
  bool refused_ HAWSER_GUARDED_BY(lock_) = false;  ///< Somebody got kBusy: a kRoom entry is owed.
  std::atomic<std::size_t> waiting_{0};
  bool event_wanted_ HAWSER_GUARDED_BY(lock_) = false;
  base::EventFd event_;  ///< Once it is wanted, it changes under the lock together with the ring.
};

}  // namespace hawser::agent
