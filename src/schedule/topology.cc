// The text form of topologies.

#include <hawser/topology.h>

#include <charconv>
#include <optional>

#include "base/shown.h"

HAWSER_NAMESPACE_BEGIN
namespace {

constexpr std::string_view kRegular = "regular:", kEdges = "edges:";

std::optional<std::uint32_t> number_in(std::string_view text) {
  std::uint32_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::optional<Topology::Edge> edge_in(std::string_view text) {
  const std::size_t dash = text.find('-');
  if (dash == std::string_view::npos) return std::nullopt;
  const std::optional<std::uint32_t> a = number_in(text.substr(0, dash)), b = number_in(text.substr(dash + 1));
  return a && b ? std::optional(Topology::Edge{*a, *b}) : std::nullopt;
}

std::optional<Topology> edges_in(std::string_view text) {
  Topology made{.kind = Topology::Kind::kEdges};
  while (!text.empty()) {
    const std::size_t comma = text.find(',');
    const std::optional<Topology::Edge> edge = edge_in(text.substr(0, comma));
    const bool ends_in_comma = comma != std::string_view::npos && comma + 1 == text.size();
    if (!edge || ends_in_comma) return std::nullopt;
    made.edges.push_back(*edge);
    text = comma == std::string_view::npos ? std::string_view() : text.substr(comma + 1);
  }
  return made;
}

std::optional<Topology> topology_in(std::string_view text) {
  if (text == "full") return Topology();
  if (text == "hypercube") return Topology::hypercube();
  if (text.starts_with(kEdges)) return edges_in(text.substr(kEdges.size()));
  if (!text.starts_with(kRegular)) return std::nullopt;
  const std::optional<std::uint32_t> degree = number_in(text.substr(kRegular.size()));
  return degree ? std::optional(Topology::regular(*degree)) : std::nullopt;
}

}  // namespace

Result<Topology> parse_topology(std::string_view text) {
  if (std::optional<Topology> topology = topology_in(text)) return std::move(*topology);
  return Status(Code::kInvalid, "'" + base::shown(text) + "' is no topology")
      .with_advice("write full, hypercube, regular:K with an even K, or edges:A-B,C-D");
}

std::string to_string(const Topology& topology) {
  switch (topology.kind) {
    case Topology::Kind::kFull:
      return "full";
    case Topology::Kind::kRegular:
      return std::string(kRegular) + std::to_string(topology.degree);
    case Topology::Kind::kHypercube:
      return "hypercube";
    case Topology::Kind::kEdges:
      break;
  }
  std::string text(kEdges);
  for (const auto& [a, b] : topology.edges) {
    if (text.size() > kEdges.size()) text += ',';
    text += std::to_string(a) + "-" + std::to_string(b);
  }
  return text;
}

HAWSER_NAMESPACE_END
