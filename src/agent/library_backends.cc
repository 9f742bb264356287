// The backends of the library. Alone in its file: a test links a library that has others (test/api/mock_library.cc).

#include "agent/default_backends.h"
#include "backend/file/factory.h"
#include "backend/loopback/factory.h"
#ifdef HAWSER_WITH_QUIC
#include "backend/quic/factory.h"
#endif
#include "backend/shm/factory.h"
#include "backend/tcp/factory.h"
#include "backend/verbs/factory.h"

namespace hawser::agent {
namespace {

backend::Factory quic_or_why_not() {
#ifdef HAWSER_WITH_QUIC
  return backend::quic_factory();
#else
  const auto open = [](const backend::Context&, const Params&) -> Result<std::unique_ptr<backend::Backend> > {
    return Status(Code::kUnsupported, "this build has no QUIC: it was made without the headers of ngtcp2 0.12, or 1.11")
        .with_advice("use tcp, which is encrypted between hosts, too; or build on Debian 12 or 13 with libngtcp2-dev");
  };
  return {.name = "quic", .default_rank = 0, .open = open};
#endif
}

}  // namespace

std::vector<backend::Factory> default_backends() {
  return {backend::loopback_factory(), backend::shm_factory(),  backend::verbs_factory(),
          backend::tcp_factory(),      backend::file_factory(), quic_or_why_not()};
}

}  // namespace hawser::agent
