// What comes in: frames, and where their payload goes.

#include <bit>
#include <utility>

#include "backend/stream/machine.h"
#include "base/bytes.h"
#include "base/format.h"
#include "base/planted.h"
#include "base/try.h"

namespace hawser::backend::stream {

Status Machine::begin_turn() {
  target_.recheck(inlets(), outlets());
  if (!wants(0)) HAWSER_TRY(process(0));
  return resume_held();
}

Status Machine::received(unsigned stream, std::uint64_t bytes) {
  inlet(stream).received(bytes);
  HAWSER_TRY(process(stream));
  return stream == 0 || awaits_others_ ? resume_held() : Status();
}

/// Messages on other streams may have waited for those that just came.
Status Machine::resume_held() {
  for (Streams left = paused_ & ~Streams{1}; left != 0; left &= left - 1) {
    HAWSER_TRY(process(static_cast<unsigned>(std::countr_zero(left))));
  }
  return Status();
}

// Frames behind a message that has to wait do so in the read-ahead buffer, and the stream is not read. On stream 0 any
// frame waits while there is no room for messages: it may be one.
bool Machine::must_wait(unsigned stream) {
  const Streams bit = Streams{1} << stream;
  const bool holds = (holds_frame_ & bit) != 0;
  const bool awaits = events_.messages_full() && (stream == 0 || holds);
  awaits_poll_ = awaits ? awaits_poll_ | bit : awaits_poll_ & ~bit;
  return awaits || (holds && is_early(stream));
}

/// Whether messages are missing that come before the one that the stream holds.
bool Machine::is_early(unsigned stream) {
  base::ByteReader in(inlet(stream).meta());
  if (!messages_in_.has_urgent(in.u64()) && !base::planted(base::Planted::kBulkOvertakes)) return true;
  awaits_others_ = !in.at_end() && !messages_in_.has_others(in.u64());
  return awaits_others_;
}

bool Machine::tells_order(unsigned stream, const wire::FrameHead& head) {
  if (stream == 0 || head.type != wire::FrameType::kMessage) return false;
  const bool is_last = (head.flags & wire::kFlagLastMessage) != 0;
  return head.meta_size == (is_last ? wire::kLastSize : wire::kAheadSize);
}

Status Machine::process(unsigned stream) {
  const Streams bit = Streams{1} << stream;
  Inlet& from = inlet(stream);
  while (true) {
    const bool waits = must_wait(stream);
    paused_ = waits ? paused_ | bit : paused_ & ~bit;
    if (waits) return Status();
    const bool was_held = (holds_frame_ & bit) != 0;
    holds_frame_ &= ~bit;
    switch (was_held ? Inlet::Next::kFrame : from.next()) {
      case Inlet::Next::kMore:
        return Status();
      case Inlet::Next::kCorrupt:
        return corrupt(stream, from.head());
      case Inlet::Next::kPayload:
        if (!on_payload(stream, from)) return corrupt(stream, from.head());
        break;
      case Inlet::Next::kFrame:
        if (!was_held && tells_order(stream, from.head())) {
          holds_frame_ |= bit;
          break;
        }
        if (!on_frame(stream, from)) return corrupt(stream, from.head());
        break;
    }
  }
}

bool Machine::on_frame(unsigned stream, Inlet& inlet) {
  if (is_link_stream(stream)) return inlet.head().type == wire::FrameType::kMessage && on_message(stream, inlet);
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
      message_came(stream);
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
  const wire::FrameHead& frame = inlet.head();
  if ((frame.flags & ~(wire::kFlagsLink | wire::kFlagLastMessage)) != 0 || !messages_in_.may_come_on(stream)) {
    return false;
  }
  if (stream == 0 ? frame.meta_size != 0 : !tells_order(stream, frame)) return false;
  const auto link = wire::Link::at(frame.flags & wire::kFlagsLink);
  const bool is_last = (frame.flags & wire::kFlagLastMessage) != 0;
  if (is_link_stream(stream) && !is_last && link != link_of(stream)) return false;
  if (stream == 0 && options_.is_apart) note_link(link);
  if (is_link_stream(stream) && link.priority() != Priority::kBulk) small_seen_ = true;
  messages_in_.begins(stream);
  ++counts_.messages_in;
  const std::uint32_t size = inlet.head().payload_size;
  Incoming& next = incoming(stream);
  next.buffer = events_.buffer(size);
  if (size == 0) {
    message_came(stream);
  } else {
    next.place = Piece{.local = next.buffer.bytes.get(), .remote = 0, .size = size};
    inlet.land({&next.place, 1});
  }
  return true;
}

void Machine::message_came(unsigned stream) {
  events_.message(path_, std::move(incoming(stream).buffer));
  messages_in_.came(stream);
}

bool Machine::on_identity(unsigned stream, Inlet& inlet) {
  const std::uint32_t size = inlet.head().payload_size;
  if (stream != 0 || !options_.has_identity || size == 0) return false;
  identity_.assign(size, '\0');
  Piece& place = incoming(stream).place;
  place = Piece{.local = reinterpret_cast<std::byte*>(identity_.data()), .remote = 0, .size = size};
  inlet.land({&place, 1});
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
      return wire::decode_bye(in, &news_.bye.emplace());
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
