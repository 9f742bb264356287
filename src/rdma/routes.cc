#include "rdma/routes.h"

#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "agent/inner_peers.h"
#include "agent/inner_plans.h"
#include "base/bytes.h"
#include "base/inside.h"
#include "base/try.h"
#include "rdma/held_memory.h"
#include "rdma/rules.h"
#include "wire/card.h"

HAWSER_NAMESPACE_BEGIN
namespace rdma {

Result<Found> Routes::find(const RemoteBuffer& buffer) {
  BufferCore& core = *core_of(buffer);
  if (self_.owns(core)) {
    const std::shared_ptr<Owned> owned = lent_.by_token(core.token);
    if (owned) return Found{.engine = self_.number, .peer = agent_.self(), .whole = owned->whole, .is_near = true};
    return Status(Code::kNotFound, "buffer " + std::to_string(core.id) + " of this process was released")
        .with_buffer(BufferState::kUntouched)
        .with_advice("ask its owner for a new one");
  }
  {
    const base::MutexLock lock(core.mutex);
    if (core.found.engine == self_.number && core.found.peer.state() != PeerState::kDown) return core.found;
  }
  HAWSER_TRY_ASSIGN(Found found, meet(core));
  // No peer's GPU is reached through shared memory, whatever was known when another buffer of it was met.
  found.is_near = region_info(found.whole).device.kind == DeviceKind::kHost && is_near(found, buffer);
  const base::MutexLock lock(core.mutex);
  core.found = found;
  return found;
}

// The handle's card is loaded for a peer that is new or was down.
Result<Found> Routes::meet(const BufferCore& core) const {
  HAWSER_TRY_ASSIGN(const wire::Card card, wire::decode_card(base::as_bytes(core.card)));
  HAWSER_TRY_ASSIGN(Peer peer, agent::inner::meet(agent_, card));
  if (!agent::inner::has_card(peer) || peer.state() == PeerState::kDown) {
    HAWSER_TRY_ASSIGN(peer, agent_.add_peer(std::string_view(core.card)));
  }
  HAWSER_TRY_ASSIGN(const GrantedRegion granted, peer.import_grant(std::string_view(core.grant)));
  return Found{.engine = self_.number, .peer = std::move(peer), .whole = granted.whole()};
}

Result<Plan> Routes::plan(const Found& found, OpType type, const LocalMemory& local, const RemoteBuffer& remote,
                          std::uint64_t bytes) const {
  const LocalRange ours = core_of(local)->region.range(local.offset(), bytes);
  const RemoteRange theirs{.region = found.whole.region, .offset = remote.offset(), .size = bytes};
  if (type == OpType::kWriteFromLocal) {
    return agent_.plan_write(found.peer, std::span(&ours, 1), std::span(&theirs, 1));
  }
  return agent_.plan_read(found.peer, std::span(&theirs, 1), std::span(&ours, 1));
}

Result<Plan> Routes::probe(const Found& found, const RemoteBuffer& buffer) const {
  const Rights rights = region_info(found.whole).rights;
  const OpType type = allows(rights, Rights::kRead) ? OpType::kReadIntoLocal : OpType::kWriteFromLocal;
  return plan(found, type, scratch_, RemoteBuffer(core_of(buffer), 0, 1), 1);
}

bool Routes::is_near(const Found& found, const RemoteBuffer& buffer) {
  constexpr std::size_t kKnownMax = 4096;
  const base::Id128 who = agent::inner::incarnation_of(found.peer);
  {
    const base::MutexLock lock(mutex_);
    if (const auto known = near_.find(who); known != near_.end()) return known->second;
  }
  const Result<Plan> made = probe(found, buffer);
  if (!made) return false;
  const Result<agent::inner::RouteCost> route = agent::inner::route_cost(*made);
  const bool near = route && level_of(route->backend) == TransportLevel::kMemory;
  const base::MutexLock lock(mutex_);
  if (near_.size() >= kKnownMax) near_.clear();
  near_[who] = near;
  return near;
}

}  // namespace rdma
HAWSER_NAMESPACE_END
