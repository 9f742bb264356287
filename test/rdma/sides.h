#pragma once

// An agent with its rdma::Backend, as the tests here have them at either side.

#include <hawser/driver.h>
#include <hawser/rdma.h>

#include <gtest/gtest.h>

#include <optional>
#include <span>
#include <string>
#include <vector>

namespace hawser::rdma {

inline constexpr Duration kLong = std::chrono::seconds(20);

struct Way {
  const char* backend;
  bool driven;          ///< By the backend's thread or by a Driver; else by the test.
  bool driver = false;  ///< By a Driver.
};

/// An agent with its backend, in either mode.
struct Side {
  Side(const std::string& name, const Way& way, const Params& params = {}) {
    AgentOptions options{.name = name, .backends = {BackendSpec{.name = way.backend, .params = params}, loopback()}};
    options.driven = way.driver;
    options.limits.transfers = 256;
    agent = Agent::open(options).value();
    if (way.driver) {
      driver.emplace(Driver::start().value());
      EXPECT_TRUE(driver->attach(agent).ok());
    }
    backend.emplace(Backend::open(agent, {.thread = way.driven}).value());
  }
  ~Side() {
    backend.reset();
    EXPECT_TRUE(agent.close(kLong).ok());
    if (driver) (void)driver->detach(agent);
  }

  LocalMemory memory(std::span<std::byte> bytes, bool writable = true) {
    return backend->local_memory(bytes, {}, writable).value();
  }

  Agent agent;
  std::optional<Driver> driver;
  std::optional<Backend> backend;
};

inline std::vector<std::byte> filled(std::size_t size, unsigned seed) {
  std::vector<std::byte> bytes(size);
  for (std::size_t i = 0; i < size; ++i) bytes[i] = static_cast<std::byte>((i * 31 + seed) & 0xff);
  return bytes;
}

}  // namespace hawser::rdma
