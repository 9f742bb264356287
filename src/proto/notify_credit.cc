#include "proto/notify_credit.h"

namespace hawser::proto {

bool NotifyReceiver::on_receive(std::size_t bytes) {
  const std::uint64_t cost = notification_cost(bytes);
  if (cost > told_ - received_bytes_) return false;
  received_messages_ += 1;
  received_bytes_ += cost;
  return true;
}

void NotifyReceiver::on_release(std::uint64_t messages, std::uint64_t bytes) {
  // Some of them may have come in a session before this one: they gave nothing that this one has to give back.
  released_messages_ += std::min(messages, waiting_messages());
  released_bytes_ += std::min(bytes + messages * wire::kNotificationCost, held());
}

std::uint64_t NotifyReceiver::allowed(std::uint64_t room) const {
  // A window that holds no message of the largest size would be told anew with each message.
  const std::uint64_t window = room < kNotificationCostMax ? 0 : std::min(room, window_);
  const std::uint64_t most = std::min(received_bytes_ + window, released_bytes_ + share_);
  return std::max({told_, most, released_bytes_ + kNotificationCostMax});
}

bool NotifyReceiver::credit_due(std::uint64_t room) const {
  const std::uint64_t more = allowed(room) - told_;
  if (more == 0) return false;
  // Without the last clause a peer with a large notification would wait for a quarter to be freed, and we for the peer.
  return more >= window_ / 4 || told_ - received_bytes_ < kNotificationCostMax;
}

CreditLimits NotifyReceiver::take_limits(std::uint64_t room) {
  told_ = allowed(room);
  return {.messages = wire::kNoMessageLimit, .bytes = told_};
}

}  // namespace hawser::proto
