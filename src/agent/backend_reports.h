#pragma once

// BackendReports: what became of each backend that the agent was asked to open.
//
// Thread rule: thread-safe.

#include <string_view>
#include <vector>

#include <hawser/agent.h>

#include "base/mutex.h"

namespace hawser::agent {

class BackendReports {
 public:
  /// In place of an earlier report that a backend of this name did not open. One that is open keeps its report.
  void add(BackendReport report);
  std::vector<BackendReport> all() const;

 private:
  mutable base::Mutex mutex_;
  std::vector<BackendReport> reports_ HAWSER_GUARDED_BY(mutex_);  ///< In the order of opening; one for each name.
};

}  // namespace hawser::agent
