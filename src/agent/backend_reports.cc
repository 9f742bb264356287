#include "agent/backend_reports.h"

#include <algorithm>
#include <utility>

namespace hawser::agent {

void BackendReports::add(BackendReport report) {
  const base::MutexLock lock(mutex_);
  std::erase_if(reports_, [&](const BackendReport& each) { return each.name == report.name && !each.open; });
  const bool is_open = std::ranges::find(reports_, report.name, &BackendReport::name) != reports_.end();
  if (!is_open) reports_.push_back(std::move(report));
}

std::vector<BackendReport> BackendReports::all() const {
  const base::MutexLock lock(mutex_);
  return reports_;
}

}  // namespace hawser::agent
