#include "compat/frame.h"

#include <array>

#include "base/bytes.h"

HAWSER_NAMESPACE_BEGIN
namespace compat {
namespace {

constexpr std::uint32_t kFrameMagic = 0x444d5748;  // "HWMD"
constexpr std::uint8_t kFrameVersion = 2;

Status corrupt_frame(std::string_view what) {
  return Status(Code::kCorrupt, "metadata by address: " + std::string(what));
}

}  // namespace

std::string encode_frame(const Frame& frame) {
  std::string out;
  out.reserve(kFrameHead + frame.name.size() + frame.body.size());
  base::ByteWriter writer(&out);
  writer.u32(kFrameMagic);
  writer.u8(kFrameVersion);
  writer.u8(static_cast<std::uint8_t>(frame.kind));
  writer.u16(0);
  writer.u32(static_cast<std::uint32_t>(frame.name.size()));
  writer.u32(static_cast<std::uint32_t>(frame.body.size()));
  writer.bytes(base::as_bytes(frame.name));
  writer.bytes(base::as_bytes(frame.body));
  return out;
}

Result<std::optional<Frame>> decode_frame(std::string_view bytes) {
  base::ByteReader reader(bytes);
  // Whoever sends something else is told so at its first bytes.
  if (bytes.size() >= 4 && reader.u32() != kFrameMagic) return corrupt_frame("this is no frame of Hawser's");
  if (bytes.size() < kFrameHead) return std::optional<Frame>();
  const std::uint8_t version = reader.u8(), kind = reader.u8();
  const std::uint16_t zero = reader.u16();
  const std::uint32_t name = reader.u32(), body = reader.u32();
  if (version != kFrameVersion)
    return corrupt_frame("version " + std::to_string(version) + " of the frame is not known");
  if (kind < 1 || kind > static_cast<std::uint8_t>(Frame::Kind::kProven) || zero != 0)
    return corrupt_frame("a wrong head");
  if (name > kFrameNameMax || body > kFrameBodyMax) return corrupt_frame("a frame beyond the bounds");
  if (reader.remaining() < std::size_t{name} + body) return std::optional<Frame>();
  Frame frame{.kind = static_cast<Frame::Kind>(kind)};
  frame.name = base::as_text(reader.bytes(name));
  frame.body = base::as_text(reader.bytes(body));
  return std::optional<Frame>(std::move(frame));
}

std::optional<FrameHead> head_of(std::string_view bytes) {
  if (bytes.size() < kFrameHead) return std::nullopt;
  constexpr std::size_t kKindAt = 5, kSizesAt = 8;
  base::ByteReader reader(bytes.substr(kSizesAt));
  FrameHead head{.kind = static_cast<Frame::Kind>(bytes[kKindAt]), .name_size = 0, .body_size = 0};
  head.name_size = reader.u32();
  head.body_size = reader.u32();
  return head;
}

}  // namespace compat
HAWSER_NAMESPACE_END
