#pragma once

// GNU libmicrohttpd, opened at run time, so that one binary runs where it is missing. Its header gives the signatures.
//
// Thread rule: any thread. Lifetime: once opened it stays until the process ends.

#include <microhttpd.h>

#include <hawser/status.h>

namespace hawser::metrics {

// The functions in use, without their prefix.
#define HAWSER_MICROHTTPD_FUNCTIONS(X) \
  X(add_response_header)               \
  X(create_response_from_buffer)       \
  X(destroy_response)                  \
  X(get_daemon_info)                   \
  X(queue_response)                    \
  X(start_daemon)                      \
  X(stop_daemon)

struct HttpLibrary {
#define HAWSER_MICROHTTPD_MEMBER(name) decltype(&MHD_##name) name = nullptr;
  HAWSER_MICROHTTPD_FUNCTIONS(HAWSER_MICROHTTPD_MEMBER)
#undef HAWSER_MICROHTTPD_MEMBER
};

/// The process's one; the first call opens it, and may block for the loader's files. Errors: kUnsupported, with what to
/// install. A failure is kept, too.
Result<const HttpLibrary*> http_library();

}  // namespace hawser::metrics
