#include "runtime/pieces.h"

#include <algorithm>

#include "base/copy.h"

namespace hawser::runtime {

void Pieces::add(std::span<const std::byte> place) {
  if (place.empty()) return;
  ends_.push_back(bytes() + place.size());
  places_.push_back(place);
}

std::span<const std::byte> Pieces::run(std::uint64_t offset) const {
  const auto its = std::ranges::upper_bound(ends_, offset);
  if (its == ends_.end()) return {};
  const std::span<const std::byte> place = places_[static_cast<std::size_t>(its - ends_.begin())];
  return place.last(*its - offset);
}

void Pieces::gather(std::uint64_t offset, std::span<std::byte> into) const {
  while (!into.empty()) {
    const std::span<const std::byte> from = run(offset);
    const std::size_t size = std::min(from.size(), into.size());
    base::copy_cached(into.data(), from.data(), size);
    offset += size;
    into = into.subspan(size);
  }
}

}  // namespace hawser::runtime
