#pragma once

// Whole agents over RDMA devices in memory, each with a lock of the fabric, so that they may have threads of their own.
//
// Thread rule: any thread; the fabric's own state by `with`. Lifetime: outlives its agents.

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include <hawser/agent.h>

#include "../must.h"
#include "agent/open.h"
#include "backend/loopback/factory.h"
#include "backend/verbs/mock/mock_backend.h"
#include "base/mutex.h"

namespace hawser::mock_agents {

class MockWorld {
 public:
  /// With the backend verbs on `device`, behind those of `first`.
  Agent open(const std::string& name, const std::string& device, bool driven = false,
             std::vector<BackendSpec> first = {}) {
    AgentOptions options;
    options.name = name;
    options.backends = std::move(first);
    options.backends.push_back(verbs({{"devices", device}}));
    options.driven = driven;
    options.log.level = LogLevel::kError;
    return must(agent::open_with(std::move(options), {backend::loopback_factory(), factory()}));
  }
  backend::Factory factory() {
    return backend::verbs::mock_backend(fabric_, backend::verbs::locked_verbs(fabric_, mutex_, [this] {
                                          if (before_dereg) before_dereg();
                                        }));
  }
  /// Run by whoever is about to deregister memory. Set while nobody does.
  std::function<void()> before_dereg;
  template <typename Use>
  auto with(Use&& use) {
    const base::MutexLock lock(mutex_);
    return use(fabric_);
  }
  std::uint64_t queue_pairs_made() {
    return with([](auto& fabric) { return fabric.qps_made; });
  }
  std::size_t queue_pairs() {
    return with([](auto& fabric) { return fabric.qps(); });
  }
  backend::verbs::MockCounts counts() {
    return with([](auto& fabric) { return fabric.counts; });
  }

 private:
  base::Mutex mutex_;
  backend::verbs::MockFabric fabric_{{"mock0", "mock1", "mock2"}};
};

/// The agents, polled by turns until `done` holds.
template <typename Done>
bool poll_until(std::vector<Agent*> agents, Done&& done, Duration patience = std::chrono::seconds(20)) {
  const Instant end = Clock::steady().now() + patience;
  while (!done()) {
    if (Clock::steady().now() > end) return false;
    for (Agent* agent : agents) agent->poll();
  }
  return true;
}

/// Memory of an agent and its name there.
struct Area {
  Area(Agent& agent, const std::string& name, std::size_t size) : bytes(size) {
    region = must(agent.add_region({.name = name, .bytes = bytes}));
  }
  std::vector<std::byte> bytes;
  Region region;
};

}  // namespace hawser::mock_agents
