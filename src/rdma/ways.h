#pragma once

// Ways: which backends lead to a buffer's owner, and why the others do not. An operation that ends for want of a way
// says all of them.
//
// Thread rule: thread-safe, without state of its own.

#include <span>
#include <string>
#include <vector>

#include <hawser/agent.h>
#include <hawser/rdma.h>

#include "agent/inner_peers.h"
#include "rdma/handle.h"

HAWSER_NAMESPACE_BEGIN
namespace rdma {

class Ways {
 public:
  Ways(const Agent& agent, const EngineId& self) : agent_(agent), self_(self) {}

  /// See way_lines.
  std::vector<std::string> lines_of(const RemoteBuffer& buffer) const;
  /// What an operation ended with for want of a way, and what is known of each way.
  Status with_ways(const Status& why, const RemoteBuffer& buffer) const;
  /// What to tell of a transfer that failed. Rights and bounds were looked at before, so a refusal is the buffer's end.
  Status of_transfer(const Status& why, const RemoteBuffer& buffer) const;

 private:
  const Agent& agent_;
  const EngineId& self_;
};

/// One line for each backend that was opened here or that the handle names. `here`: all backends of this agent.
/// `told`: those of the owner when it made the handle. `tried`: what became of each on the way to the owner.
std::vector<std::string> way_lines(std::span<const BackendReport> here, std::span<const std::string> told,
                                   std::span<const agent::inner::Way> tried);

}  // namespace rdma
HAWSER_NAMESPACE_END
