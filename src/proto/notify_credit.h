#pragma once

// Credit of notifications and signals at their target: by bytes, for what one peer may make this agent hold.
//
// A peer may have a window of bytes under way beyond what it already made us hold, so a target that reads nothing goes
// on taking notifications until the peer's share is full. The caller says how much room is left for all peers together;
// the first bytes are granted whatever that is, so that a peer is never shut out for good.
//
// Thread rule: one thread at a time.

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "proto/credit.h"
#include "wire/session.h"

namespace hawser::proto {

/// What a notification takes of its credit.
constexpr std::uint64_t notification_cost(std::size_t bytes) { return bytes + wire::kNotificationCost; }
inline constexpr std::uint64_t kNotificationCostMax = notification_cost(kMessageMax);

struct NotifyLimits {
  std::uint64_t share = 0;                          ///< What the peer may make us hold. At least kNotificationCostMax.
  std::uint64_t window = std::uint64_t{256} << 10;  ///< Of that, how much may be under way.
};

class NotifyReceiver {
 public:
  explicit NotifyReceiver(const NotifyLimits& limits)
      : share_(std::max(limits.share, kNotificationCostMax)), window_(std::max(limits.window, kNotificationCostMax)) {}

  /// A notification or signal came. False: the peer sent more than it was allowed (kCorrupt); it is not counted then.
  bool on_receive(std::size_t bytes);
  /// The user took `messages` of `bytes` together, or they will never be delivered.
  void on_release(std::uint64_t messages, std::uint64_t bytes);
  /// Whether it may be worth asking credit_due. Cheap: for every message.
  bool runs_low() const { return told_ - received_bytes_ < window_ - window_ / 4; }
  /// Whether the peer should be told its limits. `room`: what this peer's part of the agent's free room is.
  bool credit_due(std::uint64_t room) const;
  /// What the peer could still send, were it told now.
  std::uint64_t left(std::uint64_t room) const { return allowed(room) - received_bytes_; }
  /// What to put in a Credit or Welcome that is on its way now.
  CreditLimits take_limits(std::uint64_t room);

  CreditLimits received() const { return {received_messages_, received_bytes_}; }
  std::uint64_t waiting_messages() const { return received_messages_ - released_messages_; }
  /// What it holds of its share.
  std::uint64_t held() const { return received_bytes_ - released_bytes_; }

 private:
  std::uint64_t allowed(std::uint64_t room) const;

  const std::uint64_t share_, window_;
  // Bytes here are costs.
  std::uint64_t told_ = kNotificationCostMax;
  std::uint64_t received_messages_ = 0, received_bytes_ = 0;
  std::uint64_t released_messages_ = 0, released_bytes_ = 0;
};

}  // namespace hawser::proto
