#pragma once

// Trust: to whom metadata may be sent by address, and from whom it may come. Metadata holds keys.
//
// On loopback both ends of a connection must be of one user. The kernel tells it (base/far_end.h); where it cannot be
// asked, both ends prove that they can read the user's cookie (compat/vouch.h). Elsewhere agents with an identity prove
// that to each other under TLS (compat/channel.h), and others exchange nothing.
//
// Thread rule: pure functions.

#include <string>

#include <hawser/status.h>

#include "base/address.h"
#include "base/far_end.h"
#include "base/user_cookie.h"
#include "compat/identity_desk.h"

HAWSER_NAMESPACE_BEGIN
namespace compat {

struct Trust {
  bool everybody = false;        ///< The agent was opened with security `none`.
  IdentityDesk* desk = nullptr;  ///< The agent's identity, which outlives this; null: it has none.
  bool (*is_near)(const base::SocketAddress&) = base::is_loopback;
  base::FarEnd (*far_end)(int fd, std::string* why) = base::far_end_of;
  Result<base::Id128> (*cookie)() = base::user_cookie;

  /// A connection with that address goes under TLS.
  bool is_secured(const base::SocketAddress& address) const {
    return !everybody && desk != nullptr && !is_near(address);
  }
  base::FarEnd ask(int fd, std::string* why) const { return everybody ? base::FarEnd::kSameUser : far_end(fd, why); }
};

/// kDenied, for a connection whose other end is not trusted; `why` is what the kernel said.
Status not_trusted(const std::string& why);

}  // namespace compat
HAWSER_NAMESPACE_END
