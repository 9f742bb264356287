#include "agent/default_backends.h"

#include "agent/core.h"
#include "backend/loopback/factory.h"
#include "backend/shm/factory.h"
#include "backend/tcp/factory.h"

namespace hawser::agent {

std::vector<backend::Factory> default_backends() {
  return {backend::loopback_factory(), backend::shm_factory(), backend::tcp_factory()};
}

Result<std::string> resolve_address(std::string_view address, Instant deadline) {
  return backend::resolve_tcp_address(address, deadline - Clock::steady().now());
}

}  // namespace hawser::agent
