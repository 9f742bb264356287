#pragma once

// OwnCard: what this agent tells of itself, as one value of one revision: who it is, its open backends, and its open
// regions with what backends say of each. It encodes full cards, cards of some regions, and deltas.
//
// Each change gives a new revision. Who has revision R gets a delta while the changes since R are kept (kChangesMax of
// them), else a full card. A backend that comes, or says something new of regions, ends all deltas: any region may be
// concerned.
//
// Thread rule: thread-safe. Changes hold the lane's lock, too, so that they come in the order in which sessions hear of
// them. Lifetime: it keeps the entries of the regions that it tells of.

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <hawser/status.h>

#include "agent/lane_access.h"
#include "agent/region_extras.h"
#include "backend/backend.h"
#include "base/mutex.h"
#include "wire/card.h"

namespace hawser::agent {

class OwnCard {
 public:
  static constexpr std::size_t kChangesMax = 4096;

  /// A region as the card tells of it.
  struct Told {
    std::shared_ptr<const backend::RegionEntry> entry;  ///< Null: there is none of this index.
    RegionExtras extras;
  };
  /// What one backend says of one region.
  using Extra = std::pair<backend::RegionId, std::string>;

  /// Takes the agent's identity. Before any other call; this is revision 1.
  void open(const backend::Identity& who);
  std::uint64_t revision() const { return revision_.load(std::memory_order_acquire); }

  // Changes.
  void say_driven(bool driven) HAWSER_REQUIRES(in_lane);
  /// A revision for each.
  void add_regions(std::span<Told> regions) HAWSER_REQUIRES(in_lane);
  /// They are being closed. One that is not told of is left out.
  void remove_regions(std::span<const backend::RegionId> ids) HAWSER_REQUIRES(in_lane);
  /// `number`: see OpenBackend. Extras of regions that are not told of any more are dropped.
  void add_backend(std::uint32_t number, std::string name, std::string address, std::span<const Extra> extras)
      HAWSER_REQUIRES(in_lane);
  /// What the backend says of these regions now. No bytes: nothing.
  void renew_extras(std::uint32_t number, std::span<const Extra> extras) HAWSER_REQUIRES(in_lane);

  // Cards.
  Result<std::string> full() const { return since(0); }
  /// 0: a full card.
  Result<std::string> since(std::uint64_t revision) const;
  Result<std::string> partial(std::span<const std::uint32_t> indices) const;
  /// The same, appended to `out`, which may hold anything after an error.
  Status append_since(std::uint64_t revision, std::string* out) const;
  Status append_partial(std::span<const std::uint32_t> indices, std::string* out) const;

 private:
  struct Backend {
    std::uint32_t number = 0;
    std::string name;
    std::string address;
  };
  struct Change {
    std::uint64_t revision = 0;
    backend::RegionId region;
    bool is_removal = false;
  };
  class Source;
  using Chosen = std::vector<const Told*>;  ///< By ascending index.

  std::uint64_t new_revision() HAWSER_REQUIRES(mutex_) { return revision_.fetch_add(1, std::memory_order_acq_rel) + 1; }
  void note_change(const backend::RegionId& region, bool is_removal) HAWSER_REQUIRES(mutex_);
  void end_deltas() HAWSER_REQUIRES(mutex_);
  /// Null: it is not told of.
  Told* find(const backend::RegionId& id) HAWSER_REQUIRES(mutex_);
  const Told* find(std::uint32_t index) const HAWSER_REQUIRES(mutex_);
  bool has_changes_since(std::uint64_t revision) const HAWSER_REQUIRES(mutex_);
  wire::Card head() const HAWSER_REQUIRES(mutex_);
  Chosen all_regions() const HAWSER_REQUIRES(mutex_);
  /// Fills in what was removed, and gives what came.
  Chosen changes_since(std::uint64_t revision, wire::Card* card) const HAWSER_REQUIRES(mutex_);
  Status encode(const wire::Card& head, const Chosen& regions, std::string* out) const HAWSER_REQUIRES(mutex_);

  std::atomic<std::uint64_t> revision_{1};
  mutable base::Mutex mutex_;
  backend::Identity who_ HAWSER_GUARDED_BY(mutex_);
  std::vector<Backend> backends_ HAWSER_GUARDED_BY(mutex_);
  std::vector<Told> regions_ HAWSER_GUARDED_BY(mutex_);  ///< By index: indices are dense.
  std::size_t told_ HAWSER_GUARDED_BY(mutex_) = 0;       ///< How many of them there are.
  /// Null: there are none. An empty deque takes half a kilobyte, and most agents that are idle have no region.
  std::unique_ptr<std::deque<Change>> changes_ HAWSER_GUARDED_BY(mutex_);
};

}  // namespace hawser::agent
