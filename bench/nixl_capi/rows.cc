#include "rows.h"

#include <regex>
#include <string_view>

namespace nixl_bench {
namespace {

constexpr std::uint64_t kKiB = 1024;
constexpr std::uint64_t kMiB = 1024 * kKiB;

std::string size_name(std::uint64_t size) {
  if (size >= kMiB) return std::to_string(size / kMiB) + "m";
  if (size >= kKiB) return std::to_string(size / kKiB) + "k";
  return std::to_string(size);
}

Measurement transfer(const Setting& setting, bool is_write, std::uint64_t size, std::uint32_t count) {
  const bool small = size * count < 64 * kKiB;
  Measurement one{.setting = setting, .kind = Kind::kTransfer, .shape = {size, count}, .is_write = is_write};
  one.bound = !setting.tcp ? Bound::kCopy : small ? Bound::kRoundTrip : Bound::kStream;
  const std::string what = (count > 1 ? std::to_string(count) + "x" : "") + size_name(size);
  one.rows = {{setting.prefix + (is_write ? "write." : "read.") + what, "", small ? Unit::kUs : Unit::kGigabytes}};
  return one;
}

void add_transfers(const Setting& setting, std::vector<Measurement>& all) {
  for (const bool is_write : {true, false}) {
    for (const std::uint64_t size : {std::uint64_t{8}, 4 * kKiB, 64 * kKiB, kMiB, 64 * kMiB}) {
      all.push_back(transfer(setting, is_write, size, 1));
    }
    for (const std::uint32_t count : {1000u, 8000u}) {
      for (const std::uint64_t size : {4 * kKiB, 16 * kKiB, 64 * kKiB}) {
        all.push_back(transfer(setting, is_write, size, count));
      }
    }
  }
}

void add_reposts(const Setting& setting, std::vector<Measurement>& all) {
  for (const std::uint64_t size : {std::uint64_t{8}, 4 * kKiB}) {
    all.push_back({.setting = setting,
                   .kind = Kind::kRepost,
                   .shape = {size, 1},
                   .rows = {{setting.prefix + "repost." + size_name(size), "", Unit::kThousands}}});
  }
}

void add_round_trip(const Setting& setting, std::vector<Measurement>& all) {
  all.push_back({.setting = setting,
                 .kind = Kind::kRoundTrip,
                 .shape = {8, 1},
                 .bound = setting.tcp ? Bound::kRoundTrip : Bound::kNone,
                 .rows = {{setting.prefix + "notify_rtt", "", Unit::kUs}}});
}

void add_requests(const Setting& setting, std::vector<Measurement>& all) {
  for (const std::uint32_t count : {1u, 1000u, 8000u}) {
    const std::string number = std::to_string(count);
    all.push_back({.setting = setting, .kind = Kind::kRequest, .shape = {4 * kKiB, count}});
    for (const char* const step : {"create", "post", "release"}) {
      all.back().rows.push_back({setting.prefix + "req." + step + "." + number, step, Unit::kUs});
    }
  }
  for (const std::uint32_t count : {1000u, 8000u}) {
    const std::string number = std::to_string(count);
    all.push_back({.setting = setting,
                   .kind = Kind::kPrepared,
                   .shape = {4 * kKiB, count},
                   .rows = {{setting.prefix + "req.prep." + number, "prep", Unit::kNsPerDesc},
                            {setting.prefix + "req.make." + number, "make", Unit::kNsPerDesc}}});
  }
  all.push_back({.setting = setting,
                 .kind = Kind::kPoll,
                 .shape = {8, 1},
                 .rows = {{setting.prefix + "poll.status", "status", Unit::kNs},
                          {setting.prefix + "poll.notifs", "notifs", Unit::kNs}}});
}

void add_metadata(const Setting& setting, std::vector<Measurement>& all) {
  for (const std::uint32_t count : {1u, 1000u, 100'000u}) {
    const std::string number = std::to_string(count);
    all.push_back({.setting = setting, .kind = Kind::kMetadata, .shape = {8, count}});
    for (const char* const step : {"register", "getmd", "blob", "load", "first", "invalidate", "deregister"}) {
      const Unit unit = std::string_view(step) == "blob" ? Unit::kBytes : Unit::kMs;
      all.back().rows.push_back({setting.prefix + "meta." + step + "." + number, step, unit});
    }
  }
}

}  // namespace

std::vector<Measurement> all_measurements() {
  std::vector<Measurement> all;
  for (const bool tcp : {false, true}) {
    const std::string prefix = tcp ? "tcp." : "shm.";
    const Setting plain{.prefix = prefix, .tcp = tcp};
    add_transfers(plain, all);
    add_reposts(plain, all);
    add_round_trip(plain, all);
    add_requests(plain, all);
    add_metadata({.prefix = prefix, .tcp = tcp, .metadata = true}, all);
    const Setting threads{.prefix = prefix + "pthr.", .tcp = tcp, .progress_thread = true};
    add_round_trip(threads, all);
    all.push_back(transfer(threads, true, 64 * kKiB, 1000));
  }
  return all;
}

std::vector<Measurement> matching(const std::string& expression) {
  std::vector<Measurement> found;
  try {
    const std::regex wanted(expression);
    for (Measurement& one : all_measurements()) {
      std::erase_if(one.rows, [&](const Row& row) { return !std::regex_match(row.id, wanted); });
      if (!one.rows.empty()) found.push_back(std::move(one));
    }
  } catch (const std::regex_error& error) {
    throw Failure("--rows " + expression + ": " + error.what());
  }
  if (found.empty()) throw Failure("no row matches " + expression + "; --list shows all");
  return found;
}

double shown(const Measurement& measurement, const Row& row, double value) {
  switch (row.unit) {
    case Unit::kUs:
      return value / 1e3;
    case Unit::kMs:
      return value / 1e6;
    case Unit::kGigabytes:
      return static_cast<double>(measurement.shape.bytes()) / value;
    case Unit::kThousands:
      return 1e6 / value;
    case Unit::kNs:
    case Unit::kBytes:
    case Unit::kNsPerDesc:
      break;
  }
  return value;
}

std::string_view unit_name(Unit unit) {
  switch (unit) {
    case Unit::kUs:
      return "us";
    case Unit::kMs:
      return "ms";
    case Unit::kGigabytes:
      return "GB/s";
    case Unit::kThousands:
      return "kop/s";
    case Unit::kBytes:
      return "B";
    case Unit::kNsPerDesc:
      return "ns/desc";
    case Unit::kNs:
      break;
  }
  return "ns";
}

}  // namespace nixl_bench
