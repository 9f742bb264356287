#pragma once

// Holder: what a certificate says of whoever has its key.
//
// Thread rule: a value.

#include <cstdint>
#include <string>
#include <vector>

#include "identity/spiffe_id.h"

namespace hawser::identity {

struct Holder {
  SpiffeId id;
  std::vector<std::string> dns;       ///< Its DNS names, which may be patterns with *.
  std::int64_t begins = 0, ends = 0;  ///< Seconds since 1970, UTC.
  std::string serial;                 ///< Hexadecimal digits.
};

}  // namespace hawser::identity
