#include "cli/coll/call.h"

#include <fmt/format.h>

#include "base/quantity.h"
#include "schedule/hosts.h"

namespace hawser::cli::coll {
namespace {

using What = schedule::Operation;
using schedule::kCostFields;

constexpr std::uint64_t kBytesMax = std::uint64_t{1} << 50;

}  // namespace

schedule::Call call_of(What operation, std::uint32_t ranks, std::span<const std::uint32_t> hosts, std::uint64_t bytes) {
  schedule::Call call{.operation = operation, .size = ranks, .element_bytes = kElement};
  const std::uint64_t count = (bytes + kElement - 1) / kElement;
  switch (operation) {
    case What::kBarrier:
      break;
    case What::kAllGather:
    case What::kReduceScatter:
    case What::kGather:
    case What::kScatter:
    case What::kAllToAll:
      call.counts.assign(ranks, (count + ranks - 1) / ranks);
      call.in_counts = call.counts;
      call.is_even = operation == What::kAllToAll;
      break;
    default:
      call.count = count;
  }
  const bool is_one_host = !schedule::Hosts::are_several(hosts);
  call.may_be_mapped = call.may_use_boards = is_one_host || schedule::Hosts::has_levels(hosts);
  if (!is_one_host) call.hosts.assign(hosts.begin(), hosts.end());
  return call;
}

Parts parts_of(const schedule::Call& call, schedule::Algorithm algorithm) {
  Parts parts = {};
  for (std::size_t i = 0; i < kCostFields.size(); ++i) {
    schedule::CostModel one;
    for (const schedule::CostField& field : kCostFields) one.*field.value = 0;
    one.*kCostFields[i].value = 1;
    for (const schedule::Choice& choice : schedule::choices(call, one)) {
      if (choice.algorithm == algorithm) parts[i] = choice.cost_ns;
    }
  }
  return parts;
}

double cost_of(const Parts& parts, const schedule::CostModel& model) {
  double ns = 0;
  for (std::size_t i = 0; i < kCostFields.size(); ++i) ns += parts[i] * model.*kCostFields[i].value;
  return ns;
}

std::optional<What> operation_named(std::string_view name, std::string* names) {
  std::optional<What> found;
  for (int number = 0; number <= static_cast<int>(What::kExclusiveScan); ++number) {
    const auto each = static_cast<What>(number);
    if (schedule::to_string(each) == name) found = each;
    if (names != nullptr) *names += fmt::format("{}{}", names->empty() ? "" : ", ", schedule::to_string(each));
  }
  return found;
}

std::string wrong_operation(const std::string& name) {
  std::string names;
  return operation_named(name, &names) ? "" : fmt::format("'{}' is none of {}", name, names);
}

std::string wrong_size(const std::string& text) {
  const auto size = base::parse_size(text);
  if (!size) return fmt::format("'{}' is not {}", text, base::kSizeForm);
  return *size <= kBytesMax ? "" : fmt::format("'{}' is above {}", text, base::format_size(kBytesMax));
}

std::vector<std::uint64_t> sizes_of(const std::vector<std::string>& texts) {
  std::vector<std::uint64_t> sizes;
  for (const std::string& text : texts) sizes.push_back(base::parse_size(text).value_or(0));
  return sizes;
}

}  // namespace hawser::cli::coll
