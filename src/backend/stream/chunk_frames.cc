#include "backend/stream/chunk_frames.h"

#include "backend/stream/frame_writer.h"

namespace hawser::backend::stream {
namespace {

std::uint8_t write_flags(const ChunkSlot& slot) {
  return static_cast<std::uint8_t>((slot.covered ? wire::kFlagCovered : 0) | (slot.durable ? wire::kFlagDurable : 0) |
                                   (slot.copied ? 0 : wire::kFlagTrailer));
}

}  // namespace

bool is_well_formed(const Chunk& chunk) {
  if (chunk.pieces.empty() || chunk.pieces.size() > wire::kPiecesMax || chunk.bytes > wire::kPayloadMax) return false;
  std::uint64_t sum = 0;
  for (const Piece& piece : chunk.pieces) {
    if (piece.size > wire::kPayloadMax) return false;
    sum += piece.size;
  }
  return sum == chunk.bytes && chunk.target != nullptr;
}

void frame_write(ChunkSlot& slot, std::uint32_t tag, unsigned stream, Outlet& outlet) {
  RemoteBindings::announce(*slot.target, stream, outlet);
  bool equal = true;
  const std::size_t meta = wire::kChunkHeadSize + wire::pieces_size(slot.pieces, &equal);
  slot.copied = slot.bytes <= kInlineMax;
  slot.state = ChunkSlot::State::kFramed;
  slot.stream = static_cast<std::uint8_t>(stream);
  FrameWriter frame(outlet,
                    {.type = wire::FrameType::kWrite,
                     .flags = write_flags(slot),
                     .meta_size = static_cast<std::uint16_t>(meta),
                     .payload_size = static_cast<std::uint32_t>(slot.bytes)},
                    slot.copied);
  wire::encode_chunk(frame.meta(), {slot.transfer, slot.index, tag, slot.target->bind.binding});
  wire::encode_pieces(frame.meta(), slot.pieces, equal);
  slot.head = frame.head();
  slot.begin = frame.begin();
  slot.frame = frame.number();
  if (slot.copied) {
    frame.inline_payload(slot.pieces);
    slot.end =
        outlet.end() - (wire::padded(slot.bytes) - slot.bytes);  // The peer acknowledges before the padding came.
  } else {
    slot.end = frame.payload(slot.pieces, {}, kNoOwner);
  }
}

void frame_read(ChunkSlot& slot, std::uint32_t tag, Outlet& control) {
  RemoteBindings::announce(*slot.target, 0, control);
  bool equal = true;
  const std::size_t meta = wire::kChunkHeadSize + 4 + wire::pieces_size(slot.pieces, &equal);
  slot.state = ChunkSlot::State::kFramed;
  FrameWriter frame(control, {.type = wire::FrameType::kRead,
                              .flags = slot.covered ? wire::kFlagCovered : std::uint8_t{0},
                              .meta_size = static_cast<std::uint16_t>(meta)});
  wire::encode_chunk(frame.meta(), {slot.transfer, slot.index, tag, slot.target->bind.binding});
  frame.meta().u32(static_cast<std::uint32_t>(slot.bytes));
  wire::encode_pieces(frame.meta(), slot.pieces, equal);
  slot.head = frame.head();
  slot.begin = frame.begin();
  slot.end = control.end();
}

bool withdraw_frame(ChunkSlot& slot, Outlet& outlet) {
  if (outlet.sent_end() > slot.begin) return false;
  if (slot.op == Operation::kWrite && !slot.copied) return outlet.stop_frame(slot.end, wire::Outcome::kVoid).withdrawn;
  const std::uint64_t following = slot.op == Operation::kRead ? 0 : wire::padded(slot.bytes);
  wire::make_skip(slot.head, static_cast<std::uint32_t>(following));
  return true;
}

}  // namespace hawser::backend::stream
