#pragma once

// Replies: what an owner answers to those who asked. One whose inbox is full gets its answer later, or none where that
// takes too long: it gives up itself by then.
//
// Thread rule: thread-safe; nothing is sent under the lock. Memory: bounded.

#include <cstddef>
#include <deque>
#include <functional>
#include <string>
#include <string_view>

#include <hawser/peer.h>
#include <hawser/status.h>
#include <hawser/time.h>

#include "base/mutex.h"
#include "rdma/messages.h"

HAWSER_NAMESPACE_BEGIN
namespace rdma {

/// Sends bytes to a peer of the engine's. kBusy: its inbox is full.
using SendBytes = std::function<Status(const Peer& to, std::string_view bytes)>;

/// How long an answer may wait for room at the asker.
inline constexpr Duration kReplyPatience = std::chrono::seconds(30);

class Replies {
 public:
  static constexpr std::size_t kWaitingMax = 4096;

  explicit Replies(SendBytes send) : send_(std::move(send)) {}

  void reply(const Peer& to, const Reply& answer, Instant now) HAWSER_EXCLUDES(mutex_);
  /// Tries those that wait. True: some are gone.
  bool send_waiting(Instant now) HAWSER_EXCLUDES(mutex_);
  bool empty() const HAWSER_EXCLUDES(mutex_);
  void clear() HAWSER_EXCLUDES(mutex_);

 private:
  struct Waiting {
    Peer peer;
    std::string bytes;
    Instant deadline;
  };

  const SendBytes send_;
  mutable base::Mutex mutex_;
  std::deque<Waiting> waiting_ HAWSER_GUARDED_BY(mutex_);
};

}  // namespace rdma
HAWSER_NAMESPACE_END
