#include "agent/inbox.h"

#include "base/planted.h"
#include "proto/notify_credit.h"

namespace hawser::agent {

void Inbox::push_notification(const std::shared_ptr<PeerCore>& from, std::string_view text) {
  {
    const base::SpinGuard guard(lock_);
    notifications_.push(from, text);
    reserve(proto::notification_cost(text.size()));
    notifications_waiting_.store(notifications_.size(), std::memory_order_release);
  }
  count_arrival();
}

std::size_t Inbox::take_notifications(std::span<Notification> out) {
  if (!has_notifications()) return 0;
  const base::SpinGuard guard(lock_);
  std::size_t taken = 0;
  std::uint64_t cost = 0;
  for (; taken < out.size() && notifications_.size() > 0; ++taken) {
    notifications_.take(&out[taken].peer, &out[taken].text);
    cost += proto::notification_cost(out[taken].text.size());
  }
  unreserve(cost);
  notifications_waiting_.store(notifications_.size(), std::memory_order_release);
  return taken;
}

void Inbox::let_go_of(const PeerCore& peer) {
  const base::SpinGuard guard(lock_);
  notifications_.let_go_of(peer);
  for (auto& [channel, queue] : messages_) queue.let_go_of(peer);
}

void Inbox::push_message(const std::shared_ptr<PeerCore>& from, std::uint32_t channel, std::string_view bytes) {
  {
    const base::SpinGuard guard(lock_);
    WaitingQueue& queue = messages_[channel];
    queue.push(from, bytes);
    if (base::planted(base::Planted::kMessageReordered)) queue.put_newest_first();
    messages_waiting_.store(messages_waiting_.load(std::memory_order_relaxed) + 1, std::memory_order_release);
  }
  count_arrival();
}

std::size_t Inbox::take_messages(std::uint32_t channel, std::span<Message> out) {
  if (messages_waiting_.load(std::memory_order_acquire) == 0) return 0;
  const base::SpinGuard guard(lock_);
  const auto found = messages_.find(channel);
  if (found == messages_.end()) return 0;
  std::size_t taken = 0;
  for (; taken < out.size() && found->second.size() > 0; ++taken) {
    found->second.take(&out[taken].peer, &out[taken].bytes);
    out[taken].channel = channel;
  }
  messages_waiting_.store(messages_waiting_.load(std::memory_order_relaxed) - taken, std::memory_order_release);
  return taken;
}

void Inbox::push_event(PeerEvent event) {
  {
    const base::SpinGuard guard(lock_);
    if (events_ == nullptr) events_ = std::make_unique<std::deque<PeerEvent>>();
    if (events_->size() == events_limit_) {
      events_->pop_front();
      events_dropped_.fetch_add(1, std::memory_order_relaxed);
    }
    events_->push_back(std::move(event));
  }
  count_arrival();
}

std::optional<PeerEvent> Inbox::take_event() {
  const base::SpinGuard guard(lock_);
  if (events_ == nullptr || events_->empty()) return std::nullopt;
  PeerEvent event = std::move(events_->front());
  events_->pop_front();
  return event;
}

}  // namespace hawser::agent
