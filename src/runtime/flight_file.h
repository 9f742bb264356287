#pragma once

// The flight recorder's file: the last operations of one rank, in memory that outlives its process (base/left_file.h).
// `hawser top WORLD` reads it.
//
// A header of one block, then a ring of entries. A writer zeroes an entry's stamp, fills it, and stamps it with its
// number; a reader copies the file twice and takes the entries that did not change between.
//
// Thread rule: values and pure functions; reading is a few system calls.

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <hawser/status.h>

#include "base/left_file.h"

namespace hawser::runtime {

inline constexpr std::uint32_t kFlightEntries = 512;  ///< Operations that are kept.
inline constexpr std::size_t kFlightHeader = 4096;    ///< Bytes before the first.

enum class FlightState : std::uint8_t { kBegun = 1, kEnded = 2 };

/// One operation of a rank. Times are the host's monotonic clock's.
struct FlightEntry {
  std::uint64_t stamp = 0;   ///< Its number in the ring, from 1; 0: there is none.
  std::uint64_t world = 0;   ///< The nonce of the world, or group, that it is of,
  std::uint64_t number = 0;  ///< and its number there; the same on all ranks.
  std::int64_t begun_ns = 0, ended_ns = 0;
  std::uint64_t count = 0;                ///< Elements of the larger of its two buffers, the same on all ranks,
  std::uint64_t inputs = 0, outputs = 0;  ///< and of each.
  std::uint32_t rank = 0, size = 0;
  FlightState state = FlightState::kBegun;
  std::uint8_t code = 0;        ///< How it ended: a Code.
  std::uint16_t type = 0;       ///< DataType, from 1; 0: it has none.
  std::uint32_t algorithm = 0;  ///< schedule::Algorithm, from 1.
  std::array<char, 32> operation{};
  std::array<char, 64> world_name{};
};

/// Who recorded it.
struct FlightHeader {
  std::uint64_t magic = 0;
  std::uint32_t version = 0, entries = 0;
  std::uint64_t entry_bytes = 0;
  std::uint32_t process = 0, rank = 0, size = 0, unused = 0;  ///< Rank and size of the world that was opened.
  std::uint64_t process_namespace = 0;
  std::int64_t opened_ns = 0, opened_wall_ns = 0;  ///< One moment by both clocks; the second since 1970.
  std::int64_t last_ns = 0;                        ///< When it recorded last.
  std::array<char, 256> world_name{};
  std::array<char, 256> agent{};  ///< The name of the agent that it lives in, which may be in several worlds.
};

inline constexpr std::size_t kFlightBytes = kFlightHeader + kFlightEntries * sizeof(FlightEntry);
inline constexpr std::uint64_t kFlightMagic = 0x4c46'5253'5741'4831;
inline constexpr std::uint32_t kFlightVersion = 2;

/// How such a file is made, and when it has become old.
base::LeftFile::Shape flight_shape();
/// At most as much of `text` as there is room for, and a zero.
template <std::size_t kSize>
void put_text(std::array<char, kSize>& place, std::string_view text) {
  const std::string_view fits = text.substr(0, kSize - 1);
  place.fill('\0');
  std::copy(fits.begin(), fits.end(), place.begin());
}
template <std::size_t kSize>
std::string text_of(const std::array<char, kSize>& place) {
  return {place.data(), std::find(place.begin(), place.end(), '\0')};
}

struct Flight {
  FlightHeader header;
  bool is_alive = false;
  bool is_stopped = false;
  std::vector<FlightEntry> entries;  ///< The oldest first.

  std::int64_t wall_ns(std::int64_t ns) const { return header.opened_wall_ns + (ns - header.opened_ns); }
};

/// kCorrupt: it is none of this user, or of another version.
Result<Flight> read_flight(const std::string& path);
std::vector<std::string> list_flights(const std::string& folder);

}  // namespace hawser::runtime
