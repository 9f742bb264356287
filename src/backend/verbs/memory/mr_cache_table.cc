#include "backend/verbs/memory/mr_cache_table.h"

#include <algorithm>

namespace hawser::backend::verbs {

MrTable::MrTable(const std::vector<MrSpan>& spans) {
  spans_.reserve(spans.size());
  for (const MrSpan& span : spans) {
    if (!spans_.empty() && span.end <= spans_.back().end) continue;
    if (!spans_.empty() && span.begin == spans_.back().begin) spans_.pop_back();
    spans_.push_back(span);
  }
}

const MrSpan* MrTable::find(std::uintptr_t address) const {
  const auto after = std::upper_bound(spans_.begin(), spans_.end(), address,
                                      [](std::uintptr_t at, const MrSpan& span) { return at < span.begin; });
  if (after == spans_.begin()) return nullptr;
  const MrSpan& last = *(after - 1);
  return address < last.end ? &last : nullptr;
}

}  // namespace hawser::backend::verbs
