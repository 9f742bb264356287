#include "agent/inbox.h"

#include "base/planted.h"

namespace hawser::agent {
void Inbox::grow() {
  constexpr std::size_t kFirst = 64;
  std::vector<Entry> larger(ring_.empty() ? kFirst : ring_.size() * 2);
  for (std::size_t i = 0; i < count_; ++i) larger[i] = std::move(ring_[(head_ + i) & (ring_.size() - 1)]);
  ring_ = std::move(larger);
  head_ = 0;
}

void Inbox::push_notification(const std::shared_ptr<PeerCore>& from, std::string_view text) {
  {
    const base::SpinGuard guard(lock_);
    if (count_ == ring_.size()) grow();
    Entry& entry = ring_[(head_ + count_) & (ring_.size() - 1)];
    entry.from = from;
    entry.text.assign(text);
    ++count_;
    notifications_waiting_.store(count_, std::memory_order_release);
  }
  count_arrival();
}

std::size_t Inbox::take_notifications(std::span<Notification> out) {
  if (!has_notifications()) return 0;
  const base::SpinGuard guard(lock_);
  std::size_t taken = 0;
  while (taken < out.size() && count_ > 0) {
    Entry& entry = ring_[head_];
    out[taken].peer = Peer(std::move(entry.from));
    std::swap(out[taken].text, entry.text);  // Both strings keep a buffer: nothing is allocated in a steady flow.
    ++taken;
    head_ = (head_ + 1) & (ring_.size() - 1);
    --count_;
  }
  notifications_waiting_.store(count_, std::memory_order_release);
  return taken;
}

void Inbox::push_message(const std::shared_ptr<PeerCore>& from, std::uint32_t channel, std::string_view bytes) {
  {
    const base::SpinGuard guard(lock_);
    std::deque<Message>& queue = messages_[channel];
    const auto place = base::planted(base::Planted::kMessageReordered) ? queue.begin() : queue.end();
    queue.insert(place, Message{.peer = Peer(from), .channel = channel, .bytes = std::string(bytes)});
  }
  count_arrival();
}

std::optional<Message> Inbox::take_message(std::uint32_t channel) {
  const base::SpinGuard guard(lock_);
  const auto found = messages_.find(channel);
  if (found == messages_.end()) return std::nullopt;
  Message message = std::move(found->second.front());
  found->second.pop_front();
  if (found->second.empty()) messages_.erase(found);
  return message;
}

void Inbox::push_event(PeerEvent event) {
  {
    const base::SpinGuard guard(lock_);
    if (events_.size() == events_limit_) {
      events_.pop_front();
      events_dropped_.fetch_add(1, std::memory_order_relaxed);
    }
    events_.push_back(std::move(event));
  }
  count_arrival();
}

std::optional<PeerEvent> Inbox::take_event() {
  const base::SpinGuard guard(lock_);
  if (events_.empty()) return std::nullopt;
  PeerEvent event = std::move(events_.front());
  events_.pop_front();
  return event;
}

}  // namespace hawser::agent
