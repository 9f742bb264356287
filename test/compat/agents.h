#pragma once

// Agents for tests: opened without this process's environment, with a log that can be read, and memory of their own.
//
// Thread rule: one thread. Lifetime: the log outlives its agent.

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include <hawser/compat/agent.h>
#include <hawser/compat/nixl_agent.h>

#include "log.h"

namespace hawser::compat {

/// Of no environment but what is given.
inline AgentConfig quiet(ConfigSources::Texts environment = {}) {
  AgentConfig config;
  config.environment = std::move(environment);
  config.capture_telemetry = true;
  return config;
}

/// Polls until `done` says so, for a minute (scaled).
template <typename Done>
bool eventually(Done done) {
  const char* const scale = std::getenv("HAWSER_TIMEOUT_SCALE");
  const auto end = std::chrono::steady_clock::now() +
                   std::chrono::minutes(1) * (scale == nullptr ? 1 : std::max(1, std::atoi(scale)));
  while (!done()) {
    if (std::chrono::steady_clock::now() > end) return false;
  }
  return true;
}

/// An agent with UCX and one registered buffer.
struct Side {
  explicit Side(std::string_view name, std::size_t bytes = 1 << 20, AgentConfig config = quiet(), Params params = {})
      : memory(bytes), agent(Agent::open(name, config).value()) {
    ucx = agent.create_backend("UCX", params).value();
    RegDescList list(MemType::kDram);
    list.add(address(), bytes);
    registration = agent.register_memory(list).value();
  }
  std::uint64_t address() const { return reinterpret_cast<std::uintptr_t>(memory.data()); }
  void knows(const Side& other) { ASSERT_TRUE(agent.load_remote_md(other.agent.get_local_md().value())); }
  /// Blocks back to back.
  XferDescList blocks(std::size_t count) const {
    XferDescList list(MemType::kDram);
    for (std::size_t i = 0; i < count; ++i) list.add(address() + i * (memory.size() / count), memory.size() / count);
    return list;
  }
  /// Posts and polls to the end.
  Status run(TransferRequest& request, const OptArgs* opt = nullptr) {
    Result<bool> busy = agent.post_xfer_req(request, opt);
    if (!busy) return busy.error();
    const bool over = eventually([&] {
      busy = agent.in_progress(request);
      return !busy || !*busy;
    });
    if (!over) return Status(Code::kTimedOut, "the test's patience");
    return busy.error();
  }

  std::vector<char> memory;  ///< Outlives the registration.
  Agent agent;
  Backend ucx;
  RegistrationHandle registration;
};

}  // namespace hawser::compat
