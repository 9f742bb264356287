#pragma once

// QueuePairSource: what a path over RDMA tells of its queue pairs to who posts on them by himself (hawser/rdma.h).
//
// Thread rule: confined to the lane, as the path. Lifetime: the path's.

#include <cstdint>

#include <hawser/counters.h>
#include <hawser/status.h>

#include "backend/backend.h"

namespace hawser::backend {

/// A queue pair as who posts on it by himself must know it (hawser/rdma.h has the meaning of each).
struct QueuePairView {
  QueuePairCounters state;
  std::uint32_t local_key = 0, remote_key = 0;
  std::uint64_t local_address = 0, remote_address = 0;
  void* send_queue = nullptr;
  std::uint32_t send_queue_entries = 0, send_queue_stride = 0;
  void* doorbell_record = nullptr;
  void* doorbell = nullptr;
};

class QueuePairSource {
 public:
  /// The queue pair that would take `piece` now. kUnsupported: there is none of that kind; kNotFound: none is ready.
  virtual Result<QueuePairView> queue_pair(const Binding& target, const Piece& piece) const = 0;

 protected:
  ~QueuePairSource() = default;
};

}  // namespace hawser::backend
