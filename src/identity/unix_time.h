#pragma once

// Times of certificates: seconds since 1970, UTC, by the system's clock.
//
// Thread rule: any thread.

#include <cstdint>
#include <string>

namespace hawser::identity {

std::int64_t unix_seconds();
/// "2026-11-28 12:00:00 UTC".
std::string time_text(std::int64_t seconds);

}  // namespace hawser::identity
