#pragma once

// Calls: requests to a file server and their answers, by id. A thread of its own takes answers from the agent; any
// number of others wait for theirs.
//
// Thread rule: any thread. Lifetime: the agent outlives it.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <thread>

#include <hawser/agent.h>

#include "base/mutex.h"
#include "cli/files/protocol.h"

namespace hawser::cli {

class Calls {
 public:
  Calls(Agent& agent, Peer peer, Duration timeout);
  ~Calls();

  /// The server's answer, or its error, or why there is none: kTimedOut, kDisconnected, kCancelled (Ctrl-C).
  Result<Json> call(Json request, std::string_view tail = {});

 private:
  void take_answers();
  Status send(const std::string& bytes, Instant deadline);
  Status gone() const;

  Agent& agent_;
  const Peer peer_;
  const Duration timeout_;
  mutable base::Mutex mutex_;
  base::CondVar answered_;
  std::uint64_t next_id_ HAWSER_GUARDED_BY(mutex_) = 1;
  std::map<std::uint64_t, std::optional<Json>> waiting_ HAWSER_GUARDED_BY(mutex_);
  Status down_ HAWSER_GUARDED_BY(mutex_);
  bool is_closing_ HAWSER_GUARDED_BY(mutex_) = false;
  std::thread taker_;
};

}  // namespace hawser::cli
