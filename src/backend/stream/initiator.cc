#include "backend/stream/initiator.h"

#include <algorithm>

#include "backend/stream/frame_writer.h"

namespace hawser::backend::stream {
namespace {

// A tag is a slot's number below and its generation above, so that an answer to a chunk long gone is recognised.
constexpr std::uint32_t kSlotBits = 10;
static_assert(kChunksMax == 1u << kSlotBits);

bool well_formed(const Chunk& chunk) {
  if (chunk.pieces.empty() || chunk.pieces.size() > wire::kPiecesMax || chunk.bytes > wire::kPayloadMax) return false;
  std::uint64_t sum = 0;
  for (const Piece& piece : chunk.pieces) {
    if (piece.size > wire::kPayloadMax) return false;
    sum += piece.size;
  }
  return sum == chunk.bytes && chunk.target != nullptr;
}

}  // namespace

Binding* Initiator::bind(const RemoteRegionRef& region) {
  auto& binding = bindings_[{region.index, region.generation}];
  if (binding == nullptr) {
    binding = std::make_unique<RemoteBinding>();
    binding->bind = {
        .binding = next_binding_++, .index = region.index, .generation = region.generation, .key = region.key};
    binding->in_file = region.device.kind == DeviceKind::kFile;
  }
  return binding.get();
}

void Initiator::unbind(std::uint32_t index, std::uint32_t generation) {
  const auto found = bindings_.find({index, generation});
  if (found == bindings_.end()) return;
  std::unique_ptr<RemoteBinding> binding = std::move(found->second);
  bindings_.erase(found);
  binding->gone = true;
  retired_.push_back(std::move(binding));
  if (retired_.back()->uses == 0) drop_binding(*retired_.back());
}

void Initiator::drop_binding(RemoteBinding& binding) {
  if (binding.announced != 0) unbinds_.emplace_back(binding.bind.binding, binding.announced);
  std::erase_if(retired_, [&binding](const auto& retired) { return retired.get() == &binding; });
}

std::uint32_t Initiator::tag_of(const Slot& slot) const {
  return static_cast<std::uint32_t>(&slot - slots_.data()) | std::uint32_t{slot.generation} << kSlotBits;
}

Initiator::Slot* Initiator::find(std::uint32_t tag) {
  const std::uint32_t number = tag & (kChunksMax - 1);
  if (number >= slots_.size()) return nullptr;
  Slot& slot = slots_[number];
  return slot.state != State::kFree && slot.generation == tag >> kSlotBits ? &slot : nullptr;
}

Initiator::Slot* Initiator::new_slot(const Chunk& chunk) {
  if (free_.empty()) {
    if (slots_.size() == kChunksMax) return nullptr;
    free_.push_back(static_cast<std::uint32_t>(slots_.size()));
    slots_.emplace_back();
  }
  Slot& slot = slots_[free_.back()];
  free_.pop_back();
  const std::uint16_t generation = slot.generation;
  slot = Slot{.op = chunk.op,
              .covered = chunk.covered,
              .durable = chunk.durable,
              .again = chunk.again,
              .generation = generation,
              .index = chunk.index,
              .cookie = chunk.cookie,
              .transfer = chunk.transfer,
              .bytes = chunk.bytes,
              .pieces = chunk.pieces,
              .target = static_cast<RemoteBinding*>(chunk.target)};
  ++slot.target->uses;
  ++in_flight_;
  bytes_ += slot.bytes;
  if (slot.target->in_file) file_bytes_ += slot.bytes;
  if (slot.op == Operation::kRead) ++reads_;
  return &slot;
}

// However much bulk there is, a small chunk is taken at once: its latency does not depend on other transfers.
bool Initiator::has_room_for_bulk(const Chunk& chunk) const {
  if (in_flight_ >= kChunksMax - kSmallChunks) return false;
  if (chunk.op == Operation::kRead && reads_ >= kReadsMax - kSmallReads) return false;
  return bytes_ == 0 || bytes_ + chunk.bytes <= kBytesMax;
}

// The target stages it in memory of its own.
bool Initiator::has_room_for_file(const Chunk& chunk) const {
  return file_bytes_ == 0 || file_bytes_ + chunk.bytes <= kFileBytesMax;
}

bool Initiator::refuse(std::string_view bound) {
  last_full_ = bound;
  return false;
}

bool Initiator::take(const Chunk& chunk, Outlet& control) {
  if (!well_formed(chunk)) {
    events_.chunk_done(path_, chunk.cookie,
                       Status(Code::kInvalid, "a chunk has 1 to 256 pieces that add up to at most 16 MiB")
                           .with_buffer(BufferState::kUntouched));
    return true;
  }
  const bool read = chunk.op == Operation::kRead;
  const bool large = chunk.bytes > options_.small_max;
  const bool bulk = !read && large;
  const auto& target = *static_cast<const RemoteBinding*>(chunk.target);
  // Its late bytes would land on newer ones.
  if (!read && target.strays > 0) return refuse("an earlier write that ended without the peer's answer may still land");
  if (target.in_file && !has_room_for_file(chunk)) return refuse("16 MiB in flight to files");
  if (large && !has_room_for_bulk(chunk)) return refuse("64 MiB of bulk, or its share of 1024 chunks and 64 reads");
  if (read && reads_ == kReadsMax) return refuse("64 reads in flight");
  if (!bulk && !control.has_room(kFrameRoom)) return refuse("256 KiB that the first connection has not sent");
  Slot* slot = new_slot(chunk);
  if (slot == nullptr) return refuse("1024 chunks in flight");
  last_full_ = {};
  if (bulk) {
    slot->state = State::kQueued;
    bulk_.push(static_cast<std::uint32_t>(slot - slots_.data()));
  } else if (read) {
    frame_read(*slot, control);
  } else {
    frame_write(*slot, 0, control);
  }
  return true;
}

void Initiator::frame_bulk(unsigned stream, Outlet& outlet) { frame_write(slots_[bulk_.pop()], stream, outlet); }

void Initiator::announce(RemoteBinding& target, unsigned stream, Outlet& outlet) {
  const auto bit = static_cast<std::uint8_t>(1u << stream);
  if ((target.announced & bit) != 0) return;
  target.announced |= bit;
  FrameWriter frame(outlet, {.type = wire::FrameType::kBind, .meta_size = 28});
  wire::encode_bind(frame.meta(), target.bind);
}

std::uint8_t Initiator::flags_of(const Slot& slot) {
  return static_cast<std::uint8_t>((slot.covered ? wire::kFlagCovered : 0) | (slot.durable ? wire::kFlagDurable : 0) |
                                   (slot.copied ? 0 : wire::kFlagTrailer));
}

void Initiator::frame_write(Slot& slot, unsigned stream, Outlet& outlet) {
  announce(*slot.target, stream, outlet);
  bool equal = true;
  const std::size_t meta = wire::kChunkHeadSize + wire::pieces_size(slot.pieces, &equal);
  slot.copied = slot.bytes <= kInlineMax;
  slot.state = State::kFramed;
  slot.stream = static_cast<std::uint8_t>(stream);
  FrameWriter frame(outlet,
                    {.type = wire::FrameType::kWrite,
                     .flags = flags_of(slot),
                     .meta_size = static_cast<std::uint16_t>(meta),
                     .payload_size = static_cast<std::uint32_t>(slot.bytes)},
                    slot.copied);
  wire::encode_chunk(frame.meta(), {slot.transfer, slot.index, tag_of(slot), slot.target->bind.binding});
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

void Initiator::frame_read(Slot& slot, Outlet& outlet) {
  announce(*slot.target, 0, outlet);
  bool equal = true;
  const std::size_t meta = wire::kChunkHeadSize + 4 + wire::pieces_size(slot.pieces, &equal);
  slot.state = State::kFramed;
  FrameWriter frame(outlet, {.type = wire::FrameType::kRead,
                             .flags = slot.covered ? wire::kFlagCovered : std::uint8_t{0},
                             .meta_size = static_cast<std::uint16_t>(meta)});
  wire::encode_chunk(frame.meta(), {slot.transfer, slot.index, tag_of(slot), slot.target->bind.binding});
  frame.meta().u32(static_cast<std::uint32_t>(slot.bytes));
  wire::encode_pieces(frame.meta(), slot.pieces, equal);
  slot.head = frame.head();
  slot.begin = frame.begin();
  slot.end = outlet.end();
}

bool Initiator::on_ack(std::uint32_t tag, wire::Outcome outcome, std::span<Outlet> outlets) {
  Slot* slot = find(tag);
  if (slot == nullptr || (slot->state != State::kFramed && slot->state != State::kEnded)) return false;
  const Outlet& outlet = outlets[slot->stream];
  const bool is_void_answer = outcome == wire::Outcome::kVoidedClean || outcome == wire::Outcome::kVoidedMidway;
  if (is_void_answer) return on_voided(*slot, outcome, outlet);
  if (outlet.sent_end() < slot->end || slot->landing != kNowhere) return false;
  if (slot->op == Operation::kRead && outcome == wire::Outcome::kOk) return false;
  if (outcome == wire::Outcome::kVoid && !slot->voided && !slot->void_said) return false;
  slot->outcome = outcome;
  if (slot->state == State::kEnded) {
    end_stray(*slot);
    free_slot(*slot);
  } else if (slot->op == Operation::kWrite && outlet.released_end() < slot->end) {
    slot->state = State::kAcked;  // Its memory is still the stream's.
    ++acked_;
  } else {
    tell(*slot, status_of(*slot));
    free_slot(*slot);
  }
  return true;
}

void Initiator::on_released(std::span<Outlet> outlets) {
  if (acked_ == 0 && cancelled_writes_ == 0) return;
  for (Slot& slot : slots_) {
    if (slot.state == State::kFramed && slot.answered && outlets[slot.stream].released_total() >= slot.held_until) {
      end_voided(slot, status_of(slot));
      continue;
    }
    if (slot.state != State::kAcked || outlets[slot.stream].released_end() < slot.end) continue;
    --acked_;
    tell(slot, status_of(slot));
    free_slot(slot);
  }
}

// The frames of one answer come in order, on one stream, and only the last says so.
bool Initiator::on_data(unsigned stream, std::uint32_t tag, Inlet& inlet, std::span<const Outlet> outlets) {
  Slot* slot = find(tag);
  if (slot == nullptr || slot->op != Operation::kRead || slot->in_frame) return false;
  if (slot->landing != kNowhere && slot->landing != stream) return false;
  if (slot->state != State::kFramed && slot->state != State::kEnded) return false;
  // An answer to what was not asked yet: the request could still be withdrawn, and the bytes would land all the same.
  if (outlets[slot->stream].sent_end() < slot->end) return false;
  const std::uint32_t size = inlet.head().payload_size;
  const bool last = (inlet.head().flags & wire::kFlagLast) != 0;
  if (size > slot->bytes - slot->received || (size == 0 && !last)) return false;
  slot->landing = static_cast<std::uint8_t>(stream);
  slot->in_frame = true;
  if (slot->state == State::kFramed && size > 0)
    inlet.land(slot->pieces.subspan(slot->place.piece), slot->place.offset);
  return true;
}

bool Initiator::on_data_end(std::uint32_t tag, const Inlet& inlet) {
  Slot* slot = find(tag);
  HAWSER_ASSERT(slot != nullptr && slot->in_frame, "data of a read that is not there ended");
  slot->in_frame = false;
  slot->received += inlet.head().payload_size;
  // What was cancelled has its memory back, and its list of pieces with it.
  if (slot->state == State::kFramed) slot->place.advance(slot->pieces, inlet.head().payload_size);
  const auto outcome = static_cast<wire::Outcome>(inlet.trailer());
  const bool last = (inlet.head().flags & wire::kFlagLast) != 0;
  if (outcome == wire::Outcome::kOk && last != (slot->received == slot->bytes)) return false;
  if (outcome != wire::Outcome::kOk || last) end_data(*slot, outcome);
  return true;
}

void Initiator::end_data(Slot& slot, wire::Outcome outcome) {
  slot.outcome = outcome;
  if (slot.state == State::kFramed) {
    const bool ok = outcome == wire::Outcome::kOk;
    if (slot.covered && ok) landed_.push({slot.transfer, slot.index});
    // What came before the peer gave up is in place, filler for the rest of a frame too.
    const bool partly = !ok && slot.received > 0;
    tell(slot, partly ? status_of(slot).with_buffer(BufferState::kPartlyWritten) : status_of(slot));
  }
  free_slot(slot);
}

void Initiator::stage_voids(Outlet& outlet) {
  while (!voids_.empty() && outlet.has_room(kFrameRoom)) {
    const std::uint32_t tag = voids_.pop();
    Slot* slot = find(tag);
    const bool asks = slot != nullptr && (slot->state == State::kFramed || slot->stray);
    if (!asks || slot->void_said) continue;  // Answered meanwhile.
    slot->void_said = true;
    FrameWriter frame(outlet, {.type = wire::FrameType::kVoid, .meta_size = wire::kVoidSize});
    wire::encode_void(frame.meta(), {.tag = tag, .stream = slot->stream, .frame = slot->frame});
  }
}

void Initiator::stage_notes(unsigned stream, Outlet& outlet) {
  if (!outlet.has_room(kFrameRoom)) return;
  const auto bit = static_cast<std::uint8_t>(1u << stream);
  for (auto& [binding, streams] : unbinds_) {
    if ((streams & bit) == 0 || !outlet.has_room(kFrameRoom)) continue;
    streams = static_cast<std::uint8_t>(streams & ~bit);
    FrameWriter(outlet, {.type = wire::FrameType::kUnbind, .meta_size = 4}).meta().u32(binding);
  }
  std::erase_if(unbinds_, [](const auto& unbind) { return unbind.second == 0; });
  if (stream == 0) stage_voids(outlet);
  while (stream == 0 && !landed_.empty() && outlet.has_room(kFrameRoom)) {
    const std::size_t count = std::min(landed_.count(), wire::kLandedMax);
    FrameWriter frame(outlet, {.type = wire::FrameType::kLanded, .meta_size = static_cast<std::uint16_t>(count * 12)});
    for (std::size_t i = 0; i < count; ++i) {
      const wire::Landed landed = landed_.pop();
      frame.meta().u64(landed.transfer);
      frame.meta().u32(landed.chunk);
    }
  }
}

}  // namespace hawser::backend::stream
