#pragma once

// StrikeBook: how often a queue pair broke at each chunk that has not ended.
//
// A queue pair that broke at a chunk says little: another may carry it. One that each queue pair breaks at is not
// carried by this path. What the peer's device calls invalid each time fails for itself.
//
// Thread rule: one thread at a time. Memory: an entry for each chunk that was struck and has not ended.

#include <cstdint>
#include <map>
#include <utility>

#include "backend/verbs/queues/queue_pair.h"
#include "base/format.h"

namespace hawser::backend::verbs {

class StrikeBook {
 public:
  /// A chunk of which the peer's device says that the request is invalid is posted again so often.
  static constexpr std::uint32_t kPostedAgainMax = 2;
  /// A path of which a queue pair broke at one and the same chunk so often does not carry it.
  static constexpr std::uint32_t kStrikesMax = 5;

  /// A queue pair broke at it. An error: the path is at fault, for this reason. Else the chunk may be posted again once
  /// nothing of it can land, unless it now has a failure of its own.
  Status strike(Flight& flight) {
    const std::uint32_t count = ++counts_[flight.chunk.cookie];
    flight.struck = false;
    const Status why = std::exchange(flight.failure, Status());
    if (why.scope() != Scope::kRequest) return count < kStrikesMax ? Status() : why;
    if (count <= kPostedAgainMax) return {};
    flight.failure = Status(why.code(), base::format("it was posted {} times, and failed each time", count))
                         .with_scope(Scope::kRequest)
                         .because(why);
    return {};
  }
  /// The chunk has ended.
  void forget(std::uint64_t cookie) {
    if (!counts_.empty()) counts_.erase(cookie);
  }

 private:
  std::map<std::uint64_t, std::uint32_t> counts_;  ///< By cookie.
};

}  // namespace hawser::backend::verbs
