#pragma once

// Calls of collectives as `hawser collectives` and `hawser bench coll` speak of them: so many bytes of the tensor, or
// of all ranks' blocks together. And what each would cost, as a sum that a fit can take apart.
//
// Thread rule: pure functions.

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "schedule/collective.h"

namespace hawser::cli::coll {

inline constexpr std::uint64_t kElement = 4;  ///< Bytes.

/// `hosts`: by rank, the number of its host. Empty, or all alike: one host, with memory that the ranks map.
schedule::Call call_of(schedule::Operation operation, std::uint32_t ranks, std::span<const std::uint32_t> hosts,
                       std::uint64_t bytes);

/// Of each value of the cost model: how often it is in the cost of the call by that algorithm. Not for two levels
/// and what goes by memory in hosts, whose cost is no sum.
using Parts = std::array<double, schedule::kCostFields.size()>;
Parts parts_of(const schedule::Call& call, schedule::Algorithm algorithm);
/// The sum.
double cost_of(const Parts& parts, const schedule::CostModel& model);

/// Nothing: there is none of that name. `names` gets those that there are.
std::optional<schedule::Operation> operation_named(std::string_view name, std::string* names = nullptr);
/// For options: what is wrong with the text; empty: nothing.
std::string wrong_operation(const std::string& name);
std::string wrong_size(const std::string& text);
/// Of texts that are not wrong.
std::vector<std::uint64_t> sizes_of(const std::vector<std::string>& texts);

}  // namespace hawser::cli::coll
