#pragma once

// ChunkSlots: the chunks of one path from when the initiator takes them until both ends are done with them, their tags
// on the wire, and the bounds on how many there may be.
//
// A tag is a slot's number below and its generation above, so that an answer to a chunk long gone is recognised.
//
// Thread rule: one thread. Lifetime: a slot's address is good until the next `add`.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "backend/backend.h"
#include "backend/stream/chunk_limits.h"
#include "backend/stream/outlet.h"
#include "backend/stream/remote_bindings.h"
#include "wire/stream_frames.h"

namespace hawser::backend::stream {

/// One chunk that this end asks for.
struct ChunkSlot {
  enum class State : std::uint8_t { kFree, kQueued, kFramed, kAcked, kEnded };
  static constexpr std::uint8_t kNowhere = 0xff;

  State state = State::kFree;
  Operation op = Operation::kWrite;
  bool covered = false;
  bool durable = false;
  bool cancelled = false;
  bool again = false;      ///< See Chunk::again.
  bool copied = false;     ///< Payload is staged: the caller's memory is not referred to.
  bool void_said = false;  ///< The peer was asked to let nothing of it land any more.
  bool voided = false;     ///< Its trailer says that it is void.
  bool has_begun = false;  ///< And some of its own bytes went before the filler.
  bool answered = false;   ///< Cancelled, and nothing of it lands any more.
  bool stray = false;      ///< Ended here, without an answer.
  bool in_frame = false;   ///< A read: a DATA frame of it is coming.
  wire::Outcome outcome = wire::Outcome::kOk;
  std::uint8_t stream = 0;
  std::uint8_t landing = kNowhere;  ///< Stream on which a read's data is coming.
  std::uint16_t generation = 0;
  std::uint32_t cancel_period = 0;
  std::uint32_t index = 0;  ///< The chunk's.
  std::uint64_t cookie = 0, transfer = 0, bytes = 0;
  std::span<const Piece> pieces;
  RemoteBinding* target = nullptr;
  std::byte* head = nullptr;  ///< Its frame, while that is in the outlet.
  std::uint64_t begin = 0, end = 0;
  std::uint64_t frame = 0;       ///< Its number on the stream.
  std::uint64_t received = 0;    ///< Bytes of a read that came,
  PieceCursor place;             ///< and where the next belong.
  std::uint64_t held_until = 0;  ///< Cancelled: the stream refers to its memory until so many bytes are released.
};

class ChunkSlots {
 public:
  /// The bound on bulk, reads or files that keeps this chunk out; empty when it may be added. `large`: it is no small
  /// one, and leaves room to those. However much bulk there is, a small chunk is taken at once.
  std::string_view lacks_room(const Chunk& chunk, bool large) const;
  /// Null: there are kChunksMax. The slot is free in name only until the caller gives it a state.
  ChunkSlot* add(const Chunk& chunk);
  void remove(ChunkSlot& slot);

  /// Null: no chunk has that tag (any more).
  ChunkSlot* find(std::uint32_t tag);
  std::uint32_t tag_of(const ChunkSlot& slot) const;
  std::uint32_t number_of(const ChunkSlot& slot) const { return static_cast<std::uint32_t>(&slot - slots_.data()); }
  ChunkSlot& at(std::uint32_t number) { return slots_[number]; }
  /// All that ever were in use at once, free ones among them.
  std::span<ChunkSlot> all() { return slots_; }

  std::uint32_t count() const { return count_; }
  std::uint64_t bytes() const { return bytes_; }

 private:
  std::vector<ChunkSlot> slots_;  ///< Grows to kChunksMax.
  std::vector<std::uint32_t> free_;
  std::uint32_t count_ = 0, reads_ = 0;
  std::uint64_t bytes_ = 0, file_bytes_ = 0;
};

}  // namespace hawser::backend::stream
