#pragma once

// What `hawser sim --what scale` tells. Pure.

#include <string>
#include <vector>

#include "cli/json_out.h"
#include "worldsim/scale.h"

namespace hawser::cli {

struct ScaleReport {
  std::uint32_t ranks = 0;
  std::vector<worldsim::ScaleRow> rows;
};

Json to_json(const ScaleReport& report);
std::string to_text(const ScaleReport& report);

}  // namespace hawser::cli
