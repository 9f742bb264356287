#pragma once

// Remote: what is known of one peer's memory, out of copies of its metadata that come in any order.
//
// An entry of a copy stands for one region only: (index, generation, key) as that copy's own card has them. Where two
// copies tell of the same memory, a region that is open wins over one that is known to be closed, then the copy of the
// higher revision. What is known to be closed leaves the book.
//
// Entering a copy costs what the copy has, on average, not what is known already.
//
// Thread rule: the owner's lock.

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include <hawser/peer.h>

#include "agent/region.h"
#include "compat/blob.h"
#include "compat/book.h"
#include "wire/card.h"

HAWSER_NAMESPACE_BEGIN
namespace compat {

/// A registration of a peer's, and the region that it is once somebody wanted it. Most never are.
struct RemoteSpot {
  static constexpr std::uint64_t offset = 0;
  static constexpr bool is_synced = false;
  agent::RegionId id;
  std::uint64_t told = 0;  ///< The revision of the newest copy that has it.
  bool stays = true;       ///< Until the agent goes. Else it came by labels, and goes with the last of them.
  mutable std::shared_ptr<const agent::RemoteRegion> region;  ///< Under the agent's mutex, as the next one.
  mutable std::uint64_t looked = 0;                           ///< PeerCore::regions_gone when `region` was looked up.
};

/// What a registration of the peer's is. Null: the peer has closed it. Under the mutex.
const std::shared_ptr<const agent::RemoteRegion>* region_of(const RemoteSpot& spot, const Peer& peer);

/// A copy of metadata, checked, and what each of its entries is.
struct RemoteCopy {
  std::span<const BlobEntry> entries;
  std::vector<agent::RegionId> ids;  ///< Of each entry, by the copy's own card.
  std::uint64_t revision = 0;
  bool is_full = false;
};

/// What each entry is, by the blob's own card: by any other, its index may be another region's. kMismatch: the card
/// does not have it. Views `blob`.
Result<RemoteCopy> copy_of(std::string_view call, const Blob& blob, const wire::Card& card);

struct Remote {
  using Brought =
      std::set<std::tuple<MemType, std::uint64_t, std::uint64_t, std::uint64_t>>;  ///< Device, address, length.

  explicit Remote(Peer its) : peer(std::move(its)) {}

  /// What the copy says, by `label` or, when that is empty, for as long as the agent is known.
  void enter(const RemoteCopy& copy, std::string_view label);
  /// What came by the label alone goes.
  void drop(std::string_view label);

  Peer peer;
  Book<RemoteSpot> book = {};
  bool has_main = false;  ///< Something of it came without a label.
  /// What came by each label that stands. At most Exchange's kFollowedMax.
  std::map<std::string, Brought, std::less<>> labels = {};
  /// Another incarnation of the same name, which lost against this one, and never has a rival itself. Births are told
  /// by clocks, which lie: it is kept until this one was reached.
  std::unique_ptr<Remote> rival = {};

 private:
  void enter_one(const BlobEntry& entry, const agent::RegionId& id, bool is_known_open, std::uint64_t revision,
                 bool is_main);
  bool is_covered(const BlobEntry& entry, std::uint64_t revision) const;
  bool is_open(const RemoteSpot& spot) const { return region_of(spot, peer) != nullptr; }
  void sweep();
  void drop_one(const Brought::value_type& one);

  std::size_t entered_ = 0;     ///< Since the last sweep.
  std::uint64_t swept_at_ = 0;  ///< PeerCore::regions_gone then.
};

}  // namespace compat
HAWSER_NAMESPACE_END
