#pragma once

// Report: what was measured, compared and shown. A library is compared with the last one on the command line.
//
// Thread rule: values and pure functions.

#include <map>
#include <string>
#include <vector>

#include "channel.h"
#include "rows.h"

namespace nixl_bench {

/// One library at one row, a timing for each round; or what went wrong.
struct Figure {
  std::vector<Timing> rounds;
  std::string error;
};

struct RowResult {
  Measurement measurement;
  Row row;
  std::map<std::string, Figure> figures;                ///< By library.
  std::map<std::string, std::vector<double>> ceilings;  ///< Nanoseconds of one operation, for each round.
  std::string cores;                                    ///< "near", "far", or "changed" while it was measured.
};

double median(std::vector<double> values);
/// How much faster (for bytes: smaller) `one` is than `other`: above 1 is ahead. The median of the rounds' own ratios;
/// 0 when either failed.
double advantage(const RowResult& result, const std::string& one, const std::string& other);
/// "ahead"; "level": behind by no more than 3 %, both above 0.95 of the ceiling; "behind"; "-" when either failed.
std::string verdict(const RowResult& result, const std::string& one, const std::string& other);

/// The libraries in the order of the command line.
std::string table(const std::vector<RowResult>& results, const std::vector<std::string>& libraries);
Json to_json(const std::vector<RowResult>& results, const std::vector<std::string>& libraries);

}  // namespace nixl_bench
