#pragma once

// BatchCore: operations submitted together, each ending once with an outcome of its own. BellCore: who is told of it.
//
// Whoever sees an operation's end first settles it: the waiter, the submitter or the engine's thread. What an operation
// uses (memory, plan, transfer) is kept until then, and while somebody waits on it. It has ended once that is let go:
// who is told of the end has his memory to himself.
//
// Thread rule: thread-safe. Its mutex is never held while the engine's is taken, nor while owners of memory are let go.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <hawser/rdma.h>
#include <hawser/transfer.h>

#include "base/events.h"
#include "base/mutex.h"

HAWSER_NAMESPACE_BEGIN
namespace rdma {

class BellCore {
 public:
  explicit BellCore(base::EventFd event) : event_(std::move(event)) {}
  int fd() const { return event_.fd(); }
  void ring(std::uint64_t cookie);
  std::vector<std::uint64_t> take();

 private:
  const base::EventFd event_;
  base::Mutex mutex_;
  std::vector<std::uint64_t> ended_ HAWSER_GUARDED_BY(mutex_);  ///< One for each `tell`, so callers bound it.
};

/// One operation of a batch.
struct Item {
  Op op;
  std::optional<std::string> notify;
  std::uint64_t bytes = 0;
  Plan plan;
  Transfer transfer;
  bool is_atomic = false;  ///< What it found goes to the local memory, too, where one was given.
  bool posted = false;     ///< `transfer` is one.
  unsigned waiters = 0;    ///< Threads that wait on `transfer`, which stays while there are any.
  bool cancelled = false;  ///< Asked for before it was posted.
  Status busy = {};        ///< Which bound was full when it was to be posted the last time.
  bool settled = false;    ///< The outcome is known.
  bool final = false;      ///< And nothing is kept any more.
  Outcome outcome;
};

class BatchCore {
 public:
  BatchCore(std::weak_ptr<Engine> engine, std::uint64_t serial, std::size_t size, Instant deadline);
  ~BatchCore();

  const std::uint64_t serial;
  const Instant deadline;
  const std::weak_ptr<Engine> engine;

  /// Ends an operation; the first end counts.
  void settle(std::size_t index, Outcome outcome);
  /// Settles it when its transfer has ended. True: it has ended.
  bool look(std::size_t index);
  /// Runs `work` on an operation that is not settled, with the mutex held.
  template <typename Work>
  void with(std::size_t index, Work&& work) {
    const base::MutexLock lock(mutex_);
    if (!items_[index].settled) work(items_[index]);
    changed_.notify_all();
  }

  bool done() const;
  Status wait(Duration timeout);
  Status status() const;
  std::vector<Outcome> outcomes() const;
  std::size_t size() const { return size_; }
  void cancel();
  bool tell(const std::shared_ptr<BellCore>& bell, std::uint64_t cookie);

 private:
  /// False: it did not end until `until`.
  bool await(std::size_t index, Instant until);
  void wait_for(std::size_t index, Instant until);
  /// What a settled operation kept, for `finish`: its slot is free for another then.
  static Item take_remains(Item& item);
  /// Lets it go without the mutex, and tells the end.
  void finish(std::size_t index, Item remains);

  const std::size_t size_;
  mutable base::Mutex mutex_;
  base::CondVar changed_;
  std::vector<Item> items_ HAWSER_GUARDED_BY(mutex_);  ///< Never grows.
  std::size_t open_ HAWSER_GUARDED_BY(mutex_);
  std::vector<std::pair<std::shared_ptr<BellCore>, std::uint64_t>> bells_ HAWSER_GUARDED_BY(mutex_);
};

}  // namespace rdma
HAWSER_NAMESPACE_END
