#pragma once

// SeedServer: an agent with a thread that answers ranks from a SeedTable.
//
// Thread rule: thread-safe. Lifetime: the destructor ends the thread, then closes the agent.

#include <unistd.h>

#include <atomic>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

#include <hawser/agent.h>

#include "identity/world_token.h"
#include "runtime/seed_table.h"
#include "wire/seed.h"

namespace hawser::runtime {

/// Seeds are reached over tcp, also where the ranks have named other backends for their world.
void add_seed_backend(AgentOptions& options);

class SeedServer {
 public:
  /// With a token it serves only ranks that prove it, and its address needs no ticket.
  static Result<std::unique_ptr<SeedServer>> open(AgentOptions options,
                                                  std::optional<identity::WorldToken> token = std::nullopt);
  ~SeedServer();
  SeedServer(const SeedServer&) = delete;
  SeedServer& operator=(const SeedServer&) = delete;

  std::string address(const std::string& host) const;

 private:
  SeedServer(Agent agent, std::optional<identity::WorldToken> token)
      : agent_(std::move(agent)), token_(std::move(token)) {}
  void run();
  void serve(const Message& message);
  Result<std::string> check_proof(const Incarnation& rank, std::string_view proof);
  void answer(const Incarnation& peer, std::uint64_t id, const Result<std::string>& value);
  void send_waiting();

  Agent agent_;
  const std::optional<identity::WorldToken> token_;
  SeedTable table_;                                          ///< Of the thread, as what follows.
  std::map<Incarnation, Peer> peers_;                        ///< That have asked, and are not gone.
  std::set<Incarnation> proven_;                             ///< Of those: that have shown to have the token.
  std::deque<std::pair<Incarnation, std::string>> waiting_;  ///< Answers that found no room; at most kAnswersMax.
  const int process_ = ::getpid();
  std::atomic<bool> ends_{false};
  std::thread thread_;
};

/// At "HOST:PORT", which is this host's, on all of its addresses.
Result<std::unique_ptr<SeedServer>> serve_at(std::string_view address, AgentOptions options,
                                             const std::optional<identity::WorldToken>& token);

}  // namespace hawser::runtime
