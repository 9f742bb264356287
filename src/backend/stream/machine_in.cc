// What comes in: frames, and where their payload goes.

#include <utility>

#include "backend/stream/machine.h"
#include "base/bytes.h"
#include "base/format.h"
#include "base/try.h"

namespace hawser::backend::stream {

Status Machine::begin_turn() {
  target_.recheck(inlets(), outlets());
  for (unsigned stream = 0; stream < options_.streams; ++stream) {
    if (paused_[stream]) HAWSER_TRY(process(stream));
  }
  return Status();
}

Status Machine::received(unsigned stream, std::uint64_t bytes) {
  inlets_[stream].received(bytes);
  return process(stream);
}

Status Machine::process(unsigned stream) {
  Inlet& inlet = inlets_[stream];
  while (true) {
    // Frames behind a message that found no room wait in the read-ahead buffer, and the stream is not read.
    paused_[stream] = stream == 0 && events_.messages_full();
    if (paused_[stream]) return Status();
    switch (inlet.next()) {
      case Inlet::Next::kMore:
        return Status();
      case Inlet::Next::kCorrupt:
        return corrupt(stream, inlet.head());
      case Inlet::Next::kPayload:
        if (!on_payload(stream, inlet)) return corrupt(stream, inlet.head());
        break;
      case Inlet::Next::kFrame:
        if (!on_frame(stream, inlet)) return corrupt(stream, inlet.head());
        break;
    }
  }
}

bool Machine::on_frame(unsigned stream, Inlet& inlet) {
  if (stream == 0 && inlet.head().payload_size <= options_.small_max) {
    const wire::FrameType type = inlet.head().type;
    small_seen_ = small_seen_ || type == wire::FrameType::kWrite || type == wire::FrameType::kMessage;
  }
  switch (inlet.head().type) {
    case wire::FrameType::kWrite:
      return target_.on_write(stream, inlet);
    case wire::FrameType::kRead:
      return stream == 0 && target_.on_read(inlet.meta(), outlets());
    case wire::FrameType::kData:
      return on_data(stream, inlet);
    case wire::FrameType::kAck:
      return stream == 0 && on_acks(inlet);
    case wire::FrameType::kMessage:
      return on_message(stream, inlet);
    case wire::FrameType::kBind:
      return target_.on_bind(stream, inlet.meta());
    case wire::FrameType::kUnbind:
      return target_.on_unbind(stream, inlet.meta());
    case wire::FrameType::kLanded:
      return target_.on_landed(inlet.meta());
    case wire::FrameType::kPing:
    case wire::FrameType::kPong:
    case wire::FrameType::kBye:
      return stream == 0 && on_control(inlet);
    case wire::FrameType::kVoid:
      return stream == 0 && target_.on_void(inlet.meta(), inlets());
    case wire::FrameType::kIdentity:
      return on_identity(stream, inlet);
    case wire::FrameType::kQuotas:
      return stream == 0 && on_quotas(inlet);
    case wire::FrameType::kSkip:
      return true;
  }
  return false;
}

bool Machine::on_payload(unsigned stream, Inlet& inlet) {
  switch (inlet.head().type) {
    case wire::FrameType::kWrite:
      return target_.on_write_end(stream, inlet);
    case wire::FrameType::kData:
      read_bytes_ += inlet.head().payload_size;
      return initiator_.on_data_end(data_tag_[stream], inlet);
    case wire::FrameType::kMessage:
      events_.message(path_, std::move(message_));
      return true;
    case wire::FrameType::kIdentity:
      news_.renewal = true;
      news_.identity = std::move(identity_);
      return true;
    default:
      return true;
  }
}

bool Machine::on_message(unsigned stream, Inlet& inlet) {
  if (stream != 0) return false;
  ++counts_.messages_in;
  const std::uint32_t size = inlet.head().payload_size;
  message_ = events_.buffer(size);
  if (size == 0) {
    events_.message(path_, std::move(message_));
  } else {
    message_place_ = Piece{.local = message_.bytes.get(), .remote = 0, .size = size};
    inlet.land({&message_place_, 1});
  }
  return true;
}

bool Machine::on_identity(unsigned stream, Inlet& inlet) {
  const std::uint32_t size = inlet.head().payload_size;
  if (stream != 0 || !options_.has_identity || size == 0) return false;
  identity_.assign(size, '\0');
  message_place_ = Piece{.local = reinterpret_cast<std::byte*>(identity_.data()), .remote = 0, .size = size};
  inlet.land({&message_place_, 1});
  return true;
}

bool Machine::on_data(unsigned stream, Inlet& inlet) {
  data_tag_[stream] = base::load_little_endian<std::uint32_t>(inlet.meta().data());
  if (!initiator_.on_data(stream, data_tag_[stream], inlet, outlets())) return false;
  return inlet.in_payload() || initiator_.on_data_end(data_tag_[stream], inlet);
}

bool Machine::on_acks(Inlet& inlet) {
  base::ByteReader in(inlet.meta());
  if (in.remaining() % 4 != 0) return false;
  while (!in.at_end()) {
    std::uint32_t tag = 0;
    wire::Outcome outcome = wire::Outcome::kOk;
    if (!wire::decode_ack(in.u32(), &tag, &outcome) || !initiator_.on_ack(tag, outcome, outlets())) return false;
  }
  return true;
}

bool Machine::on_quotas(const Inlet& inlet) {
  base::ByteReader in(inlet.meta());
  wire::Quotas quotas;
  if (!wire::decode_quotas(in, &quotas)) return false;
  initiator_.note_quotas(quotas);
  return true;
}

bool Machine::on_control(Inlet& inlet) {
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
      news_.bye = true;
      return wire::decode_bye(in, &news_.bye_code, &news_.bye_reason);
  }
}

Status Machine::corrupt(unsigned stream, const wire::FrameHead& head) const {
  return Status(
             Code::kCorrupt,
             base::format("{} sent a senseless frame on stream {} (type {}, meta {} bytes, payload {})", options_.peer,
                          stream, static_cast<unsigned>(head.type), head.meta_size, head.payload_size))
      .with_peer(options_.peer)
      .with_scope(Scope::kPath)
      .with_advice("the two ends run versions that do not fit together, or something else speaks on that port");
}

}  // namespace hawser::backend::stream
