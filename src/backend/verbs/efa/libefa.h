#pragma once

// LibEfa: what EFA has beside libibverbs, opened when somebody first asks for it. Where it is missing nothing else
// notices.
//
// Thread rule: thread-safe. Lifetime: a library that was opened stays loaded.

#include <memory>
#include <string>

#include <hawser/status.h>

#include "backend/verbs/library/verbs.h"
#include "base/mutex.h"

namespace hawser::backend::verbs {

class LibEfa {
 public:
  LibEfa();
  ~LibEfa();
  /// Good, or why it cannot be used: kUnsupported, with what to install.
  Status state();
  /// As the calls of these names of Verbs.
  int query_efa(ibv_context* context, efadv_device_attr* attr);
  ibv_qp* create_srd(ibv_context* context, ibv_qp_init_attr_ex* attr);

 private:
  struct Library;
  Library* open();

  base::Mutex mutex_;
  bool was_opened_ HAWSER_GUARDED_BY(mutex_) = false;
  Status missing_ HAWSER_GUARDED_BY(mutex_);
  std::unique_ptr<Library> library_ HAWSER_GUARDED_BY(mutex_);
};

}  // namespace hawser::backend::verbs
