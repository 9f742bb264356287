#include "runtime/flight_file.h"

#include <cstring>
#include <span>
#include <type_traits>

#include "base/format.h"
#include "base/shown.h"
#include "base/try.h"

namespace hawser::runtime {
namespace {

constexpr std::string_view kFlightSuffix = ".flight";
constexpr std::int64_t kNsPerSecond = 1'000'000'000;

static_assert(std::is_trivially_copyable_v<FlightEntry> && std::is_trivially_copyable_v<FlightHeader>);
static_assert(sizeof(FlightHeader) <= kFlightHeader && sizeof(FlightEntry) % 8 == 0);

using Image = std::vector<std::byte>;

/// The memory is written by its process, not by system calls, so the file's own time tells nothing.
std::time_t touched_at(int file, const struct stat& found) {
  FlightHeader header;
  if (!base::read_exactly(file, &header, sizeof header, 0) || header.magic != kFlightMagic) return found.st_mtime;
  return (header.opened_wall_ns + (header.last_ns - header.opened_ns)) / kNsPerSecond;
}

Status no_flight(const std::string& path, std::string_view why) {
  return Status(Code::kCorrupt, base::format("'{}' is no flight recorder's file: {}", base::shown(path), why));
}

Status check_header(const std::string& path, const FlightHeader& header) {
  if (header.magic != kFlightMagic) return no_flight(path, "it does not begin as one");
  if (header.version != kFlightVersion || header.entries != kFlightEntries ||
      header.entry_bytes != sizeof(FlightEntry)) {
    return no_flight(path, base::format("its version is {}, not {}", header.version, kFlightVersion));
  }
  return {};
}

FlightEntry entry_of(const Image& image, std::size_t index) {
  FlightEntry entry;
  std::memcpy(&entry, image.data() + kFlightHeader + index * sizeof entry, sizeof entry);
  return entry;
}

bool is_same(const FlightEntry& a, const FlightEntry& b) { return std::memcmp(&a, &b, sizeof a) == 0; }

}  // namespace

base::LeftFile::Shape flight_shape() {
  return {.suffix = kFlightSuffix, .bytes = kFlightBytes, .mapped = kFlightBytes, .touched = touched_at};
}

Result<Flight> read_flight(const std::string& path) {
  HAWSER_TRY_ASSIGN(const base::Fd file, base::open_left_file(path, kFlightBytes));
  Image first(kFlightBytes), second(kFlightBytes);
  if (!base::read_exactly(file.get(), first.data(), first.size(), 0) ||
      !base::read_exactly(file.get(), second.data(), second.size(), 0)) {
    return no_flight(path, "it cannot be read");
  }
  Flight flight;
  std::memcpy(&flight.header, second.data(), sizeof flight.header);
  HAWSER_TRY(check_header(path, flight.header));
  flight.is_alive = !base::is_left(file.get());
  flight.is_stopped =
      flight.is_alive && base::is_process_stopped(flight.header.process, flight.header.process_namespace);
  for (std::size_t i = 0; i < kFlightEntries; ++i) {
    const FlightEntry entry = entry_of(second, i);
    if (entry.stamp != 0 && is_same(entry, entry_of(first, i))) flight.entries.push_back(entry);
  }
  std::ranges::sort(flight.entries, {}, &FlightEntry::stamp);
  return flight;
}

std::vector<std::string> list_flights(const std::string& folder) {
  return base::list_left_files(folder, kFlightSuffix);
}

}  // namespace hawser::runtime
