#pragma once

// What tells of a transfer's end beside its handle: the entry of a completion queue, and the word at the initiator.
// Both go out after the handle says the same, or who takes the entry would ask the handle too early.

#include <atomic>
#include <cstdint>
#include <memory>
#include <utility>

#include "agent/queue.h"
#include "agent/slot.h"

namespace hawser::agent {

class EndNews {
 public:
  EndNews() = default;
  /// Copies from `slot` what it needs after the slot went to the next transfer. Holds the word's region until it went.
  EndNews(const Slot& slot, const Status& status) : queue_(slot.queue) {
    if (queue_) {
      entry_ = {.kind = CompletionKind::kTransfer,
                .cookie = slot.cookie,
                .bytes = slot.bytes_done.load(std::memory_order_relaxed),
                .status = status};
    }
    if (status.ok()) word_ = slot.done_word;
  }

  /// Once.
  void tell() {
    if (word_.word != nullptr) word_.word->store(word_.value, std::memory_order_release);
    if (queue_) queue_->push(std::move(entry_));
  }

 private:
  std::shared_ptr<QueueCore> queue_;
  Completion entry_;
  LocalWord word_;
};

}  // namespace hawser::agent
