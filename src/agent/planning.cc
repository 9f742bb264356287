// Plans made from what a user names, and explained.

#include <algorithm>
#include <iterator>
#include <utility>

#include "agent/core.h"
#include "agent/plan.h"
#include "base/inside.h"
#include "base/shown.h"
#include "fileio/file.h"
#include "plan/pair_rows.h"
#include "plan/planner.h"

namespace hawser::agent {
namespace {

Result<backend::QueuePairView> no_queue_pairs() {
  return Status(Code::kUnsupported, "this path has no queue pairs").with_scope(Scope::kPath);
}

Status bad_plan(std::string_view call, const std::string& what) {
  return Status(Code::kInvalid, std::string(call) + ": " + what);
}

/// Of a remote range that Peer::range made for a name that the peer does not have.
Status no_region(std::string_view call, std::size_t number, const Peer& peer) {
  Status status(Code::kNotFound, std::string(call) + ": remote range " + std::to_string(number) +
                                     " names no region that peer '" + std::string(peer.name()) + "' has");
  const Result<RemoteRange> named = peer.region(std::string_view());  // Its error tells which names there are.
  return named ? status : status.with_peer(peer.name()).with_advice(named.error().advice());
}

Status check_region(std::string_view call, const Core& core, const LocalRegion& region) {
  if (region.core.get() != &core) {
    return bad_plan(call, "local region '" + region.entry->name + "' is another agent's, of '" +
                              region.core->options.name + "' and not of '" + core.options.name + "'")
        .with_advice("register the memory with each agent that moves it");
  }
  if (region.entry->file != nullptr) {
    return Status(Code::kUnsupported, std::string(call) + ": the local region '" + region.entry->name +
                                          "' is a file (" + region.entry->file->name() +
                                          "), which can only be the far side of a plan")
        .with_advice(
            "plan between memory and Agent::self() with this region; what goes to a peer is read into memory first");
  }
  if (region.state.load(std::memory_order_acquire) == RegionState::kOpen) return {};
  return bad_plan(call, "local region '" + region.entry->name + "' is closed")
      .with_advice("plan with regions that are open");
}

/// Whether `weak` is of the object that `owner` holds. Counts nothing, as taking a share would.
template <typename T>
bool is_of(const std::weak_ptr<T>& weak, const std::shared_ptr<T>& owner) {
  return !weak.owner_before(owner) && !owner.owner_before(weak);
}

Status check_remote(std::string_view call, const RemoteRegion& region, const Peer& peer, Operation operation) {
  if (!is_of(region.peer, core_of(peer))) {
    return bad_plan(
        call, "region '" + base::shown(region.name) + "' does not belong to peer '" + std::string(peer.name()) + "'");
  }
  const Rights needed = operation == Operation::kWrite ? Rights::kWrite : Rights::kRead;
  const Instant now = region.grant ? core_of(peer)->core.lock()->now() : Instant();
  if (region.grant && now >= region.grant->expired_by) return grant_ended(region, call, now).with_peer(peer.name());
  if (allows(region.rights, needed)) return {};
  return Status(Code::kDenied, std::string(call) + ": region '" + base::shown(region.name) + "' of peer '" +
                                   std::string(peer.name()) + "' gives no right to " +
                                   (operation == Operation::kWrite ? "write" : "read"))
      .with_peer(peer.name())
      .with_advice(region.grant ? "ask its owner for a grant with that right"
                                : "register it there with Rights that include it");
}

/// The place of `region` in the plan's list, added when new.
template <typename Regions>
std::uint32_t place_of(Regions& all, const typename Regions::value_type& region) {
  if (!all.empty() && all.back() == region) return static_cast<std::uint32_t>(all.size() - 1);
  const auto found = std::find(all.begin(), all.end(), region);
  if (found != all.end()) return static_cast<std::uint32_t>(found - all.begin());
  all.push_back(region);
  return static_cast<std::uint32_t>(all.size() - 1);
}

/// Chunks that every backend can carry that may be asked to: a chunk keeps its number whichever path takes it.
plan::ChunkLimits find_chunk_limits(Core& core, PeerCore& peer) {
  plan::ChunkLimits limits{.bytes_max = 1u << 20, .pieces_max = 1024};
  core.lane.lock();
  for (const std::size_t i : core.engine.reach().candidates(peer)) {
    const backend::Traits& traits = *core.engine.ports()[i].traits;
    limits.bytes_max = std::min(limits.bytes_max, traits.chunk_bytes_max);
    limits.pieces_max = std::min(limits.pieces_max, traits.chunk_pieces_max);
  }
  core.lane.unlock();
  return limits;
}

std::uint64_t changes_of(const PeerCore& peer) HAWSER_REQUIRES(peer.use().mutex) {
  return peer.use().card ? peer.use().card->changes() : 0;
}

/// The same, found out once: asking each backend about the peer's address costs more than a small plan.
plan::ChunkLimits chunk_limits(Core& core, PeerCore& peer) {
  const std::uint32_t opened =
      core.backend_opener.opened();  // Looked at first: one that opens meanwhile is asked next time.
  std::uint64_t changes = 0;
  {
    const base::MutexLock lock(peer.use().mutex);
    if (peer.use().chunk_limits && peer.use().chunk_limits->opened == opened) return peer.use().chunk_limits->limits;
    changes = changes_of(peer);
  }
  const plan::ChunkLimits limits = find_chunk_limits(core, peer);
  const base::MutexLock lock(peer.use().mutex);
  if (changes_of(peer) == changes)
    peer.use().chunk_limits = std::make_unique<KnownChunkLimits>(KnownChunkLimits{.limits = limits, .opened = opened});
  return limits;
}

Result<Plan> finish(std::string_view call, std::shared_ptr<PlanCore> plan, Result<plan::Pieces> pieces) {
  if (!pieces) return pieces.error();
  plan->pieces = std::move(*pieces);
  for (const auto& region : plan->remotes) {
    plan->has_grants = plan->has_grants || region->grant.has_value();
    plan->is_single_use = plan->is_single_use || region->once != nullptr;
  }
  Result<plan::ChunkList> chunks = plan::split(call, plan->pieces, chunk_limits(*plan->core, *plan->peer));
  if (!chunks) return chunks.error();
  plan->chunks = std::move(*chunks);
  return Plan(std::move(plan));
}

Result<Plan> finish_pieces(std::string_view call, std::shared_ptr<PlanCore> plan, const Peer& peer,
                           inner::MadePieces&& made) {
  for (const auto& region : made.locals) {
    if (Status bad = check_region(call, *plan->core, *region); !bad.ok()) return bad;
  }
  for (const auto& region : made.remotes) {
    if (Status bad = check_remote(call, *region, peer, plan->operation); !bad.ok()) return bad;
  }
  plan->locals = std::move(made.locals);
  plan->remotes = std::move(made.remotes);
  return finish(call, std::move(plan), std::move(made.pieces));
}

Result<std::shared_ptr<PlanCore>> begin(std::string_view call, const std::shared_ptr<Core>& core, const Peer& peer,
                                        Operation operation) {
  if (!core) return bad_plan(call, "this agent is empty: it was moved to another variable");
  if (Status status = core->usable(call); !status.ok()) return status;
  if (!peer.valid()) {
    return bad_plan(call, "the peer handle is empty").with_advice("use what add_peer, find_peer or self gave");
  }
  if (!is_of(core_of(peer)->core, core)) {
    return bad_plan(call, "peer '" + std::string(peer.name()) + "' is known to another agent, not to '" +
                              core->options.name + "'")
        .with_advice("each agent has its own handles: use what its add_peer or find_peer gave");
  }
  if (peer.state() == PeerState::kDown) return agent::down_status(*core_of(peer));
  auto plan = std::make_shared<PlanCore>();
  plan->core = core;
  plan->peer = core_of(peer);
  plan->operation = operation;
  return plan;
}

Result<Plan> plan_lists(std::string_view call, const std::shared_ptr<Core>& core, const Peer& peer, Operation operation,
                        std::span<const LocalRange> local, std::span<const RemoteRange> remote) {
  auto plan = begin(call, core, peer, operation);
  if (!plan) return plan.error();
  if (local.size() != remote.size()) {
    return bad_plan(call, std::to_string(local.size()) + " local and " + std::to_string(remote.size()) +
                              " remote ranges; ranges are paired one to one");
  }
  std::vector<plan::LocalPart> ours(local.size());
  std::vector<plan::RemotePart> theirs(remote.size());
  for (std::size_t i = 0; i < local.size(); ++i) {
    if (!local[i].region) return bad_plan(call, "local range " + std::to_string(i) + " names no region");
    if (!remote[i].region) return no_region(call, i, peer);
    const std::size_t before = (*plan)->locals.size();
    place_of((*plan)->locals, local[i].region);
    if ((*plan)->locals.size() != before) {
      if (Status bad = check_region(call, *core, *local[i].region); !bad.ok()) return bad;
    }
    const std::size_t remotes = (*plan)->remotes.size();
    theirs[i].region = place_of((*plan)->remotes, remote[i].region);
    if ((*plan)->remotes.size() != remotes) {
      if (Status bad = check_remote(call, *remote[i].region, peer, operation); !bad.ok()) return bad;
    }
    ours[i] = {.base = local[i].region->entry->base,
               .region_size = local[i].region->entry->size,
               .offset = local[i].offset,
               .size = local[i].size};
    theirs[i].region_size = remote[i].region->size;
    theirs[i].offset = remote[i].offset;
    theirs[i].size = remote[i].size;
  }
  const auto regions = static_cast<std::uint32_t>((*plan)->remotes.size());
  return finish(call, std::move(*plan), plan::pair_parts(call, ours, theirs, regions));
}

Result<Plan> plan_tables(std::string_view call, const std::shared_ptr<Core>& core, const Peer& peer,
                         Operation operation, const RangeTable& local, std::span<const std::uint32_t> local_index,
                         const RangeTable& remote, std::span<const std::uint32_t> remote_index) {
  auto plan = begin(call, core, peer, operation);
  if (!plan) return plan.error();
  if (Status bad = local.status(); !bad.ok()) return bad_plan(call, "the local table is no table").because(bad);
  if (Status bad = remote.status(); !bad.ok()) {
    return Status(bad.code(), std::string(call) + ": the remote table is no table").because(bad);
  }
  if (local.is_remote() || !remote.is_remote()) {
    return bad_plan(call, "one table must be of this agent's region and the other of the peer's");
  }
  if (Status bad = check_region(call, *core, *core_of(local)->local); !bad.ok()) return bad;
  if (Status bad = check_remote(call, *core_of(remote)->remote, peer, operation); !bad.ok()) return bad;
  (*plan)->locals.push_back(core_of(local)->local);
  (*plan)->remotes.push_back(core_of(remote)->remote);
  return finish(call, std::move(*plan),
                plan::pair_tables(call, core_of(local)->shape, local_index, core_of(remote)->shape, remote_index));
}

plan::Readiness readiness_of(const Session& session, std::size_t backend) {
  for (const PathEntry& entry : session.paths) {
    if (entry.backend == backend) return entry.up ? plan::Readiness::kUp : plan::Readiness::kConnecting;
  }
  return session.failed.contains(backend) ? plan::Readiness::kDown : plan::Readiness::kUnopened;
}

Status refusal_for(const Session& session, const PlanCore& plan, std::size_t backend) {
  for (const PathEntry& entry : session.paths) {
    if (entry.backend != backend) continue;
    const Refusals::Refusal* refusal = plan.refused_by(entry.refused);
    return refusal == nullptr ? Status() : refusal->why;
  }
  const auto failed = session.failed.find(backend);
  return failed == session.failed.end() ? Status() : failed->second;
}

plan::Health health_of(const Session& session, std::size_t backend) {
  for (const PathEntry& entry : session.paths) {
    if (entry.backend == backend && entry.up && entry.times != nullptr) return entry.times->health;
  }
  return {};
}

plan::Route route_of(Core& core, const PlanCore& plan) {
  plan::Request request{.op = plan.operation,
                        .bytes = plan.pieces.bytes,
                        .pieces = plan.pieces.all.size(),
                        .local = plan.locals.front()->entry->device,
                        .remote = plan.remotes.front()->device,
                        .peer = plan.peer->name};
  request.self = plan.peer->is_self;
  request.strict_order = true;
  std::vector<plan::Candidate> candidates;
  core.lane.lock();
  Session& session = core.engine.sessions().of(plan.peer);
  std::vector<Status> why;
  core.engine.reach().candidates(*plan.peer, &why);
  for (std::size_t i = 0; i < why.size(); ++i) {
    const OpenBackend& open = core.engine.ports()[i];
    plan::Candidate candidate{.backend = open.name, .traits = open.traits};
    candidate.readiness = readiness_of(session, i);
    candidate.health = health_of(session, i);
    candidate.refusal = why[i].ok() ? refusal_for(session, plan, i) : why[i];
    if (open.traits->same_host_only && why[i].ok()) request.same_host = true;
    candidates.push_back(std::move(candidate));
  }
  core.lane.unlock();
  const std::vector<BackendReport> reports = core.reports();
  for (const BackendReport& report : reports) {
    if (!report.open) candidates.push_back({.backend = report.name, .traits = nullptr, .refusal = report.cause});
  }
  return plan::plan_route(request, candidates);
}

/// The paths that are up to the plan's peer, a line each, and what is spoken on them.
std::string describe_paths(Core& core, const PlanCore& plan) {
  std::string text;
  core.lane.lock();
  const Session& session = core.engine.sessions().of(plan.peer);
  for (const PathEntry& entry : session.paths) {
    if (entry.up) text += "  " + core.engine.ports()[entry.backend].name + ": " + entry.path->describe() + "\n";
  }
  if (!text.empty()) text += "  wire version " + std::to_string(session.wire_version) + "\n";
  core.lane.unlock();
  return text;
}

}  // namespace

bool PlanCore::touches(std::uint32_t chunk, const LocalRegion& local) const {
  const auto base = reinterpret_cast<std::uintptr_t>(local.entry->base);
  return std::ranges::any_of(chunks.chunks[chunk].pieces, [&](const backend::Piece& piece) {
    return reinterpret_cast<std::uintptr_t>(piece.local) - base < local.entry->size;
  });
}

std::vector<std::shared_ptr<LocalRegion>> PlanCore::locals_of(std::uint32_t chunk) const {
  std::vector<std::shared_ptr<LocalRegion>> found;
  std::ranges::copy_if(locals, std::back_inserter(found), [&](const auto& local) { return touches(chunk, *local); });
  return found;
}

bool PlanCore::has_chunk_between(const Refusals::Refusal& refusal) const {
  const auto id_of = [](const auto& region) { return Refusals::Id(region.index, region.generation); };
  std::vector<const LocalRegion*> involved;
  for (const Refusals::Id& id : refusal.locals) {
    const auto found = std::ranges::find_if(locals, [&](const auto& local) { return id_of(*local->entry) == id; });
    if (found == locals.end()) return false;
    involved.push_back(found->get());
  }
  for (std::uint32_t chunk = 0; chunk < chunk_count(); ++chunk) {
    if (id_of(remote_of(chunk)) != refusal.remote) continue;
    if (std::ranges::all_of(involved, [&](const LocalRegion* local) { return touches(chunk, *local); })) return true;
  }
  return false;
}

bool PlanCore::joins(const Refusals::Refusal& refusal) const {
  if (refusal.locals.empty()) {  // A path must bind all of them.
    return std::ranges::any_of(
        remotes, [&](const auto& remote) { return Refusals::Id(remote->index, remote->generation) == refusal.remote; });
  }
  const std::pair pair(refusal.remote, refusal.locals);
  if (std::ranges::find(apart_, pair) != apart_.end()) return false;
  if (has_chunk_between(refusal)) return true;
  if (apart_.size() == Refusals::kMax) apart_.clear();
  apart_.push_back(pair);
  return false;
}

const Refusals::Refusal* PlanCore::refused_by(const Refusals& refusals) const {
  return refusals.find([this](const Refusals::Refusal& refusal) { return joins(refusal); });
}

Result<Plan> pieces_plan(std::string_view call, const std::shared_ptr<Core>& core, const Peer& peer,
                         Operation operation, inner::MadePieces&& made) {
  auto plan = begin(call, core, peer, operation);
  if (!plan) return plan.error();
  return finish_pieces(call, std::move(*plan), peer, std::move(made));
}

std::vector<inner::Way> ways_of(Core& core, PeerCore& peer) {
  std::vector<inner::Way> ways;
  std::vector<Status> why;
  (void)core.engine.reach().candidates(peer, &why);
  for (std::size_t i = 0; i < why.size(); ++i) {
    ways.push_back({.backend = core.engine.ports()[i].name, .why = why[i]});
    if (peer.session() == nullptr || !why[i].ok()) continue;
    const auto failed = peer.session()->failed.find(i);
    if (failed != peer.session()->failed.end()) ways.back().why = failed->second;
  }
  return ways;
}

namespace inner {

Result<Plan> plan_rows(std::string_view call, const Agent& agent, const Peer& peer, Operation operation,
                       const RowSide<LocalRegion>& local, const RowSide<const RemoteRegion>& remote) {
  auto plan = begin(call, core_of(agent), peer, operation);
  if (!plan) return plan.error();
  for (const auto& region : local.regions) {
    if (region->entry->file != nullptr) return check_region(call, *core_of(agent), *region);
  }
  Result<plan::RowPieces> rows =
      plan::pair_rows(call, local.rows, static_cast<std::uint32_t>(local.regions.size()), local.index, remote.rows,
                      static_cast<std::uint32_t>(remote.regions.size()), remote.index);
  if (!rows) return rows.error();
  MadePieces made{.pieces = std::move(rows->pieces), .locals = {}, .remotes = {}};
  made.locals.reserve(rows->locals.size());
  made.remotes.reserve(rows->remotes.size());
  for (const std::uint32_t region : rows->locals) made.locals.push_back(local.regions[region]);
  for (const std::uint32_t region : rows->remotes) made.remotes.push_back(remote.regions[region]);
  return finish_pieces(call, std::move(*plan), peer, std::move(made));
}

Result<Plan> plan_pieces(std::string_view call, const Agent& agent, const Peer& peer, Operation operation,
                         MadePieces&& made) {
  return pieces_plan(call, core_of(agent), peer, operation, std::move(made));
}

Result<RouteCost> route_cost(const Plan& asked) {
  const PlanCore& plan = *core_of(asked);
  if (Peer(plan.peer).state() == PeerState::kDown) return agent::down_status(*plan.peer);
  const plan::Route route = route_of(*plan.core, plan);
  if (Status status = route.status(); !status.ok()) return status;
  const plan::RouteRow& row = route.rows[*route.chosen()];
  return RouteCost{.backend = row.backend, .predicted_ns = row.predicted_ns, .measured = row.measured};
}

bool moves_in_submit(const Plan& asked) {
  PlanCore& plan = *core_of(asked);
  Core& core = *plan.core;
  Status why;
  core.lane.lock();
  const PathEntry* const entry = core.engine.router().route(plan, core.engine.sessions().of(plan.peer), &why);
  const bool moves = entry != nullptr && core.engine.ports()[entry->backend].traits->moves_in_submit;
  core.lane.unlock();
  return moves;
}

Result<backend::QueuePairView> queue_pair_of(const Plan& asked, const backend::Piece& piece) {
  PlanCore& plan = *core_of(asked);
  Core& core = *plan.core;
  Status why = Status(Code::kDisconnected, "no path to " + plan.peer->name + " is up").with_peer(plan.peer->name);
  Result<backend::QueuePairView> view = why.with_advice("connect to the peer, or move something first");
  core.lane.lock();
  const PathEntry* entry = core.engine.router().route(plan, core.engine.sessions().of(plan.peer), &why);
  if (entry != nullptr) {
    const backend::QueuePairSource* const pairs = entry->path->queue_pairs();
    view = pairs != nullptr ? pairs->queue_pair(*plan.route.bindings.front(), piece) : no_queue_pairs();
  } else if (why.code() != Code::kDisconnected) {
    view = why;
  }
  core.lane.unlock();
  return view;
}

std::vector<QueuePairCounters> queue_pairs_of(const Plan& asked) {
  PlanCore& plan = *core_of(asked);
  Core& core = *plan.core;
  Status why;
  std::vector<QueuePairCounters> pairs;
  core.lane.lock();
  const PathEntry* entry = core.engine.router().route(plan, core.engine.sessions().of(plan.peer), &why);
  if (entry != nullptr) pairs = entry->path->counters().queue_pairs;
  core.lane.unlock();
  return pairs;
}

}  // namespace inner
}  // namespace hawser::agent

HAWSER_NAMESPACE_BEGIN

Result<Plan> Agent::plan_write(const Peer& peer, std::span<const LocalRange> source,
                               std::span<const RemoteRange> target) {
  return agent::plan_lists("plan_write", core_, peer, Operation::kWrite, source, target);
}

Result<Plan> Agent::plan_read(const Peer& peer, std::span<const RemoteRange> source,
                              std::span<const LocalRange> target) {
  return agent::plan_lists("plan_read", core_, peer, Operation::kRead, target, source);
}

Result<Plan> Agent::plan_write(const Peer& peer, const RangeTable& source, std::span<const std::uint32_t> source_index,
                               const RangeTable& target, std::span<const std::uint32_t> target_index) {
  return agent::plan_tables("plan_write", core_, peer, Operation::kWrite, source, source_index, target, target_index);
}

Result<Plan> Agent::plan_read(const Peer& peer, const RangeTable& source, std::span<const std::uint32_t> source_index,
                              const RangeTable& target, std::span<const std::uint32_t> target_index) {
  return agent::plan_tables("plan_read", core_, peer, Operation::kRead, target, target_index, source, source_index);
}

std::string Agent::explain(const Plan& plan) const {
  if (!core_of(plan)) return "an empty plan: it was never made\n";
  if (const Status forked = core_->not_forked("explain"); !forked.ok()) return forked.to_string() + "\n";
  if (Peer(core_of(plan)->peer).state() == PeerState::kDown) {
    return agent::down_status(*core_of(plan)->peer).to_string() + "\n";
  }
  return plan::explain(agent::route_of(*core_, *core_of(plan))) + agent::describe_paths(*core_, *core_of(plan));
}

HAWSER_NAMESPACE_END
