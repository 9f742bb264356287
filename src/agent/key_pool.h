#pragma once

// KeyPool: keys of regions, many at a time: ChaCha20's stream under a seed that the kernel drew for them and that is
// forgotten at once. One call of the kernel for each key is half the time of a registration, and its bytes cost more.
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
  static constexpr std::size_t kKeys = 252;  ///< At once: with the seed they fill a page.

  KeyPool() = default;
  ~KeyPool();
  KeyPool(const KeyPool&) = delete;
  KeyPool& operator=(const KeyPool&) = delete;

  /// Never zero, never the same again.
  base::Id128 take();
  /// Those in store. They are gone in a forked child, which draws its own.
  std::size_t left() const;

 private:
  struct Page;
  static Page* make_page();
  bool refill();

  Page* page_ = nullptr;  ///< Made at the first use. Keys are taken from the back.
  std::size_t left_ = 0;
  bool is_refused_ = false;  ///< The kernel does not empty pages at a fork: every key is drawn by itself.
};

}  // namespace hawser::agent
