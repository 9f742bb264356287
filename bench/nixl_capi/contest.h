#pragma once

// Contest: the libraries' slices of each measurement in turn, so that what disturbs the machine disturbs all.
//
// Thread rule: one thread. Lifetime: its worker processes are killed with it.

#include <array>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "ceilings.h"
#include "pair.h"
#include "report.h"

namespace nixl_bench {

struct ContestOptions {
  std::vector<LibraryEntry> libraries;
  double seconds = 0.3;  ///< Of one slice.
  int repeat = 3;        ///< Rounds; in each of them every library has one slice.
  std::uint64_t arena = 512u << 20;
  bool ceilings = true;
};

class Contest {
 public:
  explicit Contest(const ContestOptions& options);

  /// A library that fails at a measurement is left out of it and begins the next one with new processes; stderr tells.
  std::vector<RowResult> run(const std::vector<Measurement>& measurements);
  bool failed() const { return failed_; }

 private:
  std::vector<RowResult> measure(const Measurement& measurement);
  /// One library's part of one round; what goes wrong goes into its figures.
  void slice(const LibraryEntry& library, const Measurement& measurement, bool is_first,
             std::vector<RowResult>& results);
  void finish_all(const Measurement& measurement, std::vector<RowResult>& results);
  void finish(const LibraryEntry& library, const Measurement& measurement, std::vector<RowResult>& results);
  Pair& pair_of(const LibraryEntry& library, const Setting& setting);
  void ceiling_round(const Measurement& measurement, std::vector<RowResult>& results);
  void note_failure(const LibraryEntry& library, const std::string& what, std::vector<RowResult>& results);

  const ContestOptions options_;
  const std::array<int, 2> cores_;
  Ceilings ceilings_;
  Setting setting_;  ///< Of the pairs.
  std::map<std::string, std::unique_ptr<Pair>> pairs_;
  bool failed_ = false;
};

}  // namespace nixl_bench
