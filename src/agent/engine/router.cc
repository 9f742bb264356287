#include "agent/engine/router.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "agent/peer_core.h"
#include "agent/verdict.h"
#include "base/shown.h"

namespace hawser::agent {
namespace {

/// True where a path may be handed this memory. Regions of files and of peers' hosts are the path's own to refuse.
bool reaches(const backend::Traits& traits, Device device) {
  return device.kind == DeviceKind::kHost || device.kind == DeviceKind::kFile || traits.reaches.has(device.kind);
}

Status not_reached(const backend::Traits& traits, std::string_view side, Device device) {
  return Status(Code::kUnsupported, std::string(traits.name) + " does not reach " + std::string(side) + " memory (" +
                                        to_string(device) + ")")
      .with_scope(Scope::kPath);
}

/// What the backend cannot touch at all is never given to it: its processor would fault on a GPU's address.
void refuse_devices(PathEntry& entry, const backend::Traits& traits, const PlanCore& plan) {
  for (const auto& remote : plan.remotes) {
    if (reaches(traits, remote->device)) continue;
    entry.refused.add({remote->index, remote->generation}, {}, not_reached(traits, "remote", remote->device));
    return;  // One is enough to keep the plan off this path.
  }
  for (const auto& local : plan.locals) {
    const Device device = local->entry->device;
    if (reaches(traits, device)) continue;
    // Together with a remote region that it is really joined with: others are nothing to it.
    for (std::uint32_t chunk = 0; chunk < plan.chunk_count(); ++chunk) {
      if (!plan.touches(chunk, *local)) continue;
      const RemoteRegion& remote = plan.remote_of(chunk);
      entry.refused.add({remote.index, remote.generation}, {{local->entry->index, local->entry->generation}},
                        not_reached(traits, "local", device));
      return;
    }
  }
}

/// It says nothing of the region: the path went, and another one may come up.
bool is_of_lost_path(const Status& status) {
  return status.code() == Code::kDisconnected && status.scope() == Scope::kPath;
}

/// As the newest card has it: what a backend says of a region may change while handles of it are about.
std::string extra_of(PeerCore& peer, const RemoteRegion& region, std::string_view backend) {
  {
    const base::MutexLock lock(peer.use().mutex);
    const wire::CardRegion* const named = peer.use().card == nullptr ? nullptr : peer.use().card->find(region.index);
    if (named != nullptr && named->generation == region.generation && named->key == region.key) {
      return std::string(peer.use().card->extra(*named, backend));
    }
  }
  for (const auto& [name, bytes] : region.extras) {
    if (name == backend) return bytes;
  }
  return {};
}

}  // namespace

void Router::refuse_chunk(PathEntry& entry, const PlanCore& plan, std::uint32_t chunk, const Status& why) {
  const RemoteRegion& remote = plan.remote_of(chunk);
  std::vector<Refusals::Id> locals;
  std::string names;
  for (const auto& local : plan.locals_of(chunk)) {
    locals.emplace_back(local->entry->index, local->entry->generation);
    names += (names.empty() ? "'" : ", '") + local->entry->name + "'";
  }
  const Status named(Code::kUnsupported,
                     "between the local memory " + names + " and the region '" + base::shown(remote.name) + "'");
  entry.refused.add({remote.index, remote.generation}, std::move(locals), named.because(why));
}

PathEntry* Router::route(PlanCore& plan, Session& session, Status* why) {
  if (PathEntry* known = in_force(plan.route, session)) return known;
  for (;;) {
    plan.route = Route();
    PathEntry* const best = best_of(plan, session);
    const Result<bool> is_bound = best == nullptr ? without_path(plan, session) : bind_all(plan, session, *best);
    if (is_bound && *is_bound) return best;
    if (!is_bound && is_of_lost_path(is_bound.error())) return nullptr;  // Its news comes in this turn or the next.
    if (!is_bound) *why = is_bound.error();
    if (!is_bound || best == nullptr) return nullptr;
  }
}

PathEntry* Router::best_of(PlanCore& plan, Session& session) const {
  PathEntry* best = nullptr;
  for (PathEntry& entry : session.paths) {
    if (!entry.agreed || (best != nullptr && entry.backend >= best->backend)) continue;
    refuse_devices(entry, ports_.traits(entry.backend), plan);
    if (plan.refused_by(entry.refused) == nullptr) best = &entry;
  }
  return best;
}

/// Where the paths that are up cannot carry these regions, the next backend may. False: a path is on its way.
Result<bool> Router::without_path(PlanCore& plan, Session& session) {
  const auto is_agreed = [](const PathEntry& entry) { return entry.agreed; };
  if (session.paths.empty() || !std::ranges::all_of(session.paths, is_agreed)) return false;
  if (connector_.open_next_for_plan(session, clock_.now())) return false;
  return cannot_carry(session, plan);
}

/// Paths are up, and none of them can carry the plan.
Status Router::cannot_carry(const Session& session, const PlanCore& plan) {
  Status why(Code::kUnsupported, "no path to " + session.peer->name + " can carry this plan");
  for (const PathEntry& entry : session.paths) {
    const auto* refusal = plan.refused_by(entry.refused);
    if (refusal != nullptr) {
      why = why.because(reason_of({.backend = ports_[entry.backend].name, .why = refusal->why}));
    }
  }
  for (const Attempt& attempt : reach_.attempts_of(session)) why = why.because(reason_of(attempt));
  return why.with_peer(session.peer->name);
}

Result<bool> Router::bind_all(PlanCore& plan, Session& session, PathEntry& entry) {
  base::SmallVector<backend::Binding*, 2> bindings;
  for (const auto& region : plan.remotes) {
    const std::string extra = extra_of(*session.peer, *region, ports_[entry.backend].name);
    Result<backend::Binding*> binding = entry.path->bind({.index = region->index,
                                                          .generation = region->generation,
                                                          .key = region->key,
                                                          .size = region->size,
                                                          .rights = region->rights,
                                                          .device = region->device,
                                                          .extra = extra});
    if (!binding) {
      if (binding.error().code() != Code::kUnsupported) return binding.error();
      entry.refused.add({region->index, region->generation}, {}, binding.error());
      return false;
    }
    bindings_.add(session, region, clock_.now());
    bindings.push_back(*binding);
  }
  plan.route = {.path = entry.path,
                .serial = entry.serial,
                .chosen_among = session.paths_agreed,
                .bindings = std::move(bindings)};
  return true;
}

}  // namespace hawser::agent
