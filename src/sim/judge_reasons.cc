// What may excuse a bad end: who was parted from whom, or held up, and when.

#include <algorithm>

#include "agent/region.h"
#include "sim/judge.h"

namespace hawser::simulation {
namespace {

/// Until two that were parted have found together again, or have given up: more than peer_timeout.
constexpr Duration kMending = std::chrono::milliseconds(600);
/// With links at full width everything that users here can ask for is done within this.
constexpr Duration kAmple = std::chrono::milliseconds(250);
/// Smaller windows make every link slow.
constexpr std::size_t kBrisk = 64 * 1024;

}  // namespace

void Judge::excuse(const Life& life, Duration span) { excused_[&life] += span; }

void Judge::trouble(std::size_t a, std::size_t b, Duration span, Harm harm) {
  troubles_.push_back({a, b, span, universe_.world.now() + span + kMending, harm});
}

bool Judge::troubled(const Life& a, const Life& b, Instant since, Harm harm) const {
  return std::any_of(troubles_.begin(), troubles_.end(), [&](const Trouble& each) {
    return each.is_between(a, b) && each.until >= since && each.harm >= harm;
  });
}

/// Or did not hear each other for too long. All silences count together: one may follow upon the other.
bool Judge::are_parted(const Life& a, const Life& b, Instant since) const {
  if (troubled(a, b, since, Harm::kCutsOff)) return true;
  Duration silent{};
  for (const Trouble& each : troubles_) {
    if (each.is_between(a, b) && each.harm == Harm::kSilences) silent += each.span;
  }
  return silent > patience_ && troubled(a, b, since, Harm::kSilences);
}

bool Judge::may_be_late(const Life& life, const Life& to, Instant submitted, Instant due) const {
  if (due - submitted < kAmple || universe_.net.options().pipe.capacity_bytes < kBrisk) return true;
  if (!to.alive || to.closing || are_parted(life, to, submitted)) return true;
  // What was held up and had time enough after all was mended is not late for that reason.
  return troubled(life, to, submitted, Harm::kDelays) && troubled(life, to, due - kAmple, Harm::kDelays);
}

bool Judge::may_be_cut_off(Life& life, Life& other, Instant since) {
  if (!other.alive || other.closing || life.closing) return true;
  return life.bonds[&other].broken || other.bonds[&life].broken || are_parted(life, other, since);
}

bool Judge::is_lie(const Course& course) {
  // A later card may have told the truth meanwhile, and part of a region that claims too much is really there.
  const Area& area = *course.pairs.front().remote;
  const auto known = course.from->bonds[course.to].peer.region(area.plot->name());
  const backend::RegionEntry& truth = *area.truth;
  if (!known || known->region->key != truth.key || known->region->rights != truth.rights) return true;
  return std::any_of(course.pairs.begin(), course.pairs.end(), [&](const Pair& pair) {
    return !backend::in_bounds(pair.remote_lease.offset, pair.remote_lease.size, truth.size);
  });
}

}  // namespace hawser::simulation
