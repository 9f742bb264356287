#pragma once

// SeedServer: an agent with a thread that answers ranks from a SeedTable.
//
// Thread rule: thread-safe. Lifetime: the destructor ends the thread, then closes the agent.

#include <unistd.h>

#include <atomic>
#include <deque>
#include <map>
#include <string>
#include <thread>
#include <utility>

#include <hawser/agent.h>

#include "runtime/seed_table.h"
#include "wire/seed.h"

namespace hawser::runtime {

class SeedServer {
 public:
  static Result<std::unique_ptr<SeedServer>> open(AgentOptions options);
  ~SeedServer();
  SeedServer(const SeedServer&) = delete;
  SeedServer& operator=(const SeedServer&) = delete;

  std::string address(const std::string& host) const;

 private:
  explicit SeedServer(Agent agent) : agent_(std::move(agent)) {}
  void run();
  void serve(const Message& message);
  void answer(const Incarnation& peer, std::uint64_t id, const Result<std::string>& value);
  void send_waiting();

  Agent agent_;
  SeedTable table_;                                          ///< Of the thread, as what follows.
  std::map<Incarnation, Peer> peers_;                        ///< That have asked, and are not gone.
  std::deque<std::pair<Incarnation, std::string>> waiting_;  ///< Answers that found no room; at most kAnswersMax.
  const int process_ = ::getpid();
  std::atomic<bool> ends_{false};
  std::thread thread_;
};

}  // namespace hawser::runtime
