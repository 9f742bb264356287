#include "backend/stream/cancelled_writes.h"

#include <utility>

#include "backend/stream/chunk_limits.h"
#include "backend/stream/frame_writer.h"

namespace hawser::backend::stream {

void CancelledWrites::add(ChunkSlot& slot, Outlet& outlet) {
  ++count_;
  slot.cancel_period = period_;
  if (slot.copied || slot.state == ChunkSlot::State::kAcked) return;
  if (slot.again) {
    slot.copied = true;
    if (!outlet.keep_frame(slot.end)) slot.held_until = outlet.sent_total();
    return;
  }
  const Outlet::Stopped stopped = outlet.stop_frame(slot.end, wire::Outcome::kVoid);
  slot.voided = stopped.voided;
  slot.has_begun = stopped.before > 0;
  if (!stopped.quiet) slot.held_until = outlet.sent_total();
  // On the first stream the peer would hear it behind the write itself.
  if (slot.stream != 0) questions_.push(slots_.tag_of(slot));
}

bool CancelledWrites::on_answer(ChunkSlot& slot, wire::Outcome outcome, const Outlet& outlet) {
  if (!slot.void_said || slot.answered) return false;
  slot.answered = true;
  slot.outcome = outcome;
  if (slot.state == ChunkSlot::State::kEnded) {
    note_landed(slot);
  } else if (outlet.released_total() >= slot.held_until) {
    end(slot);
  }
  return true;
}

void CancelledWrites::end(ChunkSlot& slot) {
  note_told(slot);
  reports_.tell(slot, reports_.status_of(slot));
  slot.state = ChunkSlot::State::kEnded;
}

void CancelledWrites::note_landed(ChunkSlot& slot) {
  if (std::exchange(slot.stray, false)) --slot.target->strays;
}

bool CancelledWrites::next_period(std::span<const Outlet> outlets) {
  bool punctual = true;
  for (ChunkSlot& slot : slots_.all()) {
    const bool waits = slot.state == ChunkSlot::State::kFramed || slot.state == ChunkSlot::State::kAcked;
    if (!waits || !slot.cancelled || slot.cancel_period == period_) continue;
    const bool held = slot.state == ChunkSlot::State::kAcked || outlets[slot.stream].released_total() < slot.held_until;
    if (held) {
      punctual = punctual && period_ - slot.cancel_period < kHeldPeriods;
    } else {
      end_unanswered(slot);
    }
  }
  ++period_;
  return punctual;
}

void CancelledWrites::end_unanswered(ChunkSlot& slot) {
  slot.stray = true;
  ++slot.target->strays;
  slot.state = ChunkSlot::State::kEnded;
  --count_;
  reports_.tell_unanswered(slot);
}

void CancelledWrites::stage_questions(Outlet& control) {
  while (!questions_.empty() && control.has_room(kFrameRoom)) {
    const std::uint32_t tag = questions_.pop();
    ChunkSlot* slot = slots_.find(tag);
    const bool asks = slot != nullptr && (slot->state == ChunkSlot::State::kFramed || slot->stray);
    if (!asks || slot->void_said) continue;  // Answered meanwhile.
    slot->void_said = true;
    FrameWriter frame(control, {.type = wire::FrameType::kVoid, .meta_size = wire::kVoidSize});
    wire::encode_void(frame.meta(), {.tag = tag, .stream = slot->stream, .frame = slot->frame});
  }
}

}  // namespace hawser::backend::stream
