#pragma once

// Engine: what the handles of one rdma::Backend share. It joins its members, of which each does one thing, and says in
// which order a round goes through them. Requests between holders and owners (releases, atomics, handles) travel as
// messages on one channel of the agent.
//
// One round of `serve` takes completions and messages, posts what waited for room, and ends what is due. A thread runs
// it, or the user does.
//
// Thread rule: thread-safe; each member has its lock. Lifetime: held by the Backend alone (batches refer to it weakly),
// whose end stops the thread.

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include <hawser/agent.h>
#include <hawser/rdma.h>

#include "base/events.h"
#include "base/mutex.h"
#include "rdma/batch.h"
#include "rdma/handle.h"
#include "rdma/held_memory.h"
#include "rdma/lender.h"
#include "rdma/lent_buffers.h"
#include "rdma/live_batches.h"
#include "rdma/parting_regions.h"
#include "rdma/posted_ops.h"
#include "rdma/renewal.h"
#include "rdma/replies.h"
#include "rdma/requests.h"
#include "rdma/route_facts.h"
#include "rdma/routes.h"
#include "rdma/serving_thread.h"
#include "rdma/ways.h"

HAWSER_NAMESPACE_BEGIN
namespace rdma {

class Engine : public std::enable_shared_from_this<Engine> {
 public:
  static Result<std::shared_ptr<Engine>> open(Agent& agent, const BackendOptions& options);
  ~Engine();
  /// Ends the thread and all that is under way.
  void stop();

  Agent& agent() const { return agent_; }
  bool runs_itself() const { return options_.thread; }
  bool serve();

  Result<LocalMemory> local_memory(std::span<std::byte> bytes, std::shared_ptr<const void> owner, bool writable,
                                   Device device);
  Result<std::shared_ptr<BatchCore>> submit(std::span<const Op> ops, Duration timeout);
  Result<std::shared_ptr<BatchCore>> release(const RemoteBuffer& buffer, Duration timeout);

  Lender& lender() { return lender_; }
  const Renewal& renewal() const { return renewal_; }
  const RouteFacts& route_facts() const { return route_facts_; }
  const Ways& ways() const { return ways_; }
  std::size_t buffer_count() const { return lent_.size(); }

  /// While somebody waits for an operation, who moves the agent on meanwhile.
  void begin_wait() { thread_.begin_wait(); }
  void end_wait() { thread_.end_wait(); }
  /// For who stops waiting before the end: the backend's thread moves the agent on again, at once.
  void take_over() { wake_.signal(); }
  /// Of a batch that has ended: nothing is kept for it any more.
  void ended(std::uint64_t serial) { batches_.ended(serial); }
  void cancelled(BatchCore& batch);

 private:
  Engine(Agent& agent, const BackendOptions& options, CompletionQueue queue, base::EventFd wake);
  Duration nap() const;
  void start(const std::shared_ptr<BatchCore>& batch, std::size_t index, const Op& op, bool is_late);
  void start_atomic(const std::shared_ptr<BatchCore>& batch, std::size_t index, const Op& op);
  void start_empty(BatchCore& batch, std::size_t index, const Op& op);
  bool take_messages();
  Status send(const Peer& to, std::string_view bytes) const;
  Result<std::string> ask_for_handle(const RemoteBuffer& buffer, Peer owner, Duration left);

  Agent& agent_;
  const BackendOptions options_;
  const EngineId self_;
  const pid_t opener_;
  CompletionQueue queue_;
  base::EventFd wake_;
  bool said_driven_ = false;  ///< The agent says so because of this engine.

  HeldMemory held_;
  LentBuffers lent_;
  const std::shared_ptr<PartingRegions> parting_;
  LiveBatches batches_;
  Ways ways_;
  Routes routes_;
  RouteFacts route_facts_;
  PostedOps posted_;
  Requests requests_;
  Replies replies_;
  Lender lender_;
  Renewal renewal_;
  base::Mutex serving_;  ///< One round at a time.
  ServingThread thread_;
};

}  // namespace rdma
HAWSER_NAMESPACE_END
