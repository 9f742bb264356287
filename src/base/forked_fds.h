#pragma once

// ForkedFds: the descriptors of this process that a forked child closes, before it does anything else. A child's copy
// of a listening socket would keep the port taken, and callers waiting, once the parent is gone.
//
// Thread rule: any thread. A descriptor that does not fit among kMost stays open in children.

#include <cstddef>

namespace hawser::base {

class ForkedFds {
 public:
  static constexpr std::size_t kMost = 128;

  static void add(int fd);
  /// Call it before the descriptor is closed: afterwards its number may be another's.
  static void remove(int fd);
};

}  // namespace hawser::base
