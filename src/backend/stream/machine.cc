#include "backend/stream/machine.h"

#include <bit>
#include <utility>

#include "base/bytes.h"
#include "base/format.h"
#include "base/try.h"

namespace hawser::backend::stream {

Machine::Machine(RegionTable& regions, EventQueue& events, Path* path, MachineOptions options, FileDesk* files)
    : peer_(std::move(options.peer)),
      small_max_(options.small_max),
      streams_(options.streams),
      links_(options.is_apart),
      initiator_(events, path, {.peer = peer_, .small_max = small_max_}),
      target_(regions, events, path, files, peer_, small_max_, std::move(options.account)),
      sender_(streams_, links_, options.is_apart),
      reader_(streams_, links_, events, path),
      words_(options.has_identity) {}

std::uint32_t Machine::submit(std::span<const Chunk> chunks) {
  std::uint32_t taken = 0;
  for (const Chunk& chunk : chunks) {
    if (!initiator_.take(chunk, streams_.outlet(0))) break;
    ++taken;
    ++chunks_;
    if (chunk.op == Operation::kWrite) write_bytes_ += chunk.bytes;
    if (chunk.bytes <= small_max_) small_seen_ = true;
  }
  return taken;
}

bool Machine::send(wire::Link link, std::span<const std::byte> head, std::span<const std::byte> body, Haste haste) {
  const unsigned stream = sender_.stream_for(link);
  let_chunk_go(stream);
  if (!sender_.send(link, head, body, haste)) return false;
  if (haste == Haste::kAside) return true;
  small_seen_ = small_seen_ || stream == 0 || link.priority() != Priority::kBulk;
  return true;
}

bool Machine::send_first(std::span<const std::byte> head, std::span<const std::byte> body) {
  if (!sender_.send_first(head, body)) return false;
  small_seen_ = true;
  return true;
}

bool Machine::send_last(std::span<const std::byte> head, std::span<const std::byte> body) {
  let_chunk_go(sender_.last_stream());
  return sender_.send_last(head, body);
}

void Machine::let_chunk_go(unsigned stream) {
  if (!sender_.takes_turns(stream)) return;
  if (has_waiting(stream) && streams_.outlet(stream).has_room(kFrameRoom)) frame_next(stream);
}

void Machine::open_stream(unsigned stream) {
  streams_.open(stream);
  sender_.open(stream);
}

void Machine::bye(Code code, std::string_view reason) {
  said_bye_ = true;
  static_cast<void>(PathWords::bye(streams_.outlet(0), code, reason, sender_.others()));
}

bool Machine::has_waiting(unsigned stream) const {
  if (target_.has_rest(stream) || (stream == 0 && target_.has_replies(false))) return true;
  return (initiator_.has_bulk() || target_.has_replies(true)) && streams_.carries_bulk(stream);
}

void Machine::frame_next(unsigned stream) {
  Outlet& outlet = streams_.outlet(stream);
  if (stream == 0 && target_.has_replies(false)) {
    target_.frame_reply(false, stream, outlet);
    return;
  }
  const bool bulk = initiator_.has_bulk() && streams_.carries_bulk(stream);
  const bool reply = (target_.has_rest(stream) || target_.has_replies(true)) && (reply_next_ || !bulk);
  reply_next_ = !reply;
  if (reply && target_.has_rest(stream)) {
    target_.frame_rest(stream, outlet);
  } else if (reply) {
    target_.frame_reply(true, stream, outlet);
  } else {
    initiator_.frame_bulk(stream, outlet);
  }
}

bool Machine::fill(unsigned stream, std::uint64_t ahead) {
  Outlet& outlet = streams_.outlet(stream);
  if (is_link_stream(stream) || (stream != 0 && said_bye_)) return outlet.has_unsent();
  if (initiator_.has_notes(stream)) initiator_.stage_notes(stream, outlet);
  while (has_waiting(stream) && outlet.unsent_bytes() < ahead && outlet.has_room(kFrameRoom)) frame_next(stream);
  if (stream == 0 && target_.has_acks() && (flush_ || outlet.has_unsent())) target_.stage_acks(outlet);
  if (stream == 0) flush_ = false;
  return outlet.has_unsent();
}

void Machine::sent(unsigned stream, std::uint64_t bytes, std::uint64_t released_total) {
  Outlet& from = streams_.outlet(stream);
  if (bytes > 0) from.sent(bytes);
  from.released(released_total);
  if (is_link_stream(stream)) return;  // It has no chunks.
  for (std::uint32_t owner = from.next_released(); owner != kNoOwner; owner = from.next_released()) {
    target_.on_released(owner);
  }
  initiator_.on_released(streams_.outlets());
}

bool Machine::has_unsent() const {
  return streams_.has_unsent() || initiator_.has_bulk() || target_.has_replies(false) || target_.has_replies(true) ||
         target_.has_rests() || streams_.has_unsent_links();
}

Status Machine::begin_turn() {
  target_.recheck(streams_.inlets(), streams_.outlets());
  if (!wants(0)) HAWSER_TRY(process(0));
  return resume_waiting();
}

Status Machine::received(unsigned stream, std::uint64_t bytes) {
  streams_.inlet(stream).received(bytes);
  HAWSER_TRY(process(stream));
  return stream == 0 || reader_.awaits_others() ? resume_waiting() : Status();
}

/// Messages on other streams may have waited for those that just came.
Status Machine::resume_waiting() {
  for (MessageReader::Streams left = reader_.waiting() & ~MessageReader::Streams{1}; left != 0; left &= left - 1) {
    HAWSER_TRY(process(static_cast<unsigned>(std::countr_zero(left))));
  }
  return Status();
}

Status Machine::process(unsigned stream) {
  Inlet& from = streams_.inlet(stream);
  while (true) {
    if (reader_.must_wait(stream)) return Status();
    const bool was_held = reader_.take_held(stream);
    switch (was_held ? Inlet::Next::kFrame : from.next()) {
      case Inlet::Next::kMore:
        return Status();
      case Inlet::Next::kCorrupt:
        return corrupt(stream, from.head());
      case Inlet::Next::kPayload:
        if (!on_payload(stream, from)) return corrupt(stream, from.head());
        break;
      case Inlet::Next::kFrame:
        if (!was_held && reader_.holds(stream, from.head())) break;
        if (!on_frame(stream, from)) return corrupt(stream, from.head());
        break;
    }
  }
}

bool Machine::on_frame(unsigned stream, Inlet& inlet) {
  if (is_link_stream(stream)) return inlet.head().type == wire::FrameType::kMessage && on_message(stream, inlet);
  if (stream == 0 && inlet.head().payload_size <= small_max_) {
    const wire::FrameType type = inlet.head().type;
    small_seen_ = small_seen_ || type == wire::FrameType::kWrite ||
                  (type == wire::FrameType::kMessage && (inlet.head().flags & wire::kFlagAside) == 0);
  }
  switch (inlet.head().type) {
    case wire::FrameType::kWrite:
      return target_.on_write(stream, inlet);
    case wire::FrameType::kRead:
      return stream == 0 && target_.on_read(inlet.meta(), streams_.outlets());
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
      return stream == 0 && words_.on_word(inlet);
    case wire::FrameType::kVoid:
      return stream == 0 && target_.on_void(inlet.meta(), streams_.inlets());
    case wire::FrameType::kIdentity:
      return stream == 0 && words_.on_identity(inlet);
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
      reader_.on_message_end(stream);
      return true;
    case wire::FrameType::kIdentity:
      words_.on_identity_end();
      return true;
    default:
      return true;
  }
}

bool Machine::on_message(unsigned stream, Inlet& inlet) {
  const std::uint8_t flags = inlet.head().flags;
  if (!reader_.on_message(stream, inlet)) return false;
  const bool is_urgent = wire::Link::at(flags & wire::kFlagsLink).priority() != Priority::kBulk;
  if (is_link_stream(stream) && is_urgent && (flags & wire::kFlagAside) == 0) small_seen_ = true;
  return true;
}

bool Machine::on_data(unsigned stream, Inlet& inlet) {
  data_tag_[stream] = base::load_little_endian<std::uint32_t>(inlet.meta().data());
  if (!initiator_.on_data(stream, data_tag_[stream], inlet, streams_.outlets())) return false;
  return inlet.in_payload() || initiator_.on_data_end(data_tag_[stream], inlet);
}

bool Machine::on_acks(const Inlet& inlet) {
  base::ByteReader in(inlet.meta());
  if (in.remaining() % 4 != 0) return false;
  while (!in.at_end()) {
    std::uint32_t tag = 0;
    wire::Outcome outcome = wire::Outcome::kOk;
    if (!wire::decode_ack(in.u32(), &tag, &outcome) || !initiator_.on_ack(tag, outcome, streams_.outlets())) {
      return false;
    }
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

Status Machine::corrupt(unsigned stream, const wire::FrameHead& head) const {
  return Status(Code::kCorrupt,
                base::format("{} sent a senseless frame on stream {} (type {}, meta {} bytes, payload {})", peer_,
                             stream, static_cast<unsigned>(head.type), head.meta_size, head.payload_size))
      .with_peer(peer_)
      .with_scope(Scope::kPath)
      .with_advice("the two ends run versions that do not fit together, or something else speaks on that port");
}

void Machine::fail(const Status& why) {
  initiator_.fail(why, streams_.outlets());
  target_.clear();
  streams_.clear();
  reader_.clear();
}

}  // namespace hawser::backend::stream
