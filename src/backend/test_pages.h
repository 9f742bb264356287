#pragma once

// TestPages: private memory of a test, mapped by itself so that nothing else lies on its pages.
//
// Thread rule: one thread. Lifetime: unmaps when it dies.

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <cstddef>
#include <cstring>
#include <span>

namespace hawser::backend {

class TestPages {
 public:
  static constexpr std::size_t kPage = 4096;

  explicit TestPages(std::size_t pages) : size_(pages * kPage) {
    void* const at = ::mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    EXPECT_NE(at, MAP_FAILED);
    base_ = static_cast<std::byte*>(at);
    fill(1);
  }
  ~TestPages() { ::munmap(base_, size_); }
  TestPages(const TestPages&) = delete;
  TestPages& operator=(const TestPages&) = delete;

  std::byte* base() const { return base_; }
  std::span<std::byte> bytes() const { return {base_, size_}; }
  std::span<std::byte> bytes(std::size_t offset, std::size_t size) const { return {base_ + offset, size}; }
  static std::byte value(std::size_t at, unsigned seed) { return static_cast<std::byte>(at / 7 + at * seed); }
  void fill(unsigned seed) {
    for (std::size_t i = 0; i < size_; ++i) base_[i] = value(i, seed);
  }
  bool holds(unsigned seed) const {
    for (std::size_t i = 0; i < size_; ++i) {
      if (base_[i] != value(i, seed)) return false;
    }
    return true;
  }

 private:
  std::size_t size_;
  std::byte* base_ = nullptr;
};

}  // namespace hawser::backend
