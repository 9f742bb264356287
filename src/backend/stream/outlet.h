#pragma once

// Outlet: what one stream has to send, as staged bytes and references to payload, in order.
//
// Frames are added at the end; `gather` names the next bytes to send, `sent` and `released` move on. Positions count
// queued bytes from the stream's first; a frame that is withdrawn keeps its positions, though its payload is never
// sent.
//
// Thread rule: one thread. Memory: payload is the caller's and stays valid until `released` covers it or the frame was
// withdrawn or made private.

#include <sys/uio.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "backend/backend.h"
#include "backend/stream/ring.h"
#include "backend/stream/stage.h"

namespace hawser::backend::stream {

inline constexpr std::uint32_t kNoOwner = UINT32_MAX;

class Outlet {
 public:
  /// Most frames with payload, and most staged bytes, that wait here; a message of the largest size fits beside others.
  static constexpr std::size_t kSegmentsMax = 512;
  static constexpr std::size_t kStagedMax = 256 * 1024;

  /// Whether `staged` more bytes fit, of whatever kind.
  bool has_room(std::size_t staged) const {
    return segments_.count() < kSegmentsMax && stage_.held() + staged + Stage::kBlockSize <= kStagedMax;
  }
  /// `size` (<= Stage::kBlockSize) bytes for the caller to write now.
  std::byte* add(std::size_t size);
  void add_bytes(std::span<const std::byte> bytes);
  /// Payload after all that was added so far. `owner` comes back from next_released.
  void add_payload(std::span<const Piece> pieces, std::uint64_t bytes, std::uint32_t owner);

  std::uint64_t end() const { return end_; }
  std::uint64_t sent_end() const { return sent_; }
  std::uint64_t released_end() const { return released_; }
  bool has_unsent() const { return sent_ < end_; }
  std::uint64_t unsent_bytes() const { return end_ - sent_; }

  /// The next bytes to send: parts put in `out`, at most `bytes_max` in all.
  std::size_t gather(std::span<iovec> out, std::uint64_t bytes_max) const;
  /// The stream took so many of them.
  void sent(std::uint64_t bytes);
  /// The stream refers to nothing before its byte number `total` any more (of those really sent).
  void released(std::uint64_t total);
  /// Owners of payload that was released since, or kNoOwner.
  std::uint32_t next_released();

  /// The frame whose payload ends at `end` is not wholly sent. Its unsent payload is copied, or, if none of the frame
  /// was sent (`drop`), left out; then the outlet does not refer to its memory any more. False: the stream still does.
  bool let_go(std::uint64_t end, bool drop);
  /// All that waits is given up; the stream is closed.
  void clear();

 private:
  struct Copy {
    std::unique_ptr<std::byte[]> bytes;
    Piece piece;
  };
  struct Segment {
    std::uint64_t begin = 0, end = 0;  ///< Positions; payload comes last.
    std::uint64_t stage_begin = 0, stage_end = 0;
    std::uint64_t payload = 0;     ///< Bytes; less than the frame said when it was dropped.
    std::uint64_t sent_total = 0;  ///< Real bytes sent when this segment was wholly sent.
    const Piece* pieces = nullptr;
    std::size_t piece_count = 0;
    std::uint32_t owner = kNoOwner;
    std::unique_ptr<Copy> copy;  ///< The unsent rest of the payload, once made private.
    std::uint64_t real_end() const { return begin + (stage_end - stage_begin) + payload; }
  };
  struct Cursor {
    std::size_t piece = 0;
    std::uint64_t offset = 0;
  };
  Segment& open_segment();
  void skip_done_segments();
  Segment* find(std::uint64_t end);
  static std::size_t gather_payload(const Segment& segment, Cursor cursor, std::span<iovec> out,
                                    std::uint64_t bytes_max, std::uint64_t* bytes);
  void copy_rest(Segment& segment);

  Stage stage_;
  Ring<Segment> segments_;
  Ring<std::uint32_t> freed_;  ///< Owners to be told.
  std::uint64_t end_ = 0, sent_ = 0, released_ = 0;
  std::uint64_t sent_total_ = 0, released_total_ = 0;  ///< Real bytes.
  std::size_t at_ = 0;                                 ///< The segment that `sent_` lies in, or count().
  Cursor cursor_;                                      ///< In its payload.
};

}  // namespace hawser::backend::stream
