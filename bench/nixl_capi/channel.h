#pragma once

// Channel: messages between the controller and one worker, over one socket of a pair.
//
// Thread rule: one thread at a time. Lifetime: the socket closes with it.

#include <chrono>
#include <nlohmann/json.hpp>

#include "base/fd.h"

namespace nixl_bench {

using Json = nlohmann::json;
using Time = std::chrono::steady_clock;

/// The end of a wait.
class Deadline {
 public:
  explicit Deadline(std::chrono::milliseconds left) : end_(Time::now() + left) {}
  bool over() const { return Time::now() >= end_; }
  /// For poll(): 0 when it is over.
  int left_ms() const;

 private:
  Time::time_point end_;
};

class Channel {
 public:
  /// One message at most, in bytes: metadata of 100 000 regions takes 4.4 MB.
  static constexpr std::size_t kMessageMax = 256u << 20;

  explicit Channel(int fd) : fd_(fd) {}
  int fd() const { return fd_.get(); }
  /// Whether there is something to receive, or the other end is gone. Does not wait.
  bool ready() const;
  /// Failure when the other end is gone.
  void send(const Json& message, Deadline deadline);
  /// Failure when nothing (whole) came in time, or the other end is gone.
  Json receive(Deadline deadline);

 private:
  void read_all(void* into, std::size_t size, const Deadline& deadline);

  hawser::base::Fd fd_;
};

}  // namespace nixl_bench
