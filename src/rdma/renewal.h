#pragma once

// Renewal: a buffer that has a name, found again at its owner's next incarnation. It asks until the owner lends the
// buffer, or time is over.
//
// Thread rule: thread-safe, without state of its own. A call waits.

#include <functional>
#include <string>

#include <hawser/agent.h>
#include <hawser/rdma.h>

#include "rdma/lender.h"

HAWSER_NAMESPACE_BEGIN
namespace rdma {

class Renewal {
 public:
  struct Uses {
    Agent& agent;
    const Lender& lender;  ///< For buffers of this process.
    /// Asks the owner for the handle of its buffer of that name, and waits until `left` is over.
    std::function<Result<std::string>(const RemoteBuffer& buffer, Peer owner, Duration left)> ask;
  };
  explicit Renewal(Uses uses) : uses_(std::move(uses)) {}

  Result<RemoteBuffer> renew(const RemoteBuffer& buffer, Duration timeout) const;

 private:
  Result<RemoteBuffer> ask_for_handle(const RemoteBuffer& buffer, Instant until) const;

  const Uses uses_;
};

}  // namespace rdma
HAWSER_NAMESPACE_END
