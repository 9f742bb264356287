#pragma once

// The demo's result: a table for people, an object for programs (schema hawser.demo/1).

#include <string>
#include <vector>

#include "cli/demo_run.h"
#include "cli/json_out.h"

namespace hawser::cli {

/// Geometry, requests and how they are moved, in two lines.
std::string describe_work(const DemoOptions& options, const Workload& work);
/// The result table with its notes.
std::string report_text(const DemoOptions& options, const Workload& work, const std::vector<RunReport>& runs);
Json report_json(const DemoOptions& options, const Workload& work, const std::vector<RunReport>& runs);

}  // namespace hawser::cli
