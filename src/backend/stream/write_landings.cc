#include "backend/stream/write_landings.h"

#include <utility>

#include "base/bytes.h"
#include "base/planted.h"

namespace hawser::backend::stream {

bool WriteLandings::on_write(unsigned stream, Inlet& inlet) {
  base::ByteReader in(inlet.meta());
  Landing& landing = landings_[stream];
  std::array<wire::RemotePiece, wire::kPiecesMax> pieces;
  if (!wire::decode_chunk(in, &landing.chunk)) return false;
  const std::size_t count = wire::decode_pieces(in, inlet.head().payload_size, pieces);
  if (count == 0 || !serving_.acks.has_room()) return false;
  const auto [outcome, region] =
      serving_.regions.resolve(landing.chunk, Rights::kWrite, std::span(pieces).first(count), landing.pieces);
  landing.outcome = outcome;
  landing.frame = inlet.frames() - 1;
  if (voids_.take(stream, landing.frame)) landing.outcome = wire::Outcome::kVoid;
  if (landing.outcome == wire::Outcome::kOk) {
    landing.outcome = serving_.charges.take(landing.charge, inlet.head().payload_size);
  }
  landing.covered = (inlet.head().flags & wire::kFlagCovered) != 0;
  landing.region = region != nullptr ? region->index : 0;
  landing.generation = region != nullptr ? region->generation : 0;
  landing.active = true;
  landing.file.reset();
  if (base::planted(base::Planted::kAckBeforeLanding)) serving_.acks.add(landing.chunk.tag, landing.outcome);
  if (landing.outcome == wire::Outcome::kOk && region->file != nullptr) land_in_file(*region, landing, inlet);
  if (!inlet.in_payload()) return on_write_end(stream, inlet);
  if (landing.outcome != wire::Outcome::kOk) return true;
  inlet.land(landing.file != nullptr ? std::span<const Piece>(&landing.whole, 1) : landing.pieces);
  return true;
}

void WriteLandings::land_in_file(const BoundRegion& region, Landing& landing, const Inlet& inlet) {
  const std::uint64_t size = inlet.head().payload_size;
  landing.file = region.file;
  landing.file_offset = region.file_offset;
  landing.durable = (inlet.head().flags & wire::kFlagDurable) != 0;
  landing.staged = serving_.desk.stage(size);
  if (!landing.staged) {
    landing.outcome = wire::Outcome::kNoRoom;
    return;
  }
  landing.patience = StagingPatience();
  DeskShare::place(landing.pieces, landing.staged.data());
  landing.whole = Piece{.local = landing.staged.data(), .remote = 0, .size = size};
}

bool WriteLandings::on_write_end(unsigned stream, const Inlet& inlet) {
  Landing& landing = landings_[stream];
  landing.active = false;
  landing.charge.release();
  const bool counts = inlet.trailer() == 0 || base::planted(base::Planted::kVoidCounted);
  if (!counts && landing.outcome == wire::Outcome::kOk) landing.outcome = wire::Outcome::kVoid;
  if (landing.file != nullptr && landing.outcome == wire::Outcome::kOk) {
    write_file(landing, inlet);
    return true;
  }
  serving_.desk.unstage(landing.staged);
  if (!base::planted(base::Planted::kAckBeforeLanding)) serving_.acks.add(landing.chunk.tag, landing.outcome);
  if (landing.outcome == wire::Outcome::kOk) landed(landing.chunk, inlet.head().payload_size, landing.covered);
  return true;
}

void WriteLandings::landed(const wire::ChunkHead& chunk, std::uint64_t bytes, bool covered) {
  bytes_ += bytes;
  if (covered) events_.arrival(path_, chunk.transfer, chunk.index);
}

void WriteLandings::write_file(Landing& landing, const Inlet& inlet) {
  BoundRegion region;
  region.index = landing.region;
  region.generation = landing.generation;
  region.file = std::move(landing.file);
  region.file_offset = landing.file_offset;
  FileJob job = serving_.desk.job(Operation::kWrite, region, landing.chunk, inlet.head().payload_size);
  job.covered = landing.covered;
  job.durable = landing.durable;
  job.pieces = std::exchange(landing.pieces, {});
  job.memory = std::move(landing.staged);
  serving_.desk.start(std::move(job));
}

void WriteLandings::on_file(FileJob& job) {
  serving_.desk.unstage(job.memory);
  serving_.acks.add(job.chunk.tag, job.outcome);
  if (job.outcome == wire::Outcome::kOk) landed(job.chunk, job.bytes, job.covered);
}

// The initiator gave a write up and wants to know that nothing of it lands any more. One that has ended was, or will
// be, acknowledged as any other.
bool WriteLandings::on_void(std::span<const std::byte> meta, std::span<Inlet> inlets) {
  base::ByteReader in(meta);
  wire::VoidWrite write;
  if (!wire::decode_void(in, &write) || write.stream == 0 || write.stream >= inlets.size()) return false;
  Inlet& inlet = inlets[write.stream];
  Landing& landing = landings_[write.stream];
  if (write.frame >= inlet.frames()) {
    return voids_.add(write.stream, write.frame, inlets) &&
           serving_.acks.try_add(write.tag, wire::Outcome::kVoidedClean);
  }
  if (!landing.active || landing.frame != write.frame || landing.chunk.tag != write.tag) return true;
  bool midway = landing.outcome == wire::Outcome::kClosedMidway;
  if (landing.outcome == wire::Outcome::kOk) {
    midway = inlet.landed() > 0 && landing.file == nullptr;
    landing.outcome = wire::Outcome::kVoid;
    inlet.drop();
    serving_.desk.unstage(landing.staged);
  }
  return serving_.acks.try_add(write.tag, midway ? wire::Outcome::kVoidedMidway : wire::Outcome::kVoidedClean);
}

void WriteLandings::stop(Landing& landing, Inlet& inlet) {
  if (base::planted(base::Planted::kLandingNotStopped)) return;
  const bool midway = inlet.landed() > 0 && landing.file == nullptr;  // The file itself has nothing of it yet.
  landing.outcome = midway ? wire::Outcome::kClosedMidway : wire::Outcome::kClosed;
  inlet.drop();
}

void WriteLandings::stop_closed(std::span<Inlet> inlets) {
  for (std::size_t stream = 0; stream < inlets.size(); ++stream) {
    Landing& landing = landings_[stream];
    if (!landing.active || landing.outcome != wire::Outcome::kOk) continue;
    if (!serving_.regions.is_open(landing.region, landing.generation)) stop(landing, inlets[stream]);
  }
}

void WriteLandings::stop_region(std::uint32_t index, std::uint32_t generation, std::span<Inlet> inlets) {
  for (std::size_t stream = 0; stream < inlets.size(); ++stream) {
    Landing& landing = landings_[stream];
    if (!landing.active || landing.outcome != wire::Outcome::kOk) continue;
    if (landing.region == index && landing.generation == generation) stop(landing, inlets[stream]);
  }
}

void WriteLandings::take_back_staged(std::span<Inlet> inlets, std::uint32_t period) {
  for (std::size_t stream = 0; stream < inlets.size(); ++stream) {
    Landing& landing = landings_[stream];
    if (!landing.active || !landing.staged || landing.patience.lasts(inlets[stream].landed(), period)) continue;
    landing.outcome = wire::Outcome::kNoRoom;
    inlets[stream].drop();
    serving_.desk.unstage(landing.staged);
  }
}

void WriteLandings::clear() {
  for (Landing& landing : landings_) {
    landing.active = false;
    landing.charge.release();
    serving_.desk.unstage(landing.staged);
  }
  voids_.clear();
}

}  // namespace hawser::backend::stream
