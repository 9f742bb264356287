#pragma once

// FakeQueue: a disk in memory for tests. Operations end when the test says so, as short or as wrong as it likes.
//
// Thread rule: one thread.

#include <algorithm>
#include <cstring>
#include <deque>
#include <vector>

#include "fileio/queue.h"

namespace hawser::fileio {

class FakeQueue final : public Queue {
 public:
  explicit FakeQueue(std::uint32_t depth) : depth_(depth) {}
  std::string_view name() const override { return "fake"; }
  std::uint32_t in_flight() const override { return static_cast<std::uint32_t>(started.size() + ended.size()); }
  bool start(const Operation& operation) override {
    if (in_flight() == depth_) return false;
    started.push_back(operation);
    return true;
  }
  bool flush() override { return true; }
  void cancel(std::uint64_t cookie) override { cancelled.push_back(cookie); }
  std::size_t reap(std::span<Ended> out) override {
    std::size_t count = 0;
    for (; count < out.size() && !ended.empty(); ++count) {
      out[count] = ended.front();
      ended.pop_front();
    }
    return count;
  }
  bool has_ended() const override { return !ended.empty(); }
  int wait_fd() const override { return -1; }
  void disown_after_fork() override {}

  /// Ends the oldest operation: moves up to `most` bytes, or fails with `error`.
  Operation end(std::uint64_t most = UINT64_MAX, int error = 0) {
    const Operation operation = started.front();
    started.pop_front();
    int result = -error;
    if (error == 0 && operation.kind != Operation::Kind::kSync) {
      if (operation.kind == Operation::Kind::kWrite && disk.size() < operation.offset + operation.size) {
        disk.resize(operation.offset + operation.size);
      }
      const std::uint64_t there = disk.size() > operation.offset ? disk.size() - operation.offset : 0;
      const auto size = static_cast<std::size_t>(std::min({std::uint64_t{operation.size}, most, there}));
      std::byte* at = disk.data() + operation.offset;
      if (size > 0)
        std::memcpy(operation.kind == Operation::Kind::kRead ? operation.memory : at,
                    operation.kind == Operation::Kind::kRead ? at : operation.memory, size);
      result = static_cast<int>(size);
    }
    ended.push_back({.cookie = operation.cookie, .result = result});
    return operation;
  }

  std::vector<std::byte> disk;
  std::deque<Operation> started;
  std::deque<Ended> ended;
  std::vector<std::uint64_t> cancelled;

 private:
  const std::uint32_t depth_;
};

}  // namespace hawser::fileio
