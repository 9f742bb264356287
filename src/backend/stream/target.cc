#include "backend/stream/target.h"

#include <algorithm>

#include "backend/stream/frame_writer.h"
#include "base/planted.h"

namespace hawser::backend::stream {
namespace {

/// Answers that streams may hold on to after they were sent.
constexpr std::uint32_t kReadsHeldMax = 16 * kReadsMax;

}  // namespace

bool Target::on_bind(unsigned stream, std::span<const std::byte> meta) {
  base::ByteReader in(meta);
  wire::Bind bind;
  if (!wire::decode_bind(in, &bind) || !in.finished()) return false;
  const auto bit = static_cast<std::uint8_t>(1u << stream);
  if (bindings_.size() == kBindingsMax && !bindings_.contains(bind.binding)) return false;
  Bound& bound = bindings_[bind.binding];
  if (bound.announced != 0) {  // Known from another stream: it must be the same.
    if ((bound.announced & bit) != 0 || bound.index != bind.index || bound.generation != bind.generation) return false;
    bound.announced |= bit;
    return true;
  }
  bound = Bound{.index = bind.index, .generation = bind.generation, .announced = bit};
  const auto entry = regions_.find(bind.index, bind.generation, bind.key, Rights::kNone);
  if (!entry) return true;  // Told to the peer when it uses it.
  bound.file = (*entry)->file;
  const bool is_reached =
      bound.file != nullptr ? files_ != nullptr && files_->open() : (*entry)->device.kind == DeviceKind::kHost;
  if (!is_reached) return true;
  bound.base = (*entry)->base;
  bound.size = (*entry)->size;
  bound.rights = (*entry)->rights;
  bound.valid = true;
  return true;
}

bool Target::on_unbind(unsigned stream, std::span<const std::byte> meta) {
  base::ByteReader in(meta);
  const auto found = bindings_.find(in.u32());
  const auto bit = static_cast<std::uint8_t>(1u << stream);
  if (!in.finished() || found == bindings_.end() || (found->second.announced & bit) == 0) return false;
  found->second.announced = static_cast<std::uint8_t>(found->second.announced & ~bit);
  if (found->second.announced == 0) bindings_.erase(found);
  return true;
}

wire::Outcome Target::resolve(std::uint32_t binding, Rights right, std::span<const wire::RemotePiece> pieces,
                              std::vector<Piece>& out, Bound* found) {
  const auto at = bindings_.find(binding);
  if (at == bindings_.end() || !at->second.valid) return wire::Outcome::kDenied;
  const Bound& bound = at->second;
  const bool allowed = allows(bound.rights, right) || base::planted(base::Planted::kRightsUnchecked);
  if (!allowed) return wire::Outcome::kDenied;
  const bool open =
      regions_.is_open(bound.index, bound.generation) || base::planted(base::Planted::kGenerationUnchecked);
  if (!open) return wire::Outcome::kClosed;
  out.resize(pieces.size());
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    const bool inside =
        in_bounds(pieces[i].remote, pieces[i].size, bound.size) || base::planted(base::Planted::kBoundsUnchecked);
    if (!inside) return wire::Outcome::kOutOfBounds;
    out[i] = bound.file != nullptr ? Piece{.local = nullptr, .remote = pieces[i].remote, .size = pieces[i].size}
                                   : Piece{.local = bound.base + pieces[i].remote, .remote = 0, .size = pieces[i].size};
  }
  *found = bound;
  return wire::Outcome::kOk;
}

bool Target::acknowledge(std::uint32_t tag, wire::Outcome outcome) {
  // A peer that keeps to its own bound never has more to be acknowledged.
  if (acks_.count() >= kChunksMax) return false;
  acks_.push(wire::ack_entry(tag, outcome));
  return true;
}

bool Target::on_write(unsigned stream, Inlet& inlet) {
  base::ByteReader in(inlet.meta());
  Landing& landing = landings_[stream];
  std::array<wire::RemotePiece, wire::kPiecesMax> pieces;
  if (!wire::decode_chunk(in, &landing.chunk)) return false;
  const std::size_t count = wire::decode_pieces(in, inlet.head().payload_size, pieces);
  if (count == 0 || acks_.count() >= kChunksMax) return false;
  Bound bound;
  landing.outcome =
      resolve(landing.chunk.binding, Rights::kWrite, std::span(pieces).first(count), landing.pieces, &bound);
  landing.covered = (inlet.head().flags & wire::kFlagCovered) != 0;
  landing.region = bound.index;
  landing.generation = bound.generation;
  landing.active = true;
  landing.file.reset();
  if (base::planted(base::Planted::kAckBeforeLanding)) acks_.push(wire::ack_entry(landing.chunk.tag, landing.outcome));
  if (landing.outcome == wire::Outcome::kOk && bound.file != nullptr) land_in_file(bound, landing, inlet);
  if (inlet.head().payload_size == 0) {
    on_write_end(stream, inlet);
  } else if (landing.file != nullptr) {
    if (landing.outcome == wire::Outcome::kOk) inlet.land({&landing.whole, 1});
  } else if (landing.outcome == wire::Outcome::kOk) {
    inlet.land(landing.pieces);
  }
  return true;
}

void Target::on_write_end(unsigned stream, const Inlet& inlet) {
  Landing& landing = landings_[stream];
  landing.active = false;
  if (landing.file != nullptr && landing.outcome == wire::Outcome::kOk) return write_file(landing, inlet);
  unstage(landing.staged);
  if (!base::planted(base::Planted::kAckBeforeLanding)) acks_.push(wire::ack_entry(landing.chunk.tag, landing.outcome));
  if (landing.outcome != wire::Outcome::kOk) return;
  bytes_in_ += inlet.head().payload_size;
  if (landing.covered) events_.arrival(path_, landing.chunk.transfer, landing.chunk.index);
}

// A read counts until its answer is wholly sent: then the peer may have it, and ask for the next, before the stream
// lets go of it.
bool Target::has_read_credit(std::span<const Outlet> outlets) const {
  if (reads_used_ < kReadsMax) return true;
  if (reads_used_ >= kReadsHeldMax) return false;
  const auto is_open = [outlets](const Reply& reply) {
    return reply.state == Reply::State::kWaiting || reply.state == Reply::State::kLoading ||
           (reply.state == Reply::State::kFramed && outlets[reply.stream].sent_end() < reply.end);
  };
  return std::count_if(reads_.begin(), reads_.end(), is_open) < static_cast<std::ptrdiff_t>(kReadsMax);
}

bool Target::on_read(std::span<const std::byte> meta, std::span<const Outlet> outlets) {
  base::ByteReader in(meta);
  wire::ChunkHead chunk;
  std::array<wire::RemotePiece, wire::kPiecesMax> pieces;
  if (!wire::decode_chunk(in, &chunk)) return false;
  const std::uint32_t total = in.u32();
  if (total > wire::kPayloadMax) return false;
  const std::size_t count = wire::decode_pieces(in, total, pieces);
  if (count == 0 || !has_read_credit(outlets)) return false;
  std::uint32_t number = 0;
  while (number < reads_.size() && reads_[number].state != Reply::State::kFree) ++number;
  if (number == reads_.size()) reads_.emplace_back();
  Reply& reply = reads_[number];
  Bound bound;
  const wire::Outcome outcome =
      resolve(chunk.binding, Rights::kRead, std::span(pieces).first(count), reply.pieces, &bound);
  if (outcome != wire::Outcome::kOk) return acknowledge(chunk.tag, outcome);
  reply.stopped = reply.quiet = false;
  reply.tag = chunk.tag;
  reply.region = bound.index;
  reply.generation = bound.generation;
  reply.bytes = total;
  if (bound.file != nullptr) return load(number, chunk, bound);
  reply.state = Reply::State::kWaiting;
  ++reads_used_;
  replies_[total > small_max_ ? 1 : 0].push(number);
  return true;
}

bool Target::on_landed(std::span<const std::byte> meta) {
  if (meta.size() % 12 != 0) return false;
  base::ByteReader in(meta);
  while (!in.at_end()) {
    const std::uint64_t transfer = in.u64();
    events_.arrival(path_, transfer, in.u32());
  }
  return true;
}

void Target::frame_reply(bool bulk, unsigned stream, Outlet& outlet) {
  const std::uint32_t number = replies_[bulk ? 1 : 0].pop();
  Reply& reply = reads_[number];
  const bool copied = reply.bytes <= kInlineMax;
  FrameWriter frame(
      outlet, {.type = wire::FrameType::kData, .meta_size = 4, .payload_size = static_cast<std::uint32_t>(reply.bytes)},
      copied);
  frame.meta().u32(reply.tag);
  bytes_out_ += reply.bytes;
  if (copied) {
    frame.inline_payload(reply.pieces);
    on_released(number);
    return;
  }
  reply.head = frame.head();
  reply.begin = frame.begin();
  reply.end = frame.payload(reply.pieces, number);
  reply.state = Reply::State::kFramed;
  reply.stream = static_cast<std::uint8_t>(stream);
}

void Target::on_released(std::uint32_t owner) {
  Reply& reply = reads_[owner];
  if (reply.state == Reply::State::kFramed && reply.stopped && !reply.quiet) --kept_;
  reply.state = Reply::State::kFree;
  unstage(reply.staged);
  --reads_used_;
}

void Target::stage_acks(Outlet& control) {
  while (!acks_.empty() && control.has_room(kFrameRoom)) {
    const std::size_t count = std::min(acks_.count(), wire::kAcksMax);
    FrameWriter frame(control, {.type = wire::FrameType::kAck, .meta_size = static_cast<std::uint16_t>(count * 4)});
    for (std::size_t i = 0; i < count; ++i) frame.meta().u32(acks_.pop());
  }
}

void Target::stop_landing(Landing& landing, Inlet& inlet) {
  if (base::planted(base::Planted::kLandingNotStopped)) return;
  const bool midway = inlet.landed() > 0 && landing.file == nullptr;  // The file itself has nothing of it yet.
  landing.outcome = midway ? wire::Outcome::kClosedMidway : wire::Outcome::kClosed;
  inlet.drop();
}

// An answer from a region that closed: taken back if nothing of it was sent; else its frame must be completed, with a
// copy of what the region held when it closed.
bool Target::stop_reply(Reply& reply, std::span<Outlet> outlets) {
  // The desk knows whether it touches the file still; what it has read is this agent's own memory.
  if (reply.state == Reply::State::kLoading || (reply.state == Reply::State::kFramed && reply.staged)) return true;
  if (reply.state == Reply::State::kWaiting) {
    const auto number = static_cast<std::uint32_t>(&reply - reads_.data());
    for (auto& replies : replies_) {
      replies.filter([number](std::uint32_t waiting) { return waiting != number; });
    }
    acks_.push(wire::ack_entry(reply.tag, wire::Outcome::kClosed));
    on_released(number);
    return true;
  }
  Outlet& outlet = outlets[reply.stream];
  if (reply.stopped) return reply.quiet;
  reply.stopped = true;
  const bool unsent = outlet.sent_end() <= reply.begin;
  if (unsent) {
    make_skip(reply.head, reply.bytes, false);
    acks_.push(wire::ack_entry(reply.tag, wire::Outcome::kClosed));
  }
  reply.quiet = outlet.let_go(reply.end, unsent);
  if (!reply.quiet) {
    reply.keep_period = keep_period_;
    ++kept_;
  }
  return reply.quiet;
}

bool Target::next_keep_period() {
  const bool is_late = std::ranges::any_of(reads_, [this](const Reply& reply) {
    return reply.state == Reply::State::kFramed && reply.stopped && !reply.quiet && reply.keep_period != keep_period_;
  });
  ++keep_period_;
  return !is_late;
}

void Target::recheck(std::span<Inlet> inlets, std::span<Outlet> outlets) {
  for (std::size_t stream = 0; stream < inlets.size(); ++stream) {
    Landing& landing = landings_[stream];
    if (!landing.active || landing.outcome != wire::Outcome::kOk) continue;
    if (!regions_.is_open(landing.region, landing.generation)) stop_landing(landing, inlets[stream]);
  }
  if (reads_used_ == 0) return;
  for (Reply& reply : reads_) {
    if (reply.state == Reply::State::kFree || regions_.is_open(reply.region, reply.generation)) continue;
    static_cast<void>(stop_reply(reply, outlets));
  }
}

bool Target::let_go_region(std::uint32_t index, std::uint32_t generation, std::span<Inlet> inlets,
                           std::span<Outlet> outlets) {
  for (std::size_t stream = 0; stream < inlets.size(); ++stream) {
    Landing& landing = landings_[stream];
    if (!landing.active || landing.outcome != wire::Outcome::kOk) continue;
    if (landing.region == index && landing.generation == generation) stop_landing(landing, inlets[stream]);
  }
  bool quiet = true;
  for (Reply& reply : reads_) {
    if (reply.state == Reply::State::kFree || reply.region != index || reply.generation != generation) continue;
    quiet = stop_reply(reply, outlets) && quiet;
  }
  return quiet;
}

void Target::clear() {
  if (files_ != nullptr) files_->abandon(this);
  for (Landing& landing : landings_) {
    landing.active = false;
    unstage(landing.staged);
  }
  for (Reply& reply : reads_) unstage(reply.staged);
  staged_ = 0;  // What jobs still hold goes back to the desk with them.
  reads_.clear();
  reads_used_ = kept_ = 0;
  for (auto& replies : replies_) replies.clear();
  acks_.clear();
  bindings_.clear();
}

}  // namespace hawser::backend::stream
