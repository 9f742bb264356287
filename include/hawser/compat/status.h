#pragma once

// NIXL's codes. The compat layer answers with Hawser's Status; `code_of` tells which of NIXL's codes one stands for, so
// that the C ABI, Python's exceptions and C++ users all see NIXL's meaning. A code that Hawser's own do not tell apart
// is the status's deepest cause, by its name ("NIXL_ERR_NOT_POSTED").
//
// Thread rule: pure functions.

#include <string_view>

#include <hawser/export.h>
#include <hawser/status.h>

HAWSER_NAMESPACE_BEGIN
namespace compat {

/// NIXL's numbers of its C++ face (the C ABI folds them).
enum class NixlCode : int {
  kInProgress = 1,
  kSuccess = 0,
  kNotPosted = -1,
  kInvalidParam = -2,
  kBackend = -3,
  kNotFound = -4,
  kMismatch = -5,
  kNotAllowed = -6,
  kRepostActive = -7,
  kUnknown = -8,
  kNotSupported = -9,
  kRemoteDisconnect = -10,
  kCancelled = -11,
  kNoTelemetry = -12,
};

/// "NIXL_ERR_NOT_POSTED"; "NIXL_SUCCESS", "NIXL_IN_PROG" for those that are no errors.
HAWSER_API std::string_view to_string(NixlCode code);

/// The code that `status` stands for; kSuccess when it is good.
HAWSER_API NixlCode code_of(const Status& status);

}  // namespace compat
HAWSER_NAMESPACE_END
