#include "backend/adopted/write_guard.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <future>
#include <optional>
#include <thread>

#include "backend/adopted/adoption.h"
#include "backend/adopted/test_writers.h"
#include "backend/test_pages.h"

namespace hawser::backend {
namespace {

using namespace std::chrono_literals;

AddressRange range_of(std::span<std::byte> bytes) {
  const auto begin = reinterpret_cast<std::uintptr_t>(bytes.data());
  return {begin, begin + bytes.size()};
}

/// What a thread does, and whether it got through it.
class Step {
 public:
  template <typename Action>
  explicit Step(Action action)
      : thread_([this, action] {
          has_begun_ = true;
          action();
          over_.set_value();
        }) {
    while (!has_begun_) std::this_thread::yield();
  }
  ~Step() { thread_.join(); }
  Step(const Step&) = delete;
  Step& operator=(const Step&) = delete;
  bool is_over_after(std::chrono::milliseconds time) const { return end_.wait_for(time) == std::future_status::ready; }

 private:
  std::atomic<bool> has_begun_ = false;
  std::promise<void> over_;
  std::future<void> end_ = over_.get_future();
  std::thread thread_;
};

// Not to be moved or left out by the compiler, nor judged by ThreadSanitizer, which does not see that the guard orders
// them.
__attribute__((no_sanitize("thread"), noinline)) std::byte look(const std::byte& at) {
  return static_cast<const volatile std::byte&>(at);
}
__attribute__((no_sanitize("thread"), noinline)) void store_at(std::byte& at, std::byte value) {
  static_cast<volatile std::byte&>(at) = value;
}

class WriteGuardTest : public testing::TestWithParam<bool> {
 protected:
  void SetUp() override {
    Result<WriteGuard> made = GetParam() ? WriteGuard::make() : WriteGuard::make_for_threads_only();
    if (!made) GTEST_SKIP() << "no userfaultfd here: " << made.error().to_string();
    guard_.emplace(*std::move(made));
  }
  const WriteGuard& guard() const { return *guard_; }

 private:
  std::optional<WriteGuard> guard_;
};
INSTANTIATE_TEST_SUITE_P(Kinds, WriteGuardTest, testing::Values(false, true),
                         [](const auto& one) { return one.param ? "what_is_allowed" : "threads_only"; });

TEST_P(WriteGuardTest, AStoreWaitsAndReadingGoesOn) {
  TestPages pages(8);
  for (int round = 0; round < 2; ++round) {  // What was let go can be held again.
    std::byte& word = pages.base()[5 * TestPages::kPage];
    const std::byte before = look(word), after{static_cast<unsigned char>(0x70 + round)};
    std::optional<WriteGuard::Window> window(std::in_place, &guard(), range_of(pages.bytes()));
    ASSERT_TRUE(window->status().ok()) << window->status().to_string();
    const Step store([&] { store_at(word, after); });
    EXPECT_FALSE(store.is_over_after(30ms));
    EXPECT_EQ(look(word), before);
    window.reset();
    EXPECT_TRUE(store.is_over_after(10s));
    EXPECT_EQ(look(word), after);
  }
}

TEST_P(WriteGuardTest, PagesThatWereNeverTouchedAreHeldToo) {
  constexpr std::size_t kSize = 4u << 20;  // With room for a huge page of zeroes.
  void* const at = ::mmap(nullptr, kSize, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(at, MAP_FAILED);
  const std::span<std::byte> bytes(static_cast<std::byte*>(at), kSize);
  {
    std::optional<WriteGuard::Window> window(std::in_place, &guard(), range_of(bytes));
    ASSERT_TRUE(window->status().ok()) << window->status().to_string();
    const Step store([&] { store_at(bytes[kSize / 2], std::byte{9}); });
    EXPECT_FALSE(store.is_over_after(30ms));
    window.reset();
    EXPECT_TRUE(store.is_over_after(10s));
  }
  EXPECT_EQ(bytes[kSize / 2], std::byte{9});
  ::munmap(at, kSize);
}

TEST_P(WriteGuardTest, SeveralMappingsAreHeldAsOne) {
  TestPages pages(6);
  // One of them out of the middle becomes a mapping of its own.
  ASSERT_EQ(::mprotect(pages.base() + 2 * TestPages::kPage, TestPages::kPage, PROT_READ), 0);
  std::optional<WriteGuard::Window> window(std::in_place, &guard(), range_of(pages.bytes()));
  ASSERT_TRUE(window->status().ok()) << window->status().to_string();
  const Step first([&] { store_at(pages.base()[0], std::byte{9}); });
  const Step last([&] { store_at(pages.base()[5 * TestPages::kPage], std::byte{9}); });
  EXPECT_FALSE(first.is_over_after(30ms));
  EXPECT_FALSE(last.is_over_after(1ms));
  window.reset();
  EXPECT_TRUE(first.is_over_after(10s) && last.is_over_after(10s));
}

TEST_P(WriteGuardTest, ASystemCallThatStoresWaitsOrFails) {
  TestPages pages(4);
  std::array<int, 2> ends;
  ASSERT_EQ(::pipe2(ends.data(), O_CLOEXEC), 0);
  const base::Fd from(ends[0]), to(ends[1]);
  ASSERT_EQ(::write(to.get(), "x", 1), 1);
  ssize_t got = 0;
  int error = 0;
  {
    std::optional<WriteGuard::Window> window(std::in_place, &guard(), range_of(pages.bytes()));
    ASSERT_TRUE(window->status().ok()) << window->status().to_string();
    const Step call([&] {
      got = ::read(from.get(), pages.base(), 1);
      error = errno;
    });
    EXPECT_EQ(call.is_over_after(30ms), !guard().holds_system_calls());
    EXPECT_EQ(look(pages.base()[0]), TestPages::value(0, 1));
    window.reset();
    EXPECT_TRUE(call.is_over_after(10s));
  }
  if (guard().holds_system_calls()) {
    EXPECT_EQ(got, 1);
    EXPECT_EQ(pages.base()[0], std::byte{'x'});
  } else {
    EXPECT_EQ(got, -1);
    EXPECT_EQ(error, EFAULT);
  }
}

/// A handler runs on whatever thread, also on the one that holds: there its store would wait for itself.
TEST_P(WriteGuardTest, SignalsComeOnceItLetGo) {
  static std::atomic<int> handled;
  handled = 0;
  struct sigaction mine {
  }, before{};
  mine.sa_handler = [](int) { ++handled; };
  ASSERT_EQ(::sigaction(SIGUSR2, &mine, &before), 0);
  TestPages pages(1);
  {
    const WriteGuard::Window window(&guard(), range_of(pages.bytes()));
    ASSERT_TRUE(window.status().ok());
    ASSERT_EQ(::pthread_kill(::pthread_self(), SIGUSR2), 0);
    EXPECT_EQ(handled, 0);
  }
  EXPECT_EQ(handled, 1);
  ::sigaction(SIGUSR2, &before, nullptr);
}

TEST_P(WriteGuardTest, NothingMappedIsAnErrorAndHoldsNothing) {
  TestPages pages(2);
  ASSERT_EQ(::munmap(pages.base() + TestPages::kPage, TestPages::kPage), 0);
  {
    const WriteGuard::Window window(&guard(), range_of(pages.bytes()));
    EXPECT_FALSE(window.status().ok());
    pages.base()[0] = std::byte{3};
  }
  EXPECT_EQ(pages.base()[0], std::byte{3});
}

TEST_P(WriteGuardTest, AnotherThatWatchesIsAnError) {
  TestPages pages(2);
  const WriteGuard other = WriteGuard::make().value();
  const WriteGuard::Window held(&other, range_of(pages.bytes()));
  ASSERT_TRUE(held.status().ok());
  const WriteGuard::Window window(&guard(), range_of(pages.bytes()));
  EXPECT_FALSE(window.status().ok());
  // And they stay where they are.
  EXPECT_FALSE(Adoption::make(pages.bytes(), true, &guard()));
}

TEST_P(WriteGuardTest, NoStoreIsLostWhileMemoryMoves) {
  TestPages pages(2048);
  std::memset(pages.base(), 0, pages.bytes().size());
  TestWriters writers(pages.bytes());
  for (int round = 0; round < 10; ++round) {
    writers.await_some();
    auto adoption = Adoption::make(pages.bytes(), true, &guard());
    ASSERT_TRUE(adoption) << adoption.error().to_string();
    writers.await_some();
    const Status back = (*adoption)->give_back();
    ASSERT_TRUE(back.ok()) << back.to_string();
  }
  writers.await_some();
  writers.stop();
  EXPECT_EQ(writers.lost(), 0u);
}

TEST_P(WriteGuardTest, NoStoreIsLostWhenAMoveFailsHalfWay) {
  constexpr std::size_t kBlock = 64u << 20;  // What moves at once.
  TestPages pages(kBlock / TestPages::kPage + 16);
  std::memset(pages.base(), 0, pages.bytes().size());
  TestWriters writers(pages.bytes().first(kBlock / 8));
  writers.await_some();
  const auto made = Adoption::make(pages.bytes(), true, &guard(), [](AddressRange block) {
    if (block.size() != kBlock) ::mprotect(block.data(), block.size(), PROT_NONE);  // the second cannot be read
  });
  EXPECT_FALSE(made);
  writers.await_some();
  writers.stop();
  EXPECT_EQ(writers.lost(), 0u);
}

/// Runs `action` on a thread whose stack is `stack`.
void run_on(std::span<std::byte> stack, void (*action)(std::span<std::byte>)) {
  struct Call {
    void (*action)(std::span<std::byte>);
    std::span<std::byte> stack;
  } call{action, stack};
  pthread_attr_t attributes;
  ASSERT_EQ(::pthread_attr_init(&attributes), 0);
  ASSERT_EQ(::pthread_attr_setstack(&attributes, stack.data(), stack.size()), 0);
  pthread_t thread{};
  const auto run = [](void* given) -> void* {
    const Call& what = *static_cast<Call*>(given);
    what.action(what.stack);
    return nullptr;
  };
  ASSERT_EQ(::pthread_create(&thread, &attributes, run, &call), 0);
  ::pthread_join(thread, nullptr);
  ::pthread_attr_destroy(&attributes);
}

TEST(WriteGuard, AThreadDoesNotMoveItsOwnStack) {
  TestPages pages(256);
  run_on(pages.bytes(), [](std::span<std::byte> stack) {
    const auto made = Adoption::make(stack, true, nullptr);
    ASSERT_FALSE(made);
    EXPECT_NE(made.error().to_string().find("stack"), std::string::npos) << made.error().to_string();
  });
}

}  // namespace
}  // namespace hawser::backend
