#pragma once

// CardIntake takes cards of peers in: a card makes its peer known, and brings what is known of it up to date.
//
// Thread rule: thread-safe. Locks: see lane_access.h.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include <hawser/status.h>

#include "agent/card_store.h"
#include "agent/lane_access.h"
#include "agent/peer_book.h"
#include "agent/peer_core.h"
#include "agent/shared_card.h"
#include "wire/card.h"

namespace hawser::agent {

/// The identity of the card's maker.
backend::Identity identity_of(const wire::Card& card);

/// Up to which the peer's card is known in full; 0: it is not.
std::uint64_t known_revision(PeerCore& peer);

class CardIntake {
 public:
  class Host {
   public:
    /// Under the lane: what is bound of regions that the card names no more may go.
    virtual void on_card_loaded(PeerCore& peer, const CardStore::Change& change) HAWSER_REQUIRES(in_lane) = 0;
    /// The peer is not known any more.
    virtual void forget(const PeerCore& peer) = 0;

   protected:
    ~Host() = default;
  };

  /// What the card of one peer may tell of, and whose bound that is.
  struct Bound {
    std::string agent = {};
    std::uint32_t regions = 1u << 20;
  };
  CardIntake(LaneAccess& lane, PeerBook& peers, Host& host, Bound bound)
      : lane_(lane), peers_(peers), host_(host), bound_(std::move(bound)) {}
  CardIntake(LaneAccess& lane, PeerBook& peers, Host& host) : CardIntake(lane, peers, host, Bound()) {}

  struct Loaded {
    std::shared_ptr<PeerCore> peer;
    CardStore::Change change;
  };
  /// With or without the lane's lock. The caller tells the engine of the change. kBusy: it tells of more regions than a
  /// peer's card may.
  Result<Loaded> load(std::span<const std::byte> bytes);
  Result<Loaded> load(wire::Card card);
  /// The same, and tells the engine. Not under the lane.
  Result<std::shared_ptr<PeerCore>> take(std::span<const std::byte> bytes) HAWSER_EXCLUDES(in_lane);
  Result<std::shared_ptr<PeerCore>> take(wire::Card card) HAWSER_EXCLUDES(in_lane);
  /// `take`, but a peer that is down begins anew.
  Result<std::shared_ptr<PeerCore>> take_anew(std::span<const std::byte> bytes) HAWSER_EXCLUDES(in_lane);
  Result<std::shared_ptr<PeerCore>> take_anew(wire::Card card) HAWSER_EXCLUDES(in_lane);

 private:
  Result<std::optional<Loaded>> load_shared(const CardRef& card);
  std::shared_ptr<PeerCore> told(Loaded loaded) HAWSER_EXCLUDES(in_lane);
  void forget_if_down(const base::Id128& incarnation);
  Status too_many(std::string_view peer, std::size_t regions) const;
  Status check_regions(const CardStore& store, const wire::Card& card, std::string_view peer) const;

  LaneAccess& lane_;
  PeerBook& peers_;
  Host& host_;
  const Bound bound_;
};

}  // namespace hawser::agent
