#pragma once

// FrameWriter: one frame, head first, into an outlet. Pads it as the grammar wants.
//
//   FrameWriter frame(outlet, {.type = ..., .meta_size = 4});
//   frame.meta().u32(tag);
//   frame.payload(pieces, from, owner);   // or none, or copies by inline_payload()
//
// Thread rule: one thread. Lifetime: of one expression's worth; `head` stays valid as long as the outlet holds it.

#include <array>
#include <cstdint>
#include <cstring>
#include <span>

#include "backend/stream/outlet.h"
#include "base/bytes.h"
#include "base/copy.h"
#include "wire/stream_frames.h"

namespace hawser::backend::stream {

class FrameWriter {
 public:
  /// With `copied`, room for the payload is staged behind the meta: fill all of inline_payload().
  FrameWriter(Outlet& outlet, const wire::FrameHead& head, bool copied = false)
      : outlet_(outlet),
        number_(outlet.begin_frame()),
        lead_(wire::lead_size(head.meta_size)),
        begin_(outlet.end()),
        at_(outlet.add(lead_ + (copied ? wire::padded(head.payload_size) : 0))),
        payload_size_(head.payload_size),
        meta_(std::span(at_, lead_)) {
    std::memset(at_ + lead_ - wire::kFrameAlign, 0, wire::kFrameAlign);
    wire::encode_head(meta_, head);
    if (copied && payload_size_ % wire::kFrameAlign != 0) {
      std::memset(at_ + lead_ + wire::padded(payload_size_) - wire::kFrameAlign, 0, wire::kFrameAlign);
    }
  }

  base::ByteWriter& meta() { return meta_; }
  std::span<std::byte> inline_payload() { return {at_ + lead_, payload_size_}; }
  void inline_payload(std::span<const Piece> pieces) {
    std::byte* to = at_ + lead_;
    for (const Piece& piece : pieces) {
      if (piece.size > 0) base::copy_cached(to, piece.local, piece.size);
      to += piece.size;
    }
  }
  /// Payload that is only referred to, and its trailer: the head's flags must tell of that. Returns the position of the
  /// payload's end, by which Outlet::stop_frame knows it.
  std::uint64_t payload(std::span<const Piece> pieces, PieceCursor from, std::uint32_t owner) {
    return outlet_.add_payload(
        {.pieces = pieces, .from = from, .bytes = payload_size_, .owner = owner, .head = at_, .frame_begin = begin_});
  }
  /// A trailer behind no payload.
  void trailer(wire::Outcome outcome) {
    std::byte* at = outlet_.add(wire::kTrailerSize);
    std::memset(at, 0, wire::kTrailerSize);
    at[0] = static_cast<std::byte>(outcome);
  }
  /// Zeros behind a payload of that size.
  static void pad(Outlet& outlet, std::uint64_t payload_size) {
    static constexpr std::array<std::byte, wire::kFrameAlign> kZeros = {};
    const auto size = static_cast<std::size_t>(wire::padded(payload_size) - payload_size);
    if (size > 0) outlet.add_bytes(std::span(kZeros).first(size));
  }

  std::byte* head() const { return at_; }
  std::uint64_t begin() const { return begin_; }
  /// Frames of this stream before this one.
  std::uint64_t number() const { return number_; }

 private:
  Outlet& outlet_;
  std::uint64_t number_;
  std::size_t lead_;
  std::uint64_t begin_;
  std::byte* at_;
  std::uint32_t payload_size_;
  base::ByteWriter meta_;
};

}  // namespace hawser::backend::stream
