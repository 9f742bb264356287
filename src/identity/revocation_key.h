#pragma once

// Where in a directory the list of certificates lies that the authority of a domain has taken back.
//
// Thread rule: a pure function.

#include <string>
#include <string_view>

namespace hawser::identity {

inline std::string revocation_key(std::string_view domain) { return "hawser/revoked/" + std::string(domain); }

}  // namespace hawser::identity
