#pragma once

// SeedClient: what a rank asks its seed, one question at a time.
//
// Thread rule: one thread at a time. Lifetime: closes its agent with it.

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include <hawser/agent.h>
#include <hawser/world.h>

#include "identity/world_token.h"
#include "wire/seed.h"

namespace hawser::runtime {

class SeedClient {
 public:
  /// Connects to the seed at `address` (WorldSeed::address) by an agent of its own, which is made by `options`.
  /// With a token the address has no ticket. kDenied: the seed there has another token, or none.
  static Result<std::shared_ptr<SeedClient>> open(std::string_view address, AgentOptions options, Duration timeout,
                                                  const std::optional<identity::WorldToken>& token = std::nullopt);

  /// The same of a seed that may not be there yet: tries until the timeout is over.
  static Result<std::shared_ptr<SeedClient>> open_patiently(std::string_view address, const AgentOptions& options,
                                                            Duration timeout,
                                                            const std::optional<identity::WorldToken>& token);

  Status set(std::string_view key, std::string_view value);
  /// Waits until somebody has set it. kTimedOut, kDisconnected (the seed is gone).
  Result<std::string> get(std::string_view key, Duration timeout);
  /// As a store, which keeps the client.
  static WorldStore store_of(const std::shared_ptr<SeedClient>& client);

 private:
  SeedClient(Agent agent, Peer seed) : agent_(std::move(agent)), seed_(std::move(seed)) {}
  Status prove(const identity::WorldToken& token, Duration timeout);
  Result<std::string> ask(wire::SeedMessage question, Duration timeout);

  Agent agent_;
  Peer seed_;
  std::uint64_t asked_ = 0;
};

}  // namespace hawser::runtime
