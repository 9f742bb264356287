// Who hears of a transfer's end by a queue or by a word may ask the handle at once.

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <span>
#include <stop_token>
#include <thread>
#include <utility>

#include <hawser/hawser.h>

#include "agent/open.h"
#include "backend/loopback/factory.h"

namespace hawser::agent {
namespace {

constexpr int kTimes = 20'000;

/// An agent that only this thread turns, with transfers to itself that begin when a word says so.
class EndNewsTest : public testing::Test {
 protected:
  void SetUp() override {
    region_ = agent_.add_region({.name = "data", .bytes = std::as_writable_bytes(std::span(data_))}).value();
    const LocalRange from = region_.range(0, 64);
    const RemoteRange to = agent_.self().range("data", 64, 64);
    plan_ = agent_.plan_write(agent_.self(), {&from, 1}, {&to, 1}).value();
  }

  /// Lets `kTimes` transfers end while another thread spins on `heard`. Returns how often the handle was behind.
  template <typename Heard>
  int count_early(SubmitOptions options, Heard heard) {
    SignalWord after{.word = region_.range(128, 8), .value = 0};
    options.after = &after;
    std::atomic<const Transfer*> watched = nullptr;
    std::atomic<int> early = 0;
    std::jthread watcher([&](const std::stop_token& stop) {
      while (!stop.stop_requested()) {
        const Transfer* const transfer = watched.load(std::memory_order_acquire);
        if (transfer == nullptr || !heard()) continue;
        if (!transfer->done()) ++early;
        watched.store(nullptr, std::memory_order_release);
      }
    });
    for (int i = 1; i <= kTimes; ++i) {
      after.value = i;
      done_.value = i;
      const Transfer transfer = plan_.submit(options).value();
      watched.store(&transfer, std::memory_order_release);
      std::atomic_ref(data_[16]).store(i, std::memory_order_release);
      while (watched.load(std::memory_order_acquire) != nullptr) agent_.poll();
    }
    return early;
  }

  alignas(8) std::array<std::uint64_t, 32> data_ = {};
  Agent agent_ = std::move(open_with({.name = "a"}, {backend::loopback_factory()}).value());
  Region region_;
  Plan plan_;
  SignalWord done_;
};

TEST_F(EndNewsTest, AnEntryIsNotAheadOfItsHandle) {
  CompletionQueue queue = agent_.make_queue(8).value();
  const auto heard = [&] {
    Completion one;
    return queue.poll({&one, 1}) == 1 && one.kind == CompletionKind::kTransfer;
  };
  EXPECT_EQ(count_early({.queue = &queue}, heard), 0);
}

TEST_F(EndNewsTest, AWordIsNotAheadOfItsHandle) {
  done_.word = region_.range(136, 8);
  const auto heard = [&] { return std::atomic_ref(data_[17]).load(std::memory_order_acquire) == done_.value; };
  EXPECT_EQ(count_early({.done = &done_}, heard), 0);
}

}  // namespace
}  // namespace hawser::agent
