#include "sim/region_user.h"

#include <fmt/format.h>

#include <vector>

namespace hawser::simulation {
namespace {

/// Of one life.
constexpr std::size_t kAreasMax = 16;

}  // namespace

void RegionUser::close_one(Life& life) {
  std::vector<Area*> fit;
  for (const auto& area : life.areas) {
    if (!area->closing && area.get() != life.words && area.get() != life.own_words && !area->bait)
      fit.push_back(area.get());
  }
  if (fit.empty()) return;
  Area& area = *fit[rng_.below(fit.size())];
  // The memory that all own transfers use goes less often, and is replaced at once.
  if (&area == life.scratch && !rng_.chance(0.3)) return;
  if (&area == life.scratch) return theater_.close_scratch(life);
  theater_.close_area(life, area);
  if (!area.atomic_words.empty()) theater_.add_atomic_area(life, fmt::format("atoms-{}", ++opened_));
}

void RegionUser::open_one(Life& life) {
  if (life.areas.size() >= kAreasMax) return;
  const bool in = rng_.chance(0.5);
  theater_.add_area(life, fmt::format("{}-{}", in ? "in" : "out", ++opened_), 16 * 1024,
                    in ? Rights::kWrite : Rights::kRead);
}

}  // namespace hawser::simulation
