#include "backend/stream/read_replies.h"

#include <utility>

#include "backend/stream/frame_writer.h"
#include "base/bytes.h"

namespace hawser::backend::stream {

// A read counts until its answer is wholly sent: then the peer may have it, and ask for the next, before the stream
// lets go of it.
bool ReadReplies::has_credit(std::span<const Outlet> outlets) const {
  if (used_ < kReadsMax) return true;
  if (used_ >= kReadsHeldMax) return false;
  const auto is_open = [outlets](const Reply& reply) {
    return reply.state == State::kWaiting || reply.state == State::kLoading || reply.state == State::kSending ||
           (reply.state == State::kSent && outlets[reply.stream].sent_end() < reply.end);
  };
  return std::count_if(replies_.begin(), replies_.end(), is_open) < static_cast<std::ptrdiff_t>(kReadsMax);
}

ReadReplies::Reply& ReadReplies::free_place() {
  const auto is_free = [](const Reply& reply) { return reply.state == State::kFree; };
  const auto found = std::ranges::find_if(replies_, is_free);
  return found != replies_.end() ? *found : replies_.emplace_back();
}

bool ReadReplies::on_read(std::span<const std::byte> meta, std::span<const Outlet> outlets) {
  base::ByteReader in(meta);
  wire::ChunkHead chunk;
  std::array<wire::RemotePiece, wire::kPiecesMax> pieces;
  if (!wire::decode_chunk(in, &chunk)) return false;
  const std::uint32_t total = in.u32();
  if (total > wire::kPayloadMax) return false;
  const std::size_t count = wire::decode_pieces(in, total, pieces);
  if (count == 0 || !has_credit(outlets)) return false;
  Reply& reply = free_place();
  const auto [outcome, region] =
      serving_.regions.resolve(chunk, Rights::kRead, std::span(pieces).first(count), reply.pieces);
  if (outcome != wire::Outcome::kOk) return serving_.acks.try_add(chunk.tag, outcome);
  const wire::Outcome charged = serving_.charges.take(reply.charge, total);
  if (charged != wire::Outcome::kOk) return serving_.acks.try_add(chunk.tag, charged);
  reply.stopped = reply.quiet = false;
  reply.outcome = wire::Outcome::kOk;
  reply.frames = 0;
  reply.framed = 0;
  reply.place = PieceCursor();
  reply.place.advance(reply.pieces, 0);
  reply.tag = chunk.tag;
  reply.region = region->index;
  reply.generation = region->generation;
  reply.bytes = total;
  if (region->file != nullptr) return load(reply, chunk, *region);
  ++used_;
  queue(reply);
  return true;
}

void ReadReplies::queue(Reply& reply) {
  reply.state = State::kWaiting;
  waiting_[reply.bytes > small_max_ ? 1 : 0].push(number_of(reply));
}

bool ReadReplies::load(Reply& reply, const wire::ChunkHead& chunk, const BoundRegion& region) {
  FileJob job = serving_.desk.job(Operation::kRead, region, chunk, reply.bytes);
  job.memory = serving_.desk.stage(reply.bytes);
  if (!job.memory) {
    reply.charge.release();
    return serving_.acks.try_add(chunk.tag, wire::Outcome::kNoRoom);
  }
  reply.state = State::kLoading;
  ++used_;
  job.reply = number_of(reply);
  job.pieces = std::exchange(reply.pieces, {});
  DeskShare::place(job.pieces, job.memory.data());
  serving_.desk.start(std::move(job));
  return true;
}

void ReadReplies::on_file(FileJob& job) {
  Reply& reply = replies_[job.reply];
  reply.staged = std::move(job.memory);
  if (job.outcome != wire::Outcome::kOk) {
    serving_.acks.add(reply.tag, job.outcome);
    free(reply);
    return;
  }
  reply.pieces.assign(1, Piece{.local = reply.staged.data(), .remote = 0, .size = reply.bytes});
  reply.place = PieceCursor();
  reply.patience = StagingPatience();
  queue(reply);
}

void ReadReplies::frame_next(bool bulk, unsigned stream, Outlet& outlet) {
  Reply& reply = replies_[waiting_[bulk ? 1 : 0].pop()];
  reply.stream = static_cast<std::uint8_t>(stream);
  reply.state = State::kSending;
  reply.begin = outlet.end();
  bytes_ += reply.bytes;
  if (reply.bytes > kInlineMax) return frame_data(reply, outlet);
  FrameWriter frame(outlet,
                    {.type = wire::FrameType::kData,
                     .flags = wire::kFlagLast,
                     .meta_size = 4,
                     .payload_size = static_cast<std::uint32_t>(reply.bytes)},
                    true);
  frame.meta().u32(reply.tag);
  frame.inline_payload(reply.pieces);
  free(reply);
}

void ReadReplies::frame_data(Reply& reply, Outlet& outlet) {
  const std::uint64_t size = std::min<std::uint64_t>(wire::kDataMax, reply.bytes - reply.framed);
  const bool last = reply.framed + size == reply.bytes;
  FrameWriter frame(outlet, {.type = wire::FrameType::kData,
                             .flags = static_cast<std::uint8_t>(wire::kFlagTrailer | (last ? wire::kFlagLast : 0)),
                             .meta_size = 4,
                             .payload_size = static_cast<std::uint32_t>(size)});
  frame.meta().u32(reply.tag);
  frame.payload(reply.pieces, reply.place, number_of(reply));
  reply.end = outlet.end();
  reply.place.advance(reply.pieces, size);
  reply.framed += size;
  ++reply.frames;
  if (last) {
    reply.state = State::kSent;
  } else {
    rests_[reply.stream].push(number_of(reply));
  }
}

// The region closed between two frames.
void ReadReplies::frame_end(Reply& reply, Outlet& outlet) {
  FrameWriter frame(outlet, {.type = wire::FrameType::kData,
                             .flags = wire::kFlagTrailer | wire::kFlagLast,
                             .meta_size = 4,
                             .payload_size = 0});
  frame.meta().u32(reply.tag);
  frame.trailer(reply.outcome);
  reply.end = outlet.end();
  reply.state = State::kSent;
  if (reply.frames == 0) free(reply);
}

void ReadReplies::frame_rest(unsigned stream, Outlet& outlet) {
  Reply& reply = replies_[rests_[stream].pop()];
  if (reply.outcome == wire::Outcome::kOk) {
    frame_data(reply, outlet);
  } else {
    frame_end(reply, outlet);
  }
}

void ReadReplies::on_released(std::uint32_t owner) {
  Reply& reply = replies_[owner];
  if (--reply.frames == 0 && reply.state == State::kSent) free(reply);
}

void ReadReplies::free(Reply& reply) {
  if (reply.stopped && !reply.quiet) --kept_;
  reply.stopped = false;
  reply.state = State::kFree;
  reply.charge.release();
  serving_.desk.unstage(reply.staged);
  --used_;
}

// An answer of which nothing was framed.
void ReadReplies::withdraw(Reply& reply) {
  for (auto& waiting : waiting_) {
    waiting.filter([number = number_of(reply)](std::uint32_t each) { return each != number; });
  }
  free(reply);
}

// An answer whose memory is taken back. Nothing of it was sent: an acknowledgement says why. A frame that has begun is
// completed with filler, and says it in its trailer; between two frames one of no bytes does.
void ReadReplies::stop_sending(Reply& reply, wire::Outcome outcome, Outlet& outlet) {
  const std::uint32_t number = number_of(reply);
  const Outlet::Stopped stopped = outlet.stop_owner(number, outcome);
  reply.stopped = true;
  reply.quiet = stopped.quiet;
  if (!reply.quiet) {
    reply.keep_period = period_;
    ++kept_;
  }
  const bool whole = reply.state == State::kSent && !stopped.withdrawn && !stopped.voided;
  if (whole) return;
  auto& rest = rests_[reply.stream];
  rest.filter([number](std::uint32_t each) { return each != number; });
  if (stopped.voided) {
    reply.state = State::kSent;
  } else if (outlet.sent_end() <= reply.begin) {
    serving_.acks.add(reply.tag, outcome);
    reply.state = State::kSent;
  } else {
    reply.outcome = outcome;
    reply.state = State::kSending;
    rest.push(number);
  }
  if (reply.state == State::kSent && reply.frames == 0) free(reply);
}

// True: nothing refers to its memory any more.
bool ReadReplies::stop(Reply& reply, wire::Outcome outcome, std::span<Outlet> outlets) {
  // The desk knows whether it touches the file still; what it has read is this agent's own memory.
  const bool is_own = reply.state == State::kLoading || reply.staged;
  if (is_own && outcome == wire::Outcome::kClosed && reply.state != State::kWaiting) return true;
  if (reply.state == State::kWaiting) {
    serving_.acks.add(reply.tag, outcome);
    withdraw(reply);
    return true;
  }
  if (!reply.stopped) {
    stop_sending(reply, outcome, outlets[reply.stream]);
    return reply.state == State::kFree || reply.quiet;
  }
  return reply.quiet;
}

void ReadReplies::stop_closed(std::span<Outlet> outlets) {
  if (used_ == 0) return;
  for (Reply& reply : replies_) {
    if (reply.state == State::kFree || serving_.regions.is_open(reply.region, reply.generation)) continue;
    static_cast<void>(stop(reply, wire::Outcome::kClosed, outlets));
  }
}

bool ReadReplies::stop_region(std::uint32_t index, std::uint32_t generation, std::span<Outlet> outlets) {
  bool quiet = true;
  for (Reply& reply : replies_) {
    if (reply.state == State::kFree || reply.region != index || reply.generation != generation) continue;
    quiet = stop(reply, wire::Outcome::kClosed, outlets) && quiet;
  }
  return quiet;
}

bool ReadReplies::is_late() const {
  return std::ranges::any_of(replies_, [this](const Reply& reply) {
    return reply.state != State::kFree && reply.stopped && !reply.quiet && period_ - reply.keep_period > kKeepPeriods;
  });
}

// Staging is for peers that move: one that does not read what it asked for loses its place.
void ReadReplies::take_back_staged(std::span<Outlet> outlets) {
  std::uint64_t sent = 0;
  for (const Outlet& outlet : outlets) sent += outlet.sent_end();
  for (Reply& reply : replies_) {
    const bool waits = reply.state == State::kWaiting || reply.state == State::kSending || reply.state == State::kSent;
    if (!waits || !reply.staged || reply.stopped) continue;
    // One that waits has no stream yet.
    const bool is_on_stream = reply.state != State::kWaiting;
    if (reply.patience.lasts(is_on_stream ? outlets[reply.stream].sent_end() : sent, period_)) continue;
    static_cast<void>(stop(reply, wire::Outcome::kNoRoom, outlets));
    if (reply.quiet) serving_.desk.unstage(reply.staged);
  }
}

void ReadReplies::clear() {
  for (Reply& reply : replies_) serving_.desk.unstage(reply.staged);
  replies_.clear();
  used_ = kept_ = 0;
  for (auto& waiting : waiting_) waiting.clear();
  for (auto& rest : rests_) rest.clear();
}

}  // namespace hawser::backend::stream
