#pragma once

// Settings: what a seed decides of a run before it begins.

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

#include "backend/quic/connection.h"
#include "base/rng.h"
#include "quicsim/packet_net.h"

namespace hawser::quicsim {

struct Settings {
  std::uint64_t seed = 1;
  std::size_t openers = 1;       ///< Hosts that connect, 1 to 3,
  std::size_t acceptors = 1;     ///< and that listen, 1 or 2.
  std::size_t connections = 1;   ///< 1 to 4.
  std::size_t streams = 3;       ///< That each opener makes, 1 to 14.
  std::uint64_t bytes = 40'000;  ///< That one end of a stream sends, about.
  backend::quic::ConnectionOptions options;
  Weather up, down;                    ///< Of openers' cables.
  Duration look_max = {};              ///< So long datagrams wait for their host's look, at most.
  std::size_t inbox_bytes = 1u << 20;  ///< A socket's buffer.
  std::size_t certificate = 400;
  bool asks = false;       ///< Acceptors send a Retry first.
  bool is_placed = false;  ///< Users take some of what comes as it comes.
  bool is_tight = false;   ///< Little may be unread, so streams that are not read hold others back until they are.
  bool hoards = false;     ///< Nobody reads at the acceptors before the calm.
  std::size_t faults = 0;
  Duration calm_after = std::chrono::seconds(1);  ///< From then on nothing goes wrong.
};

Settings draw_settings(base::Rng& rng, std::uint64_t seed);
std::string describe(const Settings& settings);

/// What the user of one end of a stream wants to do: both ends know it.
struct Plan {
  enum class Reading : std::uint8_t { kEager, kSlow, kStuck };
  enum class Leaving : std::uint8_t { kAfterAll, kAtOnce, kAborts, kStays };
  std::uint64_t bytes = 0;
  Reading reading = Reading::kEager;
  bool is_stuck_for_good = false;  ///< Where reading is kStuck: it never goes on.
  Leaving leaving = Leaving::kAfterAll;
  Duration abort_after = {};
};
Plan plan_of(const Settings& settings, std::size_t connection, std::int64_t stream, bool is_opener);

}  // namespace hawser::quicsim
