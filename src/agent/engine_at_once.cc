// Small transfers that are over before submit returns: no slot, no list, nothing to give back.

#include "agent/core.h"
#include "agent/engine.h"

namespace hawser::agent {
namespace {

/// One of so many is timed: it takes as long as reading the clock twice does.
constexpr std::uint64_t kTimedOneIn = 8;

bool all_open(const LocalRegions& locals) {
  for (const auto& region : locals) {
    if (region->state.load(std::memory_order_relaxed) != RegionState::kOpen) return false;
  }
  return true;
}

}  // namespace

Session* Engine::free_session(const PlanCore& plan) {
  Session* session = plan.peer->session.get();
  if (closing_ || session == nullptr || session->control_serial == 0) return nullptr;
  for (const auto& waiting : session->pending) {
    if (!waiting.empty()) return nullptr;
  }
  return session;
}

bool Engine::move_at_once(PlanCore& plan) {
  Session* session = free_session(plan);
  if (session == nullptr || !all_open(plan.locals)) return false;
  const PathEntry* entry = route_in_force(plan.route, *session);
  if (entry == nullptr) return false;
  FlowCounters& flow = session->flow;
  const bool timed = (flow.writes + flow.reads + 1) % kTimedOneIn == 0;
  const Instant begin = timed ? core_.now() : Instant();
  const plan::ChunkSpan& shape = plan.chunks.chunks.front();
  const backend::Chunk chunk = {.op = plan.operation,
                                .transfer = session->next_plain | kPlainBit,
                                .target = plan.route.bindings[plan.pieces.groups[shape.group].region],
                                .pieces = shape.pieces,
                                .bytes = shape.bytes};
  if (!entry->path->move_at_once(chunk)) return false;
  ++session->next_plain;
  const bool is_write = plan.operation == Operation::kWrite;
  (is_write ? flow.bytes_written : flow.bytes_read) += shape.bytes;
  ++(is_write ? flow.writes : flow.reads);
  if (timed) session->latency.add(static_cast<std::uint64_t>((core_.now() - begin).count()));
  return true;
}

}  // namespace hawser::agent
