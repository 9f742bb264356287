#pragma once

// Inlet: what one stream receives, cut into frames. It names where the next bytes belong (straight into the place that
// the current payload goes to, then into a small read-ahead buffer), so that nearly no payload is copied.
//
// Use: landing() -> receive into it -> received(n) -> next() until it says kMore. After kFrame with a payload the
// caller says where it goes: land() or drop().
//
// Thread rule: one thread. Memory: one buffer of kBufferSize from the first byte on.

#include <sys/uio.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "backend/backend.h"
#include "wire/stream_frames.h"

namespace hawser::backend::stream {

class Inlet {
 public:
  enum class Next : std::uint8_t {
    kMore,     ///< Nothing complete is there.
    kFrame,    ///< `head` and `meta` are; meta is valid until the next call.
    kPayload,  ///< The last frame's payload is in its place (or dropped), and its trailer is there.
    kCorrupt,
  };
  static constexpr std::size_t kBufferSize = 16 * 1024;
  /// Read-ahead while bulk comes in: enough for a frame's head and meta, little to copy.
  static constexpr std::size_t kBulkAhead = 4 * 1024;
  static constexpr std::uint32_t kBulkPayload = 16 * 1024;
  static_assert(wire::lead_size(wire::kMetaMax) <= kBulkAhead && 2 * kBulkAhead <= kBufferSize);

  /// Parts for the next bytes, at most `bytes_max` of payload; never none.
  std::size_t landing(std::span<iovec> out, std::uint64_t bytes_max);
  void received(std::uint64_t bytes);

  Next next();
  const wire::FrameHead& head() const { return head_; }
  std::span<const std::byte> meta() const { return meta_; }
  /// Frames whose heads came, this one included.
  std::uint64_t frames() const { return frames_; }

  /// Where the payload goes: to `pieces` from byte `offset` of the first one on, which have room for all of it. They
  /// must stay valid until kPayload or drop().
  void land(std::span<const Piece> pieces, std::uint64_t offset = 0);
  /// The payload, or what is left of it, goes nowhere. May be called at any time while one is coming.
  void drop() { dropping_ = true; }
  /// What the trailer says of the payload; 0 without one. Known from kPayload to the next frame.
  std::uint8_t trailer() const { return trailer_; }
  bool in_payload() const { return payload_left_ > 0 || payload_due_; }
  std::uint64_t landed() const { return landed_; }
  void clear();

 private:
  void begin_payload();
  bool take_trailer();
  void take_pad();
  void take_buffered();
  void advance(std::uint64_t bytes);
  void make_room(std::size_t wanted);
  std::size_t buffered() const { return end_ - begin_; }

  std::unique_ptr<std::byte[]> buffer_;
  std::size_t begin_ = 0, end_ = 0;
  wire::FrameHead head_;
  std::span<const std::byte> meta_;
  bool bulk_ = false;         ///< The last payload was large.
  bool payload_due_ = false;  ///< kPayload has to be told.
  bool dropping_ = false;
  std::uint64_t payload_left_ = 0;
  std::size_t pad_left_ = 0;  ///< Zeros behind the payload.
  bool trailer_due_ = false;  ///< A trailer comes behind them.
  std::uint8_t trailer_ = 0;
  std::uint64_t frames_ = 0;
  std::uint64_t landed_ = 0;  ///< Bytes of this payload that are in place.
  const Piece* piece_ = nullptr;
  std::size_t piece_count_ = 0;
  std::uint64_t piece_offset_ = 0;
};

}  // namespace hawser::backend::stream
