#pragma once

// Opening an agent with other backends than the default ones, and with another way to pass the time. For the simulator
// and for tests of backends; not part of the door.

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include <hawser/agent.h>

#include "agent/service.h"
#include "backend/backend.h"
#include "base/id128.h"
#include "identity/authenticator.h"
#include "tls/key_pair.h"
#include "wire/hello.h"

namespace hawser::agent {

/// What proves who an agent is, and lets others in.
struct OwnSecrets {
  tls::KeyPair::Seed key = {};  ///< From which the key pair is made.
  base::Id128 admission;
};

struct Hooks {
  /// What a waiting call does instead of sleeping in the kernel: let time pass until something may have happened for
  /// this agent, at most until `until`. Called without locks. Empty: sleep.
  std::function<void(Instant until)> pause;
  /// Nanoseconds since 1970, which order the incarnations of a name. Empty: the system's clock.
  std::function<std::uint64_t()> wall = {};
  /// Makes a service of a layer above, told of what sessions do from the first one on. Empty: none.
  std::function<std::shared_ptr<Service>(Carrier& carrier)> tenant = {};
  /// Keys and admission secret that others can derive, too. Empty: random ones, as every agent has.
  std::optional<OwnSecrets> secrets = {};
  /// The agent's identity by an authority, which a layer above has opened and uses, too. Null: the agent opens its own.
  std::shared_ptr<identity::Authenticator> authenticator = {};
  /// What the agent says that it speaks; the bytes stay those of this build.
  wire::Versions versions = {};
};

Result<Agent> open_with(AgentOptions options, std::vector<backend::Factory> factories, Hooks hooks = {});

/// One round of work, as a lane's driver would do it. `next` is when to come again even if nothing happens; only
/// meaningful when the answer is 0 (the doorbells are armed then).
std::size_t turn(Agent& agent, Instant* next);

}  // namespace hawser::agent
