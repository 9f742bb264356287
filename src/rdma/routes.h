#pragma once

// Routes: the owner of a buffer as a peer of this agent, the buffer's region there, and plans between it and local
// memory. The owner is looked up once for each handle, and again once it was down.
//
// Thread rule: thread-safe; the agent is not called under the lock. Memory: a bounded book of peers.

#include <cstdint>
#include <unordered_map>
#include <utility>

#include <hawser/agent.h>
#include <hawser/rdma.h>

#include "base/id128.h"
#include "base/mutex.h"
#include "rdma/handle.h"
#include "rdma/lent_buffers.h"

HAWSER_NAMESPACE_BEGIN
namespace rdma {

class Routes {
 public:
  Routes(Agent& agent, const EngineId& self, const LentBuffers& lent) : agent_(agent), self_(self), lent_(lent) {}
  /// Before the first call of probe or find. At least a byte of host memory, for plans that nobody submits.
  void use_scratch(LocalMemory scratch) { scratch_ = std::move(scratch); }

  Result<Found> find(const RemoteBuffer& buffer) HAWSER_EXCLUDES(mutex_);
  Result<Plan> plan(const Found& found, OpType type, const LocalMemory& local, const RemoteBuffer& remote,
                    std::uint64_t bytes) const;
  /// A plan of one byte: what carries it carries all of the buffer.
  Result<Plan> probe(const Found& found, const RemoteBuffer& buffer) const;

 private:
  Result<Found> meet(const BufferCore& core) const;
  /// Whether bytes to this peer go through shared memory, by what was known when it was met.
  bool is_near(const Found& found, const RemoteBuffer& buffer) HAWSER_EXCLUDES(mutex_);

  Agent& agent_;
  const EngineId& self_;
  const LentBuffers& lent_;
  LocalMemory scratch_;
  base::Mutex mutex_;
  std::unordered_map<base::Id128, bool> near_ HAWSER_GUARDED_BY(mutex_);  ///< By the peer's incarnation.
};

}  // namespace rdma
HAWSER_NAMESPACE_END
