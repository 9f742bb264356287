#include "worldsim/settings.h"

#include <algorithm>
#include <initializer_list>
#include <utility>
#include <vector>

#include <fmt/format.h>

namespace hawser::worldsim {

using std::chrono::microseconds;
using std::chrono::milliseconds;

namespace {

/// A fourth of the seeds of mode stream, in blocks of 16, so that sparse worlds have all that seeds differ by; and a
/// sixth of those of mode mapped, where ranks neither map nor have boards: sparse worlds do neither.
bool is_sparse_seed(std::uint64_t seed, sim::Mode mode) {
  return mode == sim::Mode::kStream ? seed / 16 % 4 == 2 : seed / 16 % 2 == 0 && seed % 3 == 0;
}

/// A tree by chance, and some edges more.
Topology draw_edges(base::Rng& rng, std::uint32_t ranks) {
  std::vector<Topology::Edge> edges;
  for (std::uint32_t rank = 1; rank < ranks; ++rank) edges.emplace_back(rng.below(rank), rank);
  for (std::uint64_t more = rng.below(ranks); more > 0; --more) {
    const auto rank = static_cast<std::uint32_t>(1 + rng.below(ranks - 1));
    edges.emplace_back(rng.below(rank), rank);
  }
  return Topology::of_edges(std::move(edges));
}

/// A ring of some ranks, by which the others hang: so it matters who of two neighbours is left out.
Topology draw_ring_with_tails(base::Rng& rng, std::uint32_t ranks) {
  std::vector<std::uint32_t> order(ranks);
  for (std::uint32_t rank = 0; rank < ranks; ++rank) {
    const auto at = static_cast<std::uint32_t>(rng.below(rank + 1));
    order[rank] = order[at];
    order[at] = rank;
  }
  const std::uint32_t ring = std::max<std::uint32_t>(3, ranks - 1 - static_cast<std::uint32_t>(rng.below(ranks / 2)));
  std::vector<Topology::Edge> edges;
  for (std::uint32_t i = 0; i < ring; ++i) edges.emplace_back(order[i], order[(i + 1) % ring]);
  for (std::uint32_t i = ring; i < ranks; ++i) edges.emplace_back(order[rng.below(i)], order[i]);
  return Topology::of_edges(std::move(edges));
}

Topology draw_topology(base::Rng& rng, std::uint32_t ranks) {
  constexpr std::uint32_t kTwoEach = 4, kHasFarRanks = 6;
  switch (rng.below(4)) {
    case 0:
      return Topology::hypercube();
    case 1:
      return draw_edges(rng, ranks);
    case 2:
      if (ranks >= kHasFarRanks) return Topology::regular(kTwoEach);
      [[fallthrough]];
    default:
      return Topology::regular(2);
  }
}

void make_sparse(base::Rng& rng, Settings& settings) {
  settings.ranks = 4 + rng.below(settings.errs ? 2 : rng.chance(0.2) ? 9 : 5);
  const auto ranks = static_cast<std::uint32_t>(settings.ranks);
  settings.topology = settings.parts && rng.chance(0.5) ? draw_ring_with_tails(rng, ranks) : draw_topology(rng, ranks);
}

/// An eighth of the seeds, in blocks of 16 as well. None of them is sparse.
bool has_guests(std::uint64_t seed) { return seed / 16 % 8 == 3; }

void make_guests(Settings& settings) {
  constexpr std::size_t kRanksMax = 5;  // Of each world.
  settings.guests = true;
  settings.parts = false;  // Ranks decide which of two that lost each other leaves, and they differ by world.
  settings.ranks = std::min(settings.ranks, kRanksMax);
  settings.hosts = std::min(settings.hosts, settings.ranks);
}

}  // namespace

Settings draw_settings(base::Rng& rng, std::uint64_t seed, sim::Mode mode) {
  Settings settings;
  settings.seed = seed;
  settings.mode = mode;
  settings.ranks = 2 + rng.below(rng.chance(0.3) ? 7 : 4);
  settings.acts = rng.below(rng.chance(0.3) ? 20 : 8);
  settings.at_once = 1 + rng.below(3);
  settings.pause_max = microseconds(rng.chance(0.5) ? 2000 : 100);
  settings.faults = rng.chance(0.2) ? 0 : 1 + rng.below(3);
  settings.cancels = seed % 8 == 1;
  settings.impatient = seed % 8 == 2;
  settings.errs = seed % 8 == 3;
  settings.dissents = seed % 8 == 4;
  settings.majority = seed % 8 == 5 || seed % 8 == 6;
  if (settings.errs) settings.ranks = 2 + rng.below(3);
  settings.groups = rng.chance(0.4);
  settings.reads = mode == sim::Mode::kMapped && rng.chance(0.5);
  settings.maps = mode == sim::Mode::kMapped && seed % 3 == 1;
  settings.boards = mode == sim::Mode::kMapped && seed % 3 == 2;
  constexpr std::size_t kMoreThanSlots = 6;  // Of a board.
  if (settings.boards && seed % 2 == 0) settings.at_once = kMoreThanSlots;
  if (settings.dissents) settings.faults = 1 + rng.below(4);
  if (settings.cancels) settings.faults = std::min<std::size_t>(settings.faults, 1);
  // Some runs without faults: there every operation must end well.
  if (seed % 8 == 7) settings.faults = 0;
  const bool parts_sparse = seed % 16 == 15 && is_sparse_seed(seed, mode);
  if ((seed % 16 == 8 || parts_sparse) && mode == sim::Mode::kStream) {
    settings.parts = true;
    settings.ranks = std::max<std::size_t>(settings.ranks, 3);
    settings.faults = 1;
    settings.groups = false;  // A group that does not hold both goes on with either.
  }
  settings.automatic = seed % 16 == 6 || (seed % 16 == 0 && !settings.parts);
  const bool may_share = settings.maps || settings.boards;
  const bool shares_in_hosts = may_share && seed / 6 % 2 == 0;  // By boards or mapped memory within each host.
  if (shares_in_hosts) settings.ranks = std::max<std::size_t>(settings.ranks, 4);
  settings.hosts = 1 + rng.below(std::min<std::size_t>(settings.ranks, 3));
  if (shares_in_hosts) settings.hosts = std::max<std::size_t>(settings.hosts, 2);
  if (may_share && !shares_in_hosts) settings.hosts = 1;
  constexpr std::size_t kElementMax = 8;  // Bytes. Each rank has a share of each piece.
  if (may_share && seed % 5 < 3) settings.piece = settings.ranks * kElementMax * (1 + seed % 2);
  settings.in_blocks = rng.chance(0.7);
  if (is_sparse_seed(seed, mode)) make_sparse(rng, settings);
  if (has_guests(seed)) make_guests(settings);
  return settings;
}

void draw_network(base::Rng& rng, const Settings& settings, sim::Universe& universe) {
  sim::LinkOptions link;
  link.latency = microseconds(rng.range(2, 200));
  link.bytes_per_ns = rng.chance(0.2) ? 0.05 : 1.0;
  link.jitter_max = rng.chance(0.5) ? Duration::zero() : Duration(link.latency.count() * rng.range(1, 5));
  universe.net.fabric().set_default(link);
  sim::NetOptions& net = universe.net.options();
  net.pipe.by_reference = rng.chance(0.7);
  net.pipe.capacity_bytes = rng.chance(0.2) ? 8000 : 256 * 1024;
  net.pipe.short_chance = rng.chance(0.5) ? 0.1 : 0;
  net.keep_arrived_on_reset = rng.chance(0.7);
  net.connect_timeout = milliseconds(200);
  universe.hub.options().may_be_read = settings.reads;
  universe.hub.options().death_notice_max = milliseconds(rng.range(0, 40));
}

std::string describe(const Settings& settings) {
  std::string text = fmt::format("{} ranks, {} acts, {} at once, {} hosts, {} faults", settings.ranks, settings.acts,
                                 settings.at_once, settings.hosts, settings.faults);
  const std::initializer_list<std::pair<bool, const char*>> kinds = {
      {settings.automatic, "automatic"}, {settings.cancels, "cancels"},   {settings.impatient, "impatient"},
      {settings.errs, "errs"},           {settings.dissents, "dissents"}, {settings.majority, "majority"},
      {settings.parts, "parts"},         {settings.groups, "groups"},     {settings.reads, "reads"},
      {settings.maps, "maps"},           {settings.boards, "boards"},     {settings.guests, "guests"}};
  for (const auto& [is_so, name] : kinds) {
    if (is_so) text += fmt::format(", {}", name);
  }
  if (settings.piece > 0) text += fmt::format(", pieces of {}", settings.piece);
  if (is_sparse(settings)) text += ", topology " + to_string(settings.topology);
  return text;
}

}  // namespace hawser::worldsim
