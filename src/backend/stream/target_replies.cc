// The half of Target that answers reads: in frames of at most wire::kDataMax, each straight from the region.

#include <utility>

#include "backend/stream/frame_writer.h"
#include "backend/stream/target.h"

namespace hawser::backend::stream {
namespace {

/// Periods (Machine::next_memory_period) after which a stream must have let go of a closed region's memory,
constexpr std::uint32_t kKeepPeriods = 20;
/// a peer that does not move must give back memory of the desk,
constexpr std::uint32_t kStillPeriods = 40;
/// and one that moves a little at a time, too.
constexpr std::uint32_t kHoldPeriods = 400;

}  // namespace

void Target::frame_reply(bool bulk, unsigned stream, Outlet& outlet) {
  const std::uint32_t number = replies_[bulk ? 1 : 0].pop();
  Reply& reply = reads_[number];
  reply.stream = static_cast<std::uint8_t>(stream);
  reply.state = Reply::State::kSending;
  reply.begin = outlet.end();
  bytes_out_ += reply.bytes;
  if (reply.bytes > kInlineMax) return frame_data(number, stream, outlet);
  FrameWriter frame(outlet,
                    {.type = wire::FrameType::kData,
                     .flags = wire::kFlagLast,
                     .meta_size = 4,
                     .payload_size = static_cast<std::uint32_t>(reply.bytes)},
                    true);
  frame.meta().u32(reply.tag);
  frame.inline_payload(reply.pieces);
  free_reply(number);
}

void Target::frame_data(std::uint32_t number, unsigned stream, Outlet& outlet) {
  Reply& reply = reads_[number];
  const std::uint64_t size = std::min<std::uint64_t>(wire::kDataMax, reply.bytes - reply.framed);
  const bool last = reply.framed + size == reply.bytes;
  FrameWriter frame(outlet, {.type = wire::FrameType::kData,
                             .flags = static_cast<std::uint8_t>(wire::kFlagTrailer | (last ? wire::kFlagLast : 0)),
                             .meta_size = 4,
                             .payload_size = static_cast<std::uint32_t>(size)});
  frame.meta().u32(reply.tag);
  frame.payload(reply.pieces, reply.place, number);
  reply.end = outlet.end();
  reply.place.advance(reply.pieces, size);
  reply.framed += size;
  ++reply.frames;
  if (last) {
    reply.state = Reply::State::kSent;
  } else {
    rests_[stream].push(number);
  }
}

// The region closed between two frames.
void Target::frame_end(std::uint32_t number, Outlet& outlet) {
  Reply& reply = reads_[number];
  FrameWriter frame(outlet, {.type = wire::FrameType::kData,
                             .flags = wire::kFlagTrailer | wire::kFlagLast,
                             .meta_size = 4,
                             .payload_size = 0});
  frame.meta().u32(reply.tag);
  frame.trailer(reply.outcome);
  reply.end = outlet.end();
  reply.state = Reply::State::kSent;
  if (reply.frames == 0) free_reply(number);
}

void Target::frame_rest(unsigned stream, Outlet& outlet) {
  const std::uint32_t number = rests_[stream].pop();
  if (reads_[number].outcome == wire::Outcome::kOk) {
    frame_data(number, stream, outlet);
  } else {
    frame_end(number, outlet);
  }
}

void Target::on_released(std::uint32_t owner) {
  Reply& reply = reads_[owner];
  if (--reply.frames > 0 || reply.state != Reply::State::kSent) return;
  free_reply(owner);
}

void Target::free_reply(std::uint32_t number) {
  Reply& reply = reads_[number];
  if (reply.stopped && !reply.quiet) --kept_;
  reply.stopped = false;
  reply.state = Reply::State::kFree;
  reply.charge.release();
  unstage(reply.staged);
  --reads_used_;
}

// An answer of which nothing was framed.
void Target::withdraw(Reply& reply) {
  const auto number = static_cast<std::uint32_t>(&reply - reads_.data());
  for (auto& replies : replies_) {
    replies.filter([number](std::uint32_t waiting) { return waiting != number; });
  }
  free_reply(number);
}

// An answer whose memory is taken back. Nothing of it was sent: an acknowledgement says why. A frame that has begun is
// completed with filler, and says it in its trailer; between two frames one of no bytes does.
void Target::stop_sending(Reply& reply, wire::Outcome outcome, Outlet& outlet) {
  const auto number = static_cast<std::uint32_t>(&reply - reads_.data());
  const Outlet::Stopped stopped = outlet.stop_owner(number, outcome);
  reply.stopped = true;
  reply.quiet = stopped.quiet;
  if (!reply.quiet) {
    reply.keep_period = keep_period_;
    ++kept_;
  }
  const bool whole = reply.state == Reply::State::kSent && !stopped.withdrawn && !stopped.voided;
  if (whole) return;
  auto& rest = rests_[reply.stream];
  rest.filter([number](std::uint32_t waiting) { return waiting != number; });
  if (stopped.voided) {
    reply.state = Reply::State::kSent;
  } else if (outlet.sent_end() <= reply.begin) {
    acks_.push(wire::ack_entry(reply.tag, outcome));
    reply.state = Reply::State::kSent;
  } else {
    reply.outcome = outcome;
    reply.state = Reply::State::kSending;
    rest.push(number);
  }
  if (reply.state == Reply::State::kSent && reply.frames == 0) free_reply(number);
}

bool Target::stop_reply(Reply& reply, wire::Outcome outcome, std::span<Outlet> outlets) {
  // The desk knows whether it touches the file still; what it has read is this agent's own memory.
  const bool is_own = reply.state == Reply::State::kLoading || reply.staged;
  if (is_own && outcome == wire::Outcome::kClosed && reply.state != Reply::State::kWaiting) return true;
  if (reply.state == Reply::State::kWaiting) {
    acks_.push(wire::ack_entry(reply.tag, outcome));
    withdraw(reply);
    return true;
  }
  if (!reply.stopped) {
    const auto number = static_cast<std::size_t>(&reply - reads_.data());
    stop_sending(reply, outcome, outlets[reply.stream]);
    return reads_[number].state == Reply::State::kFree || reads_[number].quiet;
  }
  return reply.quiet;
}

bool Target::has_patience(Patience& patience, std::uint64_t position) const {
  if (patience.moved != position || patience.since == 0) {
    patience.moved = position;
    patience.moved_in = keep_period_;
    if (patience.since == 0) patience.since = keep_period_;
  }
  return keep_period_ - patience.moved_in < kStillPeriods && keep_period_ - patience.since < kHoldPeriods;
}

// Staging is for peers that move: one that does not read what it asked for, or send what it announced, loses its place.
void Target::take_back_staged(std::span<Inlet> inlets, std::span<Outlet> outlets) {
  for (std::size_t stream = 0; stream < inlets.size(); ++stream) {
    Landing& landing = landings_[stream];
    if (!landing.active || !landing.staged || has_patience(landing.patience, inlets[stream].landed())) continue;
    landing.outcome = wire::Outcome::kNoRoom;
    inlets[stream].drop();
    unstage(landing.staged);
  }
  std::uint64_t sent = 0;
  for (const Outlet& outlet : outlets) sent += outlet.sent_end();
  for (Reply& reply : reads_) {
    const bool waits = reply.state == Reply::State::kWaiting || reply.state == Reply::State::kSending ||
                       reply.state == Reply::State::kSent;
    if (!waits || !reply.staged || reply.stopped) continue;
    // One that waits has no stream yet.
    const bool is_on_stream = reply.state != Reply::State::kWaiting;
    if (has_patience(reply.patience, is_on_stream ? outlets[reply.stream].sent_end() : sent)) continue;
    static_cast<void>(stop_reply(reply, wire::Outcome::kNoRoom, outlets));
    if (reply.quiet) unstage(reply.staged);
  }
}

bool Target::next_keep_period(std::span<Inlet> inlets, std::span<Outlet> outlets) {
  const bool is_late = std::ranges::any_of(reads_, [this](const Reply& reply) {
    return reply.state != Reply::State::kFree && reply.stopped && !reply.quiet &&
           keep_period_ - reply.keep_period > kKeepPeriods;
  });
  ++keep_period_;
  if (staged_ > 0) take_back_staged(inlets, outlets);
  return !is_late;
}

}  // namespace hawser::backend::stream
