#pragma once

// HandshakeShare: keeps TLS handshakes of connections that have proven nothing to a share of their lane's time, so that
// strangers who open connections cannot keep it from its work: each costs them little and us some 0.3 ms.
//
// Thread rule: one thread. Memory: one pointer for each connection that waits; the lobby bounds those.

#include <algorithm>
#include <vector>

#include <hawser/time.h>

namespace hawser::backend {

class HandshakeShare {
 public:
  /// Handshakes may take one part in so many of the time.
  static constexpr int kParts = 4;

  bool may_work(Instant now) const { return now >= next_; }
  Instant next_at() const { return next_; }
  /// A step was made: it began then and ended now.
  void worked(Instant began, Instant ended) { next_ = ended + (kParts - 1) * (ended - began); }

  /// A connection that waits for its turn; once in the list.
  void wait(void* connection) {
    if (std::ranges::find(waiting_, connection) == waiting_.end()) waiting_.push_back(connection);
  }
  /// The one that waits longest, if it may go on now; it is taken off the list. Null: nobody.
  void* next(Instant now) {
    if (waiting_.empty() || !may_work(now)) return nullptr;
    void* const first = waiting_.front();
    waiting_.erase(waiting_.begin());
    return first;
  }
  /// It is gone.
  void forget(void* connection) { std::erase(waiting_, connection); }
  bool is_awaited() const { return !waiting_.empty(); }

 private:
  Instant next_ = Instant::min();
  std::vector<void*> waiting_;
};

}  // namespace hawser::backend
