#pragma once

// RoomWatch: since when the inboxes of peers have no room for what this agent sends them.
//
// So a call waits for room once for each such time, not each call anew: a client that tells a full inbox a thousand
// things is not kept for a thousand times the patience.
//
// Thread rule: thread-safe. Bound: one entry for each peer that is up.

#include <atomic>
#include <cstddef>
#include <map>

#include <hawser/peer.h>
#include <hawser/time.h>

#include "base/inside.h"
#include "base/mutex.h"

HAWSER_NAMESPACE_BEGIN
namespace compat {

class RoomWatch {
 public:
  /// There was no room at `now`. Answers when that began.
  Instant no_room(const Peer& peer, Instant now) {
    const base::MutexLock lock(mutex_);
    std::erase_if(full_, [](const auto& each) { return each.second.peer.state() == PeerState::kDown; });
    const Instant since = full_.try_emplace(core_of(peer).get(), Full{.peer = peer, .since = now}).first->second.since;
    count_.store(full_.size(), std::memory_order_release);
    return since;
  }
  /// Something found room.
  void room(const Peer& peer) {
    if (count_.load(std::memory_order_acquire) == 0) return;
    const base::MutexLock lock(mutex_);
    full_.erase(core_of(peer).get());
    count_.store(full_.size(), std::memory_order_release);
  }

 private:
  struct Full {
    Peer peer;
    Instant since;
  };
  std::atomic<std::size_t> count_{0};
  base::Mutex mutex_;
  std::map<const void*, Full> full_ HAWSER_GUARDED_BY(mutex_);
};

}  // namespace compat
HAWSER_NAMESPACE_END
