#pragma once

// Question: what a rank that waits in a collective asks another one. A pure value.

#include <cstdint>

namespace hawser::runtime {

struct Question {
  std::uint64_t number = 0;  ///< Of the collective.
  std::uint64_t digest = 0;  ///< Of what the one that asks has called by it: did the other one call the same?
  /// It waits for a message of the other one's, and so hears if none comes. Else it only asks whether that one has
  /// called it yet.
  bool awaits = true;
};

}  // namespace hawser::runtime
