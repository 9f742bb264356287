#include "runtime/entry.h"

#include <algorithm>
#include <bit>

#include "base/check.h"
#include "base/format.h"
#include "base/try.h"

namespace hawser::runtime {

using schedule::CostModel;
using schedule::kCostFields;

EntryWords entry_of(std::uint64_t host, const std::optional<CostModel>& costs) {
  EntryWords words = {host, costs ? 1U : 0U};
  for (std::size_t i = 0; costs && i < kCostFields.size(); ++i) {
    words[2 + i] = std::bit_cast<std::uint64_t>((*costs).*kCostFields[i].value);
  }
  return words;
}

Result<std::optional<CostModel>> costs_of(std::span<const std::uint64_t, kEntryWords> words) {
  const auto values = words.subspan<2>();
  const bool has_none = std::ranges::all_of(values, [](std::uint64_t word) { return word == 0; });
  if (words[1] == 0 && has_none) return std::optional<CostModel>();
  if (words[1] != 1)
    return Status(Code::kInvalid, "it tells of its cost model in a form that this version does not know");
  CostModel model;
  for (std::size_t i = 0; i < kCostFields.size(); ++i) {
    model.*kCostFields[i].value = std::bit_cast<double>(values[i]);
  }
  HAWSER_TRY(check_costs(model));
  return std::optional(model);
}

Result<SettledCosts> settle_costs(std::span<const std::uint64_t> words) {
  HAWSER_ASSERT(words.size() % kEntryWords == 0, "each rank tells as many words");
  SettledCosts settled;
  for (std::uint32_t rank = 0; rank < words.size() / kEntryWords; ++rank) {
    const auto told = costs_of(words.subspan(rank * kEntryWords).first<kEntryWords>());
    if (!told) {
      return Status(Code::kInvalid, base::format("the cost model of rank {} is not taken", rank)).because(told.error());
    }
    if (!*told) continue;
    if (!settled.teller) settled = {.model = **told, .teller = rank};
    if (settled.model == **told) continue;
    for (const schedule::CostField& field : kCostFields) {
      const double first = settled.model.*field.value, other = (**told).*field.value;
      if (first == other) continue;
      return Status(Code::kInvalid,
                    base::format("rank {} was given another cost model than rank {}: {} is {} there, and {} at rank {}",
                                 rank, *settled.teller, field.name, other, first, *settled.teller))
          .with_advice("give cost_model (HAWSER_COST_MODEL) to one rank alone, or the same file to all");
    }
  }
  return settled;
}

std::vector<std::uint64_t> hosts_of(std::span<const std::uint64_t> words) {
  std::vector<std::uint64_t> hosts;
  for (std::size_t at = 0; at < words.size(); at += kEntryWords) hosts.push_back(words[at]);
  return hosts;
}

std::string to_string(const SettledCosts& costs) {
  if (!costs.teller) return "built in";
  std::string text = base::format("told by rank {}:", *costs.teller);
  for (const schedule::CostField& field : kCostFields) {
    text +=
        base::format("{}{} = {}", field.name == kCostFields[0].name ? " " : ", ", field.name, costs.model.*field.value);
  }
  return text;
}

}  // namespace hawser::runtime
