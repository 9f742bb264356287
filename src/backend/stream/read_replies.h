#pragma once

// ReadReplies: the peer's reads. Each is checked against the regions and answered straight from its region, or, for a
// file, from staged memory.
//
// Answers go in frames of at most wire::kDataMax, so a region that closes waits for no more than what of one has begun,
// and copies nothing: the rest is filler.
//
// Thread rule: one thread. Memory: kReadsMax reads of kPiecesMax pieces; more answers (kReadsHeldMax) where streams
// hold on to what was sent. Lifetime: regions, desk and queues outlive it.

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "backend/backend.h"
#include "backend/stream/message_order.h"
#include "backend/stream/outlet.h"
#include "backend/stream/ring.h"
#include "backend/stream/serving.h"
#include "backend/stream/staging_patience.h"
#include "wire/stream_frames.h"

namespace hawser::backend::stream {

/// Answers that streams may hold on to after they were sent.
inline constexpr std::uint32_t kReadsHeldMax = 16 * kReadsMax;
/// Periods (Machine::next_memory_period) after which a stream must have let go of a closed region's memory.
inline constexpr std::uint32_t kKeepPeriods = 20;

class ReadReplies {
 public:
  ReadReplies(const Serving& serving, std::uint64_t small_max) : serving_(serving), small_max_(small_max) {}

  /// READ. False: malformed, or more reads than a peer may have outstanding.
  bool on_read(std::span<const std::byte> meta, std::span<const Outlet> outlets);
  /// The desk has read a chunk from its file, or could not.
  void on_file(FileJob& job);

  bool has_waiting(bool bulk) const { return !waiting_[bulk ? 1 : 0].empty(); }
  /// Answers that have begun on `stream`, where the rest of them must go.
  bool has_rest(unsigned stream) const { return !rests_[stream].empty(); }
  bool has_rests() const {
    return std::ranges::any_of(rests_, [](const Ring<std::uint32_t>& rest) { return !rest.empty(); });
  }
  /// Begins the next answer, or goes on with one that has begun.
  void frame_next(bool bulk, unsigned stream, Outlet& outlet);
  void frame_rest(unsigned stream, Outlet& outlet);
  /// The stream let go of the payload of the answer `owner`.
  void on_released(std::uint32_t owner);

  /// Answers from regions that closed stop.
  void stop_closed(std::span<Outlet> outlets);
  /// False: a stream refers to memory of that region still.
  bool stop_region(std::uint32_t index, std::uint32_t generation, std::span<Outlet> outlets);
  /// Answers from closed regions that a stream refers to still.
  std::uint32_t kept() const { return kept_; }
  /// Whether a stream keeps some of a closed region for too long.
  bool is_late() const;
  void begin_period(std::uint32_t period) { period_ = period; }
  /// A peer that does not read what it asked for loses its staged memory.
  void take_back_staged(std::span<Outlet> outlets);
  /// The path is gone.
  void clear();

  std::uint32_t count() const { return used_; }
  std::uint64_t bytes() const { return bytes_; }

 private:
  struct Reply {
    enum class State : std::uint8_t { kFree, kLoading, kWaiting, kSending, kSent };
    State state = State::kFree;
    bool stopped = false;  ///< Its region closed, or its memory was taken back.
    bool quiet = false;    ///< Then: nothing refers to that any more.
    std::uint8_t stream = 0;
    wire::Outcome outcome = wire::Outcome::kOk;  ///< Said by a frame of its own, if no other can.
    std::uint32_t tag = 0, region = 0, generation = 0;
    std::uint32_t keep_period = 0;  ///< When it was stopped.
    std::uint32_t frames = 0;       ///< Whose payload a stream refers to.
    std::uint64_t bytes = 0, framed = 0;
    std::uint64_t begin = 0, end = 0;  ///< Positions of its first and last frame.
    PieceCursor place;                 ///< Of the next frame.
    std::vector<Piece> pieces;
    OperationCharge charge;  ///< Until it is free.
    Staged staged;           ///< Holds what was read from a file.
    StagingPatience patience;
  };
  using State = Reply::State;

  bool has_credit(std::span<const Outlet> outlets) const;
  Reply& free_place();
  void queue(Reply& reply);
  std::uint32_t number_of(const Reply& reply) const { return static_cast<std::uint32_t>(&reply - replies_.data()); }
  bool load(Reply& reply, const wire::ChunkHead& chunk, const BoundRegion& region);
  void frame_data(Reply& reply, Outlet& outlet);
  void frame_end(Reply& reply, Outlet& outlet);
  void free(Reply& reply);
  void withdraw(Reply& reply);
  bool stop(Reply& reply, wire::Outcome outcome, std::span<Outlet> outlets);
  void stop_sending(Reply& reply, wire::Outcome outcome, Outlet& outlet);

  Serving serving_;
  const std::uint64_t small_max_;
  std::vector<Reply> replies_;  ///< Grows to kReadsMax, more where streams hold on to what was sent.
  std::uint32_t used_ = 0, kept_ = 0, period_ = 0;
  std::array<Ring<std::uint32_t>, 2> waiting_;          ///< Small ones, bulk.
  std::array<Ring<std::uint32_t>, kStreamsMax> rests_;  ///< Begun, and not wholly framed.
  std::uint64_t bytes_ = 0;
};

}  // namespace hawser::backend::stream
