#pragma once

// KeyPool: keys of regions, drawn from the kernel's generator many at a time. One call for each key is half the time of
// a registration.
//
// A key that was given out leaves nothing behind here, and the pool's page is empty in a forked child, however it was
// forked: no two processes ever give out the same key.
//
// Thread rule: the owner's lock.

#include <cstddef>

#include "base/id128.h"

namespace hawser::agent {

class KeyPool {
 public:
  static constexpr std::size_t kKeys = 64;  ///< At once: 1 KiB, 2 us of the kernel's time.

  KeyPool() = default;
  ~KeyPool();
  KeyPool(const KeyPool&) = delete;
  KeyPool& operator=(const KeyPool&) = delete;

  /// Never zero, never the same again.
  base::Id128 take();
  /// Those in store. They are gone in a forked child, which draws its own.
  std::size_t left() const;

 private:
  bool refill();

  base::Id128* keys_ = nullptr;  ///< A page of its own, made at the first use. Taken from the back.
  std::size_t left_ = 0;
  bool is_refused_ = false;  ///< The kernel does not empty pages at a fork: every key is drawn by itself.
};

}  // namespace hawser::agent
