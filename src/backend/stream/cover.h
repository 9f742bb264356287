#pragma once

// Cover: which streams may carry a path's bytes, by the levels of both ends. The stricter of the two counts.
//
// Thread rule: pure functions.

#include <cstdint>

#include <hawser/agent.h>  // Security
#include <hawser/status.h>

#include "backend/stream/stream.h"
#include "wire/hello.h"

namespace hawser::backend::stream {

/// As a hello tells it.
constexpr std::uint8_t level_of(Security security) {
  switch (security) {
    case Security::kNone:
      return 0;
    case Security::kAuthenticate:
      return 1;
    case Security::kDefault:
    case Security::kEncrypt:
      break;
  }
  return 2;
}

/// Whether `stream`, on which the peer said `hello`, is covered as both ends want it. kDenied: it is not.
Status check_cover(const wire::Hello& hello, const Stream& stream, Security ours);

}  // namespace hawser::backend::stream
