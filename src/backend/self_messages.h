#pragma once

// SelfMessages: what an agent sent to itself and has not polled yet. For paths that lead to their own agent.
//
// Thread rule: confined to the port's lane. Memory: at most kCountMax messages of kBytesMax bytes together.

#include <cstddef>
#include <deque>
#include <span>
#include <string>

namespace hawser::backend {

class SelfMessages {
 public:
  static constexpr std::size_t kCountMax = 1024;
  static constexpr std::size_t kBytesMax = 1u << 20;

  /// False: no room now.
  bool push(std::span<const std::byte> head, std::span<const std::byte> body);
  /// The oldest, moved into `out`; false when there is none.
  bool take(std::string* out);
  bool empty() const { return messages_.empty(); }

 private:
  std::deque<std::string> messages_;
  std::size_t bytes_ = 0;
};

}  // namespace hawser::backend
