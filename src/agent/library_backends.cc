// The backends of the library. Alone in its file: a test links a library that has others (test/api/mock_library.cc).

#include "agent/default_backends.h"
#include "backend/file/factory.h"
#include "backend/loopback/factory.h"
#include "backend/shm/factory.h"
#include "backend/tcp/factory.h"
#include "backend/verbs/factory.h"

namespace hawser::agent {

std::vector<backend::Factory> default_backends() {
  return {backend::loopback_factory(), backend::shm_factory(), backend::verbs_factory(), backend::tcp_factory(),
          backend::file_factory()};
}

}  // namespace hawser::agent
