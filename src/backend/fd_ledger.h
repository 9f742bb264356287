#pragma once

// FdLedger: the descriptors of one backend, so that a forked child can close its copies without any lock or memory.
//
// Thread rule: add and remove from any thread; close_all in a child with one thread, where a list changed halfway is
// still a list. Memory: blocks that are never given back while it lives.

#include <unistd.h>

#include <array>
#include <atomic>
#include <memory>
#include <utility>

namespace hawser::backend {

class FdLedger {
 public:
  FdLedger() = default;
  ~FdLedger() {
    for (Block* block = first_.next.load(); block != nullptr;) delete std::exchange(block, block->next.load());
  }
  FdLedger(const FdLedger&) = delete;
  FdLedger& operator=(const FdLedger&) = delete;

  void add(int fd) {
    for (Block* block = &first_;; block = next_of(*block)) {
      for (std::atomic<int>& entry : block->fds) {
        int free = kFree;
        if (entry.compare_exchange_strong(free, fd)) return;
      }
    }
  }
  void remove(int fd) {
    for (Block* block = &first_; block != nullptr; block = block->next.load()) {
      for (std::atomic<int>& entry : block->fds) {
        int mine = fd;
        if (entry.compare_exchange_strong(mine, kFree)) return;
      }
    }
  }
  void close_all() {
    for (Block* block = &first_; block != nullptr; block = block->next.load()) {
      for (std::atomic<int>& entry : block->fds) {
        const int fd = entry.exchange(kFree);
        if (fd != kFree) ::close(fd);
      }
    }
  }

 private:
  static constexpr int kFree = -1;
  struct Block {
    Block() {
      for (std::atomic<int>& entry : fds) entry.store(kFree);
    }
    std::array<std::atomic<int>, 30> fds;
    std::atomic<Block*> next{nullptr};
  };
  static Block* next_of(Block& block) {
    Block* next = block.next.load();
    if (next != nullptr) return next;
    auto fresh = std::make_unique<Block>();
    return block.next.compare_exchange_strong(next, fresh.get()) ? fresh.release() : next;
  }

  Block first_;
};

}  // namespace hawser::backend
