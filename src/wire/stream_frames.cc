#include "wire/stream_frames.h"

namespace hawser::wire {
namespace {

struct Shape {
  std::uint32_t meta_min;
  std::uint32_t meta_max;
  std::uint32_t payload_max;
};

constexpr std::uint32_t kPiecesMin = 3 + 8;

// Indexed by FrameType; what a head of each type may say.
constexpr Shape kShapes[] = {
    {1, 0, 0},  // 0: no type
    {kChunkHeadSize + kPiecesMin, kMetaMax, kPayloadMax},
    {kChunkHeadSize + 4 + kPiecesMin, kMetaMax, 0},
    {4, 4, kDataMax},
    {4, 4 * kAcksMax, 0},
    {0, kLastSize, kMessagePayloadMax},
    {28, 28, 0},
    {4, 4, 0},
    {12, 12 * kLandedMax, 0},
    {8, 8, 0},
    {8, 8, 0},
    {2 + 8, 3 + kByeReasonMax + 8, 0},
    {0, kMetaMax, kPayloadMax},
    {kVoidSize, kVoidSize, 0},
    {0, 0, kIdentityPayloadMax},
    {kQuotasSize, kQuotasSize, 0},
};
static_assert(kMetaMax <= UINT16_MAX && 4 * kAcksMax <= kMetaMax && 12 * kLandedMax <= kMetaMax);

}  // namespace

void encode_head(base::ByteWriter& out, const FrameHead& head) {
  out.u8(static_cast<std::uint8_t>(head.type));
  out.u8(head.flags);
  out.u16(head.meta_size);
  out.u32(head.payload_size);
}

bool decode_head(std::span<const std::byte, kFrameHeadSize> bytes, FrameHead* head) {
  const auto type = static_cast<std::uint8_t>(bytes[0]);
  if (type >= std::size(kShapes)) return false;
  head->type = static_cast<FrameType>(type);
  head->flags = static_cast<std::uint8_t>(bytes[1]);
  head->meta_size = base::load_little_endian<std::uint16_t>(bytes.data() + 2);
  head->payload_size = base::load_little_endian<std::uint32_t>(bytes.data() + 4);
  const Shape& shape = kShapes[type];
  return head->meta_size >= shape.meta_min && head->meta_size <= shape.meta_max &&
         head->payload_size <= shape.payload_max;
}

void make_skip(std::byte* head, std::uint32_t following) {
  head[0] = static_cast<std::byte>(FrameType::kSkip);
  base::store_little_endian(head + 4, following);
}

bool is_trailer_of(FrameType type, std::uint8_t outcome) {
  switch (static_cast<Outcome>(outcome)) {
    case Outcome::kOk:
      return true;
    case Outcome::kVoid:
      return type == FrameType::kWrite;
    case Outcome::kClosed:
    case Outcome::kClosedMidway:
    case Outcome::kNoRoom:
      return type == FrameType::kData;
    default:
      return false;
  }
}

void encode_chunk(base::ByteWriter& out, const ChunkHead& chunk) {
  out.u64(chunk.transfer);
  out.u32(chunk.index);
  out.u32(chunk.tag);
  out.u32(chunk.binding);
}

bool decode_chunk(base::ByteReader& in, ChunkHead* chunk) {
  chunk->transfer = in.u64();
  chunk->index = in.u32();
  chunk->tag = in.u32();
  chunk->binding = in.u32();
  return in.ok() && chunk->tag <= kTagMax;
}

void encode_bind(base::ByteWriter& out, const Bind& bind) {
  out.u32(bind.binding);
  out.u32(bind.index);
  out.u32(bind.generation);
  out.id(bind.key);
}

bool decode_bind(base::ByteReader& in, Bind* bind) {
  bind->binding = in.u32();
  bind->index = in.u32();
  bind->generation = in.u32();
  bind->key = in.id();
  return in.ok();
}

void encode_void(base::ByteWriter& out, const VoidWrite& write) {
  out.u32(write.tag);
  out.u32(write.stream);
  out.u64(write.frame);
}

bool decode_void(base::ByteReader& in, VoidWrite* write) {
  write->tag = in.u32();
  write->stream = in.u32();
  write->frame = in.u64();
  return in.finished() && write->tag <= kTagMax;
}

void encode_quotas(base::ByteWriter& out, const Quotas& quotas) {
  out.u32(quotas.operations);
  out.u64(quotas.bytes);
}

bool decode_quotas(base::ByteReader& in, Quotas* quotas) {
  quotas->operations = in.u32();
  quotas->bytes = in.u64();
  return in.finished();
}

bool decode_ack(std::uint32_t entry, std::uint32_t* tag, Outcome* outcome) {
  const std::uint32_t code = entry >> 24;
  *tag = entry & kTagMax;
  *outcome = static_cast<Outcome>(code);
  return code <= kOutcomeLast;
}

void encode_bye(base::ByteWriter& out, const PathBye& bye) {
  out.u8(static_cast<std::uint8_t>(bye.code));
  out.string(std::string_view(bye.reason).substr(0, kByeReasonMax));
  out.u64(bye.messages);
}

bool decode_bye(base::ByteReader& in, PathBye* bye) {
  const std::uint8_t value = in.u8();
  bye->reason = std::string(in.string(kByeReasonMax));
  bye->code = static_cast<Code>(value);
  bye->messages = in.u64();
  return in.finished() && value <= static_cast<std::uint8_t>(Code::kFailed);
}

std::size_t decode_pieces(base::ByteReader& in, std::uint64_t total, std::span<RemotePiece, kPiecesMax> out) {
  const std::uint8_t form = in.u8();
  const std::size_t count = in.u16();
  const std::size_t item_size = form == 0 ? 8 : 12;
  if (!in.ok() || form > 1 || count == 0 || count > kPiecesMax || in.remaining() != count * item_size) return 0;
  if (form == 0 && total % count != 0) return 0;
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < count; ++i) {
    out[i].remote = in.u64();
    out[i].size = form == 0 ? total / count : in.u32();
    sum += out[i].size;
  }
  return sum == total ? count : 0;
}

}  // namespace hawser::wire
