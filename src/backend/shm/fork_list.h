#pragma once

// ForkList: which descriptors a forked child must close, and a descriptor that keeps itself on the list.
//
// A fork may happen while any thread is anywhere, so the list is one bit per descriptor number, without a lock, and
// close_all() makes system calls only. Memory grows in blocks, once, and is kept until the list dies.
//
// Thread rule: any thread; close_all() in a forked child. Lifetime: the list outlives its ForkFds.

#include <unistd.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <utility>

#include "base/fd.h"

namespace hawser::backend::shm {

class ForkList {
 public:
  ForkList() = default;
  ~ForkList() {
    for (auto& block : blocks_) delete block.load(std::memory_order_relaxed);
  }
  ForkList(const ForkList&) = delete;
  ForkList& operator=(const ForkList&) = delete;

  void add(int fd) {
    if (std::atomic<std::uint64_t>* word = word_of(fd, true)) word->fetch_or(bit_of(fd), std::memory_order_relaxed);
  }
  void remove(int fd) {
    if (std::atomic<std::uint64_t>* word = word_of(fd, false)) word->fetch_and(~bit_of(fd), std::memory_order_relaxed);
  }
  void close_all() const {
    for (std::size_t i = 0; i < kBlocks; ++i) {
      const Block* block = blocks_[i].load(std::memory_order_acquire);
      for (std::size_t j = 0; block != nullptr && j < kBlockFds; ++j) {
        if ((block->words[j / 64].load(std::memory_order_relaxed) >> (j % 64) & 1) == 0) continue;
        ::close(static_cast<int>(i * kBlockFds + j));
      }
    }
  }

 private:
  // An agent has the array and mostly one block: 1 KiB each, which together is the least there can be.
  static constexpr std::size_t kBlockFds = 8192;
  static constexpr std::size_t kBlocks = 128;  ///< 1,048,576 descriptors; higher ones are not listed.
  struct Block {
    std::array<std::atomic<std::uint64_t>, kBlockFds / 64> words{};
  };

  static std::uint64_t bit_of(int fd) { return std::uint64_t{1} << (static_cast<unsigned>(fd) % 64); }
  std::atomic<std::uint64_t>* word_of(int fd, bool make) {
    const auto number = static_cast<std::size_t>(fd);
    if (fd < 0 || number >= kBlocks * kBlockFds) return nullptr;
    std::atomic<Block*>& slot = blocks_[number / kBlockFds];
    Block* block = slot.load(std::memory_order_acquire);
    if (block == nullptr) {
      if (!make) return nullptr;
      auto* made = new Block;
      if (slot.compare_exchange_strong(block, made, std::memory_order_acq_rel)) {
        block = made;
      } else {
        delete made;
      }
    }
    return &block->words[number % kBlockFds / 64];
  }

  std::array<std::atomic<Block*>, kBlocks> blocks_{};
};

/// A descriptor that a forked child closes.
class ForkFd {
 public:
  ForkFd() = default;
  ForkFd(base::Fd fd, ForkList& list) : fd_(std::move(fd)), list_(&list) {
    if (fd_) list.add(fd_.get());
  }
  ForkFd(ForkFd&&) noexcept = default;
  ForkFd& operator=(ForkFd&& other) noexcept {
    if (this == &other) return *this;
    reset();
    fd_ = std::move(other.fd_);
    list_ = other.list_;
    return *this;
  }
  ~ForkFd() { reset(); }

  int get() const { return fd_.get(); }
  explicit operator bool() const { return fd_.valid(); }
  void reset() {
    if (fd_) list_->remove(fd_.get());
    fd_.reset();
  }

 private:
  base::Fd fd_;
  ForkList* list_ = nullptr;
};

}  // namespace hawser::backend::shm
