#pragma once

// VirtualLinks: what messages between many ranks cost in virtual time, by the alpha-beta model (Hockney, "The
// communication challenge for MPP", Parallel Computing 1994) with one port a rank and direction: a message of n bytes
// takes `message_ns` + n `byte_ns`, and a rank sends one message at a time and receives one at a time. Nothing is
// moved: a message is its size, and what is to happen when it has come.
//
// Thread rule: one thread.

#include <cstdint>
#include <functional>
#include <queue>
#include <vector>

namespace hawser::worldsim {

class VirtualLinks {
 public:
  struct Costs {
    double message_ns = 0;
    double byte_ns = 0;
  };

  VirtualLinks(std::uint32_t ranks, const Costs& costs) : costs_(costs), out_free_(ranks), in_free_(ranks) {}

  double now() const { return now_; }
  std::uint64_t messages() const { return messages_; }
  /// Begins now, or when the sender's port is free. Gives the time from which the port is free of it.
  double send(std::uint32_t from, std::uint32_t to, std::uint64_t bytes, std::function<void()> arrived);
  void at(double when, std::function<void()> action);
  /// Until nothing is left to happen.
  void run();

 private:
  struct Event {
    double when;
    std::uint64_t order;  ///< Of two at the same time the one that was planned first.
    std::function<void()> action;
    bool operator<(const Event& other) const { return when != other.when ? when > other.when : order > other.order; }
  };

  const Costs costs_;
  double now_ = 0;
  std::uint64_t order_ = 0, messages_ = 0;
  std::vector<double> out_free_, in_free_;
  std::priority_queue<Event> events_;
};

}  // namespace hawser::worldsim
