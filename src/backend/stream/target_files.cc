// The half of Target that serves regions in files: payload goes through staged memory, and the desk does the rest.

#include <utility>

#include "backend/stream/target.h"

namespace hawser::backend::stream {

Staged Target::stage(std::uint64_t bytes) {
  if (account_->staged >= kStagedPerPeer) return {};
  Staged staged = files_->stage(bytes, account_->staged);
  if (!staged) return {};
  staged_ += staged.capacity();
  account_->staged += staged.capacity();
  return staged;
}

void Target::unstage(Staged& staged) {
  if (!staged) return;
  staged_ -= staged.capacity();
  account_->staged -= staged.capacity();
  staged.reset();
}

FileJob Target::file_job(hawser::Operation op, const Bound& bound, const wire::ChunkHead& chunk,
                         std::uint64_t bytes) const {
  FileJob job;
  job.op = op;
  job.path = path_;
  job.region = bound.index;
  job.generation = bound.generation;
  job.bytes = bytes;
  job.chunk = chunk;
  job.file = bound.file;
  job.file_offset = bound.file_offset;
  return job;
}

namespace {

/// Gives each piece its part of the staged bytes, in order.
void place(std::vector<Piece>& pieces, std::byte* at) {
  for (Piece& piece : pieces) {
    piece.local = at;
    at += piece.size;
  }
}

}  // namespace

void Target::land_in_file(const Bound& bound, Landing& landing, Inlet& inlet) {
  const std::uint64_t size = inlet.head().payload_size;
  landing.file = bound.file;
  landing.file_offset = bound.file_offset;
  landing.durable = (inlet.head().flags & wire::kFlagDurable) != 0;
  landing.staged = stage(size);
  if (!landing.staged) {
    landing.outcome = wire::Outcome::kNoRoom;
    return;
  }
  landing.patience = Patience();
  place(landing.pieces, landing.staged.data());
  landing.whole = Piece{.local = landing.staged.data(), .remote = 0, .size = size};
}

void Target::write_file(Landing& landing, const Inlet& inlet) {
  Bound bound;
  bound.index = landing.region;
  bound.generation = landing.generation;
  bound.file = std::move(landing.file);
  bound.file_offset = landing.file_offset;
  FileJob job = file_job(hawser::Operation::kWrite, bound, landing.chunk, inlet.head().payload_size);
  job.target = this;
  job.covered = landing.covered;
  job.durable = landing.durable;
  job.pieces = std::exchange(landing.pieces, {});
  job.memory = std::move(landing.staged);
  files_->start(std::move(job));
}

bool Target::load(std::uint32_t number, const wire::ChunkHead& chunk, const Bound& bound) {
  Reply& reply = reads_[number];
  FileJob job = file_job(hawser::Operation::kRead, bound, chunk, reply.bytes);
  job.memory = stage(reply.bytes);
  if (!job.memory) {
    reply.charge.release();
    return acknowledge(chunk.tag, wire::Outcome::kNoRoom);
  }
  reply.state = Reply::State::kLoading;
  ++reads_used_;
  job.target = this;
  job.reply = number;
  job.pieces = std::exchange(reply.pieces, {});
  place(job.pieces, job.memory.data());
  files_->start(std::move(job));
  return true;
}

void Target::on_file(FileJob job) {
  if (job.op == hawser::Operation::kWrite) {
    unstage(job.memory);
    acks_.push(wire::ack_entry(job.chunk.tag, job.outcome));
    if (job.outcome != wire::Outcome::kOk) return;
    bytes_in_ += job.bytes;
    if (job.covered) events_.arrival(path_, job.chunk.transfer, job.chunk.index);
    return;
  }
  Reply& reply = reads_[job.reply];
  reply.staged = std::move(job.memory);
  if (job.outcome != wire::Outcome::kOk) {
    acks_.push(wire::ack_entry(reply.tag, job.outcome));
    free_reply(job.reply);
    return;
  }
  reply.pieces.assign(1, Piece{.local = reply.staged.data(), .remote = 0, .size = reply.bytes});
  reply.place = PieceCursor();
  reply.patience = Patience();
  reply.state = Reply::State::kWaiting;
  replies_[reply.bytes > small_max_ ? 1 : 0].push(job.reply);
}

}  // namespace hawser::backend::stream
