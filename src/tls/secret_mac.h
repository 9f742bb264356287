#pragma once

// The MAC by which somebody shows that they know a secret of 128 bits without sending it: BLAKE2b of 32 bytes, keyed by
// the secret's 16 bytes, the lowest first, over the parts one behind the other.
//
// Thread rule: pure function.

#include <array>
#include <cstddef>
#include <initializer_list>
#include <span>

#include "base/id128.h"

namespace hawser::tls {

using SecretMac = std::array<std::byte, 32>;

SecretMac secret_mac(const base::Id128& secret, std::initializer_list<std::span<const std::byte>> parts);

}  // namespace hawser::tls
