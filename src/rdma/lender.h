#pragma once

// Lender: what an owner does. It lends memory, answers holders of its buffers, and takes buffers back for whoever asks.
// The region of such a buffer refuses new uses at once. All who asked are told of its end once nobody is inside.
//
// Thread rule: thread-safe; its book has the lock.

#include <cstdint>
#include <memory>
#include <string>

#include <hawser/agent.h>
#include <hawser/rdma.h>

#include "base/events.h"
#include "base/id128.h"
#include "rdma/handle.h"
#include "rdma/lent_buffers.h"
#include "rdma/messages.h"
#include "rdma/replies.h"

HAWSER_NAMESPACE_BEGIN
namespace rdma {

class Lender {
 public:
  struct Uses {
    Agent& agent;
    const EngineId& self;
    LentBuffers& lent;
    Replies& replies;
    const base::EventFd& wake;  ///< Something has to be looked at from now on.
  };
  explicit Lender(const Uses& uses) : uses_(uses) {}

  /// The handle of a new buffer, or of one that is lent so already.
  Result<RemoteBuffer> lend(std::uint64_t id, const LocalMemory& memory, const Lending& lending);
  Result<LocalMemory> local_of(const RemoteBuffer& buffer) const;
  Result<RemoteBuffer> named(const std::string& name) const;

  void answer(const Peer& from, const Ask& ask);
  void release(const base::Id128& token, Ack ack);
  /// Looks at those that were released. True: somebody was told something.
  bool look();

 private:
  Reply handle_of(const Ask& ask) const;
  bool look_at(const std::shared_ptr<Owned>& owned);
  void acknowledge(const Ack& ack, const Status& status);

  const Uses uses_;
};

}  // namespace rdma
HAWSER_NAMESPACE_END
