#include <hawser/compat/status.h>

#include <array>

#include "compat/refusal.h"

HAWSER_NAMESPACE_BEGIN
namespace compat {
namespace {

struct Named {
  NixlCode code;
  std::string_view name;
  Code ours;  ///< The code of Hawser's for the same reaction.
};

constexpr std::array<Named, 14> kCodes = {{
    {NixlCode::kInProgress, "NIXL_IN_PROG", Code::kOk},
    {NixlCode::kSuccess, "NIXL_SUCCESS", Code::kOk},
    {NixlCode::kNotPosted, "NIXL_ERR_NOT_POSTED", Code::kInvalid},
    {NixlCode::kInvalidParam, "NIXL_ERR_INVALID_PARAM", Code::kInvalid},
    {NixlCode::kBackend, "NIXL_ERR_BACKEND", Code::kFailed},
    {NixlCode::kNotFound, "NIXL_ERR_NOT_FOUND", Code::kNotFound},
    {NixlCode::kMismatch, "NIXL_ERR_MISMATCH", Code::kCorrupt},
    {NixlCode::kNotAllowed, "NIXL_ERR_NOT_ALLOWED", Code::kDenied},
    {NixlCode::kRepostActive, "NIXL_ERR_REPOST_ACTIVE", Code::kBusy},
    {NixlCode::kUnknown, "NIXL_ERR_UNKNOWN", Code::kFailed},
    {NixlCode::kNotSupported, "NIXL_ERR_NOT_SUPPORTED", Code::kUnsupported},
    {NixlCode::kRemoteDisconnect, "NIXL_ERR_REMOTE_DISCONNECT", Code::kDisconnected},
    {NixlCode::kCancelled, "NIXL_ERR_CANCELED", Code::kCancelled},
    {NixlCode::kNoTelemetry, "NIXL_ERR_NO_TELEMETRY", Code::kUnsupported},
}};

const Named* find(NixlCode code) {
  for (const Named& one : kCodes) {
    if (one.code == code) return &one;
  }
  return nullptr;
}

NixlCode unmarked(Code code) {
  switch (code) {
    case Code::kOk:
      return NixlCode::kSuccess;
    case Code::kInvalid:
      return NixlCode::kInvalidParam;
    case Code::kNotFound:
      return NixlCode::kNotFound;
    case Code::kUnsupported:
      return NixlCode::kNotSupported;
    case Code::kDisconnected:
      return NixlCode::kRemoteDisconnect;
    case Code::kCancelled:
      return NixlCode::kCancelled;
    case Code::kCorrupt:
      return NixlCode::kMismatch;
    case Code::kDenied:
      return NixlCode::kNotAllowed;
    case Code::kBusy:
    case Code::kTimedOut:
    case Code::kFailed:
      return NixlCode::kBackend;
  }
  return NixlCode::kUnknown;
}

}  // namespace

std::string_view to_string(NixlCode code) {
  const Named* const one = find(code);
  return one == nullptr ? "NIXL_ERR_UNKNOWN" : one->name;
}

NixlCode code_of(const Status& status) {
  Status deepest = status;
  for (int depth = 0; depth < Status::kCausesMax; ++depth) {
    const Status cause = deepest.cause();
    if (cause.ok()) break;
    deepest = cause;
  }
  for (const Named& one : kCodes) {
    if (!deepest.ok() && deepest.message() == one.name) return one.code;
  }
  return unmarked(status.code());
}

Status marked(NixlCode code, const Status& status) {
  if (code_of(status) == code) return status;
  return status.because(Status(Code::kFailed, std::string(to_string(code))));
}

Status refusal(NixlCode code, std::string_view call, std::string_view text) {
  const Named* const one = find(code);
  const Code ours = one == nullptr ? Code::kFailed : one->ours;
  return marked(code, Status(ours, std::string(call).append(": ").append(text)));
}

Status refusal(NixlCode code, std::string_view call, std::string_view text, const Status& cause) {
  const Named* const one = find(code);
  const Code ours = one == nullptr ? Code::kFailed : one->ours;
  return marked(code, Status(ours, std::string(call).append(": ").append(text)).because(cause));
}

}  // namespace compat
HAWSER_NAMESPACE_END
