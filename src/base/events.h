#pragma once

// EventFd and Epoll: how a thread sleeps until a descriptor has something for it. A wait takes its own timeout, so no
// timer descriptors are needed.
//
// Thread rule: EventFd::signal, Epoll::add, modify and remove from any thread; drain and wait by the one who sleeps.
// Lifetime: an Epoll does not own what it watches; remove it before it is closed.

#include <sys/epoll.h>

#include <cstdint>
#include <span>

#include <hawser/status.h>
#include <hawser/time.h>

#include "base/fd.h"

namespace hawser::base {

class EventFd {
 public:
  static Result<EventFd> open();
  /// From a descriptor that a peer or a caller handed over.
  explicit EventFd(Fd fd) : fd_(std::move(fd)) {}

  int fd() const { return fd_.get(); }
  /// Wakes whoever waits. Never blocks: a full counter already wakes.
  void signal() const;
  /// Takes all signals; false when there were none.
  bool drain() const;

 private:
  Fd fd_;
};

class Epoll {
 public:
  static Result<Epoll> open();

  int fd() const { return fd_.get(); }
  /// `events` are EPOLLIN and so on; `cookie` comes back in epoll_event::data.u64.
  Status add(int fd, std::uint32_t events, std::uint64_t cookie) const;
  Status modify(int fd, std::uint32_t events, std::uint64_t cookie) const;
  Status remove(int fd) const;

  /// Fills the front of `events` and returns how many. Sleeps for `timeout` at most, to the nanosecond where the kernel
  /// can, else rounded up to milliseconds; zero only looks, Duration::max() has no end. A signal handler ends the sleep
  /// early with no events: the caller looks at its clock and its conditions anyway.
  Result<std::size_t> wait(std::span<epoll_event> events, Duration timeout) const;

 private:
  explicit Epoll(Fd fd) : fd_(std::move(fd)) {}
  Fd fd_;
};

}  // namespace hawser::base
