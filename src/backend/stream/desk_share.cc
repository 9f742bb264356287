#include "backend/stream/desk_share.h"

#include <utility>

namespace hawser::backend::stream {

Staged DeskShare::stage(std::uint64_t bytes) {
  if (account_.staged >= kStagedPerPeer) return {};
  Staged staged = desk_->stage(bytes, account_.staged);
  if (!staged) return {};
  held_ += staged.capacity();
  account_.staged += staged.capacity();
  return staged;
}

void DeskShare::unstage(Staged& staged) {
  if (!staged) return;
  held_ -= staged.capacity();
  account_.staged -= staged.capacity();
  staged.reset();
}

FileJob DeskShare::job(Operation op, const BoundRegion& region, const wire::ChunkHead& chunk,
                       std::uint64_t bytes) const {
  FileJob job;
  job.op = op;
  job.target = target_;
  job.path = path_;
  job.region = region.index;
  job.generation = region.generation;
  job.bytes = bytes;
  job.chunk = chunk;
  job.file = region.file;
  job.file_offset = region.file_offset;
  return job;
}

void DeskShare::start(FileJob job) { desk_->start(std::move(job)); }

void DeskShare::abandon() {
  if (desk_ != nullptr) desk_->abandon(target_);
}

void DeskShare::forget_held() { account_.staged -= std::exchange(held_, 0); }

void DeskShare::place(std::span<Piece> pieces, std::byte* at) {
  for (Piece& piece : pieces) {
    piece.local = at;
    at += piece.size;
  }
}

}  // namespace hawser::backend::stream
