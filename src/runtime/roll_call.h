#pragma once

// RollCall: when a collective that waits asks other ranks whether they have called it, and which have not.
//
// It asks those that it waits for each kCheckEvery (they may have called something else). Where it waits for a rank
// that itself waits, that does not tell who is missing. So it asks all ranks shortly before its deadline, and before
// the line that it writes to the log once it has waited for kToldAfter.
//
// Thread rule: none of its own.

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <vector>

#include <hawser/time.h>

namespace hawser::runtime {

/// A rank that waits so long has time to ask.
inline constexpr Duration kCheckEvery = std::chrono::seconds(1);
/// So long a collective may take until a line in the log tells for whom it waits.
inline constexpr Duration kToldAfter = std::chrono::seconds(10);
/// So long before the deadline all ranks are asked; of a short one a quarter of its time.
inline constexpr Duration kLastAsk = std::chrono::milliseconds(200);
/// In a larger world only those are asked that are awaited: the others' questions would be as many as its ranks' pairs.
inline constexpr std::size_t kRollCallMax = 256;

class RollCall {
 public:
  void begin(Instant begun, Instant deadline) {
    deadline_ = deadline;
    last_ask_ = deadline - std::min(kLastAsk, (deadline - begun) / 4);
    told_at_ = begun + kToldAfter;
  }
  bool is_late(Instant now) const { return now >= deadline_; }
  /// When to look again.
  Instant next(Instant now) const {
    const Instant usual = std::min(now + kCheckEvery, deadline_);
    return now < last_ask_ ? std::min(usual, last_ask_) : usual;
  }
  /// It asks now, and what was answered before does not hold any more. True: all ranks, not only those that it waits
  /// for. `may_tell`: the log may have a line about it.
  bool ask(Instant now, bool may_tell) {
    absent_.clear();
    asked_all_ = now >= last_ask_ || (may_tell && !is_told_ && now + kCheckEvery >= told_at_);
    return asked_all_;
  }
  /// True once, when all have been asked: the log is to tell for whom it waits.
  bool take_told(Instant now) {
    if (is_told_ || !asked_all_ || now < told_at_) return false;
    return is_told_ = true;
  }

  /// That rank has answered that it has not called it.
  void note_absent(std::uint32_t rank) {
    const auto at = std::ranges::lower_bound(absent_, rank);
    if (at == absent_.end() || *at != rank) absent_.insert(at, rank);
  }
  /// In order. None of them: nobody has said so.
  const std::vector<std::uint32_t>& absent() const { return absent_; }

 private:
  Instant deadline_ = Instant::max(), last_ask_ = Instant::max(), told_at_ = Instant::max();
  bool is_told_ = false, asked_all_ = false;
  std::vector<std::uint32_t> absent_;
};

}  // namespace hawser::runtime
