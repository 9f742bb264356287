#pragma once

// CostFile: a cost model that was measured, as a TOML file: `hawser bench coll --tune` writes it, World::open reads it.
// docs/collectives.md ("Measuring the model") describes the form.
//
// Thread rule: values and pure functions.

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include <hawser/status.h>

#include "schedule/cost_model.h"

namespace hawser::runtime {

inline constexpr std::string_view kCostSchema = "hawser.cost_model/1";
inline constexpr std::size_t kCostFileMax = std::size_t{64} * 1024;  ///< Bytes.
inline constexpr std::size_t kCostTextMax = 200;                     ///< Of each text in it, in bytes.

struct MeasuredCost {
  double value = 0;  ///< The median of the rounds'.
  double low = 0, high = 0;
  friend bool operator==(const MeasuredCost&, const MeasuredCost&) = default;
};

struct CostFile {
  std::string measured = {};  ///< When: "2026-11-28T22:50:00Z".
  std::string host = {}, cpu = {}, backends = {};
  std::uint32_t ranks = 0, rounds = 0;
  /// By place in schedule::kCostFields. Those within hosts are all there or all missing, and so are those between.
  std::array<std::optional<MeasuredCost>, schedule::kCostFields.size()> costs = {};

  bool has(bool far) const;
  /// What was measured, and of the rest what is built in.
  schedule::CostModel model() const;
  friend bool operator==(const CostFile&, const CostFile&) = default;
};

/// kInvalid, with the place and what is allowed there. `path` is for messages only.
Result<CostFile> parse_cost_file(std::string_view text, std::string_view path);
/// kNotFound: it cannot be read.
Result<CostFile> read_cost_file(const std::string& path);
/// As parse_cost_file reads it. The texts may be any.
std::string to_toml(const CostFile& file);

}  // namespace hawser::runtime
