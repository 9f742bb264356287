#pragma once

// The catalogue: what is measured, in which settings, and how its figures are shown.

#include <cstdint>
#include <string>
#include <vector>

#include "work.h"

namespace nixl_bench {

/// How two processes find each other and who moves things on.
struct Setting {
  std::string prefix;  ///< Of its rows: "shm.", "tcp.", "shm.pthr.".
  bool tcp = false;    ///< Only TCP may be used; else whatever the library chooses.
  bool progress_thread = false;
  bool metadata = false;  ///< Nothing is registered at the start.

  friend bool operator==(const Setting&, const Setting&) = default;
};

enum class Unit : std::uint8_t { kNs, kUs, kMs, kGigabytes, kThousands, kBytes, kNsPerDesc };

struct Row {
  std::string id;
  std::string suffix;  ///< Names its timing in what the measurement gives.
  Unit unit = Unit::kUs;
};

/// What bounds it, measured beside it.
enum class Bound : std::uint8_t { kNone, kCopy, kStream, kRoundTrip };

/// One thing that is done; it gives one row or several.
struct Measurement {
  Setting setting;
  Kind kind = Kind::kTransfer;
  Shape shape;
  bool is_write = true;
  Bound bound = Bound::kNone;
  std::vector<Row> rows;
};

/// All, in the order in which they run; those of one setting follow each other.
std::vector<Measurement> all_measurements();
/// Those with a row that matches; the other rows of a measurement are left out. Failure when the expression is wrong or
/// nothing matches.
std::vector<Measurement> matching(const std::string& expression);

/// In the row's unit; more is better where it is a rate.
double shown(const Measurement& measurement, const Row& row, double value);
std::string_view unit_name(Unit unit);

}  // namespace nixl_bench
