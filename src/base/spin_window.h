#pragma once

// SpinWindow: how long to look for news before sleeping, found out by how long the sleeps were. A sleep that was short
// cost more than looking would have (to wake a sleeper takes 5 to 100 us), so the window doubles; a long one halves it.
// It is how KVM decides how long an idle processor polls (Documentation/virt/kvm/halt-polling.rst).
//
// Two sides that wait for each other need it: each that sleeps makes the other's wait longer than its window.
//
// Thread rule: one thread at a time.

#include <algorithm>

#include <hawser/time.h>

namespace hawser::base {

class SpinWindow {
 public:
  constexpr SpinWindow(Duration least, Duration most) : least_(least), most_(most), window_(least) {}

  constexpr Duration window() const { return window_; }
  constexpr void slept(Duration how_long) {
    window_ = how_long <= most_ ? std::min(2 * window_, most_) : std::max(window_ / 2, least_);
  }

 private:
  Duration least_, most_, window_;
};

}  // namespace hawser::base
