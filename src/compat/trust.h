#pragma once

// Trust: to whom metadata may be sent by address, and from whom it may come. Metadata holds keys.
//
// Both ends of a connection must be of one user, on loopback. The kernel tells it (base/far_end.h); where it cannot be
// asked, both ends prove that they can read the user's cookie (compat/vouch.h).
//
// Thread rule: pure functions.

#include <string>

#include <hawser/status.h>

#include "base/far_end.h"
#include "base/user_cookie.h"

HAWSER_NAMESPACE_BEGIN
namespace compat {

struct Trust {
  bool everybody = false;  ///< The agent was opened with security `none`.
  base::FarEnd (*far_end)(int fd, std::string* why) = base::far_end_of;
  Result<base::Id128> (*cookie)() = base::user_cookie;

  base::FarEnd ask(int fd, std::string* why) const { return everybody ? base::FarEnd::kSameUser : far_end(fd, why); }
};

/// kDenied, for a connection whose other end is not trusted; `why` is what the kernel said.
Status not_trusted(const std::string& why);

}  // namespace compat
HAWSER_NAMESPACE_END
