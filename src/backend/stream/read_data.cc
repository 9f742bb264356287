#include "backend/stream/read_data.h"

#include <algorithm>

#include "backend/stream/frame_writer.h"
#include "base/planted.h"

namespace hawser::backend::stream {

// The frames of one answer come in order, on one stream, and only the last says so.
bool ReadData::begin(ChunkSlot* slot, unsigned stream, Inlet& inlet, std::span<const Outlet> outlets) {
  if (slot == nullptr || slot->op != Operation::kRead || slot->in_frame) return false;
  if (slot->landing != ChunkSlot::kNowhere && slot->landing != stream) return false;
  if (slot->state != ChunkSlot::State::kFramed && slot->state != ChunkSlot::State::kEnded) return false;
  // An answer to what was not asked yet: the request could still be withdrawn, and the bytes would land all the same.
  if (outlets[slot->stream].sent_end() < slot->end) return false;
  const std::uint32_t size = inlet.head().payload_size;
  const bool last = (inlet.head().flags & wire::kFlagLast) != 0;
  if (size > slot->bytes - slot->received || (size == 0 && !last)) return false;
  slot->landing = static_cast<std::uint8_t>(stream);
  slot->in_frame = true;
  if (slot->state == ChunkSlot::State::kFramed && size > 0) {
    inlet.land(slot->pieces.subspan(slot->place.piece), slot->place.offset);
  }
  return true;
}

ReadData::End ReadData::end(ChunkSlot& slot, const Inlet& inlet) {
  slot.in_frame = false;
  slot.received += inlet.head().payload_size;
  // What was cancelled has its memory back, and its list of pieces with it.
  if (slot.state == ChunkSlot::State::kFramed) slot.place.advance(slot.pieces, inlet.head().payload_size);
  const auto outcome = static_cast<wire::Outcome>(inlet.trailer());
  const bool last = (inlet.head().flags & wire::kFlagLast) != 0;
  if (outcome == wire::Outcome::kOk && last != (slot.received == slot.bytes)) return End::kSenseless;
  if (outcome == wire::Outcome::kOk && !last) return End::kGoesOn;
  slot.outcome = outcome;
  return End::kOver;
}

bool ReadData::cancel(const ChunkSlot& slot, std::span<Inlet> inlets) {
  if (!slot.in_frame) return slot.received > 0;
  Inlet& inlet = inlets[slot.landing];
  const bool landed = slot.received > 0 || inlet.landed() > 0;
  if (!base::planted(base::Planted::kCancelledReadLands)) inlet.drop();
  return landed;
}

void ReadData::stage_landed(Outlet& control) {
  while (!landed_.empty() && control.has_room(kFrameRoom)) {
    const std::size_t count = std::min(landed_.count(), wire::kLandedMax);
    FrameWriter frame(control, {.type = wire::FrameType::kLanded, .meta_size = static_cast<std::uint16_t>(count * 12)});
    for (std::size_t i = 0; i < count; ++i) {
      const wire::Landed landed = landed_.pop();
      frame.meta().u64(landed.transfer);
      frame.meta().u32(landed.chunk);
    }
  }
}

}  // namespace hawser::backend::stream
