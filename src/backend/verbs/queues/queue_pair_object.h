#pragma once

// QueuePairObject: what differs between the types of queue pairs: how the device's object is made, how it is brought
// up, how work requests get onto it, and which of them tell that they ended. QueuePair does the rest.
//
//   reliable connection (RC)  one peer, in order: the last request of a chunk tells for those before it
//   datagrams (SRD, EFA)      each request names its peer, and they end in any order: each tells for itself
//
// Thread rule: confined to the lane. Lifetime: within its Nic's. The object is destroyed by its owner, then `release`d.

#include <memory>
#include <string_view>

#include <hawser/status.h>

#include "backend/verbs/devices/nic.h"
#include "backend/verbs/options.h"
#include "base/rng.h"
#include "wire/queue_pair.h"

namespace hawser::backend::verbs {

class QueuePairObject {
 public:
  /// Of the Nic's type.
  static std::unique_ptr<QueuePairObject> of(const Nic& nic, const QueuePairOptions& options);
  virtual ~QueuePairObject() = default;

  /// As Verbs::create_qp.
  virtual ibv_qp* create(ibv_qp_init_attr* attr) = 0;
  /// RESET -> INIT, with new numbers.
  virtual Status init(ibv_qp* qp, base::Rng& rng) = 0;
  /// INIT -> RTR -> RTS, from this address of the port towards the peer, whose MTU here is that of both.
  virtual Status join(ibv_qp* qp, const Gid& own, const wire::QueuePairEndpoint& peer) = 0;
  /// What was made beside the queue pair, which is gone, or touches nothing any more.
  virtual void release() {}
  /// Fills in what only this type knows.
  virtual void tell(wire::QueuePairEndpoint* endpoint) const = 0;
  /// Makes `request`, which has its number, one that shows that the way to the peer carries.
  virtual void fill_proof(ibv_send_wr* request, ibv_sge* piece) const = 0;
  /// 0, and all of the chain is posted; or an errno value, and the queue pair is at fault.
  virtual int post(ibv_qp* qp, ibv_send_wr* first) = 0;
  /// Every request tells that it ended, in any order, and one that is at fault itself leaves the others alone.
  virtual bool is_unordered() const { return false; }
};

/// "making a queue pair on mlx5_0:1 (...): Cannot allocate memory (errno 12)".
Status call_failed(const Nic& nic, std::string_view doing, int error);
std::unique_ptr<QueuePairObject> make_rc_object(const Nic& nic, const QueuePairOptions& options);
std::unique_ptr<QueuePairObject> make_srd_object(const Nic& nic, const QueuePairOptions& options);

}  // namespace hawser::backend::verbs
