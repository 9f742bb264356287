#pragma once

// LineMarks: a mark for each line of a ring, set and cleared for many lines in a row at once.
//
// Thread rule: confined to its owner.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace hawser::backend::shm {

class LineMarks {
 public:
  /// Nobody has marked a line so far, and there is no memory for marks.
  bool empty() const { return words_.empty(); }
  /// For `lines` lines, a power of two, none of them marked.
  void open(std::uint64_t lines) {
    words_.assign((lines + kBits - 1) / kBits, 0);
    mask_ = lines - 1;
  }
  /// `position` counts on around the ring.
  bool has(std::uint64_t position) const {
    const std::uint64_t line = position & mask_;
    return (words_[line / kBits] >> line % kBits & 1) != 0;
  }
  /// The ring's lines at most.
  void set(std::uint64_t position, std::uint64_t count) {
    each_word(position, count, [](std::uint64_t& word, std::uint64_t bits) { word |= bits; });
  }
  void clear(std::uint64_t position, std::uint64_t count) {
    each_word(position, count, [](std::uint64_t& word, std::uint64_t bits) { word &= ~bits; });
  }

 private:
  static constexpr std::uint64_t kBits = 64;

  template <typename Change>
  void each_word(std::uint64_t position, std::uint64_t count, Change change) {
    while (count > 0) {
      const std::uint64_t line = position & mask_;
      const std::uint64_t first = line % kBits;
      const std::uint64_t here = std::min({count, kBits - first, mask_ + 1 - line});
      const std::uint64_t bits = here == kBits ? ~std::uint64_t{0} : (std::uint64_t{1} << here) - 1;
      change(words_[line / kBits], bits << first);
      position += here;
      count -= here;
    }
  }

  std::vector<std::uint64_t> words_;
  std::uint64_t mask_ = 0;
};

}  // namespace hawser::backend::shm
