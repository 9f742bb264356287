#pragma once

// MrTable: registrations sorted for one binary search, as a value that never changes.
//
// Where several cover an address, the one that reaches furthest answers: only those are kept that reach further than
// all that begin before them, so begins and ends are both sorted and the last begin is the answer.
//
// Thread rule: const after building. Lifetime: holds keys, no registrations: who looks up knows that what it looks for
// is still registered (see MrReader).

#include <cstddef>
#include <cstdint>
#include <vector>

namespace hawser::backend::verbs {

struct MrSpan {
  std::uintptr_t begin = 0;
  std::uintptr_t end = 0;
  std::uint64_t iova = 0;  ///< The device's address of `begin`.
  std::uint32_t lkey = 0;
  std::uint32_t rkey = 0;
  std::uint32_t index = 0;  ///< The builder's own.
  std::int16_t gpu = -1;    ///< As Keys'.
  std::int16_t node = -1;   ///< Likewise.
};

class MrTable {
 public:
  MrTable() = default;
  /// `spans` are sorted by begin.
  explicit MrTable(const std::vector<MrSpan>& spans);

  /// The span that covers `address` and reaches furthest; null: none does.
  const MrSpan* find(std::uintptr_t address) const;
  std::size_t size() const { return spans_.size(); }

 private:
  std::vector<MrSpan> spans_;
};

}  // namespace hawser::backend::verbs
