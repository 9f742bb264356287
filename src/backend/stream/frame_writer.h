#pragma once

// FrameWriter: one frame, head first, into an outlet. Pads it as the grammar wants.
//
//   FrameWriter frame(outlet, {.type = ..., .meta_size = 4});
//   frame.meta().u32(tag);
//   frame.payload(pieces, bytes, owner);   // or none, or copies by inline_payload()
//
// Thread rule: one thread. Lifetime: of one expression's worth; `head` stays valid as long as the outlet holds it.

#include <array>
#include <cstdint>
#include <cstring>
#include <span>

#include "backend/stream/outlet.h"
#include "base/bytes.h"
#include "wire/stream_frames.h"

namespace hawser::backend::stream {

class FrameWriter {
 public:
  /// With `copied`, room for the payload is staged behind the meta: fill all of inline_payload().
  FrameWriter(Outlet& outlet, const wire::FrameHead& head, bool copied = false)
      : outlet_(outlet),
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
      if (piece.size > 0) std::memcpy(to, piece.local, piece.size);
      to += piece.size;
    }
  }
  /// Payload that is only referred to. Returns the position of its end, by which Outlet::let_go knows it.
  std::uint64_t payload(std::span<const Piece> pieces, std::uint32_t owner) {
    outlet_.add_payload(pieces, payload_size_, owner);
    const std::uint64_t end = outlet_.end();
    pad(outlet_, payload_size_);
    return end;
  }
  /// Zeros behind a payload of that size.
  static void pad(Outlet& outlet, std::uint64_t payload_size) {
    static constexpr std::array<std::byte, wire::kFrameAlign> kZeros = {};
    const auto size = static_cast<std::size_t>(wire::padded(payload_size) - payload_size);
    if (size > 0) outlet.add_bytes(std::span(kZeros).first(size));
  }

  std::byte* head() const { return at_; }
  std::uint64_t begin() const { return begin_; }

 private:
  Outlet& outlet_;
  std::size_t lead_;
  std::uint64_t begin_;
  std::byte* at_;
  std::uint32_t payload_size_;
  base::ByteWriter meta_;
};

/// Turns a frame of which nothing was sent into SKIP. What follows its lead is its padded payload if that was copied,
/// else only the padding.
inline void make_skip(std::byte* head, std::uint64_t payload_size, bool copied) {
  head[0] = static_cast<std::byte>(wire::FrameType::kSkip);
  const std::uint64_t left = copied ? wire::padded(payload_size) : wire::padded(payload_size) - payload_size;
  base::store_little_endian(head + 4, static_cast<std::uint32_t>(left));
}

}  // namespace hawser::backend::stream
