#pragma once

// LinkCourt: decides which ranks of a sparse world have failed where neighbours that live lose sight of one another.
//
// Two neighbours talk over their own link only. Once it is lost they do nothing together any more, so one of them has
// failed: the one that lost more of its neighbours; of two that lost as many the one without which more of the others
// stay joined; then the higher. All ranks know of all losses (see Relay), so all come to the same. The lowest rank that
// stays gives the verdicts, after a time in which all losses may show. Where none comes, any rank gives them, also
// that on itself.
//
// A rank that hears that a neighbour has lost it answers that it has lost that neighbour, too. One that does not answer
// may be dead: there is no verdict before its other neighbours lose it as well, or the court gives up. Then it is one
// of those that fail.
//
// Ranks that no way leads to any more are no case of a court: they have failed (see Relay).
//
// It is about losses only: no clock, no messages, no sockets.
//
// Thread rule: one thread at a time. Lifetime: its routes'.

#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "runtime/routes.h"

namespace hawser::runtime {

/// Whom to leave out, by what is known there of lost links, so that no two are left that lost each other. Again and
/// again it is the one that has not answered most of those that lost it; of several such the one that lost most of
/// those that are left; of several such the one without which the largest part of the rest is largest; of several such
/// the highest. Then those go that are not in the largest part any more: of as large ones that with the lowest rank
/// stays. They come first in the result, because the others are their relays.
std::vector<std::uint32_t> ranks_to_leave_out(const Routes& routes);

class LinkCourt {
 public:
  /// This rank gives the verdict that the other one, or itself, has failed. May call `look`.
  using Convict = std::function<void(std::uint32_t rank)>;
  /// `routes` outlives it, and is changed by its owner.
  LinkCourt(const Routes& routes, Convict convict) : routes_(routes), convict_(std::move(convict)) {}

  /// The routes have changed.
  void look();
  /// Time enough has passed since the case came up for all losses to show.
  void settle();
  /// It took too long.
  void give_up();

  /// Whether neighbours are left that lost each other, as far as this rank knows.
  bool is_open() const;
  /// The neighbours with which `rank` has such a case.
  std::vector<std::uint32_t> lost_with(std::uint32_t rank) const;

 private:
  bool has_answers() const;
  void convict(const std::vector<std::uint32_t>& ranks);

  const Routes& routes_;
  const Convict convict_;
  bool is_settled_ = false, is_convicting_ = false;
};

}  // namespace hawser::runtime
