#include "agent/peer_finder.h"

#include <algorithm>
#include <chrono>
#include <string>
#include <vector>

#include "agent/card_intake.h"
#include "agent/peer_names.h"
#include "agent/peer_status.h"
#include "base/planted.h"
#include "base/shown.h"
#include "base/try.h"

namespace hawser::agent {
namespace {

constexpr Duration kLookAgain = std::chrono::milliseconds(10);
/// Between two looks into a directory for the regions of a peer.
constexpr Duration kLookForRegions = std::chrono::milliseconds(20);
/// For the answer to a check of a card: a peer that nobody turns gives none.
constexpr Duration kCheckPatience = std::chrono::milliseconds(250);

std::string names_of(const Peer& peer) {
  constexpr std::size_t kNamesShown = 8;
  const std::vector<std::string> all = peer.region_names();
  std::string names = all.empty() ? "none" : "";
  for (std::size_t i = 0; i < all.size() && i < kNamesShown; ++i) names += (i == 0 ? "" : ", ") + base::shown(all[i]);
  return all.size() > kNamesShown ? names + ", and " + std::to_string(all.size() - kNamesShown) + " more" : names;
}

std::string missing_of(const Peer& peer, std::span<const std::string_view> names) {
  std::string missing;
  for (const std::string_view name : names) {
    if (peer.region(name)) continue;
    missing += (missing.empty() ? "'" : ", '") + base::shown(name) + "'";
  }
  return missing;
}

Status succeeded_status(const PeerCore& peer) {
  return Status(Code::kDisconnected,
                "peer '" + peer.name + "' has a successor: another incarnation is in the directory")
      .with_scope(Scope::kPeer)
      .with_peer(peer.name)
      .with_advice("find the peer again and plan again");
}

}  // namespace

PeerFinder::Found PeerFinder::find(std::string_view name, Names regions, Instant deadline) {
  for (;;) {
    const Found found = find_once(name, deadline);
    if (!found || regions.empty()) return found;
    const Status missing = await_regions(*found, regions, deadline);
    if (missing.ok()) return found;
    // It went meanwhile: its successor may have them.
    if (missing.code() != Code::kDisconnected || its_.clock.now() >= deadline) return missing;
    its_.lane.pause(std::min(deadline, its_.clock.now() + kLookAgain));
  }
}

std::shared_ptr<PeerCore> PeerFinder::best_known(std::string_view name) const {
  std::shared_ptr<PeerCore> best;
  for (const auto& peer : its_.peers.all()) {
    const PeerState state = peer->state.load(std::memory_order_acquire);
    if (peer->name != name || state == PeerState::kDown || known_revision(*peer) == 0) continue;
    if (!best || peer->outranks(*best) || base::planted(base::Planted::kDeadOutranks)) best = peer;
  }
  return best;
}

PeerFinder::Found PeerFinder::find_once(std::string_view name, Instant deadline) {
  HAWSER_TRY(its_.life.usable("find_peer"));
  if (name.empty()) return Status(Code::kInvalid, "find_peer: the name is empty");
  const std::shared_ptr<PeerCore> known = best_known(name);
  // A session tells of each change; without one the directory may know better.
  const bool is_up = known && known->state.load(std::memory_order_acquire) == PeerState::kUp;
  if (known && (is_up || !its_.directory.has_directory())) return known;
  if (known) {
    Status why_not;
    const Found newer = its_.directory.look(name, deadline, &why_not);
    // The directory may still have the card of an incarnation that is gone.
    const bool is_newer = newer && *newer && !known->outranks(**newer);
    return is_newer ? *newer : known;
  }
  // After those whose card is here: they may be called so.
  const std::size_t at = name.rfind('@');
  if (is_address(name)) return its_.addresses.find(name.substr(0, at), name.substr(at + 1), deadline);
  if (its_.directory.has_directory()) return its_.directory.find(name, deadline);
  return Status(Code::kNotFound, "find_peer: no peer '" + std::string(name) + "' is known and agent '" + its_.agent +
                                     "' has no directory")
      .with_advice("open the agent with a directory, load the peer's card, or name it as name@host:port");
}

void PeerFinder::check_card(const std::shared_ptr<PeerCore>& peer, Instant deadline) {
  const Instant until = std::min(deadline, its_.clock.now() + kCheckPatience);
  if (until <= its_.clock.now()) return;
  const std::uint8_t before = peer->use().card_checks.load(std::memory_order_acquire);
  its_.lane.lock();
  its_.host.check_card(peer);
  its_.lane.unlock();
  its_.lane.wake();
  const auto is_over = [&] {
    return peer->use().card_checks.load(std::memory_order_acquire) != before ||
           peer->state.load(std::memory_order_acquire) != PeerState::kUp;
  };
  its_.lane.wait_until(is_over, until);
}

Status PeerFinder::await_regions(const std::shared_ptr<PeerCore>& peer, Names regions, Instant deadline) {
  const Peer handle(peer);
  const auto state = [&] { return peer->state.load(std::memory_order_acquire); };
  const bool may_look = its_.directory.has_directory() && !peer->is_self;
  Status last;
  bool is_checked = false;
  for (;;) {
    HAWSER_TRY(its_.life.usable("await_regions"));
    const std::uint64_t known = known_revision(*peer);
    const std::string missing = missing_of(handle, regions);
    if (missing.empty() && (is_checked || state() != PeerState::kUp || peer->is_self)) return {};
    if (missing.empty()) {
      check_card(peer, deadline);
      is_checked = true;
      continue;
    }
    if (state() == PeerState::kDown) return down_status(*peer);
    if (its_.clock.now() >= deadline) {
      return Status(Code::kNotFound, "peer '" + peer->name + "' has no region " + missing + " yet")
          .with_peer(peer->name)
          .because(last)
          .with_advice("it has: " + names_of(handle));
    }
    // A session tells each change. Without one the directory does; where neither is, a session is opened.
    if (state() != PeerState::kUp && may_look) {
      const auto there = its_.directory.look(peer->name, deadline, &last);
      if (there && *there != nullptr && *there != peer) return succeeded_status(*peer);
    } else if (state() == PeerState::kKnown && !peer->is_self) {
      its_.lane.lock();
      its_.host.want(peer);
      its_.lane.unlock();
      its_.lane.wake();
    }
    const auto changed = [&] { return known_revision(*peer) != known || state() == PeerState::kDown; };
    its_.lane.wait_until(changed, std::min(deadline, its_.clock.now() + (may_look ? kLookForRegions : kLookAgain)));
  }
}

}  // namespace hawser::agent
