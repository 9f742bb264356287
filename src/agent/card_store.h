#pragma once

// What is known of a peer's regions and backends: its cards merged into one sorted list.
//
// Thread rule: immutable but for `find_name`, which builds its index on first use; the owner's mutex covers that.

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include <hawser/status.h>

#include "wire/card.h"

namespace hawser::agent {

class CardStore {
 public:
  /// Takes a card in (`before` may be null). kNotFound when a delta builds on a revision that is not known here: ask
  /// for a full card. A card older than a full one that is known changes nothing (returns `before`).
  static Result<std::shared_ptr<CardStore>> merge(const std::shared_ptr<CardStore>& before, wire::Card card);

  std::uint64_t revision() const { return revision_; }
  bool complete() const { return complete_; }
  const std::vector<wire::CardBackend>& backends() const { return backends_; }
  const std::vector<wire::CardRegion>& regions() const { return regions_; }
  /// Null when there is no backend of that name in the card.
  const std::string* address_of(std::string_view backend) const;
  const wire::CardRegion* find(std::uint32_t index) const;
  const wire::CardRegion* find_name(std::string_view name);
  std::string_view extra(const wire::CardRegion& region, std::string_view backend) const;

 private:
  void take_all(wire::Card&& card);
  void gather_texts();
  void add_one(const wire::CardRegion& region, const std::vector<wire::CardExtra>& extras);

  std::uint64_t revision_ = 0;
  bool complete_ = false;
  std::vector<wire::CardBackend> backends_;
  std::vector<wire::CardRegion> regions_;  ///< By ascending index.
  std::vector<wire::CardExtra> extras_;
  std::vector<std::shared_ptr<char[]>> texts_;  ///< Behind the views.
  std::unordered_map<std::string_view, std::uint32_t> names_;
  bool names_built_ = false;
};

}  // namespace hawser::agent
