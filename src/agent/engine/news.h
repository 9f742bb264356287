#pragma once

// News: what happened in the lane and concerns somebody outside of it. It goes to the inbox, to completion queues, and
// to those who wait.
//
// Waiters are woken once a turn, by whoever turns the lane: `take` says whether there is a reason to.
//
// Thread rule: confined to the lane. Lifetime: the inbox and the hints outlive it.

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
  News(Inbox& inbox, Hints& hints) : inbox_(inbox), hints_(hints) {}

  /// Something ended or changed that waiters look at.
  void note() { ++count_; }
  bool any() const { return count_ > 0; }
  bool take() { return std::exchange(count_, 0) > 0; }

  void notification(const std::shared_ptr<PeerCore>& from, std::string_view text) {
    inbox_.push_notification(from, text);
    note();
    hints_.hint(CompletionKind::kNotification, 0);
  }
  void message(const std::shared_ptr<PeerCore>& from, std::uint32_t channel, std::string_view bytes) {
    inbox_.push_message(from, channel, bytes);
    note();
    hints_.hint(CompletionKind::kMessage, channel);
  }
  void peer_event(PeerEvent event) {
    note();
    inbox_.push_event(std::move(event));
    hints_.hint(CompletionKind::kPeer, 0);
  }
  /// A peer has room for more.
  void room() {
    note();
    hints_.hint(CompletionKind::kRoom, 0);
  }
  /// A word of this agent was added to by a peer's signal.
  void signal() {
    inbox_.count_arrival();
    note();
  }

 private:
  Inbox& inbox_;
  Hints& hints_;
  std::size_t count_ = 0;
};

}  // namespace hawser::agent
