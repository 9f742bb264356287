#include "backend/stream/machine.h"

#include <algorithm>
#include <utility>

#include "backend/stream/frame_writer.h"
#include "base/format.h"
#include "base/planted.h"

namespace hawser::backend::stream {

Machine::Machine(RegionTable& regions, EventQueue& events, Path* path, MachineOptions options, FileDesk* files)
    : events_(events),
      path_(path),
      options_(std::move(options)),
      initiator_(events, path, {.peer = options_.peer, .small_max = options_.small_max}),
      target_(regions, events, path, files, options_.peer, options_.small_max, options_.account),
      messages_out_(options_.is_apart) {
  HAWSER_ASSERT(options_.streams >= 1 && options_.streams <= kStreamsMax, "a path has 1 to 8 streams");
}

std::uint32_t Machine::submit(std::span<const Chunk> chunks) {
  std::uint32_t taken = 0;
  for (const Chunk& chunk : chunks) {
    if (!initiator_.take(chunk, outlets_[0])) break;
    ++taken;
    ++counts_.chunks;
    if (chunk.op == Operation::kWrite) write_bytes_ += chunk.bytes;
    if (chunk.bytes <= options_.small_max) small_seen_ = true;
  }
  return taken;
}

bool Machine::send(wire::Link link, std::span<const std::byte> head, std::span<const std::byte> body) {
  const unsigned stream = messages_out_.stream_for(link);
  const std::uint64_t ahead = base::planted(base::Planted::kGreetingOvertaken) ? 0 : messages_out_.ahead(link);
  if (!put_message(stream, static_cast<std::uint8_t>(link.index()), {&ahead, stream == 0 ? 0U : 1U}, head, body)) {
    return false;
  }
  small_seen_ = small_seen_ || stream == 0 || link.priority() != Priority::kBulk;
  if (stream == 0 && options_.is_apart) note_link(link);
  return true;
}

bool Machine::send_first(std::span<const std::byte> head, std::span<const std::byte> body) {
  if (!send(Priority::kRealtime, head, body)) return false;
  messages_out_.greeted();
  return true;
}

bool Machine::send_last(std::span<const std::byte> head, std::span<const std::byte> body) {
  const unsigned stream = messages_out_.last_stream();
  const std::array<std::uint64_t, 2> meta = {messages_out_.urgent(), messages_out_.others()};
  const auto flags =
      static_cast<std::uint8_t>(wire::Link(Priority::kBulk).index() | (stream == 0 ? 0 : wire::kFlagLastMessage));
  said_last_ = put_message(stream, flags, {meta.data(), stream == 0 ? 0 : meta.size()}, head, body);
  return said_last_;
}

bool Machine::put_message(unsigned stream, std::uint8_t flags, std::span<const std::uint64_t> meta,
                          std::span<const std::byte> head, std::span<const std::byte> body) {
  const std::size_t size = head.size() + body.size();
  HAWSER_ASSERT(size <= wire::kMessagePayloadMax, "a message is larger than the contract allows");
  if (said_last_) return false;
  Outlet& to = outlet(stream);
  if (stream == messages_out_.bulk_stream() && messages_out_.owes_chunk()) let_chunk_go(stream);
  if (!to.has_room(wire::lead_size(meta.size_bytes()) + wire::padded(size))) return false;
  FrameWriter frame(to, {.type = wire::FrameType::kMessage,
                         .flags = flags,
                         .meta_size = static_cast<std::uint16_t>(meta.size_bytes()),
                         .payload_size = static_cast<std::uint32_t>(size)});
  for (const std::uint64_t number : meta) frame.meta().u64(number);
  to.add_bytes(head);
  to.add_bytes(body);
  FrameWriter::pad(to, size);
  messages_out_.sent(stream, size);
  ++counts_.messages_out;
  return true;
}

/// Messages of it went or came on stream 0, which may have a stream of their own.
void Machine::note_link(wire::Link link) {
  const std::uint32_t bit = std::uint32_t{1} << link.index();
  if (!has_own_stream(link) || (used_ & bit) != 0) return;
  used_ |= bit;
  unopened_ |= bit;
}

void Machine::open_stream(unsigned stream) {
  if (is_link_stream(stream)) {
    links_[stream - kStreamsMax] = std::make_unique<LinkStream>();
  } else {
    open_[stream] = true;
  }
  messages_out_.open(stream);
}

bool Machine::has_unsent_links() const {
  return std::ranges::any_of(links_, [](const auto& link) { return link != nullptr && link->outlet.has_unsent(); });
}

// Bulk messages take what room there is, and chunks come only when a stream runs dry: they would never have a turn.
void Machine::let_chunk_go(unsigned stream) {
  messages_out_.chunk_sent();
  if (has_waiting(stream) && outlets_[stream].has_room(kFrameRoom)) frame_next(stream);
}

bool Machine::send_number(wire::FrameType type, std::uint64_t number) {
  if (!outlets_[0].has_room(wire::lead_size(8))) return false;
  FrameWriter(outlets_[0], {.type = type, .meta_size = 8}).meta().u64(number);
  return true;
}

void Machine::bye(Code code, std::string_view reason) {
  std::string meta;
  base::ByteWriter out(&meta);
  wire::encode_bye(out, {.code = code, .reason = std::string(reason), .messages = messages_out_.others()});
  said_bye_ = true;
  if (!outlets_[0].has_room(wire::lead_size(meta.size()))) return;
  FrameWriter frame(outlets_[0], {.type = wire::FrameType::kBye, .meta_size = static_cast<std::uint16_t>(meta.size())});
  frame.meta().bytes(base::as_bytes(meta));
}

bool Machine::tell_identity(std::span<const std::byte> proof) {
  Outlet& outlet = outlets_[0];
  if (!outlet.has_room(wire::lead_size(0) + wire::padded(proof.size()))) return false;
  FrameWriter(outlet, {.type = wire::FrameType::kIdentity, .payload_size = static_cast<std::uint32_t>(proof.size())});
  outlet.add_bytes(proof);
  FrameWriter::pad(outlet, proof.size());
  return true;
}

bool Machine::carries_bulk(unsigned stream) const {
  if (stream > 0 || options_.streams == 1) return true;
  return std::none_of(open_.begin() + 1, open_.begin() + options_.streams, [](bool open) { return open; });
}

bool Machine::has_waiting(unsigned stream) const {
  if (target_.has_rest(stream) || (stream == 0 && target_.has_replies(false))) return true;
  return carries_bulk(stream) && (initiator_.has_bulk() || target_.has_replies(true));
}

void Machine::frame_next(unsigned stream) {
  Outlet& outlet = outlets_[stream];
  if (stream == 0 && target_.has_replies(false)) {
    target_.frame_reply(false, stream, outlet);
    return;
  }
  const bool bulk = carries_bulk(stream) && initiator_.has_bulk();
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
  if (is_link_stream(stream)) return link_stream(stream).outlet.has_unsent();
  Outlet& outlet = outlets_[stream];
  if (stream != 0 && said_bye_) return outlet.has_unsent();
  if (initiator_.has_notes(stream)) initiator_.stage_notes(stream, outlet);
  while (has_waiting(stream) && outlet.unsent_bytes() < ahead && outlet.has_room(kFrameRoom)) frame_next(stream);
  if (stream == 0 && target_.has_acks() && (flush_ || outlet.has_unsent())) target_.stage_acks(outlet);
  if (stream == 0) flush_ = false;
  return outlet.has_unsent();
}

void Machine::sent(unsigned stream, std::uint64_t bytes, std::uint64_t released_total) {
  Outlet& from = outlet(stream);
  if (bytes > 0) from.sent(bytes);
  from.released(released_total);
  if (is_link_stream(stream)) return;  // It has no chunks.
  for (std::uint32_t owner = from.next_released(); owner != kNoOwner; owner = from.next_released()) {
    target_.on_released(owner);
  }
  initiator_.on_released(outlets());
}

bool Machine::has_unsent() const {
  for (unsigned stream = 0; stream < options_.streams; ++stream) {
    if (outlets_[stream].has_unsent()) return true;
  }
  return initiator_.has_bulk() || target_.has_replies(false) || target_.has_replies(true) || target_.has_rests() ||
         has_unsent_links();
}

ControlNews Machine::take_news(bool is_over) {
  ControlNews news = std::exchange(news_, ControlNews());
  if (news.bye && !is_over && !is_bye_due(*news.bye)) news_.bye.swap(news.bye);
  return news;
}

void Machine::fail(const Status& why) {
  initiator_.fail(why, outlets());
  target_.clear();
  for (Outlet& outlet : outlets()) outlet.clear();
  for (Inlet& inlet : inlets()) inlet.clear();
  for (const auto& link : links_) {
    if (link == nullptr) continue;
    link->outlet.clear();
    link->inlet.clear();
    link->incoming = {};
  }
  incoming_ = {};
}

}  // namespace hawser::backend::stream
