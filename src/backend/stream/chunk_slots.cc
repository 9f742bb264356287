#include "backend/stream/chunk_slots.h"

#include "backend/stream/file_desk.h"

namespace hawser::backend::stream {
namespace {

constexpr std::uint32_t kSlotBits = 10;
static_assert(kChunksMax == 1u << kSlotBits);
constexpr std::uint16_t kGenerationMask = (1u << 14) - 1;

}  // namespace

std::string_view ChunkSlots::lacks_room(const Chunk& chunk, bool large) const {
  const bool read = chunk.op == Operation::kRead;
  // The target stages it in memory of its own.
  const bool in_file = static_cast<const RemoteBinding*>(chunk.target)->in_file;
  if (in_file && file_bytes_ > 0 && file_bytes_ + chunk.bytes > kFileBytesMax) return "16 MiB in flight to files";
  const bool has_bulk_room = count_ < kChunksMax - kSmallChunks && (!read || reads_ < kReadsMax - kSmallReads) &&
                             (bytes_ == 0 || bytes_ + chunk.bytes <= kBytesMax);
  if (large && !has_bulk_room) return "64 MiB of bulk, or its share of 1024 chunks and 64 reads";
  if (read && reads_ == kReadsMax) return "64 reads in flight";
  return {};
}

ChunkSlot* ChunkSlots::add(const Chunk& chunk) {
  if (free_.empty()) {
    if (slots_.size() == kChunksMax) return nullptr;
    free_.push_back(static_cast<std::uint32_t>(slots_.size()));
    slots_.emplace_back();
  }
  ChunkSlot& slot = slots_[free_.back()];
  free_.pop_back();
  const std::uint16_t generation = slot.generation;
  slot = ChunkSlot{.op = chunk.op,
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
  ++count_;
  bytes_ += slot.bytes;
  if (slot.target->in_file) file_bytes_ += slot.bytes;
  if (slot.op == Operation::kRead) ++reads_;
  return &slot;
}

void ChunkSlots::remove(ChunkSlot& slot) {
  if (slot.op == Operation::kRead) --reads_;
  --count_;
  bytes_ -= slot.bytes;
  if (slot.target->in_file) file_bytes_ -= slot.bytes;
  slot.state = ChunkSlot::State::kFree;
  slot.generation = (slot.generation + 1) & kGenerationMask;
  free_.push_back(number_of(slot));
}

ChunkSlot* ChunkSlots::find(std::uint32_t tag) {
  const std::uint32_t number = tag & (kChunksMax - 1);
  if (number >= slots_.size()) return nullptr;
  ChunkSlot& slot = slots_[number];
  return slot.state != ChunkSlot::State::kFree && slot.generation == tag >> kSlotBits ? &slot : nullptr;
}

std::uint32_t ChunkSlots::tag_of(const ChunkSlot& slot) const {
  return number_of(slot) | std::uint32_t{slot.generation} << kSlotBits;
}

}  // namespace hawser::backend::stream
