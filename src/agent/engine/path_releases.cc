#include "agent/engine/path_releases.h"

#include <algorithm>

namespace hawser::agent {

void PathReleases::release(std::size_t backend, backend::Path* path) {
  path->stop_taking();
  if (parts_later_) {
    parting_.emplace_back(backend, path);
    return;
  }
  now_.emplace_back(backend, path);
  if (!is_reading_) let_go(now_);
}

bool PathReleases::is_released(const backend::Path* path) const {
  const auto is_it = [path](const Released& each) { return each.second == path; };
  return std::ranges::any_of(now_, is_it) || std::ranges::any_of(parting_, is_it);
}

void PathReleases::part() {
  if (!parting_.empty() && !is_reading_) let_go(parting_);
}

void PathReleases::end_reading() {
  is_reading_ = false;
  if (!now_.empty()) let_go(now_);
}

void PathReleases::let_go(std::vector<Released>& released) {
  for (const auto& [backend, path] : released) backends_[backend].port->release_path(path);
  released.clear();
}

}  // namespace hawser::agent
