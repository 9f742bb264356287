#include "backend/stream/inlet.h"

#include <algorithm>
#include <cstring>

#include "base/copy.h"

namespace hawser::backend::stream {

void Inlet::make_room(std::size_t wanted) {
  if (buffer_ == nullptr) buffer_ = std::make_unique_for_overwrite<std::byte[]>(kBufferSize);
  if (begin_ == end_) begin_ = end_ = 0;
  if (kBufferSize - end_ >= wanted) return;
  std::memmove(buffer_.get(), buffer_.get() + begin_, buffered());
  end_ -= begin_;
  begin_ = 0;
}

std::size_t Inlet::landing(std::span<iovec> out, std::uint64_t bytes_max) {
  std::size_t count = 0;
  if (payload_left_ > 0 && !dropping_) {
    std::uint64_t offset = piece_offset_;
    std::uint64_t left = std::min(payload_left_, bytes_max);  // The pieces may have room for more than this payload.
    for (std::size_t i = 0; i < piece_count_ && left > 0 && count < out.size(); ++i, offset = 0) {
      const std::uint64_t size = std::min(piece_[i].size - offset, left);
      if (size > 0) out[count++] = {piece_[i].local + offset, static_cast<std::size_t>(size)};
      left -= size;
    }
    if (left > 0 || payload_left_ >= bytes_max || count == out.size()) return count;
  }
  const bool small = !bulk_ || dropping_;
  make_room(small ? kBufferSize / 2 : kBulkAhead);
  const std::size_t room = kBufferSize - end_;
  out[count++] = {buffer_.get() + end_, small ? room : std::min(room, kBulkAhead)};
  return count;
}

void Inlet::received(std::uint64_t bytes) {
  if (payload_left_ > 0 && !dropping_) {
    const std::uint64_t direct = std::min(bytes, payload_left_);
    advance(direct);
    bytes -= direct;
  }
  end_ += static_cast<std::size_t>(bytes);
}

// Moves the payload's cursor over bytes that are in place.
void Inlet::advance(std::uint64_t bytes) {
  payload_left_ -= bytes;
  landed_ += bytes;
  while (bytes > 0) {
    const std::uint64_t step = std::min(bytes, piece_->size - piece_offset_);
    piece_offset_ += step;
    bytes -= step;
    if (piece_offset_ == piece_->size) {
      ++piece_;
      --piece_count_;
      piece_offset_ = 0;
    }
  }
}

// Payload that came with the read-ahead goes to its place.
void Inlet::take_buffered() {
  if (dropping_) {
    const std::uint64_t size = std::min<std::uint64_t>(payload_left_, buffered());
    begin_ += static_cast<std::size_t>(size);
    payload_left_ -= size;
    return;
  }
  while (payload_left_ > 0 && begin_ != end_) {
    const auto size = static_cast<std::size_t>(
        std::min({static_cast<std::uint64_t>(buffered()), piece_->size - piece_offset_, payload_left_}));
    if (size > 0) base::copy_cached(piece_->local + piece_offset_, buffer_.get() + begin_, size);
    begin_ += size;
    if (size > 0) {
      advance(size);
    } else {
      ++piece_;
      --piece_count_;
    }
  }
}

Inlet::Next Inlet::next() {
  if (payload_left_ > 0) take_buffered();
  if (payload_left_ > 0) return Next::kMore;
  if (trailer_due_ && !take_trailer()) return Next::kMore;
  if (payload_due_) {
    payload_due_ = false;
    return wire::is_trailer_of(head_.type, trailer_) ? Next::kPayload : Next::kCorrupt;
  }
  take_pad();
  if (pad_left_ > 0 || buffered() < wire::kFrameHeadSize) return Next::kMore;
  const std::byte* at = buffer_.get() + begin_;
  if (!wire::decode_head(std::span<const std::byte, wire::kFrameHeadSize>(at, wire::kFrameHeadSize), &head_)) {
    return Next::kCorrupt;
  }
  const std::size_t size = wire::lead_size(head_.meta_size);
  if (buffered() < size) return Next::kMore;
  meta_ = {at + wire::kFrameHeadSize, head_.meta_size};
  begin_ += size;
  bulk_ = head_.payload_size > kBulkPayload;
  ++frames_;
  begin_payload();
  return Next::kFrame;
}

void Inlet::begin_payload() {
  const bool skipped = head_.type == wire::FrameType::kSkip;
  const bool moves = head_.type == wire::FrameType::kWrite || head_.type == wire::FrameType::kData;
  payload_left_ = head_.payload_size;
  pad_left_ = skipped ? 0 : static_cast<std::size_t>(wire::padded(payload_left_) - payload_left_);
  trailer_due_ = moves && (head_.flags & wire::kFlagTrailer) != 0;
  trailer_ = 0;
  payload_due_ = payload_left_ > 0 || trailer_due_;
  dropping_ = true;  // Whoever does not land it drops it.
  landed_ = 0;
}

void Inlet::take_pad() {
  const std::size_t pad = std::min(pad_left_, buffered());
  begin_ += pad;
  pad_left_ -= pad;
}

bool Inlet::take_trailer() {
  take_pad();
  if (pad_left_ > 0 || buffered() < wire::kTrailerSize) return false;
  trailer_ = static_cast<std::uint8_t>(buffer_[begin_]);
  begin_ += wire::kTrailerSize;
  trailer_due_ = false;
  return true;
}

void Inlet::land(std::span<const Piece> pieces, std::uint64_t offset) {
  dropping_ = false;
  piece_ = pieces.data();
  piece_count_ = pieces.size();
  piece_offset_ = offset;
}

void Inlet::clear() {
  begin_ = end_ = 0;
  payload_left_ = 0;
  pad_left_ = 0;
  payload_due_ = dropping_ = trailer_due_ = false;
  buffer_.reset();
}

}  // namespace hawser::backend::stream
