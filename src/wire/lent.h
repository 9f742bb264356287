#pragma once

// Lent: memory that an agent lends one peer to write into once, as the peer is told of it.
//
// Thread rule: a value.

#include <cstdint>

#include "base/id128.h"

namespace hawser::wire {

/// A region of its own, from offset 0 on, that no card tells of.
struct Lent {
  std::uint32_t index = 0, generation = 0;
  base::Id128 key = {};
  friend bool operator==(const Lent&, const Lent&) = default;
};

}  // namespace hawser::wire
