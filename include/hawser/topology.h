#pragma once

// Topology: which ranks of a world are neighbours. Only neighbours have sessions; the messages of other pairs go from
// neighbour to neighbour. All ranks of a world are opened with the same one.

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <hawser/export.h>
#include <hawser/status.h>

HAWSER_NAMESPACE_BEGIN

struct Topology {
  enum class Kind : std::uint8_t {
    kFull,       ///< Every rank is every other's neighbour: nothing is relayed.
    kRegular,    ///< A ring where each rank knows the nearest `degree`, half of them on either side.
    kHypercube,  ///< Ranks whose numbers differ in one bit. Of any size: what is missing of the cube is left out.
    kEdges,      ///< Pairs of neighbours, as the user lists them.
  };
  using Edge = std::pair<std::uint32_t, std::uint32_t>;

  Kind kind = Kind::kFull;
  std::uint32_t degree = 0;      ///< Of kRegular: even, and less than the world's size.
  std::vector<Edge> edges = {};  ///< Of kEdges. A pair may be named in either order.

  static Topology regular(std::uint32_t degree) { return {.kind = Kind::kRegular, .degree = degree}; }
  static Topology hypercube() { return {.kind = Kind::kHypercube}; }
  static Topology of_edges(std::vector<Edge> edges) { return {.kind = Kind::kEdges, .edges = std::move(edges)}; }

  friend bool operator==(const Topology&, const Topology&) = default;
};

/// "full", "regular:4", "hypercube", or "edges:0-1,1-2". kInvalid says which forms there are.
HAWSER_API Result<Topology> parse_topology(std::string_view text);
/// What parse_topology reads.
HAWSER_API std::string to_string(const Topology& topology);

HAWSER_NAMESPACE_END
