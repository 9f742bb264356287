#pragma once

// Pieces: the places of one message's bytes in memory, in order. A message of one place needs none.
//
// Thread rule: immutable. Lifetime: the memory is the operation's until it has ended.

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace hawser::runtime {

inline constexpr std::size_t kPiecesMax = 65'536;  ///< Of one message.

class Pieces {
 public:
  /// Appends a place; empty ones are left out.
  void add(std::span<const std::byte> place);
  /// Of them that hold anything.
  std::size_t count() const { return places_.size(); }
  std::uint64_t bytes() const { return places_.empty() ? 0 : ends_.back(); }
  /// The bytes from `offset` on that lie together. Empty: it is the end.
  std::span<const std::byte> run(std::uint64_t offset) const;
  /// Copies the bytes from `offset` on into `into`; there are as many.
  void gather(std::uint64_t offset, std::span<std::byte> into) const;

 private:
  std::vector<std::span<const std::byte>> places_;
  std::vector<std::uint64_t> ends_;  ///< By place: offset of its end.
};

}  // namespace hawser::runtime
