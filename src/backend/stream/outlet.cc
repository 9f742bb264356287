#include "backend/stream/outlet.h"

#include <algorithm>
#include <cstring>

#include "base/planted.h"

namespace hawser::backend::stream {

Outlet::Segment& Outlet::open_segment() {
  // Staged bytes join the last segment while that has no payload behind which they would have to come, and is not so
  // far out that its positions are fixed.
  if (!segments_.empty() && segments_.back().owner == kNoOwner && segments_.back().piece_count == 0 &&
      segments_.back().end == segments_.back().real_end() && at_ < segments_.count()) {
    return segments_.back();
  }
  Segment segment;
  segment.begin = segment.end = end_;
  segment.stage_begin = segment.stage_end = stage_.end();
  return segments_.push(std::move(segment));
}

std::byte* Outlet::add(std::size_t size) {
  Segment& segment = open_segment();
  std::byte* at = stage_.extend(size);
  segment.stage_end = stage_.end();
  end_ += size;
  segment.end = end_;
  return at;
}

void Outlet::add_bytes(std::span<const std::byte> bytes) {
  Segment& segment = open_segment();
  stage_.append(bytes);
  segment.stage_end = stage_.end();
  end_ += bytes.size();
  segment.end = end_;
}

void Outlet::add_payload(std::span<const Piece> pieces, std::uint64_t bytes, std::uint32_t owner) {
  Segment& segment = open_segment();
  segment.pieces = pieces.data();
  segment.piece_count = pieces.size();
  segment.payload = bytes;
  segment.owner = owner;
  end_ += bytes;
  segment.end = end_;
}

std::size_t Outlet::gather_payload(const Segment& segment, Cursor cursor, std::span<iovec> out, std::uint64_t bytes_max,
                                   std::uint64_t* bytes) {
  std::size_t count = 0;
  *bytes = 0;
  for (; cursor.piece < segment.piece_count && count < out.size() && *bytes < bytes_max; ++cursor.piece) {
    const Piece& piece = segment.pieces[cursor.piece];
    const std::uint64_t size = std::min(piece.size - cursor.offset, bytes_max - *bytes);
    if (size > 0) out[count++] = {piece.local + cursor.offset, static_cast<std::size_t>(size)};
    *bytes += size;
    cursor.offset = 0;
  }
  return count;
}

std::size_t Outlet::gather(std::span<iovec> out, std::uint64_t bytes_max) const {
  std::size_t count = 0;
  std::uint64_t from = sent_;
  Cursor cursor = cursor_;
  for (std::size_t i = at_; i < segments_.count() && count < out.size() && bytes_max > 0; ++i) {
    const Segment& segment = segments_[i];
    const std::uint64_t done = from - segment.begin;
    const std::uint64_t staged = segment.stage_end - segment.stage_begin;
    std::uint64_t bytes = 0;
    if (done < staged) {
      const std::uint64_t stage_from = segment.stage_begin + done;
      const std::uint64_t stage_to = stage_from + std::min(staged - done, bytes_max);  // bytes_max may be without end
      count += stage_.gather(stage_from, stage_to, out.subspan(count), &bytes);
      bytes_max -= bytes;
      if (done + bytes < staged) break;
    }
    if (segment.payload > 0) {
      count += gather_payload(segment, cursor, out.subspan(count), bytes_max, &bytes);
      bytes_max -= bytes;
    }
    cursor = Cursor();
    from = segment.end;
  }
  return count;
}

void Outlet::sent(std::uint64_t bytes) {
  sent_total_ += bytes;
  while (bytes > 0 && at_ < segments_.count()) {
    Segment& segment = segments_[at_];
    const std::uint64_t staged = segment.stage_end - segment.stage_begin;
    const std::uint64_t done = sent_ - segment.begin;
    if (done < staged) {
      const std::uint64_t step = std::min(bytes, staged - done);
      sent_ += step;
      bytes -= step;
    } else {
      std::uint64_t step = std::min(bytes, segment.real_end() - sent_);
      sent_ += step;
      bytes -= step;
      for (; step > 0 && cursor_.piece < segment.piece_count;) {
        const std::uint64_t left = segment.pieces[cursor_.piece].size - cursor_.offset;
        const std::uint64_t part = std::min(step, left);
        step -= part;
        cursor_.offset += part;
        if (part == left) cursor_ = {cursor_.piece + 1, 0};
      }
    }
    skip_done_segments();
  }
  HAWSER_ASSERT(bytes == 0, "a stream sent more than it was given");
}

void Outlet::skip_done_segments() {
  while (at_ < segments_.count() && sent_ == segments_[at_].real_end()) {
    Segment& segment = segments_[at_];
    segment.sent_total = sent_total_;
    sent_ = segment.end;
    cursor_ = Cursor();
    ++at_;
  }
}

void Outlet::released(std::uint64_t total) {
  released_total_ = base::planted(base::Planted::kReleasedEarly) ? sent_total_ : total;
  while (at_ > 0 && segments_.front().sent_total <= released_total_) {
    Segment segment = segments_.pop();
    --at_;
    released_ = segment.end;
    stage_.release(segment.stage_end);
    if (segment.owner != kNoOwner) freed_.push(segment.owner);
  }
}

std::uint32_t Outlet::next_released() { return freed_.empty() ? kNoOwner : freed_.pop(); }

Outlet::Segment* Outlet::find(std::uint64_t end) {
  for (std::size_t i = 0; i < segments_.count(); ++i) {
    if (segments_[i].end == end) return &segments_[i];
  }
  return nullptr;
}

void Outlet::copy_rest(Segment& segment) {
  const bool current = &segment == &segments_[at_];
  Cursor cursor = current ? cursor_ : Cursor();
  std::uint64_t size = segment.payload;
  if (current) {
    const std::uint64_t staged_end = segment.begin + (segment.stage_end - segment.stage_begin);
    size = segment.real_end() - std::max(sent_, staged_end);
    cursor_ = Cursor();
  }
  auto copy = std::make_unique<Copy>();
  copy->bytes = std::make_unique_for_overwrite<std::byte[]>(size);
  for (std::uint64_t at = 0; at < size; ++cursor.piece, cursor.offset = 0) {
    const Piece& piece = segment.pieces[cursor.piece];
    std::memcpy(copy->bytes.get() + at, piece.local + cursor.offset, piece.size - cursor.offset);
    at += piece.size - cursor.offset;
  }
  copy->piece = Piece{.local = copy->bytes.get(), .remote = 0, .size = size};
  segment.copy = std::move(copy);
  segment.pieces = &segment.copy->piece;
  segment.piece_count = 1;
}

bool Outlet::let_go(std::uint64_t end, bool drop) {
  Segment* segment = find(end);
  if (segment == nullptr) return true;
  if (end <= sent_) return false;  // Wholly sent, not released: only the stream can let go.
  const bool begun = segment == &segments_[at_] && sent_ > segment->begin;
  if (drop) {
    segment->payload = 0;
    segment->piece_count = 0;
    skip_done_segments();
    return true;
  }
  copy_rest(*segment);
  return !begun || released_total_ == sent_total_;
}

void Outlet::clear() {
  while (!segments_.empty()) {
    const Segment segment = segments_.pop();
    if (segment.owner != kNoOwner) freed_.push(segment.owner);
  }
  stage_.release(stage_.end());
  sent_ = released_ = end_;
  at_ = 0;
  cursor_ = Cursor();
}

}  // namespace hawser::backend::stream
