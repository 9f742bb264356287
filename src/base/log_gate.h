#pragma once

// LogGate: one line of log per kind and second for what strangers can cause at will; the others are counted.
//
// Thread rule: one thread. Memory: fixed.

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include <hawser/time.h>

namespace hawser::base {

class LogGate {
 public:
  static constexpr std::size_t kKinds = 16;
  static constexpr Duration kPause = std::chrono::seconds(1);

  /// Whether to log this one. `*more` gets what to put at its end: how many of its kind were left out before it.
  bool opens(std::size_t kind, Instant now, std::string* more) {
    if (kinds_ == nullptr) kinds_ = std::make_unique<std::array<Kind, kKinds>>();
    Kind& one = (*kinds_)[kind % kKinds];
    if (now < one.next) {
      ++one.left_out;
      return false;
    }
    one.next = now + kPause;
    *more = one.left_out == 0 ? "" : " (and " + std::to_string(one.left_out) + " more like it before)";
    one.left_out = 0;
    return true;
  }

 private:
  struct Kind {
    Instant next = Instant::min();
    std::uint64_t left_out = 0;
  };
  std::unique_ptr<std::array<Kind, kKinds>> kinds_;  ///< From the first line on: most agents never log one.
};

}  // namespace hawser::base
