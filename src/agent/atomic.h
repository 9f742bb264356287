#pragma once

// What stands behind an AtomicOp. The part above the line is shared with other threads: `status` and `found` are
// written before `final` (release) and constant from then on. The part below is confined to the lane.

#include <atomic>
#include <cstdint>
#include <memory>

#include <hawser/atomic.h>

#include "base/timer_heap.h"
#include "wire/atomic.h"

namespace hawser::agent {

class Core;
class QueueCore;
struct PeerCore;

struct AtomicCore {
  std::weak_ptr<Core> core;
  std::atomic<bool> final{false};
  Status status;
  std::uint64_t found = 0;

  // ---- Confined to the lane.
  std::shared_ptr<PeerCore> peer;  ///< Until it is final.
  std::shared_ptr<QueueCore> queue;
  std::uint64_t cookie = 0;
  Instant submitted;
  Instant deadline;
  base::TimerHook alarm;  ///< At the deadline.
  bool sent = false;      ///< The peer may have it.
  wire::AtomicAsk ask;
};

}  // namespace hawser::agent
