#pragma once

// CancelPatience: how long what was cancelled may end by itself. Then its queue pairs are broken, so that it does.
//
// Thread rule: one thread at a time. Values; no I/O.

#include <algorithm>

#include <hawser/time.h>

namespace hawser::backend::verbs {

class CancelPatience {
 public:
  static constexpr Duration kPatience = std::chrono::milliseconds(50);

  /// Something was cancelled that is under way. The time begins at the next `is_over`.
  void begin() { is_asked_ = true; }
  bool needs_look(Instant now) const { return is_asked_ || now >= ends_; }
  /// True, once: what was cancelled had its time.
  bool is_over(Instant now) {
    if (is_asked_) ends_ = std::min(ends_, now + kPatience);
    is_asked_ = false;
    if (now < ends_) return false;
    ends_ = Instant::max();
    return true;
  }
  Instant next_deadline() const { return is_asked_ ? Instant::min() : ends_; }

 private:
  bool is_asked_ = false;
  Instant ends_ = Instant::max();
};

}  // namespace hawser::backend::verbs
