#include "backend/stream/outlet.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "base/planted.h"

namespace hawser::backend::stream {
namespace {

/// Zeros in place of payload whose memory was taken back; one page of them for all streams.
alignas(4096) constexpr std::array<std::byte, 64 * 1024> kFiller = {};

}  // namespace

void PieceCursor::advance(std::span<const Piece> pieces, std::uint64_t bytes) {
  while (piece < pieces.size()) {
    const std::uint64_t left = pieces[piece].size - offset;
    if (bytes < left) {
      offset += bytes;
      return;
    }
    bytes -= left;
    ++piece;
    offset = 0;
  }
}

Outlet::Segment& Outlet::open_segment() {
  // Staged bytes join the last segment while that has no payload behind which they would have to come, and is not so
  // far out that its positions are fixed.
  if (!segments_.empty() && !segments_.back().referring && segments_.back().end == segments_.back().real_end() &&
      at_ < segments_.count()) {
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

std::uint64_t Outlet::add_payload(const Payload& payload) {
  Segment& segment = open_segment();
  const std::size_t number = segments_.count() - 1;
  segment.pieces = payload.pieces;
  segment.from = payload.from;
  segment.payload = payload.bytes;
  segment.owner = payload.owner;
  segment.referring = true;
  segment.head = payload.head;
  segment.frame_begin = payload.frame_begin;
  end_ += payload.bytes;
  segment.end = end_;
  if (at_ == number) cursor_ = payload.from;
  const std::uint64_t end = end_;
  const auto pad = static_cast<std::size_t>(wire::padded(payload.bytes) - payload.bytes);
  std::byte* tail = add(pad + wire::kTrailerSize);
  std::memset(tail, 0, pad + wire::kTrailerSize);
  segments_[number].trailer = tail + pad;
  return end;
}

std::size_t Outlet::gather_filler(std::uint64_t size, std::span<iovec> out, std::uint64_t* bytes) {
  std::size_t count = 0;
  for (*bytes = 0; count < out.size() && *bytes < size; ++count) {
    const std::uint64_t step = std::min<std::uint64_t>(size - *bytes, kFiller.size());
    out[count] = {const_cast<std::byte*>(kFiller.data()), static_cast<std::size_t>(step)};
    *bytes += step;
  }
  return count;
}

std::size_t Outlet::gather_payload(const Segment& segment, PieceCursor cursor, std::span<iovec> out,
                                   std::uint64_t bytes_max, std::uint64_t* bytes) {
  std::size_t count = 0;
  *bytes = 0;
  for (; cursor.piece < segment.pieces.size() && count < out.size() && *bytes < bytes_max; ++cursor.piece) {
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
  PieceCursor cursor = cursor_;
  for (std::size_t i = at_; i < segments_.count() && count < out.size() && bytes_max > 0; ++i) {
    const Segment& segment = segments_[i];
    if (i != at_) cursor = segment.from;
    const std::uint64_t done = from - segment.begin;
    const std::uint64_t staged = segment.staged();
    std::uint64_t bytes = 0;
    if (done < staged) {
      const std::uint64_t stage_from = segment.stage_begin + done;
      const std::uint64_t stage_to = stage_from + std::min(staged - done, bytes_max);  // bytes_max may be without end
      count += stage_.gather(stage_from, stage_to, out.subspan(count), &bytes);
      bytes_max -= bytes;
      if (done + bytes < staged) break;
    }
    if (segment.payload > 0) {
      // A payload may be a part of its pieces.
      const std::uint64_t left = segment.payload - (std::max(done, staged) - staged);
      const std::uint64_t size = std::min(left, bytes_max);
      count += segment.filler ? gather_filler(size, out.subspan(count), &bytes)
                              : gather_payload(segment, cursor, out.subspan(count), size, &bytes);
      bytes_max -= bytes;
      if (bytes < left) break;
    }
    from = segment.end;
  }
  return count;
}

void Outlet::sent(std::uint64_t bytes) {
  sent_total_ += bytes;
  while (bytes > 0 && at_ < segments_.count()) {
    Segment& segment = segments_[at_];
    const std::uint64_t done = sent_ - segment.begin;
    const bool is_payload = done >= segment.staged();
    const std::uint64_t step = std::min(bytes, is_payload ? segment.real_end() - sent_ : segment.staged() - done);
    sent_ += step;
    bytes -= step;
    if (is_payload && !segment.filler) cursor_.advance(segment.pieces, step);
    skip_done_segments();
  }
  HAWSER_ASSERT(bytes == 0, "a stream sent more than it was given");
}

void Outlet::skip_done_segments() {
  while (at_ < segments_.count() && sent_ == segments_[at_].real_end()) {
    Segment& segment = segments_[at_];
    segment.sent_total = sent_total_;
    sent_ = segment.end;
    ++at_;
    cursor_ = at_ < segments_.count() ? segments_[at_].from : PieceCursor();
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

void Outlet::stop(Segment& segment, wire::Outcome outcome, Stopped& stopped) {
  if (segment.filler) return;  // Before now: what it says stands.
  const std::uint64_t payload_begin = segment.begin + segment.staged();
  const bool begun = sent_ > payload_begin;
  if (begun && released_total_ != sent_total_) stopped.quiet = false;
  if (segment.end <= sent_) return;
  if (sent_ <= segment.frame_begin) {
    const std::uint64_t following = wire::padded(segment.payload) - segment.payload + wire::kTrailerSize;
    wire::make_skip(segment.head, static_cast<std::uint32_t>(following));
    segment.payload = 0;
    segment.pieces = {};
    stopped.withdrawn = true;
    skip_done_segments();
    return;
  }
  segment.filler = true;
  segment.trailer[0] = static_cast<std::byte>(outcome);
  stopped.voided = true;
  stopped.before = begun ? sent_ - payload_begin : 0;
}

Outlet::Stopped Outlet::stop_frame(std::uint64_t end, wire::Outcome outcome) {
  Stopped stopped;
  for (std::size_t i = 0; i < segments_.count(); ++i) {
    if (segments_[i].end != end || !segments_[i].referring) continue;
    stop(segments_[i], outcome, stopped);
    break;
  }
  return stopped;
}

bool Outlet::keep_frame(std::uint64_t end) {
  for (std::size_t i = 0; i < segments_.count(); ++i) {
    const Segment& segment = segments_[i];
    if (segment.end != end || !segment.referring) continue;
    const bool has_begun = sent_ > segment.begin + segment.staged();
    if (segment.end > sent_ && !segment.filler) keep(i);
    return !has_begun || released_total_ == sent_total_;
  }
  return true;
}

void Outlet::keep(std::size_t number) {
  Segment& segment = segments_[number];
  const std::uint64_t payload_begin = segment.begin + segment.staged();
  const std::uint64_t left = segment.payload - (std::max(sent_, payload_begin) - payload_begin);
  PieceCursor cursor = at_ == number ? cursor_ : segment.from;
  auto kept = std::make_unique<Kept>();
  kept->bytes.reserve(left);
  for (; kept->bytes.size() < left; ++cursor.piece, cursor.offset = 0) {
    const Piece& piece = segment.pieces[cursor.piece];
    const std::byte* const from = piece.local + cursor.offset;
    kept->bytes.insert(kept->bytes.end(), from,
                       from + std::min<std::uint64_t>(piece.size - cursor.offset, left - kept->bytes.size()));
  }
  kept->piece = {.local = kept->bytes.data(), .remote = 0, .size = left};
  segment.kept = std::move(kept);
  segment.pieces = {&segment.kept->piece, 1};
  segment.from = PieceCursor();
  if (at_ == number) cursor_ = PieceCursor();
}

Outlet::Stopped Outlet::stop_owner(std::uint32_t owner, wire::Outcome outcome) {
  Stopped stopped;
  for (std::size_t i = 0; i < segments_.count(); ++i) {
    if (segments_[i].owner == owner) stop(segments_[i], outcome, stopped);
  }
  return stopped;
}

void Outlet::clear() {
  while (!segments_.empty()) {
    const Segment segment = segments_.pop();
    if (segment.owner != kNoOwner) freed_.push(segment.owner);
  }
  stage_.release(stage_.end());
  sent_ = released_ = end_;
  at_ = 0;
  cursor_ = PieceCursor();
}

}  // namespace hawser::backend::stream
