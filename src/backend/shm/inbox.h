#pragma once

// Inbox: memory for the messages of one Port::poll.
//
// Thread rule: confined to the lane. Lifetime: borrows the buffer.

#include <cstddef>
#include <span>
#include <utility>

namespace hawser::backend::shm {

struct Inbox {
  std::span<std::byte> buffer;
  std::size_t used = 0;
  /// Null: there is no room for so many bytes.
  std::byte* take(std::size_t size) {
    if (size > buffer.size() - used) return nullptr;
    return buffer.data() + std::exchange(used, used + size);
  }
};

}  // namespace hawser::backend::shm
