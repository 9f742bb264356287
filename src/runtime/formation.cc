#include "runtime/formation.h"

#include <algorithm>
#include <utility>

#include "base/shown.h"
#include "base/try.h"
#include "runtime/rank_list.h"

namespace hawser::runtime {
namespace {

/// Before the card of an agent that is its program's: it has a name of its own.
constexpr std::string_view kGuestMark = "hawser-guest\n";

}  // namespace

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
  HAWSER_TRY_ASSIGN(const std::string value, options_.store.get(key_of(rank), left(until)));
  std::string_view card = value;
  const bool is_guest = card.starts_with(kGuestMark);
  if (is_guest) card.remove_prefix(kGuestMark.size());
  HAWSER_TRY_ASSIGN(Peer peer, seat_.agent.add_peer(card));
  if (!is_guest) HAWSER_TRY(check_name(peer, rank, "the store holds"));
  HAWSER_TRY(peer.connect(left(until)));
  return peer;
}

Status Formation::absent(const std::vector<std::uint32_t>& missing, const Status& cause) const {
  const Code code = cause.code() == Code::kNotFound ? Code::kTimedOut : cause.code();  // It was waited for.
  return Status(code, "World::open: of the " + std::to_string(options_.size) + " ranks of world '" + options_.name +
                          "' these did not come: " + list_of(missing))
      .because(cause);
}

Result<Peer> Formation::find(std::uint32_t rank, Instant until) {
  return has_store() ? get_and_connect(rank, until) : find_and_connect(rank, until);
}

Status Formation::leave_card() {
  HAWSER_TRY_ASSIGN(std::string card, seat_.agent.card());
  if (seat_.is_guest()) card.insert(0, kGuestMark);
  return options_.store.set(key_of(rank_), card);
}

Result<std::vector<Peer>> Formation::find_all(std::span<const Peer> given, Instant until) {
  std::vector<Peer> ranks(options_.size);
  ranks[rank_] = seat_.agent.self();
  if (!given.empty()) {
    HAWSER_TRY(meet_given(ranks, given, until));
    return ranks;
  }
  if (has_store()) HAWSER_TRY(leave_card());
  HAWSER_TRY(seat_.relay == nullptr ? find_each(ranks, until) : find_neighbours(ranks, until));
  return ranks;
}

Status Formation::meet_given(std::vector<Peer>& ranks, std::span<const Peer> given, Instant until) {
  std::vector<std::uint32_t> missing;
  Status cause;
  for (std::uint32_t rank = 0; rank < given.size(); ++rank) {
    if (rank == rank_) continue;
    if (Status status = given[rank].connect(left(until)); !status.ok()) {
      missing.push_back(rank);
      if (cause.ok()) cause = std::move(status);
      continue;
    }
    ranks[rank] = given[rank];
    HAWSER_TRY(meet(rank, ranks[rank]));
  }
  return missing.empty() ? Status() : absent(missing, cause);
}

Status Formation::find_each(std::vector<Peer>& ranks, Instant until) {
  std::vector<std::uint32_t> others;
  for (std::uint32_t rank = 0; rank < options_.size; ++rank) {
    if (rank != rank_) others.push_back(rank);
  }
  constexpr Duration kTurn = std::chrono::seconds(2);
  return find_in_turns(ranks, std::move(others), kTurn, until);
}

Status Formation::find_neighbours(std::vector<Peer>& ranks, Instant until) {
  constexpr Duration kTurn = std::chrono::milliseconds(500);
  HAWSER_TRY(begin_relaying());
  HAWSER_TRY(find_in_turns(ranks, seat_.relay->neighbours(), kTurn, until));
  return learn_others(ranks, until);
}

/// In turns: a rank that does not come keeps no other one from being met. Where settings differ one of them may have
/// given up, and this rank does so after one short turn more, in which it tells the others.
Status Formation::find_in_turns(std::vector<Peer>& ranks, std::vector<std::uint32_t> missing, Duration turn,
                                Instant until) {
  constexpr Duration kLastTurn = std::chrono::milliseconds(200), kPause = std::chrono::milliseconds(10);
  Status cause;
  bool is_last = false;
  while (!missing.empty() && !is_last) {
    is_last = watch_.has_failed() || left(until) == Duration::zero();
    for (const std::uint32_t rank : std::exchange(missing, {})) {
      const Duration patience = watch_.has_failed() ? std::min(turn, kLastTurn) : turn;
      Result<Peer> peer = find(rank, std::min(until, agent::inner::now(seat_.agent) + patience));
      if (peer) {
        ranks[rank] = std::move(*peer);
        HAWSER_TRY(meet(rank, ranks[rank]));
        continue;
      }
      missing.push_back(rank);
      // The last turn has no time to ask in: what was said before tells more.
      const bool tells_less = peer.error().code() == Code::kTimedOut && !cause.ok();
      if (!tells_less) cause = peer.error();
      is_last = is_last || cause.code() == Code::kUnsupported || cause.code() == Code::kInvalid;
    }
    if (missing.empty() || cause.code() == Code::kTimedOut) continue;
    // Its card is there, but it is not: before it is asked again where it is.
    static_cast<void>(agent::inner::wait_until(
        seat_.agent, [&] { return watch_.has_failed(); }, std::min(until, agent::inner::now(seat_.agent) + kPause)));
  }
  return missing.empty() ? Status() : absent(missing, cause);
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
    if (seat_.relay != nullptr) seat_.relay->meet(rank, peer, now);
    if (!watch_.is_common()) watch_.tell(peer);
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
