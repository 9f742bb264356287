#pragma once

// The report of the bench as one page for a browser, which needs nothing else: plotting library, results and all.

#include <string>

#include <hawser/status.h>

#include "cli/json_out.h"

namespace hawser::cli::bench {

/// The page without results; kResultsMark stands where they go. CMake makes it.
extern const char* const kReportTemplate;
inline constexpr const char* kResultsMark = "{{results}}";

/// The page for what `hawser bench --json` prints.
std::string report_page(const Json& results);

/// Results that a file holds, as `hawser bench --json` printed them. kNotFound, kFailed: the file cannot be read;
/// kInvalid: it holds something else.
Result<Json> read_results(const std::string& path);

/// Writes the page to `path`, whole or not at all. kFailed: the file cannot be written.
Status write_page(const std::string& path, const Json& results);

}  // namespace hawser::cli::bench
