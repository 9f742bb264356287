#include "api/nixl/call.h"

#include <hawser/compat/status.h>
#include <strings.h>

#include <cstdio>
#include <cstdlib>
#include <exception>
#include <optional>
#include <string>

#include "base/line_gate.h"

namespace hawser::nixl {
namespace {

/// 0: all; 1: errors only; 2: nothing.
int quietness() {
  static const int its = [] {
    const char* const level = std::getenv("NIXL_LOG_LEVEL");
    if (level == nullptr) return 0;
    if (::strcasecmp(level, "ERROR") == 0) return 1;
    return ::strcasecmp(level, "FATAL") == 0 ? 2 : 0;
  }();
  return its;
}

/// One line of a kind in a second: clients poll and retry in loops.
void say(std::string_view word, std::string_view call, std::string_view text) noexcept try {
  static base::LineGate* const gate = new base::LineGate;  // Calls may come while the process ends.
  const std::string line = "hawser: " + std::string(word) + ": " + std::string(call) + ": " + std::string(text);
  const std::optional<std::uint64_t> held_back = gate->pass(line, Clock::steady().now());
  if (held_back) std::fprintf(stderr, "%s%s\n", line.c_str(), base::LineGate::more(*held_back).c_str());
} catch (...) {
  std::fputs("hawser: out of memory\n", stderr);
}

}  // namespace

api::Handles& handles() {
  static api::Handles* const table = new api::Handles;
  return *table;
}

void say_error(std::string_view call, std::string_view text) noexcept {
  if (quietness() < 2) say("error", call, text);
}

void say_warning(std::string_view call, std::string_view text) noexcept {
  if (quietness() < 1) say("warning", call, text);
}

nixl_capi_status_t refuse(const char* call, nixl_capi_status_t code, std::string_view why) noexcept {
  say_error(call, why);
  return code;
}

nixl_capi_status_t fold(const Status& status) {
  switch (compat::code_of(status)) {
    case compat::NixlCode::kSuccess:
      return NIXL_CAPI_SUCCESS;
    case compat::NixlCode::kInvalidParam:
      return NIXL_CAPI_ERROR_INVALID_PARAM;
    case compat::NixlCode::kNotFound:
      return NIXL_CAPI_ERROR_NOT_FOUND;
    case compat::NixlCode::kNoTelemetry:
      return NIXL_CAPI_ERROR_NO_TELEMETRY;
    default:
      return NIXL_CAPI_ERROR_BACKEND;
  }
}

nixl_capi_status_t refuse(const char* call, const Status& status) noexcept {
  try {
    return refuse(call, fold(status), status.to_string());
  } catch (...) {
    return NIXL_CAPI_ERROR_BACKEND;
  }
}

nixl_capi_status_t refuse_exception(const char* call) noexcept {
  try {
    throw;
  } catch (const std::exception& error) {
    return refuse(call, NIXL_CAPI_ERROR_BACKEND, error.what());
  } catch (...) {
    return NIXL_CAPI_ERROR_BACKEND;
  }
}

}  // namespace hawser::nixl
