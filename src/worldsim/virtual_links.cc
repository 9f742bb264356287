#include "worldsim/virtual_links.h"

#include <algorithm>
#include <utility>

namespace hawser::worldsim {

double VirtualLinks::send(std::uint32_t from, std::uint32_t to, std::uint64_t bytes, std::function<void()> arrived) {
  ++messages_;
  const double takes = costs_.message_ns + static_cast<double>(bytes) * costs_.byte_ns;
  const double begin = std::max(now_, out_free_[from]);
  out_free_[from] = begin + takes;
  at(begin, [this, to, takes, arrived = std::move(arrived)]() mutable {
    in_free_[to] = std::max(now_, in_free_[to]) + takes;
    at(in_free_[to], std::move(arrived));
  });
  return out_free_[from];
}

void VirtualLinks::at(double when, std::function<void()> action) { events_.push({when, order_++, std::move(action)}); }

void VirtualLinks::run() {
  while (!events_.empty()) {
    // The queue's own order does not look at the action.
    Event event = std::move(const_cast<Event&>(events_.top()));
    events_.pop();
    now_ = event.when;
    event.action();
  }
}

}  // namespace hawser::worldsim
