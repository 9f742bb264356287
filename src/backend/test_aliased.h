#pragma once

// AliasedMemory: gigabytes of address space over a few megabytes of memory, for tests of sizes. The same pages are
// mapped again and again; around places that a test names there are pages of their own, so that it sees what lands
// there.
//
// Thread rule: one thread. Lifetime: unmaps when it dies.

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/rng.h"

namespace hawser::backend {

class AliasedMemory {
 public:
  static constexpr std::uint64_t kBlock = std::uint64_t{8} << 20;
  static constexpr std::uint64_t kSeam = 8192;  ///< Bytes of own memory on each side of a seam.

  /// `size` is a multiple of kBlock, and each seam one of the page size.
  AliasedMemory(std::uint64_t size, std::vector<std::uint64_t> seams) : size_(size), seams_(std::move(seams)) {
    const int fd = ::memfd_create("aliased", MFD_CLOEXEC);
    EXPECT_EQ(::ftruncate(fd, static_cast<off_t>(kBlock)), 0);
    void* const at = ::mmap(nullptr, size_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    EXPECT_NE(at, MAP_FAILED);
    base_ = static_cast<std::byte*>(at);
    for (std::uint64_t place = 0; place < size_; place += kBlock) map(place, kBlock, MAP_SHARED, fd);
    ::close(fd);
    for (const std::uint64_t seam : seams_) {
      const std::uint64_t first = seam - std::min(seam, kSeam), last = std::min(size_, seam + kSeam);
      map(first, last - first, MAP_PRIVATE | MAP_ANONYMOUS, -1);
    }
  }
  ~AliasedMemory() { ::munmap(base_, size_); }
  AliasedMemory(const AliasedMemory&) = delete;
  AliasedMemory& operator=(const AliasedMemory&) = delete;

  std::span<std::byte> bytes() const { return {base_, size_}; }
  std::byte* base() const { return base_; }
  std::uint64_t size() const { return size_; }
  /// What is around a seam.
  std::span<std::byte> around(std::uint64_t seam) const {
    const std::uint64_t first = seam - std::min(seam, kSeam);
    return bytes().subspan(first, std::min(size_, seam + kSeam) - first);
  }
  /// Bytes of chance around the seams, other ones at each; the rest is as the shared pages are.
  void fill(std::uint64_t seed) {
    base::Rng rng(seed);
    for (const std::uint64_t seam : seams_) {
      for (std::byte& byte : around(seam)) byte = static_cast<std::byte>(rng.below(256));
    }
  }

 private:
  void map(std::uint64_t at, std::uint64_t size, int flags, int fd) {
    EXPECT_NE(::mmap(base_ + at, size, PROT_READ | PROT_WRITE, flags | MAP_FIXED, fd, 0), MAP_FAILED);
  }

  const std::uint64_t size_;
  const std::vector<std::uint64_t> seams_;
  std::byte* base_ = nullptr;
};

}  // namespace hawser::backend
