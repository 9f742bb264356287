#pragma once

// What a storm is like, and how memory is shared out in it.

#include <cstdint>
#include <string>
#include <vector>

#include <hawser/time.h>

namespace hawser::storm {

struct StormOptions {
  std::string backends = "shm,tcp";  ///< Of each agent, in order of preference.
  bool allocated = false;            ///< Memory comes from agents, else from the heap.
  bool adopts = false;               ///< That of the heap is adopted.
  std::size_t workers = 3;
  std::uint64_t seed = 1;
  Duration time = std::chrono::seconds(5);
  bool chaos = true;      ///< Processes are killed and stopped.
  bool strangers = true;  ///< Connect over tcp, prove nothing and stay.
  /// Whatever waits for something to end gives it so much more than was promised: machines are busy.
  Duration slack = std::chrono::seconds(3 * HAWSER_TIMEOUT_SCALE);
};

inline constexpr std::size_t kPlayers = 2;  ///< Threads of a worker that use its agent.
inline constexpr std::size_t kSlots = 20;   ///< Of a player at each peer.
inline constexpr std::size_t kLargeSlots = 2;
inline constexpr std::size_t kSmallSize = 6000, kLargeSize = 700'000;

inline std::size_t slot_size(std::size_t slot) { return slot < kLargeSlots ? kLargeSize : kSmallSize; }
inline std::size_t slot_offset(std::size_t slot) {
  const std::size_t large = std::min(slot, kLargeSlots);
  return large * kLargeSize + (slot - large) * kSmallSize;
}
inline constexpr std::size_t kSliceSize = kLargeSlots * kLargeSize + (kSlots - kLargeSlots) * kSmallSize;
/// A region that all write to: slices, and a word that all add to.
inline std::size_t word_offset(std::size_t workers) { return workers * kPlayers * kSliceSize; }
inline std::size_t region_size(std::size_t workers) { return word_offset(workers) + sizeof(std::uint64_t); }
/// Where each player's messages come.
inline std::uint32_t channel_of(std::size_t player) { return static_cast<std::uint32_t>(20 + player); }
/// Where one player of one worker writes in a region that all write to.
inline std::size_t slice_offset(std::size_t worker, std::size_t player) {
  return (worker * kPlayers + player) * kSliceSize;
}

}  // namespace hawser::storm
