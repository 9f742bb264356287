#pragma once

// The user's cookie: 128 random bits in a file that only this user can read. Where the kernel does not tell which user
// owns a socket (far_end.h), two processes of one user prove to each other that both can read it.
//
// Thread rule: any thread. Reads, and once makes, a small local file.

#include <string>

#include <hawser/status.h>

#include "base/id128.h"

namespace hawser::base {

/// Made if it is not there, in the first usable of /run/user/UID/hawser and /tmp/hawser-UID. The
/// error, kDenied, says what is wrong with each: a folder or file of another user, open to others, or a link.
Result<Id128> user_cookie();
/// As above, in `folder`.
Result<Id128> user_cookie_in(const std::string& folder);

}  // namespace hawser::base
