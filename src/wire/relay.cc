#include "wire/relay.h"

#include "base/bytes.h"

namespace hawser::wire {
namespace {

constexpr unsigned kMore = 1, kAtOnce = 2;

// kind, flags; source, target; hops, sequence, acknowledged.
static_assert(2 + 5 * base::kVarintSizeMax <= kRelayHeadMax);

Status corrupt_relay(const char* what) { return {Code::kCorrupt, std::string("relay: ") + what}; }

std::uint32_t read_rank(base::ByteReader& in) { return static_cast<std::uint32_t>(in.varint(kRelayRankMax)); }

void read_frame(base::ByteReader& in, RelayMessage& message) {
  const unsigned flags = in.u8();
  if ((flags & ~(kMore | kAtOnce)) != 0) in.fail();
  message.has_more = (flags & kMore) != 0;
  message.asks_at_once = (flags & kAtOnce) != 0;
  message.source = read_rank(in);
  message.target = read_rank(in);
  message.hops = in.varint(kRelayHopsMax);
  message.sequence = in.varint();
  message.acknowledged = in.varint();
  message.body = in.rest();
}

/// False: there is no such kind.
bool read_rest(base::ByteReader& in, RelayMessage& message) {
  switch (message.kind) {
    case RelayKind::kFrame:
      read_frame(in, message);
      return true;
    case RelayKind::kGone:
    case RelayKind::kLeaving:
      message.rank = read_rank(in);
      return true;
    case RelayKind::kGraph:
      message.generation = in.varint();
      message.body = in.rest();
      return true;
    case RelayKind::kCard:
      message.rank = read_rank(in);
      message.body = in.rest();
      return true;
    case RelayKind::kLost:
      message.rank = read_rank(in);
      message.other = read_rank(in);
      return true;
  }
  return false;
}

bool is_sane(const RelayMessage& message) {
  const std::size_t size = message.body.size();
  switch (message.kind) {
    case RelayKind::kFrame:
      if (message.source == message.target || size > kRelayPieceMax) return false;
      return message.sequence == 0 ? size == 0 && !message.has_more : size != 0;
    case RelayKind::kGone:
    case RelayKind::kLeaving:
      return size == 0;
    case RelayKind::kGraph:
      return message.generation != 0 && size != 0 && size <= kRelayBitmapMax;
    case RelayKind::kCard:
      return size != 0 && size <= kRelayCardMax;
    case RelayKind::kLost:
      return size == 0 && message.rank != message.other;
  }
  return false;
}

}  // namespace

std::string encode(const RelayMessage& message) {
  std::string bytes;
  base::ByteWriter out(&bytes);
  out.u8(static_cast<std::uint8_t>(message.kind));
  switch (message.kind) {
    case RelayKind::kFrame:
      out.u8(static_cast<std::uint8_t>((message.has_more ? kMore : 0) | (message.asks_at_once ? kAtOnce : 0)));
      out.varint(message.source);
      out.varint(message.target);
      out.varint(message.hops);
      out.varint(message.sequence);
      out.varint(message.acknowledged);
      break;
    case RelayKind::kGone:
    case RelayKind::kLeaving:
    case RelayKind::kCard:
      out.varint(message.rank);
      break;
    case RelayKind::kGraph:
      out.varint(message.generation);
      break;
    case RelayKind::kLost:
      out.varint(message.rank);
      out.varint(message.other);
      break;
  }
  return bytes;
}

Result<RelayMessage> decode_relay(std::span<const std::byte> bytes) {
  base::ByteReader in(bytes);
  RelayMessage message{.kind = static_cast<RelayKind>(in.u8())};
  if (!read_rest(in, message)) return corrupt_relay("a message of an unknown kind");
  const bool has_body =
      message.kind == RelayKind::kFrame || message.kind == RelayKind::kGraph || message.kind == RelayKind::kCard;
  if (!has_body ? !in.finished() : !in.ok()) return corrupt_relay("a message is malformed or cut off");
  if (!is_sane(message)) return corrupt_relay("a message's fields contradict each other");
  return message;
}

}  // namespace hawser::wire
