#pragma once

// CardStore keeps what this agent knows of a peer's regions and backends, in whatever order the cards came.
//
// Cards travel by several ways and may overtake each other, so each region remembers the revision that told of it. For
// one index the higher generation wins. A full card or a delta of revision R removes what it does not list (a delta:
// what it removes) and was told at R or before; a partial card removes nothing. A card that is not newer than the
// newest one known changes no address and brings back no region that was removed.
//
// Taking a card in costs what the card has, on average, not what is known already: changes lie over a sorted list, and
// both become one list when the changes outgrow it.
//
// Thread rule: the owner's mutex. Lifetime: what `find` gives is good until the next `take`.
// Memory: at most twice the regions that are open, and 64.

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include <hawser/status.h>

#include "wire/card.h"

namespace hawser::agent {

class CardStore {
 public:
  /// A region's index and generation.
  using Id = std::pair<std::uint32_t, std::uint32_t>;
  /// What a card brought.
  struct Change {
    bool any = false;
    bool is_whole = false;  ///< All was replaced, and `gone` is not filled.
    std::vector<Id> gone;   ///< Regions that are known to be closed since.
  };

  /// Takes a card in. kNotFound when a delta builds on a revision that is not known here: ask for a full card.
  Result<Change> take(wire::Card card);

  /// Up to which all is known; while no full card came, the newest that told of something.
  std::uint64_t revision() const { return complete_ ? revision_ : told_max_; }
  bool complete() const { return complete_; }
  /// Counts up with whatever changes.
  std::uint64_t changes() const { return changes_; }
  std::size_t count() const { return count_; }
  const std::vector<wire::CardBackend>& backends() const { return *backends_; }
  /// Null when there is no backend of that name in the card.
  const std::string* address_of(std::string_view backend) const;
  const wire::CardRegion* find(std::uint32_t index) const;
  /// Of several that bear the name, the one told last. The first call builds an index.
  const wire::CardRegion* find_name(std::string_view name);
  /// What the card that told of the region says of it for this backend.
  std::string_view extra(const wire::CardRegion& region, std::string_view backend) const;

  /// By ascending index.
  template <typename Visit>
  void for_each(Visit&& visit) const {
    auto over = changed().begin();
    const auto end = changed().end();
    for (std::uint32_t at = 0; base_ && at < base_->regions.size(); ++at) {
      const std::uint32_t index = base_->regions[at].index;
      for (; over != end && over->first < index; ++over) visit_one(over->second, visit);
      if (over != end && over->first == index) continue;  // It comes in its turn.
      visit(base_->regions[at]);
    }
    for (; over != end; ++over) visit_one(over->second, visit);
  }

 private:
  using Backends = std::vector<wire::CardBackend>;
  /// The regions of one card, or of several that became one list.
  struct Piece {
    std::shared_ptr<const Backends> backends;  ///< What its extras' numbers mean; null where there are none.
    std::vector<wire::CardRegion> regions;     ///< By ascending index.
    std::vector<wire::CardExtra> extras;
    std::unique_ptr<char[]> text;  ///< Behind the views.
  };
  /// Without a piece: there is no such region (any more).
  struct Entry {
    std::shared_ptr<const Piece> piece;
    std::uint32_t at = 0;
    std::uint64_t told = 0;
  };

  using Entries = std::map<std::uint32_t, Entry>;

  const Entries& changed() const { return over_ ? *over_ : no_entries(); }
  Entries& changing() {
    if (over_ == nullptr) over_ = std::make_unique<Entries>();
    return *over_;
  }
  static const Entries& no_entries();
  static const std::shared_ptr<const Backends>& no_backends();

  template <typename Visit>
  static void visit_one(const Entry& entry, Visit& visit) {
    if (entry.piece) visit(*region_of(entry));
  }
  static const wire::CardRegion* region_of(const Entry& entry) {
    return entry.piece ? &entry.piece->regions[entry.at] : nullptr;
  }
  Entry locate(std::uint32_t index) const;
  /// Past the end: it is not there.
  std::size_t place_in_base(std::uint32_t index) const;
  Entry locate_in_base(std::uint32_t index) const;
  bool is_news(const wire::Card& card, const wire::CardRegion& region);
  void take_addresses(const wire::Card& card, Change* change);
  std::shared_ptr<const Backends> shared_names(Backends&& backends);
  std::shared_ptr<const Piece> piece_of(wire::Card&& card);
  bool is_same_whole(const wire::Card& card) const;
  void take_full(wire::Card&& card, Change* change);
  void take_some(wire::Card&& card, Change* change);
  void put(std::uint32_t index, Entry entry, Change* change);
  void name_it(const wire::CardRegion& region);
  void unname(const wire::CardRegion& region);
  void fold();
  void copy_into(Piece& piece, const Entry& entry) const;
  static void own_texts(Piece& piece);

  std::uint64_t revision_ = 0;  ///< Of the newest full card or delta.
  std::uint64_t told_max_ = 0;
  std::uint64_t address_revision_ = 0;
  std::uint64_t changes_ = 0;
  bool complete_ = false;
  std::shared_ptr<const Backends> backends_ = no_backends();
  std::shared_ptr<const Backends> named_;  ///< By the last piece, if by names that `backends_` has not.
  std::shared_ptr<const Piece> base_;
  std::vector<std::uint64_t> base_told_;  ///< Empty: all at base_revision_.
  std::uint64_t base_revision_ = 0;
  std::unique_ptr<Entries> over_;  ///< What differs from `base_`; null: nothing. Mostly a card is all there is.
  std::size_t weight_ = 0;         ///< Regions in the pieces that `over_` may hold, and entries without one.
  std::size_t count_ = 0;
  using NameIndex = std::unordered_multimap<std::string_view, std::uint32_t>;
  std::unique_ptr<NameIndex> names_;  ///< Null until a name is looked for: most peers are never asked by name.
};

}  // namespace hawser::agent
