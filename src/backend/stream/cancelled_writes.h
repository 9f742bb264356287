#pragma once

// CancelledWrites: writes that were cancelled once they had begun. Each ends when the peer says that nothing of it
// lands any more, or, where the peer does not answer, after kAnswerPeriod and as unknown.
//
// A frame that has begun is completed: with filler, and its trailer says that it is void. Where the write may have
// landed before and been counted (Chunk::again), filler would tear bytes that the peer was told of: such a write goes
// on with its own bytes, from a copy. That is one frame a stream at most, since of the others nothing was sent.
//
// Thread rule: one thread. Lifetime: slots and reports outlive it.

#include <cstdint>
#include <span>

#include "backend/stream/chunk_reports.h"
#include "backend/stream/chunk_slots.h"
#include "backend/stream/outlet.h"
#include "backend/stream/ring.h"
#include "wire/stream_frames.h"

namespace hawser::backend::stream {

class CancelledWrites {
 public:
  CancelledWrites(ChunkSlots& slots, ChunkReports& reports) : slots_(slots), reports_(reports) {}

  /// The write is cancelled; its frame can not be taken back. `outlet` is its stream.
  void add(ChunkSlot& slot, Outlet& outlet);
  /// Those whose end was not told.
  std::uint32_t count() const { return count_; }

  /// The peer lets nothing of it land from now on. Its own acknowledgement, which frees its tag, is still to come.
  /// False: nobody asked, or it was answered.
  bool on_answer(ChunkSlot& slot, wire::Outcome outcome, const Outlet& outlet);
  /// Answered, and its stream refers to its memory no more: `end` it.
  static bool is_settled(const ChunkSlot& slot, const Outlet& outlet) {
    return slot.state == ChunkSlot::State::kFramed && slot.answered && outlet.released_total() >= slot.held_until;
  }
  void end(ChunkSlot& slot);
  /// Its end is told by another than this: by its own acknowledgement, or with the path.
  void note_told(const ChunkSlot& slot) {
    if (slot.cancelled && slot.op == Operation::kWrite) --count_;
  }
  /// Ended here without an answer before, and cannot land any more.
  static void note_landed(ChunkSlot& slot);

  /// Begins another period of waiting. False: a stream refers to the memory of some for too long.
  bool next_period(std::span<const Outlet> outlets);

  /// VOID frames that wait for stream 0.
  bool has_questions() const { return !questions_.empty(); }
  void stage_questions(Outlet& control);
  /// The path is over.
  void forget_questions() { questions_.clear(); }

 private:
  void end_unanswered(ChunkSlot& slot);

  ChunkSlots& slots_;
  ChunkReports& reports_;
  Ring<std::uint32_t> questions_;  ///< Tags; of writes that may have ended since.
  std::uint32_t count_ = 0, period_ = 0;
};

}  // namespace hawser::backend::stream
