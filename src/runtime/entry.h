#pragma once

// Entry: what each rank tells all others in the collective by which a world is entered: its host, and the cost model
// that it was given, if any. From what all have told every rank comes to the same model, so that all choose alike.
//
// Thread rule: values and pure functions.

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <hawser/status.h>

#include "schedule/cost_model.h"

namespace hawser::runtime {

/// The host's number, whether there is a cost model (1, else 0), and the bits of its values (else 0).
inline constexpr std::size_t kEntryWords = 2 + schedule::kCostFields.size();
using EntryWords = std::array<std::uint64_t, kEntryWords>;

EntryWords entry_of(std::uint64_t host, const std::optional<schedule::CostModel>& costs);
/// The model of a rank's words, by a stranger. kInvalid: they are of no form that this version knows, or a value is
/// beyond its bounds.
Result<std::optional<schedule::CostModel>> costs_of(std::span<const std::uint64_t, kEntryWords> words);

/// The cost model of a world.
struct SettledCosts {
  schedule::CostModel model = {};
  std::optional<std::uint32_t> teller = {};  ///< The first rank that was given it. None: it is built in.
};
/// Every rank calls it with the words of all ranks, and gets the same model. kInvalid: two ranks told different models;
/// the error names them.
Result<SettledCosts> settle_costs(std::span<const std::uint64_t> words);
std::vector<std::uint64_t> hosts_of(std::span<const std::uint64_t> words);

/// "built in", or "told by rank 2: message_ns = 1850, ...".
std::string to_string(const SettledCosts& costs);

}  // namespace hawser::runtime
