#pragma once

// Regions of a card to encode that come one by one, so that a hundred thousand of them need not lie in memory at once
// beside the books that they are in.
//
// Thread rule: one thread. Lifetime: what `next` gives holds until the next call.

#include <cstddef>
#include <span>
#include <string>

#include "wire/card.h"

namespace hawser::wire {

class CardSource {
 public:
  virtual ~CardSource() = default;
  virtual std::size_t count() const = 0;
  /// Called `count` times, by ascending index. `extra_first` means nothing; `extras` are all of the region's.
  virtual const CardRegion& next(std::span<const CardExtra>* extras) = 0;
};

/// Appends what encode(card) gives, with the regions of `source`; `head.regions` and `head.extras` are not looked at.
/// After an error what was appended means nothing.
Status encode(const Card& head, CardSource& source, std::string* out);

}  // namespace hawser::wire
