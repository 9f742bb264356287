#include "agent/grant_ends.h"

#include <utility>

#include "base/planted.h"

namespace hawser::agent {

bool GrantEnds::refuse(LocalRegion& grant) {
  if (std::exchange(grant.is_ending, true)) return false;
  table_.close(grant.entry->index, grant.entry->generation);
  return true;
}

void GrantEnds::leave_to_job(std::shared_ptr<LocalRegion> grant) {
  ended_.push_back(std::move(grant));
  set_jobs(true);
}

void GrantEnds::end(std::shared_ptr<LocalRegion> grant) {
  if (refuse(*grant)) leave_to_job(std::move(grant));
}

void GrantEnds::end_used(std::shared_ptr<LocalRegion> grant) {
  if (!refuse(*grant)) return;
  grant->entry->once->note_over();
  used_.push_back(std::move(grant));
  set_due();
}

std::size_t GrantEnds::turn(Instant now) {
  assume_in_lane();  // See Part.
  GrantBook::Grants expired = book_.take_expired(now), used = std::exchange(used_, {});
  set_due();
  std::size_t work = expired.size() + used.size();
  for (auto& grant : used) {
    if (!closer_.close_now(grant)) leave_to_job(std::move(grant));
  }
  if (base::planted(base::Planted::kExpiryForgotten)) return work;
  for (auto& grant : expired) end(std::move(grant));
  return work;
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
  if (!used_.empty()) visitor({.who = "grants", .what = "a turn that closes them", .count = used_.size()});
}

}  // namespace hawser::agent
