#pragma once

// co_await for transfers and completion queues: optional, above the public API, header only.
//
//   hawser::Task<hawser::Status> push(hawser::Plan plan) {
//     auto sent = plan.submit({.notify = "layer-0"});
//     if (!sent) co_return sent.error();
//     co_return co_await hawser::finished(*sent);
//   }
//   hawser::AwaitLoop loop(agent);
//   hawser::Status outcome = loop.run(push(plan), 2s);
//
// An AwaitLoop resumes coroutines on the thread that runs it, between rounds of Agent::poll; nothing is resumed from a
// driver's thread. A Task is lazy: it begins when it is awaited or given to a loop.
//
// Thread rule: a loop, its tasks and what they await belong to one thread. Lifetime: a Transfer outlives the co_await
// on it; dropping a Task drops its coroutine, which cancels the transfers that it holds.

#include <algorithm>
#include <coroutine>
#include <cstdlib>
#include <exception>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

#include <hawser/agent.h>
#include <hawser/status.h>
#include <hawser/time.h>
#include <hawser/transfer.h>

HAWSER_NAMESPACE_BEGIN

class AwaitLoop;

namespace await_detail {

/// The loop that is running a coroutine of this thread now.
inline thread_local AwaitLoop* running_loop = nullptr;

/// Something that a coroutine waits for: looked at by the loop, resumed when ready.
struct Waiting {
  std::coroutine_handle<> coroutine;
  const Transfer* transfer = nullptr;
};

}  // namespace await_detail

/// A lazy coroutine that ends with a value.
template <typename T>
class [[nodiscard]] Task {
 public:
  struct promise_type {
    std::optional<T> value;
    std::coroutine_handle<> next;  ///< Who awaits this task.

    Task get_return_object() { return Task(std::coroutine_handle<promise_type>::from_promise(*this)); }
    std::suspend_always initial_suspend() noexcept { return {}; }
    struct Final {
      bool await_ready() noexcept { return false; }
      std::coroutine_handle<> await_suspend(std::coroutine_handle<promise_type> ended) noexcept {
        const std::coroutine_handle<> awaiting = ended.promise().next;
        return awaiting ? awaiting : std::noop_coroutine();
      }
      void await_resume() noexcept {}
    };
    Final final_suspend() noexcept { return {}; }
    void return_value(T result) { value.emplace(std::move(result)); }
    void unhandled_exception() { std::terminate(); }  // No exception crosses this library.
  };

  Task(Task&& other) noexcept : coroutine_(std::exchange(other.coroutine_, nullptr)) {}
  Task& operator=(Task&& other) noexcept {
    if (this != &other) {
      if (coroutine_) coroutine_.destroy();
      coroutine_ = std::exchange(other.coroutine_, nullptr);
    }
    return *this;
  }
  ~Task() {
    if (coroutine_) coroutine_.destroy();
  }

  bool await_ready() const noexcept { return coroutine_.done(); }
  std::coroutine_handle<> await_suspend(std::coroutine_handle<> next) noexcept {
    coroutine_.promise().next = next;
    return coroutine_;
  }
  T await_resume() { return std::move(*coroutine_.promise().value); }

 private:
  friend class AwaitLoop;
  explicit Task(std::coroutine_handle<promise_type> coroutine) : coroutine_(coroutine) {}
  std::coroutine_handle<promise_type> coroutine_;
};

/// Runs coroutines over one agent on the calling thread.
class AwaitLoop {
 public:
  /// A task's end: its Status, or its value or the reason why there is none.
  template <typename T>
  using Outcome = std::conditional_t<std::is_same_v<T, Status>, Status, Result<T>>;

  explicit AwaitLoop(Agent& agent) : agent_(agent) {}
  AwaitLoop(const AwaitLoop&) = delete;
  AwaitLoop& operator=(const AwaitLoop&) = delete;

  /// Runs `task` to its end, making the agent's progress. kTimedOut when `timeout` ran out first; the task is dropped
  /// then, with all that it awaits.
  template <typename T>
  Outcome<T> run(Task<T> task, Duration timeout) {
    const Instant deadline = Clock::steady().now() + timeout;
    AwaitLoop* const outer = std::exchange(await_detail::running_loop, this);
    task.coroutine_.resume();
    while (!task.coroutine_.done() && Clock::steady().now() < deadline) {
      if (resume_ready() == 0 && agent_.poll() == 0) {
        agent_.wait(std::min<Duration>(deadline - Clock::steady().now(), std::chrono::milliseconds(10)));
      }
    }
    await_detail::running_loop = outer;
    if (!task.coroutine_.done()) {
      waiting_.clear();
      return Status(Code::kTimedOut, "AwaitLoop::run: the task did not end in time");
    }
    return std::move(*task.coroutine_.promise().value);
  }

  void add(await_detail::Waiting waiting) { waiting_.push_back(waiting); }

 private:
  std::size_t resume_ready() {
    std::size_t resumed = 0;
    for (std::size_t i = 0; i < waiting_.size();) {
      if (!waiting_[i].transfer->done()) {
        ++i;
        continue;
      }
      const std::coroutine_handle<> coroutine = waiting_[i].coroutine;
      waiting_[i] = waiting_.back();
      waiting_.pop_back();
      coroutine.resume();  // May add to the list.
      ++resumed;
    }
    return resumed;
  }

  Agent& agent_;
  std::vector<await_detail::Waiting> waiting_;
};

/// co_await finished(transfer): its final status. Inside AwaitLoop::run only.
inline auto finished(const Transfer& transfer) {
  struct Awaiter {
    const Transfer& transfer;
    bool await_ready() const { return transfer.done(); }
    void await_suspend(std::coroutine_handle<> coroutine) const {
      if (await_detail::running_loop == nullptr) {
        abort_on(Status(Code::kInvalid, "finished() was awaited outside of AwaitLoop::run"));
      }
      await_detail::running_loop->add({.coroutine = coroutine, .transfer = &transfer});
    }
    Status await_resume() const { return transfer.status(); }
  };
  return Awaiter{transfer};
}

HAWSER_NAMESPACE_END
