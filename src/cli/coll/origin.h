#pragma once

// CostOrigin: a cost model and where it is from, as commands show it.
//
// Thread rule: values and pure functions.

#include <string>

#include <hawser/status.h>

#include "cli/json_out.h"
#include "schedule/cost_model.h"

namespace hawser::cli::coll {

struct CostOrigin {
  schedule::CostModel model = {};
  std::string from = "built in";
};

/// Of that file; no file: built in. Errors: those of runtime::read_cost_file.
Result<CostOrigin> cost_origin(const std::string& file);

/// Its values by name, and "from".
Json to_json(const CostOrigin& costs);
/// Three lines.
std::string to_text(const CostOrigin& costs);

}  // namespace hawser::cli::coll
