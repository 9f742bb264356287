#pragma once

// RouteFacts: what a user may ask about the way to a buffer before bytes go there.
//
// Thread rule: thread-safe, without state of its own.

#include <string>

#include <hawser/agent.h>
#include <hawser/rdma.h>

#include "rdma/handle.h"
#include "rdma/routes.h"
#include "rdma/ways.h"

HAWSER_NAMESPACE_BEGIN
namespace rdma {

class RouteFacts {
 public:
  struct Uses {
    const Agent& agent;
    const EngineId& self;
    Routes& routes;
    const Ways& ways;
  };
  explicit RouteFacts(const Uses& uses) : uses_(uses) {}

  Result<TransportInfo> transport_info(const RemoteBuffer& buffer) const;
  Result<QueuePairInfo> queue_pair_info(const RemoteBuffer& buffer, const LocalMemory& local) const;
  /// For people.
  std::string explain(const RemoteBuffer& buffer, const LocalMemory& local) const;

 private:
  Uses uses_;
};

}  // namespace rdma
HAWSER_NAMESPACE_END
