#pragma once

// Trust: to whom metadata may be sent by address, and from whom it may come. Metadata holds keys.
//
// Thread rule: pure functions.

#include <string>

#include <hawser/status.h>

HAWSER_NAMESPACE_BEGIN
namespace compat {

enum class Trust : unsigned char {
  kSameUser = 0,   ///< Both ends of a connection are of one user, as the kernel tells it (base/far_end.h).
  kEverybody = 1,  ///< The agent was opened with security `none`.
};

/// kDenied, for a connection whose other end is not trusted; `why` is what the kernel said.
Status not_trusted(const std::string& why);

}  // namespace compat
HAWSER_NAMESPACE_END
