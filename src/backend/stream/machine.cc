#include "backend/stream/machine.h"

#include <algorithm>
#include <utility>

#include "backend/stream/frame_writer.h"
#include "base/format.h"

namespace hawser::backend::stream {

Machine::Machine(RegionTable& regions, EventQueue& events, Path* path, MachineOptions options, FileDesk* files)
    : events_(events),
      path_(path),
      options_(std::move(options)),
      initiator_(events, path, {.peer = options_.peer, .small_max = options_.small_max}),
      target_(regions, events, path, files, options_.peer, options_.small_max, options_.account) {
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

bool Machine::send(Priority priority, std::span<const std::byte> head, std::span<const std::byte> body) {
  const std::size_t size = head.size() + body.size();
  HAWSER_ASSERT(size <= wire::kMessagePayloadMax, "a message is larger than the contract allows");
  const unsigned stream = priority == Priority::kBulk ? messages_out_.bulk_stream() : 0;
  Outlet& outlet = outlets_[stream];
  if (stream != 0 && messages_out_.owes_chunk()) let_chunk_go(stream);
  const std::size_t meta_size = stream == 0 ? 0 : wire::kAheadSize;
  if (!outlet.has_room(wire::lead_size(meta_size) + wire::padded(size))) return false;
  FrameWriter frame(outlet, {.type = wire::FrameType::kMessage,
                             .flags = static_cast<std::uint8_t>(priority),
                             .meta_size = static_cast<std::uint16_t>(meta_size),
                             .payload_size = static_cast<std::uint32_t>(size)});
  if (stream != 0) frame.meta().u64(messages_out_.urgent());
  outlet.add_bytes(head);
  outlet.add_bytes(body);
  FrameWriter::pad(outlet, size);
  messages_out_.sent(stream, size);
  ++counts_.messages_out;
  small_seen_ = small_seen_ || stream == 0;
  return true;
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
  wire::encode_bye(out, {.code = code, .reason = std::string(reason), .messages = messages_out_.bulk()});
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
  Outlet& outlet = outlets_[stream];
  if (stream != 0 && said_bye_) return outlet.has_unsent();
  if (initiator_.has_notes(stream)) initiator_.stage_notes(stream, outlet);
  while (has_waiting(stream) && outlet.unsent_bytes() < ahead && outlet.has_room(kFrameRoom)) frame_next(stream);
  if (stream == 0 && target_.has_acks() && (flush_ || outlet.has_unsent())) target_.stage_acks(outlet);
  if (stream == 0) flush_ = false;
  return outlet.has_unsent();
}

void Machine::sent(unsigned stream, std::uint64_t bytes, std::uint64_t released_total) {
  Outlet& outlet = outlets_[stream];
  if (bytes > 0) outlet.sent(bytes);
  outlet.released(released_total);
  for (std::uint32_t owner = outlet.next_released(); owner != kNoOwner; owner = outlet.next_released()) {
    target_.on_released(owner);
  }
  initiator_.on_released(outlets());
}

bool Machine::has_unsent() const {
  for (unsigned stream = 0; stream < options_.streams; ++stream) {
    if (outlets_[stream].has_unsent()) return true;
  }
  return initiator_.has_bulk() || target_.has_replies(false) || target_.has_replies(true) || target_.has_rests();
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
  incoming_ = {};
}

}  // namespace hawser::backend::stream
