#include "sim/reasons.h"

#include <algorithm>

#include "agent/inner_simulator.h"

namespace hawser::simulation {
namespace {

/// Until two that were parted have found together again, or have given up: more than peer_timeout.
constexpr Duration kMending = std::chrono::milliseconds(600);
/// With links at full width everything that users here can ask for is done within this.
constexpr Duration kAmple = std::chrono::milliseconds(250);
/// Smaller windows make every link slow.
constexpr std::size_t kBrisk = 64 * 1024;
/// Beyond what the backend says: turns, latencies, retransmissions.
constexpr Duration kSlack = std::chrono::milliseconds(60);

}  // namespace

void Reasons::excuse(const Life& life, Duration span) { excused_[&life] += span; }

void Reasons::trouble(std::size_t a, std::size_t b, Duration span, Harm harm) {
  troubles_.push_back({a, b, span, universe_.world.now() + span + kMending, harm});
}

bool Reasons::troubled(const Life& a, const Life& b, Instant since, Harm harm) const {
  return std::any_of(troubles_.begin(), troubles_.end(), [&](const Trouble& each) {
    return each.is_between(a, b) && each.until >= since && each.harm >= harm;
  });
}

/// Or did not hear each other for too long. All silences count together: one may follow upon the other.
bool Reasons::are_parted(const Life& a, const Life& b, Instant since) const {
  if (troubled(a, b, since, Harm::kCutsOff)) return true;
  Duration silent{};
  for (const Trouble& each : troubles_) {
    if (each.is_between(a, b) && each.harm == Harm::kSilences) silent += each.span;
  }
  return silent > patience_ && troubled(a, b, since, Harm::kSilences);
}

bool Reasons::may_be_late(const Life& life, const Life& to, Instant submitted, Instant due) const {
  if (due - submitted < kAmple || universe_.net.options().pipe.capacity_bytes < kBrisk) return true;
  if (!to.alive || to.closing || are_parted(life, to, submitted)) return true;
  // What was held up and had time enough after all was mended is not late for that reason.
  return troubled(life, to, submitted, Harm::kDelays) && troubled(life, to, due - kAmple, Harm::kDelays);
}

bool Reasons::may_be_cut_off(Life& life, Life& other, Instant since) const {
  if (!other.alive || other.closing || life.closing) return true;
  return life.bonds[&other].broken || other.bonds[&life].broken || are_parted(life, other, since);
}

Duration Reasons::allowance(const Life& life) const {
  const auto excused = excused_.find(&life);
  const Duration quiesce = agent::inner::quiesce_max(life.agent);
  return kSlack + quiesce + 100 * life.host->pace() + (excused == excused_.end() ? Duration::zero() : excused->second);
}

}  // namespace hawser::simulation
