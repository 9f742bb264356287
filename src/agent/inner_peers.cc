#include "agent/inner_peers.h"

#include <utility>

#include "agent/core.h"
#include "agent/plan.h"
#include "base/inside.h"
#include "base/try.h"

namespace hawser::agent::inner {

const base::Id128& incarnation_of(const Peer& peer) { return core_of(peer)->incarnation; }

std::uint64_t born_of(const Peer& peer) { return core_of(peer)->born(); }

bool outranks(const Peer& one, const Peer& other) { return core_of(one)->outranks(*core_of(other)); }

Status down_status(const Peer& peer) { return agent::down_status(*core_of(peer)); }

std::uint64_t regions_gone(const Peer& peer) {
  return core_of(peer)->use().regions_gone.load(std::memory_order_acquire);
}

std::shared_ptr<const RemoteRegion> find_remote(const Peer& peer, const RegionId& id) {
  return agent::find_remote(core_of(peer), id);
}

std::vector<bool> are_known(const Peer& peer, std::span<const RegionId> ids) {
  return agent::are_known(*core_of(peer), ids);
}

Result<Peer> meet(const Agent& agent, const wire::Card& card) {
  HAWSER_TRY_ASSIGN(std::shared_ptr<PeerCore> peer, core_of(agent)->peer_book.meet(agent::identity_of(card)));
  return Peer(std::move(peer));
}

bool has_card(const Peer& peer) { return core_of(peer)->has_card(); }

Result<Peer> take_anew(const Agent& agent, wire::Card card) {
  HAWSER_TRY_ASSIGN(std::shared_ptr<PeerCore> peer, core_of(agent)->card_intake.take_anew(std::move(card)));
  return Peer(std::move(peer));
}

Status append_card(const Agent& agent, std::string* out) { return core_of(agent)->own_card.append_since(0, out); }

Status append_card(const Agent& agent, std::span<const std::uint32_t> regions, std::string* out) {
  return core_of(agent)->own_card.append_partial(regions, out);
}

std::vector<Way> ways_to(const Agent& agent, const Peer& peer) {
  Core& core = *core_of(agent);
  core.lane.lock();
  std::vector<Way> ways = ways_of(core, *core_of(peer));
  core.lane.unlock();
  return ways;
}

}  // namespace hawser::agent::inner
