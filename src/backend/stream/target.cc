#include "backend/stream/target.h"

#include <algorithm>

#include "backend/stream/frame_writer.h"
#include "base/planted.h"

namespace hawser::backend::stream {
namespace {

std::shared_ptr<PeerAccount> own_account() { return std::make_shared<PeerGuard>()->account({}); }

/// Answers that streams may hold on to after they were sent.
constexpr std::uint32_t kReadsHeldMax = 16 * kReadsMax;
constexpr std::uint32_t kAcksWaitingMax = 2 * kChunksMax;

}  // namespace

Target::Target(RegionTable& regions, EventQueue& events, Path* path, FileDesk* files, std::string peer,
               std::uint64_t small_max, std::shared_ptr<PeerAccount> account)
    : regions_(regions),
      events_(events),
      path_(path),
      files_(files),
      peer_(std::move(peer)),
      small_max_(small_max),
      account_(account != nullptr ? std::move(account) : own_account()) {}

bool Target::on_bind(unsigned stream, std::span<const std::byte> meta) {
  base::ByteReader in(meta);
  wire::Bind bind;
  if (!wire::decode_bind(in, &bind) || !in.finished()) return false;
  const auto bit = static_cast<std::uint8_t>(1u << stream);
  if (const auto known = bindings_.find(bind.binding); known != bindings_.end()) {  // From another stream.
    Bound& bound = known->second;
    if ((bound.announced & bit) != 0 || bound.index != bind.index || bound.generation != bind.generation) return false;
    bound.announced |= bit;
    return true;
  }
  const auto entry = regions_.find(bind.index, bind.generation, bind.key, Rights::kNone, account_->incarnation());
  if (!entry) return true;  // Nothing to remember: a binding that is not known is denied when it is used.
  if (!has_room_for_binding()) return false;
  Bound& bound = bindings_[bind.binding];
  bound = Bound{.index = bind.index, .generation = bind.generation, .announced = bit};
  bound.file = (*entry)->file;
  bound.file_offset = (*entry)->file_offset;
  bound.once = (*entry)->once;
  const bool is_reached =
      bound.file != nullptr ? files_ != nullptr && files_->open() : (*entry)->device.kind == DeviceKind::kHost;
  if (!is_reached) return true;
  bound.base = (*entry)->base;
  bound.size = (*entry)->size;
  bound.rights = (*entry)->rights;
  bound.valid = true;
  return true;
}

// Of regions that closed, the peer may not have heard yet.
bool Target::has_room_for_binding() {
  if (bindings_.size() < kBindingsFree) return true;
  const std::size_t most = kBindingsFree + 2 * std::size_t{regions_.count()};
  if (bindings_.size() < most) return true;
  std::erase_if(bindings_,
                [this](const auto& each) { return !regions_.is_open(each.second.index, each.second.generation); });
  return bindings_.size() < most;
}

bool Target::on_unbind(unsigned stream, std::span<const std::byte> meta) {
  base::ByteReader in(meta);
  const auto found = bindings_.find(in.u32());
  const auto bit = static_cast<std::uint8_t>(1u << stream);
  if (!in.finished()) return false;
  if (found == bindings_.end()) return true;  // It named no region that is known here.
  // Announced on this stream before the region was known under that key, or not at all.
  if ((found->second.announced & bit) == 0) return true;
  found->second.announced = static_cast<std::uint8_t>(found->second.announced & ~bit);
  if (found->second.announced == 0) bindings_.erase(found);
  return true;
}

wire::Outcome Target::resolve(const wire::ChunkHead& chunk, Rights right, std::span<const wire::RemotePiece> pieces,
                              std::vector<Piece>& out, Bound* found) {
  const auto at = bindings_.find(chunk.binding);
  if (at == bindings_.end() || !at->second.valid) return wire::Outcome::kDenied;
  const Bound& bound = at->second;
  const bool allowed = allows(bound.rights, right) || base::planted(base::Planted::kRightsUnchecked);
  if (!allowed) return wire::Outcome::kDenied;
  const bool open =
      regions_.is_open(bound.index, bound.generation) || base::planted(base::Planted::kGenerationUnchecked);
  if (!open) return wire::Outcome::kClosed;
  if (bound.once != nullptr && !bound.once->admits(account_->incarnation(), chunk.transfer) &&
      !base::planted(base::Planted::kSecondUseServed)) {
    return wire::Outcome::kClosed;  // For all that are not the one transfer it is.
  }
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
  // A peer that keeps to its own bound never has more to be acknowledged: each chunk once, and once more when it is
  // void.
  if (acks_.count() >= kAcksWaitingMax) return false;
  acks_.push(wire::ack_entry(tag, outcome));
  return true;
}

/// What the peer has under way here, by all of its paths, stays within its quotas.
wire::Outcome Target::charge(OperationCharge& charge, std::uint64_t bytes) {
  Quota over = Quota::kOperations;
  if (charge.take(*account_, bytes, &over)) return wire::Outcome::kOk;
  account_->refused(over, peer_, Clock::steady().now());
  owes_quotas_ = !told_quotas_;
  return over == Quota::kBytes ? wire::Outcome::kTooManyBytes : wire::Outcome::kTooManyOperations;
}

bool Target::on_write(unsigned stream, Inlet& inlet) {
  base::ByteReader in(inlet.meta());
  Landing& landing = landings_[stream];
  std::array<wire::RemotePiece, wire::kPiecesMax> pieces;
  if (!wire::decode_chunk(in, &landing.chunk)) return false;
  const std::size_t count = wire::decode_pieces(in, inlet.head().payload_size, pieces);
  if (count == 0 || acks_.count() >= kAcksWaitingMax) return false;
  Bound bound;
  landing.outcome = resolve(landing.chunk, Rights::kWrite, std::span(pieces).first(count), landing.pieces, &bound);
  landing.frame = inlet.frames() - 1;
  if (is_void(stream, landing.frame)) landing.outcome = wire::Outcome::kVoid;
  if (landing.outcome == wire::Outcome::kOk) landing.outcome = charge(landing.charge, inlet.head().payload_size);
  landing.covered = (inlet.head().flags & wire::kFlagCovered) != 0;
  landing.region = bound.index;
  landing.generation = bound.generation;
  landing.active = true;
  landing.file.reset();
  if (base::planted(base::Planted::kAckBeforeLanding)) acks_.push(wire::ack_entry(landing.chunk.tag, landing.outcome));
  if (landing.outcome == wire::Outcome::kOk && bound.file != nullptr) land_in_file(bound, landing, inlet);
  if (!inlet.in_payload()) {
    return on_write_end(stream, inlet);
  } else if (landing.file != nullptr) {
    if (landing.outcome == wire::Outcome::kOk) inlet.land({&landing.whole, 1});
  } else if (landing.outcome == wire::Outcome::kOk) {
    inlet.land(landing.pieces);
  }
  return true;
}

bool Target::on_write_end(unsigned stream, const Inlet& inlet) {
  Landing& landing = landings_[stream];
  landing.active = false;
  landing.charge.release();
  const bool counts = inlet.trailer() == 0 || base::planted(base::Planted::kVoidCounted);
  if (!counts && landing.outcome == wire::Outcome::kOk) landing.outcome = wire::Outcome::kVoid;
  if (landing.file != nullptr && landing.outcome == wire::Outcome::kOk) {
    write_file(landing, inlet);
    return true;
  }
  unstage(landing.staged);
  if (!base::planted(base::Planted::kAckBeforeLanding)) acks_.push(wire::ack_entry(landing.chunk.tag, landing.outcome));
  if (landing.outcome != wire::Outcome::kOk) return true;
  bytes_in_ += inlet.head().payload_size;
  if (landing.covered) events_.arrival(path_, landing.chunk.transfer, landing.chunk.index);
  return true;
}

// The initiator gave a write up and wants to know that nothing of it lands any more. One that has ended was, or will
// be, acknowledged as any other.
bool Target::on_void(std::span<const std::byte> meta, std::span<Inlet> inlets) {
  base::ByteReader in(meta);
  wire::VoidWrite write;
  if (!wire::decode_void(in, &write) || write.stream == 0 || write.stream >= inlets.size()) return false;
  Inlet& inlet = inlets[write.stream];
  Landing& landing = landings_[write.stream];
  if (write.frame >= inlet.frames()) {
    return keep_void(write, inlets) && acknowledge(write.tag, wire::Outcome::kVoidedClean);
  }
  if (!landing.active || landing.frame != write.frame || landing.chunk.tag != write.tag) return true;
  bool midway = landing.outcome == wire::Outcome::kClosedMidway;
  if (landing.outcome == wire::Outcome::kOk) {
    midway = inlet.landed() > 0 && landing.file == nullptr;
    landing.outcome = wire::Outcome::kVoid;
    inlet.drop();
    unstage(landing.staged);
  }
  return acknowledge(write.tag, midway ? wire::Outcome::kVoidedMidway : wire::Outcome::kVoidedClean);
}

bool Target::keep_void(const wire::VoidWrite& write, std::span<const Inlet> inlets) {
  if (voids_.size() == kChunksMax) {
    std::erase_if(voids_, [inlets](const auto& each) { return each.second < inlets[each.first].frames(); });
  }
  if (voids_.size() == kChunksMax) return false;
  voids_.emplace_back(write.stream, write.frame);
  return true;
}

bool Target::is_void(unsigned stream, std::uint64_t frame) {
  return !voids_.empty() && std::erase(voids_, std::pair(stream, frame)) > 0;
}

// A read counts until its answer is wholly sent: then the peer may have it, and ask for the next, before the stream
// lets go of it.
bool Target::has_read_credit(std::span<const Outlet> outlets) const {
  if (reads_used_ < kReadsMax) return true;
  if (reads_used_ >= kReadsHeldMax) return false;
  const auto is_open = [outlets](const Reply& reply) {
    return reply.state == Reply::State::kWaiting || reply.state == Reply::State::kLoading ||
           reply.state == Reply::State::kSending ||
           (reply.state == Reply::State::kSent && outlets[reply.stream].sent_end() < reply.end);
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
  const wire::Outcome outcome = resolve(chunk, Rights::kRead, std::span(pieces).first(count), reply.pieces, &bound);
  if (outcome != wire::Outcome::kOk) return acknowledge(chunk.tag, outcome);
  const wire::Outcome charged = charge(reply.charge, total);
  if (charged != wire::Outcome::kOk) return acknowledge(chunk.tag, charged);
  reply.stopped = reply.quiet = false;
  reply.outcome = wire::Outcome::kOk;
  reply.frames = 0;
  reply.framed = 0;
  reply.place = PieceCursor();
  reply.place.advance(reply.pieces, 0);
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

void Target::stage_acks(Outlet& control) {
  if (owes_quotas_ && control.has_room(kFrameRoom)) {
    FrameWriter frame(control, {.type = wire::FrameType::kQuotas, .meta_size = wire::kQuotasSize});
    const PeerQuotas& ours = account_->quotas();
    wire::encode_quotas(frame.meta(), {.operations = ours.operations, .bytes = ours.bytes});
    owes_quotas_ = false;
    told_quotas_ = true;
  }
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

void Target::recheck(std::span<Inlet> inlets, std::span<Outlet> outlets) {
  for (std::size_t stream = 0; stream < inlets.size(); ++stream) {
    Landing& landing = landings_[stream];
    if (!landing.active || landing.outcome != wire::Outcome::kOk) continue;
    if (!regions_.is_open(landing.region, landing.generation)) stop_landing(landing, inlets[stream]);
  }
  if (reads_used_ == 0) return;
  for (Reply& reply : reads_) {
    if (reply.state == Reply::State::kFree || regions_.is_open(reply.region, reply.generation)) continue;
    static_cast<void>(stop_reply(reply, wire::Outcome::kClosed, outlets));
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
    quiet = stop_reply(reply, wire::Outcome::kClosed, outlets) && quiet;
  }
  return quiet;
}

void Target::clear() {
  if (files_ != nullptr) files_->abandon(this);
  for (Landing& landing : landings_) {
    landing.active = false;
    landing.charge.release();
    unstage(landing.staged);
  }
  for (Reply& reply : reads_) unstage(reply.staged);
  account_->staged -= std::exchange(staged_, 0);  // What jobs still hold goes back to the desk with them.
  reads_.clear();
  reads_used_ = kept_ = 0;
  for (auto& replies : replies_) replies.clear();
  for (auto& rest : rests_) rest.clear();
  voids_.clear();
  acks_.clear();
  bindings_.clear();
}

}  // namespace hawser::backend::stream
