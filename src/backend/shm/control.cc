#include "backend/shm/control.h"

#include <algorithm>
#include <bit>

#include "base/bytes.h"
#include "base/format.h"
#include "base/try.h"

namespace hawser::backend::shm {
namespace {

using base::ByteReader;
using base::ByteWriter;

enum class Tag : std::uint8_t { kOpen = 1, kAccept = 2, kBind = 3, kBound = 4, kBye = 5 };
constexpr std::uint8_t kFlagMembarrier = 1;
constexpr std::uint8_t kFlagEnds = 2;
constexpr std::uint8_t kFlagViews = 4;

/// Of an open or an accept.
template <typename Message>
std::uint8_t flags_of(const Message& message) {
  return static_cast<std::uint8_t>((message.membarrier ? kFlagMembarrier : 0) | (message.ends ? kFlagEnds : 0) |
                                   (message.views ? kFlagViews : 0));
}
template <typename Message>
void take_flags(Message& message, std::uint8_t flags) {
  message.membarrier = (flags & kFlagMembarrier) != 0;
  message.ends = (flags & kFlagEnds) != 0;
  message.views = (flags & kFlagViews) != 0;
}

void put_tag(ByteWriter& out, Tag tag) { out.u8(static_cast<std::uint8_t>(tag)); }
void put_probe(ByteWriter& out, const Probe& probe) {
  out.u64(probe.address);
  out.id(probe.value);
}
void put_hello(ByteWriter& out, const wire::Hello& hello) { out.bytes(base::as_bytes(wire::encode(hello))); }
void put_reason(ByteWriter& out, std::string_view reason) { out.string(reason.substr(0, kReasonMax)); }

Probe get_probe(ByteReader& in) {
  Probe probe;
  probe.address = in.u64();
  probe.value = in.id();
  return probe;
}

Code get_code(ByteReader& in) {
  const std::uint8_t code = in.u8();
  if (code > static_cast<std::uint8_t>(Code::kFailed)) in.fail();
  return static_cast<Code>(code);
}

Status corrupt(std::string_view what) {
  return Status(Code::kCorrupt, base::format("a packet on a path of shm is no valid '{}'", what));
}

Result<wire::Hello> get_hello(ByteReader& in, const wire::Versions& ours) {
  HAWSER_TRY_ASSIGN(const std::size_t size, wire::hello_size(in.rest()));
  const auto bytes = in.bytes(size);
  if (!in.ok()) return corrupt("hello");
  return wire::decode_hello(bytes, ours);
}

Result<Control> get_open(ByteReader& in, const wire::Versions& ours) {
  Open message;
  take_flags(message, in.u8());
  message.ring_bytes = in.u32();
  message.probe = get_probe(in);
  if (!in.ok() || !std::has_single_bit(message.ring_bytes) || message.ring_bytes < kRingBytesMin ||
      message.ring_bytes > kRingBytesMax) {
    return corrupt("open");
  }
  HAWSER_TRY_ASSIGN(message.hello, get_hello(in, ours));
  return Control(std::move(message));
}

Result<Control> get_accept(ByteReader& in, const wire::Versions& ours) {
  Accept message;
  take_flags(message, in.u8());
  message.probe = get_probe(in);
  HAWSER_TRY_ASSIGN(message.hello, get_hello(in, ours));
  return Control(std::move(message));
}

Result<Control> get_bind(ByteReader& in) {
  Bind message;
  message.request = in.u32();
  message.index = in.u32();
  message.generation = in.u32();
  message.key = in.id();
  if (!in.ok()) return corrupt("bind");
  return Control(message);
}

/// Whether the ends lie beside each other in the region.
bool are_ends(const Bound& message) {
  return message.head <= message.size && message.tail <= message.size - message.head;
}

Result<Control> get_bound(ByteReader& in) {
  Bound message;
  message.request = in.u32();
  message.code = get_code(in);
  const std::uint8_t kind = in.u8();
  const std::uint8_t rights = in.u8();
  message.size = in.u64();
  message.place = in.u64();
  message.reason = in.string(kReasonMax);
  if (kind == static_cast<std::uint8_t>(MemoryKind::kAdopted)) {
    message.address = in.u64();
    message.head = in.u64();
    message.tail = in.u64();
    if (!are_ends(message)) in.fail();
  }
  if (!in.ok() || kind < 1 || kind > 3 || rights > static_cast<std::uint8_t>(Rights::kReadWrite))
    return corrupt("bound");
  message.kind = static_cast<MemoryKind>(kind);
  message.rights = static_cast<Rights>(rights);
  return Control(std::move(message));
}

Result<Control> get_bye(ByteReader& in) {
  Bye message;
  message.code = get_code(in);
  message.gone = in.u8() != 0;
  message.reason = in.string(kReasonMax);
  if (!in.ok() || message.code == Code::kOk) return corrupt("bye");
  return Control(std::move(message));
}

}  // namespace

std::string encode(const Open& message) {
  std::string bytes;
  ByteWriter out(&bytes);
  put_tag(out, Tag::kOpen);
  out.u8(flags_of(message));
  out.u32(message.ring_bytes);
  put_probe(out, message.probe);
  put_hello(out, message.hello);
  return bytes;
}

std::string encode(const Accept& message) {
  std::string bytes;
  ByteWriter out(&bytes);
  put_tag(out, Tag::kAccept);
  out.u8(flags_of(message));
  put_probe(out, message.probe);
  put_hello(out, message.hello);
  return bytes;
}

std::string encode(const Bind& message) {
  std::string bytes;
  ByteWriter out(&bytes);
  put_tag(out, Tag::kBind);
  out.u32(message.request);
  out.u32(message.index);
  out.u32(message.generation);
  out.id(message.key);
  return bytes;
}

std::string encode(const Bound& message) {
  std::string bytes;
  ByteWriter out(&bytes);
  put_tag(out, Tag::kBound);
  out.u32(message.request);
  out.u8(static_cast<std::uint8_t>(message.code));
  out.u8(static_cast<std::uint8_t>(message.kind));
  out.u8(static_cast<std::uint8_t>(message.rights));
  out.u64(message.size);
  out.u64(message.place);
  put_reason(out, message.reason);
  if (message.kind != MemoryKind::kAdopted) return bytes;
  out.u64(message.address);
  out.u64(message.head);
  out.u64(message.tail);
  return bytes;
}

std::string encode(const Bye& message) {
  std::string bytes;
  ByteWriter out(&bytes);
  put_tag(out, Tag::kBye);
  out.u8(static_cast<std::uint8_t>(message.code));
  out.u8(message.gone ? 1 : 0);
  put_reason(out, message.reason);
  return bytes;
}

Result<Control> decode_control(std::span<const std::byte> bytes, const wire::Versions& ours) {
  ByteReader in(bytes);
  switch (static_cast<Tag>(in.u8())) {
    case Tag::kOpen:
      return get_open(in, ours);
    case Tag::kAccept:
      return get_accept(in, ours);
    case Tag::kBind:
      return get_bind(in);
    case Tag::kBound:
      return get_bound(in);
    case Tag::kBye:
      return get_bye(in);
  }
  return corrupt("packet");
}

}  // namespace hawser::backend::shm
