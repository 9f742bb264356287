#pragma once

// ControlOutbox: handshake messages on their way to a path's control stream, which may have no room for a while.
//
// Thread rule: one thread at a time. Bound: kMessagesMax.

#include <cstddef>
#include <deque>
#include <span>
#include <string>
#include <utility>

#include "backend/backend.h"
#include "wire/queue_pair.h"

namespace hawser::backend::verbs {

class ControlOutbox {
 public:
  static constexpr std::size_t kMessagesMax = 4 * wire::kPairsMax;

  /// False: it is full, and the message was not taken.
  bool add(std::string message) {
    if (is_full()) return false;
    messages_.push_back(std::move(message));
    return true;
  }
  /// Sends what there is room for.
  void send_to(Path& control) {
    while (!messages_.empty()) {
      if (!control.send(Priority::kCritical, std::as_bytes(std::span(messages_.front())), {})) return;
      messages_.pop_front();
    }
  }
  void clear() { messages_.clear(); }
  bool empty() const { return messages_.empty(); }
  bool is_full() const { return messages_.size() == kMessagesMax; }

 private:
  std::deque<std::string> messages_;
};

}  // namespace hawser::backend::verbs
