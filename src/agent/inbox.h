#pragma once

// What peers sent and the user has not taken yet: notifications, messages, peer events. Thread-safe.
//
// Notifications and messages have their places reserved by credit, so pushing never fails for an honest peer; events
// are bounded and drop the oldest, counting it.

#include <atomic>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include <hawser/peer.h>

#include "base/spin.h"

namespace hawser::agent {

class Inbox {
 public:
  explicit Inbox(std::uint32_t events_limit) : events_limit_(events_limit) {}

  void push_notification(const std::shared_ptr<PeerCore>& from, std::string_view text);
  std::size_t take_notifications(std::span<Notification> out);
  bool has_notifications() const { return notifications_waiting_.load(std::memory_order_acquire) != 0; }

  void push_message(const std::shared_ptr<PeerCore>& from, std::uint32_t channel, std::string_view bytes);
  std::optional<Message> take_message(std::uint32_t channel);

  void push_event(PeerEvent event);
  std::optional<PeerEvent> take_event();

  /// Grows with everything that arrives: `wait` compares it.
  std::uint64_t arrivals() const { return arrivals_.load(std::memory_order_acquire); }
  void count_arrival() { arrivals_.fetch_add(1, std::memory_order_release); }
  std::uint64_t events_dropped() const { return events_dropped_.load(std::memory_order_relaxed); }

 private:
  struct Entry {
    std::shared_ptr<PeerCore> from;
    std::string text;  ///< Keeps its capacity while the ring turns.
  };
  void grow() HAWSER_REQUIRES(lock_);

  const std::uint32_t events_limit_;
  base::SpinLock lock_;
  std::vector<Entry> ring_ HAWSER_GUARDED_BY(lock_);  ///< Notifications; size is a power of two.
  std::size_t head_ HAWSER_GUARDED_BY(lock_) = 0;
  std::size_t count_ HAWSER_GUARDED_BY(lock_) = 0;
  std::map<std::uint32_t, std::deque<Message>> messages_ HAWSER_GUARDED_BY(lock_);
  std::deque<PeerEvent> events_ HAWSER_GUARDED_BY(lock_);
  std::atomic<std::size_t> notifications_waiting_{0};
  std::atomic<std::uint64_t> arrivals_{0};
  std::atomic<std::uint64_t> events_dropped_{0};
};

}  // namespace hawser::agent
