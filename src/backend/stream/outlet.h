#pragma once

// Outlet: what one stream has to send, as staged bytes and references to payload, in order.
//
// Frames are added at the end; `gather` names the next bytes to send, `sent` and `released` move on. Positions count
// queued bytes from the stream's first; a frame that is withdrawn keeps its positions, though its payload is never
// sent. What a frame has begun it must complete: where its memory is taken back, the rest of its payload is filler,
// zeros from one page that all share, and its trailer says so. Nothing is copied for that, but where the bytes must
// arrive all the same (keep_frame).
//
// Thread rule: one thread. Memory: payload is the caller's and stays valid until `released` covers it or the frame was
// withdrawn or voided.

#include <sys/uio.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "backend/backend.h"
#include "backend/stream/ring.h"
#include "backend/stream/stage.h"
#include "wire/stream_frames.h"

namespace hawser::backend::stream {

inline constexpr std::uint32_t kNoOwner = UINT32_MAX;

/// A place in a list of pieces.
struct PieceCursor {
  std::size_t piece = 0;
  std::uint64_t offset = 0;
  /// Moves on by `bytes`, past pieces that are used up.
  void advance(std::span<const Piece> pieces, std::uint64_t bytes);
};

class Outlet {
 public:
  /// Payload for the frame that begins with the bytes at `head`, at position `frame_begin`.
  struct Payload {
    std::span<const Piece> pieces;
    PieceCursor from;
    std::uint64_t bytes = 0;
    std::uint32_t owner = kNoOwner;  ///< Comes back from next_released.
    std::byte* head = nullptr;
    std::uint64_t frame_begin = 0;
  };
  /// What became of frames that were taken back.
  struct Stopped {
    bool quiet = true;         ///< The stream refers to none of their memory.
    bool voided = false;       ///< One had begun: its trailer tells the outcome.
    std::uint64_t before = 0;  ///< Bytes of its own payload that go in front of the filler.
    bool withdrawn = false;    ///< Some of which nothing was sent are SKIP now.
  };
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
  /// Payload after all that was added so far, and behind it zeros to a multiple of wire::kFrameAlign and a trailer.
  /// Returns the position of the payload's end, by which stop_frame knows it.
  std::uint64_t add_payload(const Payload& payload);
  /// To be called for each frame, before its first byte is added. Returns how many there were before it.
  std::uint64_t begin_frame() { return frames_++; }

  std::uint64_t end() const { return end_; }
  std::uint64_t sent_end() const { return sent_; }
  std::uint64_t released_end() const { return released_; }
  bool has_unsent() const { return sent_ < end_; }
  std::uint64_t unsent_bytes() const { return end_ - sent_; }
  /// Bytes that were really sent, and that the stream does not refer to any more.
  std::uint64_t sent_total() const { return sent_total_; }
  std::uint64_t released_total() const { return released_total_; }

  /// The next bytes to send: parts put in `out`, at most `bytes_max` in all.
  std::size_t gather(std::span<iovec> out, std::uint64_t bytes_max) const;
  /// The stream took so many of them.
  void sent(std::uint64_t bytes);
  /// The stream refers to nothing before its byte number `total` any more (of those really sent).
  void released(std::uint64_t total);
  /// Owners of payload that was released since, or kNoOwner.
  std::uint32_t next_released();

  /// Takes back the frame whose payload ends at `end`: SKIP if nothing of it was sent, else filler for the payload that
  /// was not, and `outcome` in the trailer; so the outlet does not refer to its memory any more. A payload that was
  /// sent stays as it is.
  Stopped stop_frame(std::uint64_t end, wire::Outcome outcome);
  /// Copies what is unsent of the payload that ends at `end`, which goes on as it is. False: the stream still refers to
  /// what was sent of it.
  bool keep_frame(std::uint64_t end);
  /// stop_frame with all frames whose payload is `owner`'s.
  Stopped stop_owner(std::uint32_t owner, wire::Outcome outcome);
  /// All that waits is given up; the stream is closed.
  void clear();

 private:
  /// Payload whose memory was taken back before it was sent.
  struct Kept {
    std::vector<std::byte> bytes;
    Piece piece;
  };
  struct Segment {
    std::uint64_t begin = 0, end = 0;  ///< Positions; payload comes last.
    std::uint64_t stage_begin = 0, stage_end = 0;
    std::uint64_t payload = 0;     ///< Bytes; less than the frame said when it was dropped.
    std::uint64_t sent_total = 0;  ///< Real bytes sent when this segment was wholly sent.
    std::span<const Piece> pieces;
    PieceCursor from;
    std::unique_ptr<Kept> kept;
    std::uint32_t owner = kNoOwner;
    bool referring = false;  ///< Has payload, whatever became of it.
    bool filler = false;     ///< What is unsent of the payload is zeros.
    std::byte* head = nullptr;
    std::byte* trailer = nullptr;
    std::uint64_t frame_begin = 0;
    std::uint64_t staged() const { return stage_end - stage_begin; }
    std::uint64_t real_end() const { return begin + staged() + payload; }
  };
  Segment& open_segment();
  void skip_done_segments();
  void keep(std::size_t number);
  void stop(Segment& segment, wire::Outcome outcome, Stopped& stopped);
  static std::size_t gather_payload(const Segment& segment, PieceCursor cursor, std::span<iovec> out,
                                    std::uint64_t bytes_max, std::uint64_t* bytes);
  static std::size_t gather_filler(std::uint64_t size, std::span<iovec> out, std::uint64_t* bytes);

  Stage stage_;
  Ring<Segment> segments_;
  Ring<std::uint32_t> freed_;  ///< Owners to be told.
  std::uint64_t end_ = 0, sent_ = 0, released_ = 0;
  std::uint64_t sent_total_ = 0, released_total_ = 0;  ///< Real bytes.
  std::uint64_t frames_ = 0;
  std::size_t at_ = 0;  ///< The segment that `sent_` lies in, or count().
  PieceCursor cursor_;  ///< In its payload.
};

}  // namespace hawser::backend::stream
