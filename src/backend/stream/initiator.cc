#include "backend/stream/initiator.h"

#include "backend/stream/chunk_frames.h"

namespace hawser::backend::stream {

bool Initiator::refuse(std::string_view bound) {
  last_full_ = bound;
  return false;
}

bool Initiator::take(const Chunk& chunk, Outlet& control) {
  if (!is_well_formed(chunk)) {
    reports_.tell_malformed(chunk);
    return true;
  }
  const bool read = chunk.op == Operation::kRead;
  const bool large = chunk.bytes > small_max_;
  const bool bulk = !read && large;
  auto& target = *static_cast<RemoteBinding*>(chunk.target);
  // Its late bytes would land on newer ones.
  if (!read && target.strays > 0) return refuse("an earlier write that ended without the peer's answer may still land");
  if (const std::string_view bound = slots_.lacks_room(chunk, large); !bound.empty()) return refuse(bound);
  if (!bulk && !control.has_room(kFrameRoom)) return refuse("256 KiB that the first connection has not sent");
  ChunkSlot* slot = slots_.add(chunk);
  if (slot == nullptr) return refuse("1024 chunks in flight");
  RemoteBindings::use(target);
  last_full_ = {};
  if (bulk) {
    slot->state = State::kQueued;
    bulk_.push(slots_.number_of(*slot));
  } else if (read) {
    frame_read(*slot, slots_.tag_of(*slot), control);
  } else {
    frame_write(*slot, slots_.tag_of(*slot), 0, control);
  }
  return true;
}

void Initiator::frame_bulk(unsigned stream, Outlet& outlet) {
  ChunkSlot& slot = slots_.at(bulk_.pop());
  frame_write(slot, slots_.tag_of(slot), stream, outlet);
}

bool Initiator::on_ack(std::uint32_t tag, wire::Outcome outcome, std::span<Outlet> outlets) {
  ChunkSlot* slot = slots_.find(tag);
  if (slot == nullptr || (slot->state != State::kFramed && slot->state != State::kEnded)) return false;
  const Outlet& outlet = outlets[slot->stream];
  const bool is_void_answer = outcome == wire::Outcome::kVoidedClean || outcome == wire::Outcome::kVoidedMidway;
  if (is_void_answer) return cancelled_.on_answer(*slot, outcome, outlet);
  if (outlet.sent_end() < slot->end || slot->landing != ChunkSlot::kNowhere) return false;
  if (slot->op == Operation::kRead && outcome == wire::Outcome::kOk) return false;
  if (outcome == wire::Outcome::kVoid && !slot->voided && !slot->void_said) return false;
  slot->outcome = outcome;
  if (slot->state == State::kEnded) {
    CancelledWrites::note_landed(*slot);
    free_slot(*slot);
  } else if (slot->op == Operation::kWrite && outlet.released_end() < slot->end) {
    slot->state = State::kAcked;  // Its memory is still the stream's.
    ++acked_;
  } else {
    tell(*slot, reports_.status_of(*slot));
    free_slot(*slot);
  }
  return true;
}

void Initiator::on_released(std::span<Outlet> outlets) {
  if (acked_ == 0 && cancelled_.count() == 0) return;
  for (ChunkSlot& slot : slots_.all()) {
    if (CancelledWrites::is_settled(slot, outlets[slot.stream])) {
      cancelled_.end(slot);
      continue;
    }
    if (slot.state != State::kAcked || outlets[slot.stream].released_end() < slot.end) continue;
    --acked_;
    tell(slot, reports_.status_of(slot));
    free_slot(slot);
  }
}

bool Initiator::on_data_end(std::uint32_t tag, const Inlet& inlet) {
  ChunkSlot* slot = slots_.find(tag);
  HAWSER_ASSERT(slot != nullptr && slot->in_frame, "data of a read that is not there ended");
  const ReadData::End end = ReadData::end(*slot, inlet);
  if (end == ReadData::End::kOver) end_read(*slot);
  return end != ReadData::End::kSenseless;
}

void Initiator::end_read(ChunkSlot& slot) {
  if (slot.state == State::kFramed) {
    const bool ok = slot.outcome == wire::Outcome::kOk;
    if (slot.covered && ok) reads_.note_landed(slot);
    // What came before the peer gave up is in place, filler for the rest of a frame too.
    const bool partly = !ok && slot.received > 0;
    tell(slot, partly ? reports_.status_of(slot).with_buffer(BufferState::kPartlyWritten) : reports_.status_of(slot));
  }
  free_slot(slot);
}

void Initiator::stage_notes(unsigned stream, Outlet& outlet) {
  if (!outlet.has_room(kFrameRoom)) return;
  bindings_.stage_unbinds(stream, outlet);
  if (stream != 0) return;
  cancelled_.stage_questions(outlet);
  reads_.stage_landed(outlet);
}

void Initiator::tell(ChunkSlot& slot, Status status) {
  cancelled_.note_told(slot);
  reports_.tell(slot, std::move(status));
}

void Initiator::free_slot(ChunkSlot& slot) {
  RemoteBinding& binding = *slot.target;
  slots_.remove(slot);
  bindings_.release(binding);
}

void Initiator::cancel(std::uint64_t transfer, std::span<Outlet> outlets, std::span<Inlet> inlets) {
  if (!bulk_.empty()) {
    bulk_.filter([&](std::uint32_t number) { return slots_.at(number).transfer != transfer; });
  }
  for (ChunkSlot& slot : slots_.all()) {
    if (slot.state == State::kFree || slot.transfer != transfer || slot.cancelled) continue;
    cancel_slot(slot, outlets, inlets);
  }
}

void Initiator::cancel_slot(ChunkSlot& slot, std::span<Outlet> outlets, std::span<Inlet> inlets) {
  if (slot.state == State::kQueued || (slot.state == State::kFramed && withdraw_frame(slot, outlets[slot.stream]))) {
    tell(slot, reports_.cancelled_unsent());
    free_slot(slot);
    return;
  }
  slot.cancelled = true;
  if (slot.op == Operation::kWrite) {
    cancelled_.add(slot, outlets[slot.stream]);
    return;
  }
  slot.state = State::kEnded;  // Keeps its tag until the data came, which goes nowhere.
  tell(slot, reports_.cancelled_read(ReadData::cancel(slot, inlets)));
}

void Initiator::fail(const Status& why, std::span<Outlet> outlets) {
  bulk_.clear();
  cancelled_.forget_questions();
  for (ChunkSlot& slot : slots_.all()) {
    if (slot.state == State::kFree) continue;
    if (slot.state != State::kEnded) tell(slot, reports_.lost(slot, why, outlets[slot.stream]));
    CancelledWrites::note_landed(slot);
    free_slot(slot);
  }
}

}  // namespace hawser::backend::stream
