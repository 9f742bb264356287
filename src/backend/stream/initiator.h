#pragma once

// Initiator: the half of the remote-memory protocol that asks. It keeps each chunk from `take` to its one end, frames
// it for a stream, and hears how it fared.
//
// Small chunks and all read requests go out on stream 0; bulk writes wait in one queue from which the bulk streams pull
// when they run dry, so the least loaded stream takes the next.
//
// Thread rule: one thread. Lifetime: pieces and bindings of a chunk stay valid until its end (B3).

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "backend/backend.h"
#include "backend/stream/events.h"
#include "backend/stream/file_desk.h"
#include "backend/stream/inlet.h"
#include "backend/stream/outlet.h"
#include "backend/stream/ring.h"
#include "backend/stream/stream.h"
#include "wire/stream_frames.h"

namespace hawser::backend::stream {

inline constexpr std::uint32_t kChunksMax = 1024;      ///< In flight on one path; the target counts on it.
inline constexpr std::uint32_t kReadsMax = 64;         ///< Reads among them, which cost the target memory.
inline constexpr std::uint64_t kBytesMax = 64u << 20;  ///< Bytes of bulk in flight on one path.
inline constexpr std::uint32_t kSmallChunks = 128;     ///< Of those chunks bulk leaves so many to small ones,
inline constexpr std::uint32_t kSmallReads = 8;        ///< and of the reads.
inline constexpr std::uint64_t kInlineMax = 2048;      ///< Payload up to this size is copied behind its head.

/// A write that was given up is waited for by the peer's answer for one to two of these, and by the stream that refers
/// to its memory for kHeldPeriods of them.
inline constexpr Duration kAnswerPeriod = std::chrono::milliseconds(50);
inline constexpr std::uint32_t kHeldPeriods = 20;

/// Staged bytes of the largest frame of a chunk, with what may have to come before it.
inline constexpr std::size_t kFrameRoom = 8 * 1024;
static_assert(wire::lead_size(28) + wire::lead_size(wire::kMetaMax) + kInlineMax + 2 * wire::kFrameAlign +
                  wire::kTrailerSize <=
              kFrameRoom);

/// A remote region as this path names it on the wire.
class RemoteBinding final : public Binding {
 public:
  wire::Bind bind;
  std::uint32_t uses = 0;      ///< Chunks that name it and have not ended at both sides.
  std::uint32_t strays = 0;    ///< Writes among them that ended here without an answer: they may still land.
  std::uint8_t announced = 0;  ///< Bit per stream on which BIND went out.
  bool gone = false;
  bool in_file = false;
};

class Initiator {
 public:
  struct Options {
    std::string peer;
    std::uint64_t small_max = 0;
  };
  Initiator(EventQueue& events, Path* path, Options options)
      : events_(events), path_(path), options_(std::move(options)) {}

  Binding* bind(const RemoteRegionRef& region);
  void unbind(std::uint32_t index, std::uint32_t generation);

  /// False: no room now. `control` is stream 0's.
  bool take(const Chunk& chunk, Outlet& control);
  bool has_bulk() const { return !bulk_.empty(); }
  bool idle() const { return in_flight_ == 0; }
  /// Frames the next bulk write for `stream`.
  void frame_bulk(unsigned stream, Outlet& outlet);

  /// Ends what can be ended; see Path::cancel.
  void cancel(std::uint64_t transfer, std::span<Outlet> outlets, std::span<Inlet> inlets);
  /// Cancelled writes that have not ended: the peer has not said what became of them.
  std::uint32_t cancelled_writes() const { return cancelled_writes_; }
  /// Begins another period of waiting for those; see kAnswerPeriod. False: a stream refers to the memory of some for
  /// too long.
  bool next_cancel_period(std::span<const Outlet> outlets);

  // What came in; false: senseless.
  bool on_ack(std::uint32_t tag, wire::Outcome outcome, std::span<Outlet> outlets);
  bool on_data(unsigned stream, std::uint32_t tag, Inlet& inlet, std::span<const Outlet> outlets);
  bool on_data_end(std::uint32_t tag, const Inlet& inlet);
  /// Streams let go of more memory.
  void on_released(std::span<Outlet> outlets);

  /// Frames of its own that wait: UNBIND on any stream, LANDED and VOID on stream 0.
  bool has_notes(unsigned stream) const {
    return !unbinds_.empty() || (stream == 0 && (!landed_.empty() || !voids_.empty()));
  }
  void stage_notes(unsigned stream, Outlet& outlet);
  /// The bound that kept `take` from the last chunk that it did not take; empty when there was none.
  std::string_view last_full() const { return last_full_; }
  std::uint32_t in_flight() const { return in_flight_; }
  std::uint64_t bytes_in_flight() const { return bytes_; }

  /// Ends every chunk; `outlets` tell how far each got.
  void fail(const Status& why, std::span<Outlet> outlets);

  void note_quotas(const wire::Quotas& quotas) { quotas_ = quotas; }

 private:
  enum class State : std::uint8_t { kFree, kQueued, kFramed, kAcked, kEnded };
  struct Slot {
    State state = State::kFree;
    Operation op = Operation::kWrite;
    bool covered = false;
    bool durable = false;
    bool cancelled = false;
    bool again = false;      ///< See Chunk::again.
    bool copied = false;     ///< Payload is staged: the caller's memory is not referred to.
    bool void_said = false;  ///< The peer was asked to let nothing of it land any more.
    bool voided = false;     ///< Its trailer says that it is void.
    bool has_begun = false;  ///< And some of its own bytes went before the filler.
    bool answered = false;   ///< Cancelled, and nothing of it lands any more.
    bool stray = false;      ///< Ended here, without an answer.
    bool in_frame = false;   ///< A read: a DATA frame of it is coming.
    wire::Outcome outcome = wire::Outcome::kOk;
    std::uint8_t stream = 0;
    std::uint8_t landing = kNowhere;  ///< Stream on which a read's data is coming.
    std::uint16_t generation = 0;
    std::uint32_t cancel_period = 0;
    std::uint32_t index = 0;  ///< The chunk's.
    std::uint64_t cookie = 0, transfer = 0, bytes = 0;
    std::span<const Piece> pieces;
    RemoteBinding* target = nullptr;
    std::byte* head = nullptr;  ///< Its frame, while that is in the outlet.
    std::uint64_t begin = 0, end = 0;
    std::uint64_t frame = 0;       ///< Its number on the stream.
    std::uint64_t received = 0;    ///< Bytes of a read that came,
    PieceCursor place;             ///< and where the next belong.
    std::uint64_t held_until = 0;  ///< Cancelled: the stream refers to its memory until so many bytes are released.
  };
  static constexpr std::uint8_t kNowhere = 0xff;

  std::uint32_t tag_of(const Slot& slot) const;
  Slot* find(std::uint32_t tag);
  Slot* new_slot(const Chunk& chunk);
  bool has_room_for_bulk(const Chunk& chunk) const;
  bool has_room_for_file(const Chunk& chunk) const;
  void announce(RemoteBinding& target, unsigned stream, Outlet& outlet);
  static std::uint8_t flags_of(const Slot& slot);
  void frame_write(Slot& slot, unsigned stream, Outlet& outlet);
  void frame_read(Slot& slot, Outlet& outlet);
  bool refuse(std::string_view bound);
  void cancel_slot(Slot& slot, std::span<Outlet> outlets, std::span<Inlet> inlets);
  void cancel_read(Slot& slot, std::span<Inlet> inlets);
  void cancel_write(Slot& slot, Outlet& outlet);
  bool withdraw(Slot& slot, Outlet& outlet);
  bool on_voided(Slot& slot, wire::Outcome outcome, const Outlet& outlet);
  void end_voided(Slot& slot, Status status);
  static BufferState state_of_void(const Slot& slot);
  Status over_quota(const Slot& slot) const;
  void end_stray(Slot& slot);
  void stage_voids(Outlet& outlet);
  void tell_stray(Slot& slot);
  void end_data(Slot& slot, wire::Outcome outcome);
  Status status_of(const Slot& slot) const;
  Status lost(const Slot& slot, const Status& why, const Outlet* outlet) const;
  void tell(Slot& slot, Status status);
  void free_slot(Slot& slot);
  void drop_binding(RemoteBinding& binding);

  EventQueue& events_;
  Path* path_;
  Options options_;
  wire::Quotas quotas_;      ///< The peer's, as it told them: for errors.
  std::vector<Slot> slots_;  ///< Grows to kChunksMax.
  std::vector<std::uint32_t> free_;
  Ring<std::uint32_t> bulk_;   ///< Slots in kQueued.
  Ring<wire::Landed> landed_;  ///< To be told to the target.
  Ring<std::uint32_t> voids_;  ///< Tags of writes that the target has to let go, of whatever became of them since.
  std::string_view last_full_;
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::unique_ptr<RemoteBinding>> bindings_;
  std::vector<std::unique_ptr<RemoteBinding>> retired_;          ///< Gone, still named by chunks.
  std::vector<std::pair<std::uint32_t, std::uint8_t>> unbinds_;  ///< Binding, streams that still have to say so.
  std::uint32_t next_binding_ = 1;
  std::uint32_t in_flight_ = 0, reads_ = 0, acked_ = 0, cancelled_writes_ = 0, cancel_period_ = 0;
  std::uint64_t bytes_ = 0, file_bytes_ = 0;
};

}  // namespace hawser::backend::stream
