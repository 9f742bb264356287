#pragma once

// Leaving Python's global lock for a call, so that the interpreter never ends under one: calls that run without it are
// counted, and a hook at the interpreter's exit waits for them. A thread that asked for the lock after that would be
// ended by Python in the midst of C++ frames, which ends the process; it is left sleeping instead, as by Python 3.14.
//
// Thread rule: `Outside` is made and destroyed by a thread that holds the lock. Each extension module counts its own.

#include <Python.h>
#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

namespace hawser::api {

class Exit {
 public:
  static Exit& of_module() {
    static Exit* const one = new Exit;  // Never destroyed: threads may look at it to the very end.
    return *one;
  }

  /// The interpreter is on its way out: whoever waits ends that now.
  bool asked() const { return asked_.load(std::memory_order_relaxed); }

  void enter() { running_.fetch_add(1, std::memory_order_relaxed); }
  void leave() {
    const bool last = running_.fetch_sub(1, std::memory_order_acq_rel) == 1;
    if (!last || !asked()) return;
    const std::lock_guard<std::mutex> lock(mutex_);
    quiet_.notify_all();
  }

  /// Called at exit with the global lock held. Waits for running calls, 5 s at most.
  void wait() {
    leaving_thread_ = std::this_thread::get_id();
    asked_.store(true, std::memory_order_release);
    std::atomic_thread_fence(std::memory_order_seq_cst);  // See Inside.
    PyThreadState* const thread = PyEval_SaveThread();
    {
      std::unique_lock<std::mutex> lock(mutex_);
      quiet_.wait_for(lock, kPatience, [this] { return running_.load(std::memory_order_acquire) == 0; });
    }
    PyEval_RestoreThread(thread);
  }

  /// True where the interpreter ends, and this is not the thread that ends it.
  bool is_left_behind() const {
    return asked_.load(std::memory_order_acquire) && std::this_thread::get_id() != leaving_thread_;
  }
  /// Such a thread stays here for the rest of the process, without the lock.
  [[noreturn]] static void stay() {
    for (;;) ::pause();
  }

  /// In a forked child, where the threads that were counted do not exist.
  void forget() {
    running_.store(0, std::memory_order_relaxed);
    forks_.fetch_add(1, std::memory_order_relaxed);
  }
  /// How many forks lie between this process and the one that loaded the module. Asking for the process id would be a
  /// system call.
  int forks() const { return forks_.load(std::memory_order_relaxed); }

 private:
  static constexpr std::chrono::seconds kPatience{5};
  Exit() {
    ::pthread_atfork(nullptr, nullptr, [] { Exit::of_module().forget(); });
  }

  std::atomic<bool> asked_{false};
  std::thread::id leaving_thread_;  ///< Constant once `asked_`.
  std::atomic<long> running_{0};
  std::atomic<int> forks_{0};
  std::mutex mutex_;
  std::condition_variable quiet_;
};

/// While it lives, other Python threads run. Once the interpreter is leaving, the thread that ends it keeps the lock,
/// and no other one comes back.
class Outside {
 public:
  Outside() {
    Exit& exit = Exit::of_module();
    if (exit.is_left_behind()) {
      PyEval_SaveThread();
      Exit::stay();
    }
    if (exit.asked()) return;
    exit.enter();
    thread_ = PyEval_SaveThread();
  }
  ~Outside() {
    if (thread_ == nullptr) return;
    Exit& exit = Exit::of_module();
    if (exit.is_left_behind()) {
      exit.leave();
      Exit::stay();
    }
    PyEval_RestoreThread(thread_);
    exit.leave();
  }
  Outside(const Outside&) = delete;
  Outside& operator=(const Outside&) = delete;

 private:
  PyThreadState* thread_ = nullptr;
};

/// While it lives, C++ runs Python code, which gives the lock up and takes it again as it likes. Counted, too.
class Calling {
 public:
  Calling() {
    if (Exit::of_module().is_left_behind()) {
      PyEval_SaveThread();
      Exit::stay();
    }
    Exit::of_module().enter();
  }
  ~Calling() { Exit::of_module().leave(); }
  Calling(const Calling&) = delete;
  Calling& operator=(const Calling&) = delete;
};

/// For any thread, also one of C++ or one that is outside: it has the lock while this lives, if that was `granted`.
/// Once the interpreter is leaving, nobody is granted it. Counted.
class Inside {
 public:
  Inside() {
    Exit& exit = Exit::of_module();
    exit.enter();
    // With the one in Exit::wait: either that waits for this thread, or this thread sees that it was asked to end.
    std::atomic_thread_fence(std::memory_order_seq_cst);
    granted_ = !exit.asked();
    if (granted_) state_ = PyGILState_Ensure();
  }
  ~Inside() {
    if (granted_) PyGILState_Release(state_);
    Exit::of_module().leave();
  }
  Inside(const Inside&) = delete;
  Inside& operator=(const Inside&) = delete;
  bool granted() const { return granted_; }

 private:
  bool granted_ = false;
  PyGILState_STATE state_{};
};

/// `work()`, with the lock given up meanwhile.
template <typename Work>
auto outside(Work&& work) {
  const Outside away;
  return work();
}

/// As above, where `count` numbers are gone over. A few take less time than giving the lock up and taking it again.
template <typename Work>
auto outside_for(std::size_t count, Work&& work) {
  constexpr std::size_t kFew = 1024;
  if (count <= kFew) return work();
  return outside(std::forward<Work>(work));
}

/// Waits in slices, so that Ctrl-C and the interpreter's exit are seen. `slice(how_long)` waits that long at most,
/// without the lock, and tells whether it is over. False: the time is over, or the interpreter is leaving. Nothing: the
/// handler of a signal raised, and the Python error is set.
template <typename Slice>
std::optional<bool> wait_in_slices(std::chrono::nanoseconds timeout, Slice&& slice) {
  constexpr std::chrono::nanoseconds kSlice = std::chrono::milliseconds(50);
  std::chrono::nanoseconds left = timeout;
  std::optional<std::chrono::steady_clock::time_point> begin;
  for (;;) {
    if (Exit::of_module().asked()) return slice(std::chrono::nanoseconds(0));
    if (outside([&] { return slice(std::clamp(left, std::chrono::nanoseconds(0), kSlice)); })) return true;
    if (PyErr_CheckSignals() != 0) return std::nullopt;
    if (left <= kSlice) return false;
    const auto now = std::chrono::steady_clock::now();
    if (!begin) begin = now - kSlice;  // Mostly one slice is enough, and needs no clock.
    left = timeout - (now - *begin);
  }
}

}  // namespace hawser::api
