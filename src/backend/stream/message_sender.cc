#include "backend/stream/message_sender.h"

#include <array>

#include "backend/stream/frame_writer.h"
#include "base/planted.h"

namespace hawser::backend::stream {

bool MessageSender::send(wire::Link link, std::span<const std::byte> head, std::span<const std::byte> body,
                         Haste haste) {
  const unsigned stream = order_.stream_for(link);
  const std::uint64_t ahead = base::planted(base::Planted::kGreetingOvertaken) ? 0 : order_.ahead(link);
  const auto flags = static_cast<std::uint8_t>(link.index() | (haste == Haste::kAside ? wire::kFlagAside : 0));
  if (!put(stream, flags, {&ahead, stream == 0 ? 0U : 1U}, head, body)) return false;
  if (stream == 0) links_.note(link);
  return true;
}

bool MessageSender::send_first(std::span<const std::byte> head, std::span<const std::byte> body) {
  if (!send(Priority::kRealtime, head, body)) return false;
  order_.greeted();
  return true;
}

bool MessageSender::send_last(std::span<const std::byte> head, std::span<const std::byte> body) {
  const unsigned stream = order_.last_stream();
  const std::array<std::uint64_t, 2> meta = {order_.urgent(), order_.others()};
  const auto flags =
      static_cast<std::uint8_t>(wire::Link(Priority::kBulk).index() | (stream == 0 ? 0 : wire::kFlagLastMessage));
  said_last_ = put(stream, flags, {meta.data(), stream == 0 ? 0 : meta.size()}, head, body);
  return said_last_;
}

bool MessageSender::put(unsigned stream, std::uint8_t flags, std::span<const std::uint64_t> meta,
                        std::span<const std::byte> head, std::span<const std::byte> body) {
  const std::size_t size = head.size() + body.size();
  HAWSER_ASSERT(size <= wire::kMessagePayloadMax, "a message is larger than the contract allows");
  if (said_last_) return false;
  Outlet& to = streams_.outlet(stream);
  if (!to.has_room(wire::lead_size(meta.size_bytes()) + wire::padded(size))) return false;
  FrameWriter frame(to, {.type = wire::FrameType::kMessage,
                         .flags = flags,
                         .meta_size = static_cast<std::uint16_t>(meta.size_bytes()),
                         .payload_size = static_cast<std::uint32_t>(size)});
  for (const std::uint64_t number : meta) frame.meta().u64(number);
  to.add_bytes(head);
  to.add_bytes(body);
  FrameWriter::pad(to, size);
  order_.sent(stream, size);
  ++count_;
  return true;
}

// Bulk messages take what room there is, and chunks come only when a stream runs dry: they would never have a turn.
bool MessageSender::takes_turns(unsigned stream) {
  if (said_last_ || stream != order_.bulk_stream() || !order_.owes_chunk()) return false;
  order_.chunk_sent();
  return true;
}

}  // namespace hawser::backend::stream
