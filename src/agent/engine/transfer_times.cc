#include "agent/engine/transfer_times.h"

namespace hawser::agent {

bool TransferTimes::is_timed_at_once(const FlowCounters& flow, std::uint64_t bytes) {
  constexpr std::uint64_t kAllAbove = 64 * 1024;
  constexpr std::uint64_t kOneIn = 8;
  return bytes > kAllAbove || (flow.writes + flow.reads + 1) % kOneIn == 0;
}

void TransferTimes::note(Session& session, PathEntry* entry, const plan::Pieces& pieces, Duration took,
                         bool was_alone) const {
  const auto took_ns = static_cast<std::uint64_t>(took.count());
  session.latency.add(took_ns);
  if (entry == nullptr) return;
  if (entry->times == nullptr) entry->times = std::make_unique<PathTimes>();
  entry->times->latency.add(took_ns);
  if (!was_alone) return;
  entry->times->health.observe(ports_.traits(entry->backend), pieces.bytes, pieces.all.size(), took);
}

}  // namespace hawser::agent
