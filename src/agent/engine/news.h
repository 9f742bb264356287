#pragma once

// News: what happened in the lane and concerns somebody outside of it. It goes to the inbox, to completion queues, and
// to those who wait.
//
// Those who wait are woken once a turn (`wake_waiters`).
//
// Thread rule: confined to the lane. Lifetime: the inbox and the waiters outlive it.

#include <cstddef>
#include <memory>
#include <string_view>
#include <utility>

#include <hawser/peer.h>

#include "agent/engine/surroundings.h"
#include "agent/inbox.h"

namespace hawser::agent {

class News {
 public:
  News(Inbox& inbox, Waiters& waiters) : inbox_(inbox), waiters_(waiters) {}

  /// Something ended or changed that waiters look at.
  void note() { ++count_; }
  bool any() const { return count_ > 0; }
  /// If there is a reason to.
  void wake_waiters() {
    if (std::exchange(count_, 0) > 0) waiters_.wake();
  }

  void notification(const std::shared_ptr<PeerCore>& from, std::string_view text) {
    inbox_.push_notification(from, text);
    note();
    waiters_.hint(CompletionKind::kNotification, 0);
  }
  void message(const std::shared_ptr<PeerCore>& from, std::uint32_t channel, std::string_view bytes) {
    inbox_.push_message(from, channel, bytes);
    note();
    waiters_.hint(CompletionKind::kMessage, channel);
  }
  void peer_event(PeerEvent event) {
    note();
    inbox_.push_event(std::move(event));
    waiters_.hint(CompletionKind::kPeer, 0);
  }
  /// A peer has room for more.
  void room() {
    note();
    waiters_.hint(CompletionKind::kRoom, 0);
  }
  /// A word of this agent was added to by a peer's signal.
  void signal() {
    inbox_.count_arrival();
    note();
  }

 private:
  Inbox& inbox_;
  Waiters& waiters_;
  std::size_t count_ = 0;
};

}  // namespace hawser::agent
