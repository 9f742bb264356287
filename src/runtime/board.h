#pragma once

// Board: one rank's part of what the ranks of a world write for one another in mapped memory: its own board, which it
// alone writes, and its looks at those of the others.
//
//   line 0      finished:u64          so many turns have ended at its owner
//   line 1      asks:u64, world:u64, core:u64
//                                     not 0: the owner sleeps, and the others ring when they write something; whose
//                                     board it is; 1 + the core on which the owner was when it began a turn, or waited.
//                                     The others look at this line while they wait: it changes rarely
//   slots       kBoardSlots of these: sequence:u64, number:u64, digest:u64, bytes:u64, the bytes themselves
//
// The collectives that go by boards are turns 0, 1, 2 ... of their world, the same at all ranks. A turn has the slot
// `turn % kBoardSlots` of each board. The owner fills it and then stores `turn + 1` as its sequence (release). A rank
// that loads this value (acquire) sees the rest. The owner fills the slot again once `finished` of all boards says that
// the turn which had the slot before has ended there.
//
// No wake is lost. A writer stores the sequence or `finished`, and then loads the others' `asks`. A rank that is about
// to sleep stores `asks`, and then loads what it waits for. All four are sequentially consistent, so they have one
// order: if the sleeper's load misses the writer's store, the sleeper's store of `asks` came before the writer's load
// of it, and the writer rings. Each sleep has another value of `asks`, and each other rank rings once for each value: a
// rank that was woken for less than it waits for asks anew before it sleeps again.
//
// Thread rule: one thread at a time. Another rank may have written anything on its board: this class uses none of it as
// a size or a place before it has checked it.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "schedule/collective.h"

namespace hawser::runtime {

inline constexpr std::uint32_t kBoardSlots = 4;
/// Two lines of the cache: processors fetch them in pairs.
inline constexpr std::size_t kBoardLine = 128;
inline constexpr std::size_t kBoardHead = 32;  ///< Of a slot, before its bytes: small ones are in the same line.
inline constexpr std::size_t kBoardSlotBytes =
    (kBoardHead + schedule::kBoardBytesMax + kBoardLine - 1) / kBoardLine * kBoardLine;
inline constexpr std::size_t kBoardBytes = 2 * kBoardLine + kBoardSlots * kBoardSlotBytes;

class Board {
 public:
  /// Where that rank's board lies here, kBoardBytes of it. Null: it cannot be read any more.
  using Others = std::function<const std::byte*(std::uint32_t rank)>;
  enum class Sight : std::uint8_t {
    kNotYet,
    kThere,
    kGone,  ///< The path to that board has ended, or its owner has closed it.
    kBad,   ///< What stands there no rank of this world can have written.
  };
  /// What a rank wrote for a turn.
  struct Entry {
    std::uint64_t number = 0, digest = 0;
    std::span<const std::byte> bytes;
  };

  /// `own`: kBoardBytes, aligned to a line; all 0 when made. Both outlive the board.
  Board(std::uint64_t world, std::uint32_t rank, std::uint32_t size, std::span<std::byte> own, Others others);

  /// Makes of a board that nobody writes any more memory for another one. Who still looks at it sees that it is gone.
  static void wipe(std::span<std::byte> memory);

  std::uint32_t size() const { return size_; }
  /// Whether this rank may write for the turn: all others have read what is in the slot.
  bool is_free(std::uint64_t turn) const;
  /// That other rank has read what is in the slot of the turn.
  bool has_freed(std::uint32_t rank, std::uint64_t turn) const;
  /// The turn, and all before it, have ended there.
  bool has_finished(std::uint32_t rank, std::uint64_t turn) const;
  void write(std::uint64_t turn, const Entry& entry);
  /// `write` in two steps. The caller first fills the place that `room` gives, in a turn that is free. `publish` then
  /// shows the first `bytes` of it to the others.
  std::span<std::byte, schedule::kBoardBytesMax> room(std::uint64_t turn);
  void publish(std::uint64_t turn, std::uint64_t number, std::uint64_t digest, std::uint64_t bytes);
  /// What the rank, or this one, wrote for the turn. `entry` is set where it is there.
  Sight look(std::uint32_t rank, std::uint64_t turn, Entry* entry) const;
  /// By rank: room for what `look` gave for the turn, until this rank has finished it.
  std::span<std::span<const std::byte>> seen(std::uint64_t turn) {
    return std::span(seen_).subspan(turn % kBoardSlots * size_, size_);
  }
  /// See Sight::kGone.
  bool is_gone(std::uint32_t rank) const;
  /// What `look` gave was there all the time until now.
  bool is_still_there(std::uint32_t rank, std::uint64_t turn) const;
  /// This rank is on that core of the host. Others that wait for it on the same core let it run.
  void stand_on(int core);
  /// The other rank was on that core when it told last.
  bool stood_on(std::uint32_t rank, int core) const;
  /// This rank reads nothing of the turn, and of those that follow it, any more. In any order.
  void finish(std::uint64_t turn, std::uint64_t count = 1);

  /// From now on the others ring. What this rank waits for is to be looked at once more afterwards.
  void ask();
  void stop_asking();
  /// Ranks that ask and were not rung for that yet. To be rung now.
  std::vector<std::uint32_t> to_ring();

 private:
  const std::byte* board_of(std::uint32_t rank) const;

  const std::uint64_t world_;
  const std::uint32_t rank_, size_;
  const std::span<std::byte> own_;
  const Others others_;
  int core_ = -1;            ///< As told last.
  std::uint64_t asked_ = 0;  ///< How often.
  struct Turns {
    std::uint64_t first = 0, end = 0;
  };
  std::uint64_t finished_ = 0;                         ///< All turns before it have ended,
  std::vector<Turns> finished_ahead_;                  ///< and these.
  std::vector<std::uint64_t> rung_;                    ///< By rank: its last `asks` that was rung for.
  std::vector<std::span<const std::byte>> seen_;       ///< For each slot, by rank. Calls take no memory of their own.
  mutable std::vector<std::uint64_t> known_finished_;  ///< By rank: `finished` as seen last.
};

}  // namespace hawser::runtime
