#pragma once

// What peers sent and the user has not taken yet: notifications, messages, peer events.
//
// Thread rule: pushing and counting under the lane's lock, all else from any thread.
//
// Notifications and messages have their places reserved by credit, so pushing never fails for an honest peer; events
// are bounded and drop the oldest, counting it.

#include <atomic>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string_view>

#include <hawser/peer.h>

#include "agent/waiting_queue.h"
#include "base/spin.h"

namespace hawser::agent {

class Inbox {
 public:
  explicit Inbox(std::uint32_t events_limit) : events_limit_(events_limit) {}

  void push_notification(const std::shared_ptr<PeerCore>& from, std::string_view text);
  std::size_t take_notifications(std::span<Notification> out);
  /// The peer is forgotten: places that it had filled do not keep it.
  void let_go_of(const PeerCore& peer);
  /// What notifications hold, as the credit of their senders counts it: those here, and those that wait for bytes.
  std::uint64_t notification_bytes() const { return notification_bytes_.load(std::memory_order_relaxed); }
  /// For one that will be pushed, or never be, once its bytes are here. Under the lane's lock.
  void reserve(std::uint64_t cost) { notification_bytes_.fetch_add(cost, std::memory_order_relaxed); }
  void unreserve(std::uint64_t cost) { notification_bytes_.fetch_sub(cost, std::memory_order_relaxed); }
  bool has_notifications() const { return notifications_waiting_.load(std::memory_order_acquire) != 0; }

  void push_message(const std::shared_ptr<PeerCore>& from, std::uint32_t channel, std::string_view bytes);
  std::size_t take_messages(std::uint32_t channel, std::span<Message> out);
  /// Calls `see(peer, channel, bytes)` with each message that waits, in order per channel. For simulators.
  template <typename See>
  void each_message(See see) {
    const base::SpinGuard guard(lock_);
    for (const auto& [channel, queue] : messages_) {
      queue.each(
          [&, its = channel](const std::shared_ptr<PeerCore>& from, std::string_view bytes) { see(from, its, bytes); });
    }
  }

  void push_event(PeerEvent event);
  std::optional<PeerEvent> take_event();

  /// Grows with everything that arrives: `wait` compares it.
  std::uint64_t arrivals() const { return arrivals_.load(std::memory_order_acquire); }
  void count_arrival() { arrivals_.store(arrivals_.load(std::memory_order_relaxed) + 1, std::memory_order_release); }
  std::uint64_t events_dropped() const { return events_dropped_.load(std::memory_order_relaxed); }

 private:
  const std::uint32_t events_limit_;
  base::SpinLock lock_;
  WaitingQueue notifications_ HAWSER_GUARDED_BY(lock_);
  std::map<std::uint32_t, WaitingQueue> messages_ HAWSER_GUARDED_BY(lock_);  ///< By channel, once one was used.
  /// Null until there was one: an empty deque takes half a kilobyte.
  std::unique_ptr<std::deque<PeerEvent>> events_ HAWSER_GUARDED_BY(lock_);
  std::atomic<std::size_t> notifications_waiting_{0};
  std::atomic<std::uint64_t> notification_bytes_{0};
  std::atomic<std::size_t> messages_waiting_{0};  ///< On all channels.
  std::atomic<std::uint64_t> arrivals_{0};
  std::atomic<std::uint64_t> events_dropped_{0};
};

}  // namespace hawser::agent
