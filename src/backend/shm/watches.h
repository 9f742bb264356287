#pragma once

// Watches: the descriptors that a port's epoll watches, and what each belongs to.
//
// Thread rule: confined to the port's lane. Lifetime: a Watch stays where it is until its descriptor is removed.

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

#include <hawser/status.h>
#include <hawser/time.h>

#include "base/events.h"

namespace hawser::backend::shm {

/// One of a path's descriptors, a visitor, or the listening socket.
struct Watch {
  enum class Kind : std::uint8_t { kListener, kVisitor, kSocket, kProcess, kDoor };
  Kind kind = Kind::kListener;
  void* owner = nullptr;
};

class Watches {
 public:
  explicit Watches(base::Epoll epoll) : epoll_(std::move(epoll)) {}

  int fd() const { return epoll_.fd(); }
  Status add(int fd, std::uint32_t events, Watch& watch) const { return epoll_.add(fd, events, cookie_of(watch)); }
  Status modify(int fd, std::uint32_t events, Watch& watch) const {
    return epoll_.modify(fd, events, cookie_of(watch));
  }
  /// One that was never added is fine.
  void remove(int fd) const { static_cast<void>(epoll_.remove(fd).ok()); }
  /// Calls `see(watch, events)` with those that have news now, kEventsPerLook at most. Answers how many.
  template <typename See>
  std::size_t look(See see) const {
    std::array<epoll_event, kEventsPerLook> events;
    const Result<std::size_t> found = epoll_.wait(events, Duration::zero());
    const std::size_t count = found ? *found : 0;
    for (const epoll_event& each : std::span(events).first(count)) {
      see(*reinterpret_cast<const Watch*>(each.data.u64), each.events);
    }
    return count;
  }

 private:
  static constexpr std::size_t kEventsPerLook = 64;
  static std::uint64_t cookie_of(Watch& watch) { return reinterpret_cast<std::uint64_t>(&watch); }

  base::Epoll epoll_;
};

}  // namespace hawser::backend::shm
