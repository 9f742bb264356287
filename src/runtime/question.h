#pragma once

// Question: what a rank that waits in a collective asks another one. A pure value.

#include <cstdint>

namespace hawser::runtime {

struct Question {
  std::uint64_t number = 0;  ///< The collective's.
  /// The rank that asks has called by that number what has this digest. It asks whether the other one called the same.
  std::uint64_t digest = 0;
  /// It waits for a message of the other one's, and so hears if none comes. Else it only asks whether that one has
  /// called it yet.
  bool awaits = true;
};

}  // namespace hawser::runtime
