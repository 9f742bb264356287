#pragma once

// RawQueues: where a queue pair of the provider mlx5 has its send queue and doorbell. Others do not tell theirs.
//
// Thread rule: thread-safe. Lifetime: a library that was opened stays loaded.

#include <memory>

#include "backend/verbs/library/verbs.h"
#include "base/mutex.h"

namespace hawser::backend::verbs {

class RawQueues {
 public:
  RawQueues();
  ~RawQueues();
  /// As Verbs::raw_queue. The provider's library is opened by the first call.
  int find(ibv_qp* qp, RawQueue* out);

 private:
  struct Library;
  base::Mutex mutex_;
  bool was_opened_ HAWSER_GUARDED_BY(mutex_) = false;
  std::unique_ptr<Library> library_ HAWSER_GUARDED_BY(mutex_);
};

}  // namespace hawser::backend::verbs
