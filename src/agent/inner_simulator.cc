#include "agent/inner_simulator.h"

#include <algorithm>

#include "agent/core.h"
#include "agent/engine/unacknowledged.h"
#include "agent/plan.h"
#include "agent/session.h"
#include "base/format.h"
#include "base/inside.h"

namespace hawser::agent::inner {
namespace {

std::string leftovers_of(const Session& session) {
  if (session.slots != 0) return base::format("{} transfers", session.slots);
  if (!session.covered.empty()) return "a covered transfer";
  for (const Service* const service : session.services) {
    if (service != nullptr && service->left(session) != 0)
      return base::format("{} things of {}", service->left(session), service->name());
  }
  if (session.unsent.count() != 0) return base::format("{} messages to send", session.unsent.count());
  if (!session.cancelled.empty()) return base::format("{} cancellations to tell", session.cancelled.size());
  if (session.links.kept() != 0) return base::format("{} messages without acknowledgement", session.links.kept());
  if (!session.waiting.empty()) return base::format("{} notifications that wait for bytes", session.waiting.size());
  return {};
}

SessionBooks books_of(PeerCore& peer, const SessionBooks* channels_of) {
  const Session& session = *peer.session();
  SessionBooks books{.number = session.number,
                     .peer_number = session.peer_number,
                     .has_control = session.control_serial != 0,
                     .goes_best = std::ranges::any_of(
                         session.paths, [](const PathEntry& path) { return path.backend == 0 && path.agreed; }),
                     .leftovers = leftovers_of(session),
                     .notify_out = peer.use().notify_out.state(),
                     .notify_in = session.notify_in,
                     .untold = peer.use().released.sum().messages,
                     .channels_in = {},
                     .channels_out = {},
                     .acknowledged = acknowledged_of(session)};
  for (const auto& [channel, state] : session.channels) {
    if (state.in) books.channels_in.emplace(channel, *state.in);
  }
  if (channels_of == nullptr) return books;
  for (const auto& [channel, in] : channels_of->channels_in) {
    if (const auto out = peer.use().channels.state(channel)) books.channels_out.emplace(channel, *out);
  }
  return books;
}

}  // namespace

Turner::Turner(const Agent& agent) : core_(core_of(agent)) {}

std::size_t Turner::turn() const { return core_->lane.try_turn(); }

bool Turner::arm(Instant* next) const { return core_->lane.arm(next); }

void Turner::disarm() const { core_->lane.disarm(); }

void Turner::under_lane(const std::function<void()>& call) const {
  core_->lane.lock();
  call();
  core_->lane.unlock();
}

void let_go(Agent& agent) { const_cast<std::shared_ptr<Core>&>(core_of(agent)).reset(); }

void close_for_good(const Agent& agent) { core_of(agent)->shutdown.close_for_good(Duration::zero()); }

Duration quiesce_max(const Agent& agent) {
  Duration longest{};
  const InLaneGuard guard(core_of(agent)->lane);
  for (const OpenBackend& open : core_of(agent)->engine.ports().all()) {
    longest = std::max(longest, open.traits->quiesce_max);
  }
  return longest;
}

std::shared_ptr<const backend::RegionEntry> entry_of(const Region& region) { return core_of(region)->entry; }

bool is_registered(const Agent& agent, const std::shared_ptr<const backend::RegionEntry>& entry) {
  return core_of(agent)->regions.at(entry->index) == entry;
}

base::Id128 key_of(const RangeTable& table) { return core_of(table)->remote->key; }

Peer peer_of(const Plan& plan) { return Peer(core_of(plan)->peer); }

std::optional<Peer> peer_of(const RemoteRange& range) {
  std::shared_ptr<PeerCore> peer = range.region ? range.region->peer.lock() : nullptr;
  return peer ? std::optional(Peer(std::move(peer))) : std::nullopt;
}

void each_waiting_message(const Agent& agent,
                          const std::function<void(const Peer&, std::uint32_t, std::string_view)>& see) {
  const auto show = [&see](const std::shared_ptr<PeerCore>& from, std::uint32_t channel, std::string_view bytes) {
    see(Peer(from), channel, bytes);
  };
  core_of(agent)->inbox.each_message(show);
}

bool is_same(const Peer& one, const Peer& other) { return core_of(one) == core_of(other); }

KnownCard card_known(const Peer& peer) {
  PeerCore& core = *core_of(peer);
  const base::MutexLock lock(core.use().mutex);
  KnownCard known;
  if (!core.use().card) return known;
  if (core.use().card->complete()) known.revision = core.use().card->revision();
  core.use().card->for_each([&](const wire::CardRegion& region) {
    known.regions[region.index] = {region.generation, region.key};
  });
  return known;
}

std::optional<SessionBooks> books_with(const Agent& agent, const Incarnation& other, const SessionBooks* channels_of) {
  for (const auto& peer : core_of(agent)->peers()) {
    if (peer->session() && Peer(peer).incarnation() == other) return books_of(*peer, channels_of);
  }
  return std::nullopt;
}

}  // namespace hawser::agent::inner
