#pragma once

// TestWriters: threads that count in a test's pages, each in a word of its own on every page, and know what is there.
//
// Thread rule: one thread. Lifetime: the pages outlive it; stop() or the destructor ends the threads.

#include <atomic>
#include <cstdint>
#include <span>
#include <thread>
#include <vector>

namespace hawser::backend {

class TestWriters {
 public:
  static constexpr std::size_t kPage = 4096;
  static constexpr std::size_t kThreads = 2;

  explicit TestWriters(std::span<std::byte> pages) : pages_(pages) {
    for (std::size_t i = 0; i < kThreads; ++i) {
      counted_[i].resize(pages.size() / kPage);
      threads_.emplace_back([this, i] { count(i); });
    }
  }
  ~TestWriters() { stop(); }
  TestWriters(const TestWriters&) = delete;
  TestWriters& operator=(const TestWriters&) = delete;

  void stop() {
    is_over_ = true;
    for (std::thread& thread : threads_) thread.join();
    threads_.clear();
  }
  /// Waits until each thread went once more over a part of the pages.
  void await_some() const {
    for (const auto& stores : stores_) {
      for (const std::uint64_t before = stores; stores < before + 100;) std::this_thread::yield();
    }
  }
  /// After stop(): stores that are not there.
  std::uint64_t lost() const {
    std::uint64_t lost = 0;
    for (std::size_t i = 0; i < kThreads; ++i) {
      for (std::size_t page = 0; page < counted_[i].size(); ++page) lost += counted_[i][page] - word(i, page)->load();
    }
    return lost;
  }

 private:
  /// Who moves the pages makes those who store wait, which ThreadSanitizer cannot see: to it this would be a race.
  __attribute__((no_sanitize("thread"), noinline)) static void add_one(volatile std::uint64_t* word) {
    *word = *word + 1;  // Nobody else stores here, and atomic operations would be looked at nevertheless.
  }
  std::atomic<std::uint64_t>* word(std::size_t thread, std::size_t page) const {
    return reinterpret_cast<std::atomic<std::uint64_t>*>(pages_.data() + page * kPage + thread * 64);
  }
  void count(std::size_t thread) {
    std::vector<std::uint64_t>& counted = counted_[thread];
    for (std::size_t page = 0; !is_over_; page = (page + 1) % counted.size()) {
      add_one(reinterpret_cast<std::uint64_t*>(word(thread, page)));
      ++counted[page];
      ++stores_[thread];
    }
  }

  const std::span<std::byte> pages_;
  std::vector<std::uint64_t> counted_[kThreads];
  std::atomic<std::uint64_t> stores_[kThreads]{};
  std::atomic<bool> is_over_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace hawser::backend
