#include "agent/grant_ends.h"

#include <utility>

#include "base/planted.h"

namespace hawser::agent {

void GrantEnds::end(std::shared_ptr<LocalRegion> grant) {
  if (std::exchange(grant->is_ending, true)) return;
  table_.close(grant->entry->index, grant->entry->generation);
  ended_.push_back(std::move(grant));
  set_jobs(true);
}

std::size_t GrantEnds::turn(Instant now) {
  assume_in_lane();  // See Part.
  GrantBook::Grants expired = book_.take_expired(now);
  set_next(book_.next_expiry());
  if (base::planted(base::Planted::kExpiryForgotten)) return expired.size();
  for (auto& grant : expired) end(std::move(grant));
  return expired.size();
}

void GrantEnds::run_jobs(Instant) {
  if (!take_jobs()) return;
  lane_.lock();
  const GrantBook::Grants ended = std::exchange(ended_, {});
  lane_.unlock();
  for (const auto& grant : ended) closer_.drop(grant);
}

void GrantEnds::describe(const Visitor& visitor) const {
  assume_in_lane();  // See Part.
  if (!ended_.empty()) visitor({.who = "grants", .what = "a thread to close them", .count = ended_.size()});
}

}  // namespace hawser::agent
