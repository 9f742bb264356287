#include "runtime/formation.h"

#include <algorithm>
#include <utility>

#include "base/shown.h"
#include "base/try.h"
#include "runtime/rank_list.h"

namespace hawser::runtime {

Duration Formation::left(Instant until) const {
  return std::max(until - agent::inner::now(seat_.agent), Duration::zero());
}

/// What is found may be the card of one that died before: then its successor is waited for.
Result<Peer> Formation::find_and_connect(std::uint32_t rank, Instant until) {
  const std::string name = options_.name + "." + std::to_string(rank);
  for (;;) {
    Result<Peer> peer = seat_.agent.find_peer(name, left(until));
    if (!peer) return peer;
    const Status status = peer->connect(left(until));
    if (status.ok()) return peer;
    if (left(until) == Duration::zero() || status.code() == Code::kUnsupported) return status;
  }
}

std::string Formation::key_of(std::uint32_t rank) const {
  return "hawser/" + options_.name + "/" + std::to_string(rank);
}

Status Formation::check_name(const Peer& peer, std::uint32_t rank, const std::string& source) const {
  const std::string name = options_.name + "." + std::to_string(rank);
  if (peer.name() == name) return {};
  return {Code::kInvalid,
          source + " a card of '" + base::shown(peer.name()) + "' where that of '" + base::shown(name) + "' should be"};
}

Result<Peer> Formation::get_and_connect(std::uint32_t rank, Instant until) {
  HAWSER_TRY_ASSIGN(const std::string card, options_.store.get(key_of(rank), left(until)));
  HAWSER_TRY_ASSIGN(Peer peer, seat_.agent.add_peer(card));
  HAWSER_TRY(check_name(peer, rank, "the store holds"));
  HAWSER_TRY(peer.connect(left(until)));
  return peer;
}

Status Formation::absent(const std::vector<std::uint32_t>& missing, const Status& cause) const {
  return Status(cause.code(), "World::open: of the " + std::to_string(options_.size) + " ranks of world '" +
                                  options_.name + "' these did not come: " + list_of(missing))
      .because(cause);
}

/// A rank of a sparse world looks up now and then: a neighbour may have given up because their topologies differ. Then
/// it goes on for a while, to tell the others.
Result<Peer> Formation::find(std::uint32_t rank, Instant until) {
  constexpr Duration kLook = std::chrono::seconds(1);
  const auto find_by = [&](Instant by) { return has_store() ? get_and_connect(rank, by) : find_and_connect(rank, by); };
  if (seat_.relay == nullptr) return find_by(until);
  for (;;) {
    Result<Peer> peer = find_by(std::min(until, agent::inner::now(seat_.agent) + kLook));
    const bool may_come = !peer && peer.error().code() != Code::kUnsupported && peer.error().code() != Code::kInvalid;
    if (!may_come || watch_.has_failed() || left(until) == Duration::zero()) return peer;
    if (peer.error().code() == Code::kTimedOut) continue;
    constexpr Duration kPause = std::chrono::milliseconds(10);  // Before it is asked again where it is.
    static_cast<void>(agent::inner::wait_until(
        seat_.agent, [&] { return watch_.has_failed(); }, std::min(until, agent::inner::now(seat_.agent) + kPause)));
  }
}

Result<std::vector<Peer>> Formation::find_all(Instant until) {
  if (has_store()) {
    HAWSER_TRY_ASSIGN(const std::string card, seat_.agent.card());
    HAWSER_TRY(options_.store.set(key_of(rank_), card));
  }
  if (seat_.relay != nullptr) HAWSER_TRY(begin_relaying());
  std::vector<Peer> ranks(options_.size);
  std::vector<std::uint32_t> missing;
  Status cause;
  for (std::uint32_t rank = 0; rank < options_.size; ++rank) {
    if (rank != rank_ && !seat_.is_neighbour(rank)) continue;
    Result<Peer> peer = rank == rank_ ? Result<Peer>(seat_.agent.self()) : find(rank, until);
    if (peer) {
      ranks[rank] = std::move(*peer);
      HAWSER_TRY(meet(rank, ranks[rank]));
    } else {
      missing.push_back(rank);
      cause = peer.error();
    }
  }
  if (!missing.empty()) return absent(missing, cause);
  if (seat_.relay != nullptr) HAWSER_TRY(learn_others(ranks, until));
  return ranks;
}

/// Of a sparse world: cards go around before all neighbours are here: so every rank can name those that do not come.
Status Formation::begin_relaying() {
  HAWSER_TRY_ASSIGN(std::string own, seat_.agent.card());
  return agent::inner::under_lane(seat_.agent, "World",
                                  [&](Instant now) { seat_.relay->tell_card(rank_, std::move(own), now); });
}

Status Formation::meet(std::uint32_t rank, const Peer& peer) {
  return agent::inner::under_lane(seat_.agent, "World", [&](Instant now) {
    if (peer.is_self()) return;
    watch_.know(peer);
    if (seat_.relay == nullptr) return;
    seat_.relay->meet(rank, peer, now);
    watch_.tell(peer);
  });
}

Status Formation::learn_others(std::vector<Peer>& ranks, Instant until) {
  Relay& relay = *seat_.relay;
  static_cast<void>(agent::inner::wait_until(
      seat_.agent, [&] { return relay.is_formed() || watch_.has_failed(); }, until));
  std::vector<std::string> cards;
  Status cause(Code::kTimedOut, "no neighbour told of them in time");
  HAWSER_TRY(agent::inner::under_lane(seat_.agent, "World", [&](Instant) {
    if (!relay.broken().ok()) cause = relay.broken();
    cards = relay.cards();
  }));
  std::vector<std::uint32_t> missing;
  for (std::uint32_t rank = 0; rank < options_.size; ++rank) {
    if (cards[rank].empty()) missing.push_back(rank);
  }
  if (!missing.empty()) return absent(missing, cause);
  if (cause.code() != Code::kTimedOut) {
    return Status(cause.code(), "World::open: a rank of world '" + options_.name + "' failed while the world formed")
        .because(cause);
  }
  for (std::uint32_t rank = 0; rank < options_.size; ++rank) {
    if (rank == rank_ || relay.is_neighbour(rank)) continue;
    HAWSER_TRY_ASSIGN(ranks[rank], seat_.agent.add_peer(cards[rank]));
    HAWSER_TRY(check_name(ranks[rank], rank, "a neighbour tells"));
  }
  return {};
}

}  // namespace hawser::runtime
