#pragma once

// ArrivalWords: the immediates that a path's peer sends (proto/immediate.h), read and kept until the agent may hear of
// what they tell: it hears of nothing before it hears of the path.
//
// Thread rule: one thread at a time. Bound: the receives of all queue pairs.

#include <cstddef>
#include <cstdint>
#include <vector>

#include "proto/immediate.h"
#include "wire/queue_pair.h"

namespace hawser::backend::verbs {

class ArrivalWords {
 public:
  /// Receives on each queue pair: ours, and the peer's. Where either has none, no immediates are used.
  void agree(std::uint32_t receives, std::uint32_t peers) {
    receives_ = receives;
    credits_ = receives == 0 ? 0 : peers;
  }
  /// The peer's receives for immediates on each queue pair; 0: none are used.
  std::uint32_t credits() const { return credits_; }
  /// The next word of one queue pair. kCorrupt: the peer broke the rules.
  Status read(proto::ImmediateCounter& words, std::uint32_t word) {
    if (credits_ == 0) return broken("an immediate, though none were agreed on");
    const auto chunk = words.on_word(word);
    if (!chunk) return chunk.error();
    if (*chunk) {
      arrived_.push_back(**chunk);
      ++count_;
    }
    const bool too_many = arrived_.size() > std::size_t{wire::kPairsMax} * receives_;
    return too_many ? broken("more immediates than there are receives") : Status();
  }
  /// Calls `tell(transfer, chunk)` for each that was read, in order.
  template <typename Tell>
  void tell(Tell&& tell) {
    for (const auto& [transfer, chunk] : arrived_) tell(transfer, chunk);
    arrived_.clear();
  }
  /// Chunks of the peer's that were read, in all.
  std::uint64_t count() const { return count_; }

 private:
  static Status broken(const char* what) { return Status(Code::kCorrupt, what).with_scope(Scope::kPath); }

  std::uint32_t receives_ = 0, credits_ = 0;
  std::vector<proto::ImmediateCounter::Chunk> arrived_;
  std::uint64_t count_ = 0;
};

}  // namespace hawser::backend::verbs
