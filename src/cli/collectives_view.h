#pragma once

// What `hawser collectives` tells: by which algorithms each collective can go, and what the model says that each costs.
// Pure.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "cli/coll/origin.h"
#include "cli/json_out.h"
#include "schedule/collective.h"

namespace hawser::cli {

struct CollectiveRow {
  schedule::Operation operation = schedule::Operation::kBarrier;
  std::uint64_t bytes = 0;
  std::vector<schedule::Choice> choices;  ///< The cheapest first: by it the call goes.
};

struct CollectivesReport {
  std::uint32_t ranks = 0, hosts = 0;
  bool reproducible = false;
  coll::CostOrigin costs;  ///< By which the choices are made.
  std::vector<CollectiveRow> rows;
};

/// A rank's host is its number ÷ (ranks per host). `bytes` are those of the tensor, of blocks of all ranks together,
/// in elements of 4 bytes. No operation: all of them.
CollectivesReport collectives_report(std::uint32_t ranks, std::uint32_t hosts, std::span<const std::uint64_t> bytes,
                                     std::optional<schedule::Operation> operation, bool reproducible,
                                     const coll::CostOrigin& costs = {});

Json to_json(const CollectivesReport& report);
/// At most 100 columns.
std::string to_text(const CollectivesReport& report);

}  // namespace hawser::cli
