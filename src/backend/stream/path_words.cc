#include "backend/stream/path_words.h"

#include <utility>

#include "backend/stream/frame_writer.h"
#include "base/bytes.h"

namespace hawser::backend::stream {

bool PathWords::put(Outlet& control, wire::FrameType type, std::uint64_t number) {
  if (!control.has_room(wire::lead_size(8))) return false;
  FrameWriter(control, {.type = type, .meta_size = 8}).meta().u64(number);
  return true;
}

bool PathWords::tell_identity(Outlet& control, std::span<const std::byte> proof) {
  if (!control.has_room(wire::lead_size(0) + wire::padded(proof.size()))) return false;
  FrameWriter(control, {.type = wire::FrameType::kIdentity, .payload_size = static_cast<std::uint32_t>(proof.size())});
  control.add_bytes(proof);
  FrameWriter::pad(control, proof.size());
  return true;
}

bool PathWords::bye(Outlet& control, Code code, std::string_view reason, std::uint64_t messages) {
  std::string meta;
  base::ByteWriter out(&meta);
  wire::encode_bye(out, {.code = code, .reason = std::string(reason), .messages = messages});
  if (!control.has_room(wire::lead_size(meta.size()))) return false;
  FrameWriter frame(control, {.type = wire::FrameType::kBye, .meta_size = static_cast<std::uint16_t>(meta.size())});
  frame.meta().bytes(base::as_bytes(meta));
  return true;
}

bool PathWords::on_word(const Inlet& inlet) {
  base::ByteReader in(inlet.meta());
  switch (inlet.head().type) {
    case wire::FrameType::kPing:
      news_.ping = true;
      news_.ping_nonce = in.u64();
      return true;
    case wire::FrameType::kPong:
      news_.pong = true;
      news_.pong_nonce = in.u64();
      return true;
    default:
      return wire::decode_bye(in, &news_.bye.emplace());
  }
}

bool PathWords::on_identity(Inlet& inlet) {
  const std::uint32_t size = inlet.head().payload_size;
  if (!has_identity_ || size == 0) return false;
  identity_.assign(size, '\0');
  place_ = Piece{.local = reinterpret_cast<std::byte*>(identity_.data()), .remote = 0, .size = size};
  inlet.land({&place_, 1});
  return true;
}

void PathWords::on_identity_end() {
  news_.renewal = true;
  news_.identity = std::move(identity_);
}

ControlNews PathWords::take(std::uint64_t others, bool is_over) {
  const bool keeps_bye = !is_over && awaits_messages(others);
  ControlNews news = std::exchange(news_, ControlNews());
  if (keeps_bye) news_.bye.swap(news.bye);
  return news;
}

}  // namespace hawser::backend::stream
