#pragma once

// LastWords: words of one peer that must not overtake anything that it said before, in any class. The peer says each in
// every class, and it counts once all of them have brought it.
//
// Thread rule: under the lane's lock. Memory: kLastWordsMax words.

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>

#include <hawser/status.h>
#include <hawser/transfer.h>

#include "wire/runtime.h"
#include "wire/session.h"

namespace hawser::runtime {

inline constexpr std::size_t kLastWordsMax = 4096;  ///< Of one peer, that came in some classes only.

class LastWords {
 public:
  /// It says that something does not come any more, so it overtakes nothing.
  static constexpr bool has(wire::RuntimeKind kind) {
    return kind == wire::RuntimeKind::kLeft || kind == wire::RuntimeKind::kChecked;
  }
  /// `*counts`: all classes have brought it now. An error is the peer's.
  Status hear(Priority priority, const wire::RuntimeMessage& word, bool* counts);
  void clear() { *this = {}; }

 private:
  struct Heard {
    wire::RuntimeMessage word;
    std::size_t classes = 0;  ///< In how many of them it came.
  };
  std::deque<Heard> waiting_;  ///< That have not come in all classes, in their order.
  std::uint64_t done_ = 0;     ///< Those that have.
  std::array<std::uint64_t, wire::kClasses> by_class_{};
};

}  // namespace hawser::runtime
