#pragma once

// Mapping: a mapped memory file that a forked child does not inherit; and the checks that make a peer's file safe to
// map: it is sealed against shrinking, so that a look into it never meets SIGBUS.
//
// Thread rule: a value that moves; one thread at a time. Lifetime: unmaps when it dies.

#include <cstddef>
#include <cstdint>
#include <utility>

#include <hawser/status.h>

#include "base/fd.h"

namespace hawser::backend::shm {

class Mapping {
 public:
  enum class Access : std::uint8_t { kRead, kReadWrite };

  Mapping() = default;
  /// The first `size` bytes of the file.
  static Result<Mapping> map(int fd, std::size_t size, Access access);
  Mapping(Mapping&& other) noexcept
      : base_(std::exchange(other.base_, nullptr)), size_(std::exchange(other.size_, 0)) {}
  Mapping& operator=(Mapping&& other) noexcept {
    std::swap(base_, other.base_);
    std::swap(size_, other.size_);
    return *this;
  }
  ~Mapping() { reset(); }

  std::byte* base() const { return base_; }
  std::size_t size() const { return size_; }
  explicit operator bool() const { return base_ != nullptr; }
  void reset();
  /// Gives up the last `size` bytes (all, when there are no more), so that a large one can go in steps.
  void shrink_by(std::size_t size);

 private:
  Mapping(std::byte* base, std::size_t size) : base_(base), size_(size) {}
  std::byte* base_ = nullptr;
  std::size_t size_ = 0;
};

/// A sealed memory file of `size` bytes. `reserve`: all pages are taken now, so that no touch fails later.
Result<base::Fd> make_sealed_file(const char* name, std::size_t size, bool reserve);
/// The size of a file that a peer sent; kCorrupt when it may shrink.
Result<std::size_t> sealed_size(int fd);
/// Another descriptor of the same file that can only be read.
Result<base::Fd> reopen_read_only(int fd);

}  // namespace hawser::backend::shm
