#include "wire/queue_pair.h"

#include <algorithm>

#include "base/bytes.h"
#include "base/format.h"

namespace hawser::wire {
namespace {

using base::ByteReader;
using base::ByteWriter;

enum class HandshakeKind : std::uint8_t {
  kPorts = 1,
  kConnect = 2,
  kAccept = 3,
  kReady = 4,
  kBroken = 5,
  kReceived = 7,
  kCounted = 8
};

constexpr std::size_t kReasonMax = 512;
constexpr std::size_t kPortSizeMin = 1 + 1 + 1 + 1 + 1 + 2 + 16 + 1 + 1 + 8;

Status corrupt_handshake(std::string_view what) {
  return Status(Code::kCorrupt, base::format("handshake of queue pairs: {}", what));
}

void put_endpoint(ByteWriter& out, const QueuePairEndpoint& endpoint) {
  out.u32(endpoint.number);
  out.u32(endpoint.psn);
  out.u16(endpoint.lid);
  out.bytes(endpoint.gid);
  out.u8(endpoint.mtu);
  out.u8(endpoint.reads_in);
  out.u8(endpoint.reads_out);
  if (endpoint.qkey == 0) return;
  out.u32(endpoint.qkey);
  out.u64(endpoint.proof_address);
  out.u32(endpoint.proof_key);
}

GidBytes take_gid(ByteReader& in) {
  GidBytes gid{};
  const std::span<const std::byte> bytes = in.bytes(gid.size());
  std::copy(bytes.begin(), bytes.end(), gid.begin());
  return gid;
}

bool is_mtu(std::uint8_t code) { return code >= 1 && code <= kMtuCodeMax; }

/// Marks the reader's value as wrong by `false`.
bool take_endpoint(ByteReader& in, QueuePairEndpoint* endpoint) {
  endpoint->number = in.u32();
  endpoint->psn = in.u32();
  endpoint->lid = in.u16();
  endpoint->gid = take_gid(in);
  endpoint->mtu = in.u8();
  endpoint->reads_in = in.u8();
  endpoint->reads_out = in.u8();
  if (in.ok() && in.remaining() > 0) {  // Earlier releases end here.
    endpoint->qkey = in.u32();
    endpoint->proof_address = in.u64();
    endpoint->proof_key = in.u32();
  }
  return in.ok() && endpoint->number <= k24BitMax && endpoint->psn <= k24BitMax && is_mtu(endpoint->mtu);
}

void put_gids(ByteWriter& out, const RdmaPort& port) {
  const std::span gids = std::span(port.gids).first(std::min(port.gids.size(), kGidsMax));
  out.u8(static_cast<std::uint8_t>(gids.size()));
  for (const RdmaGid& gid : gids) {
    out.bytes(gid.bytes);
    out.u8(gid.type);
    out.u8(gid.prefix);
  }
}

bool take_gids(ByteReader& in, RdmaPort* port) {
  const std::size_t count = in.u8();
  if (!in.ok() || count > kGidsMax) return false;
  for (std::size_t i = 0; i < count && in.ok(); ++i) {
    RdmaGid gid;
    gid.bytes = take_gid(in);
    gid.type = in.u8();
    gid.prefix = in.u8();
    port->gids.push_back(gid);
  }
  return in.ok();
}

void put(ByteWriter& out, const RdmaPorts& message) {
  out.u8(static_cast<std::uint8_t>(HandshakeKind::kPorts));
  out.u8(kPortsVersion);
  out.u8(static_cast<std::uint8_t>(message.ports.size()));
  for (const RdmaPort& port : message.ports) {
    out.string(std::string_view(port.device).substr(0, kDeviceNameMax));
    out.u8(port.number);
    out.u8(port.transport);
    out.u8(port.layer);
    out.u8(port.mtu);
    out.u16(port.lid);
    out.bytes(port.gid);
    out.u8(port.gid_type);
    out.u8(port.gid_prefix);
    out.u64(port.mbit_per_s);
  }
  const bool has_gids = std::ranges::any_of(message.ports, [](const RdmaPort& port) { return !port.gids.empty(); });
  if (message.receives == 0 && message.immediates == 0 && message.host == 0 && !has_gids) return;
  out.u16(static_cast<std::uint16_t>(message.receives));
  out.u32(message.receive_bytes);
  if (message.immediates == 0 && message.host == 0 && !has_gids) return;
  out.u16(static_cast<std::uint16_t>(message.immediates));
  if (message.host == 0 && !has_gids) return;
  out.u64(message.host);
  if (!has_gids) return;
  for (const RdmaPort& port : message.ports) put_gids(out, port);
}

void put(ByteWriter& out, const ImmediatesCounted& message) {
  out.u8(static_cast<std::uint8_t>(HandshakeKind::kCounted));
  out.u8(message.pair);
  out.u32(message.epoch);
  out.u64(message.counted);
}

void put(ByteWriter& out, const MessagesReceived& message) {
  out.u8(static_cast<std::uint8_t>(HandshakeKind::kReceived));
  out.u64(message.received);
}

void put(ByteWriter& out, const QueuePairConnect& message) {
  out.u8(static_cast<std::uint8_t>(HandshakeKind::kConnect));
  out.u8(message.pair);
  out.u32(message.epoch);
  out.u8(message.local);
  out.u8(message.remote);
  out.u8(message.pairs);
  put_endpoint(out, message.endpoint);
}

void put(ByteWriter& out, const QueuePairAccept& message) {
  out.u8(static_cast<std::uint8_t>(HandshakeKind::kAccept));
  out.u8(message.pair);
  out.u32(message.epoch);
  put_endpoint(out, message.endpoint);
}

void put(ByteWriter& out, const QueuePairReady& message) {
  out.u8(static_cast<std::uint8_t>(HandshakeKind::kReady));
  out.u8(message.pair);
  out.u32(message.epoch);
}

void put(ByteWriter& out, const QueuePairBroken& message) {
  out.u8(static_cast<std::uint8_t>(HandshakeKind::kBroken));
  out.u8(message.pair);
  out.u32(message.epoch);
  out.u8(static_cast<std::uint8_t>(message.code));
  out.string(std::string_view(message.reason).substr(0, kReasonMax));
}

Result<QueuePairMessage> take_ports(ByteReader& in) {
  const std::uint8_t version = in.u8();
  if (in.ok() && version != kPortsVersion) {
    return Status(Code::kUnsupported,
                  base::format("the peer's RDMA handshake is version {}, ours {}", version, kPortsVersion))
        .with_advice("run releases on both sides that share a version");
  }
  const std::size_t count = in.u8();
  if (!in.ok() || count > kPortsMax || count > in.remaining() / kPortSizeMin)
    return corrupt_handshake("bad number of ports");
  RdmaPorts message;
  for (std::size_t i = 0; i < count; ++i) {
    RdmaPort port;
    port.device = in.string(kDeviceNameMax);
    port.number = in.u8();
    port.transport = in.u8();
    port.layer = in.u8();
    port.mtu = in.u8();
    port.lid = in.u16();
    port.gid = take_gid(in);
    port.gid_type = in.u8();
    port.gid_prefix = in.u8();
    port.mbit_per_s = in.u64();
    if (!in.ok() || !is_mtu(port.mtu)) return corrupt_handshake("bad port");
    message.ports.push_back(std::move(port));
  }
  if (in.remaining() == 0) return QueuePairMessage(std::move(message));  // From an earlier release.
  message.receives = in.u16();
  message.receive_bytes = in.u32();
  const bool holds = message.receive_bytes > kMessageHeadSize && message.receive_bytes <= kReceiveBytesMax;
  if (!in.ok() || message.receives > kReceivesMax || (message.receives > 0 && !holds))
    return corrupt_handshake("bad receives");
  if (in.remaining() == 0) return QueuePairMessage(std::move(message));  // From an earlier release.
  message.immediates = in.u16();
  if (!in.ok() || message.immediates > kReceivesMax) return corrupt_handshake("bad receives for immediates");
  if (in.remaining() == 0) return QueuePairMessage(std::move(message));  // From an earlier release.
  message.host = in.u64();
  if (!in.ok()) return corrupt_handshake("bad host");
  if (in.remaining() == 0) return QueuePairMessage(std::move(message));  // From an earlier release.
  for (RdmaPort& port : message.ports) {
    if (!take_gids(in, &port)) return corrupt_handshake("bad GIDs");
  }
  return QueuePairMessage(std::move(message));
}

/// The beginning of every message of one queue pair.
template <typename Message>
bool take_head(ByteReader& in, Message* message) {
  message->pair = in.u8();
  message->epoch = in.u32();
  return in.ok() && message->pair < kPairsMax && message->epoch != 0;
}

Result<QueuePairMessage> take_connect(ByteReader& in) {
  QueuePairConnect message;
  const bool head = take_head(in, &message);
  message.local = in.u8();
  message.remote = in.u8();
  message.pairs = in.u8();
  const bool fits = head && message.local < kPortsMax && message.remote < kPortsMax && message.pairs <= kPairsMax &&
                    message.pair < message.pairs;
  if (!take_endpoint(in, &message.endpoint) || !fits) return corrupt_handshake("bad Connect");
  return QueuePairMessage(message);
}

Result<QueuePairMessage> take_accept(ByteReader& in) {
  QueuePairAccept message;
  const bool head = take_head(in, &message);
  if (!take_endpoint(in, &message.endpoint) || !head) return corrupt_handshake("bad Accept");
  return QueuePairMessage(message);
}

Result<QueuePairMessage> take_ready(ByteReader& in) {
  QueuePairReady message;
  if (!take_head(in, &message)) return corrupt_handshake("bad Ready");
  return QueuePairMessage(message);
}

Result<QueuePairMessage> take_counted(ByteReader& in) {
  ImmediatesCounted message;
  const bool head = take_head(in, &message);
  message.counted = in.u64();
  if (!in.ok() || !head) return corrupt_handshake("bad Counted");
  return QueuePairMessage(message);
}

Result<QueuePairMessage> take_broken(ByteReader& in) {
  QueuePairBroken message;
  const bool head = take_head(in, &message);
  const std::uint8_t code = in.u8();
  message.reason = in.string(kReasonMax);
  if (!in.ok() || !head || code > static_cast<std::uint8_t>(Code::kFailed)) return corrupt_handshake("bad Broken");
  message.code = static_cast<Code>(code);
  return QueuePairMessage(std::move(message));
}

}  // namespace

std::array<std::byte, kMessageHeadSize> encode_head(const MessageHead& head) {
  std::string text;
  ByteWriter out(&text);
  out.u8(kNumberedMessage);
  out.u64(head.sequence);
  out.u64(head.received);
  std::array<std::byte, kMessageHeadSize> bytes{};
  std::ranges::copy(base::as_bytes(text), bytes.begin());
  return bytes;
}

Result<MessageHead> decode_head(std::span<const std::byte> bytes) {
  ByteReader in(bytes);
  const std::uint8_t kind = in.u8();
  MessageHead head;
  head.sequence = in.u64();
  head.received = in.u64();
  if (!in.ok() || kind != kNumberedMessage || head.sequence == 0) return corrupt_handshake("bad head of a message");
  return head;
}

std::string encode(const QueuePairMessage& message) {
  std::string text;
  ByteWriter out(&text);
  std::visit([&out](const auto& each) { put(out, each); }, message);
  return text;
}

Result<QueuePairMessage> decode_queue_pair(std::span<const std::byte> bytes) {
  ByteReader in(bytes);
  const std::uint8_t kind = in.u8();
  if (!in.ok()) return corrupt_handshake("an empty message");
  switch (static_cast<HandshakeKind>(kind)) {
    case HandshakeKind::kPorts:
      return take_ports(in);
    case HandshakeKind::kConnect:
      return take_connect(in);
    case HandshakeKind::kAccept:
      return take_accept(in);
    case HandshakeKind::kReady:
      return take_ready(in);
    case HandshakeKind::kBroken:
      return take_broken(in);
    case HandshakeKind::kCounted:
      return take_counted(in);
    case HandshakeKind::kReceived: {
      const MessagesReceived message{.received = in.u64()};
      if (!in.ok()) return corrupt_handshake("bad Received");
      return QueuePairMessage(message);
    }
  }
  return Status(Code::kUnsupported, base::format("handshake of queue pairs: unknown kind {}", kind));
}

}  // namespace hawser::wire
