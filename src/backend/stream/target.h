#pragma once

// Target: the half of the remote-memory protocol that serves. It checks each access against the RegionTable, names
// where written bytes land, answers reads straight from the region, and gathers acknowledgements. Chunks on files pass
// through staged memory of the FileDesk.
//
// Answers go in frames of at most wire::kDataMax, so a region that closes waits for no more than what of one has begun,
// and copies nothing: the rest is filler.
//
// Thread rule: one thread. Memory: bounded by kReadsMax reads of kPiecesMax pieces, and by bindings of regions that are
// open here: a peer that names others makes this side remember nothing.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "backend/backend.h"
#include "backend/peer_guard.h"
#include "backend/stream/events.h"
#include "backend/stream/file_desk.h"
#include "backend/stream/initiator.h"
#include "backend/stream/inlet.h"
#include "backend/stream/outlet.h"
#include "backend/stream/ring.h"
#include "wire/stream_frames.h"

namespace hawser::backend::stream {

/// Bindings that one peer may have: so many, and twice as many as there are open regions. An honest one has as many as
/// regions, and for a moment the last one's, too, where an index is used again.
inline constexpr std::size_t kBindingsFree = 64;

class Target {
 public:
  /// `peer` is a name, for the log. Without `files` regions in files are none. Without an `account` the path has one of
  /// its own, with the default quotas.
  Target(RegionTable& regions, EventQueue& events, Path* path, FileDesk* files, std::string peer,
         std::uint64_t small_max, std::shared_ptr<PeerAccount> account = nullptr);
  ~Target() { clear(); }

  // Frames that came in on `stream`. False: malformed, or beyond what a peer may have outstanding.
  bool on_bind(unsigned stream, std::span<const std::byte> meta);
  bool on_unbind(unsigned stream, std::span<const std::byte> meta);
  bool on_write(unsigned stream, Inlet& inlet);
  bool on_write_end(unsigned stream, const Inlet& inlet);
  bool on_void(std::span<const std::byte> meta, std::span<Inlet> inlets);
  bool on_read(std::span<const std::byte> meta, std::span<const Outlet> outlets);
  bool on_landed(std::span<const std::byte> meta);
  /// What the desk did for it.
  void on_file(FileJob job);

  /// At the start of a turn: what still lands or is read stops if its region closed.
  void recheck(std::span<Inlet> inlets, std::span<Outlet> outlets);
  /// Nothing touches this region any more after it, except what the answer false stands for: a stream's own reference.
  bool let_go_region(std::uint32_t index, std::uint32_t generation, std::span<Inlet> inlets, std::span<Outlet> outlets);

  bool has_acks() const { return !acks_.empty(); }
  void stage_acks(Outlet& control);
  bool has_replies(bool bulk) const { return !replies_[bulk ? 1 : 0].empty(); }
  /// Answers that have begun on `stream`, where the rest of them must go.
  bool has_rest(unsigned stream) const { return !rests_[stream].empty(); }
  bool has_rests() const {
    return std::ranges::any_of(rests_, [](const Ring<std::uint32_t>& rest) { return !rest.empty(); });
  }
  /// Begins the next answer to a read, or goes on with one that has begun.
  void frame_reply(bool bulk, unsigned stream, Outlet& outlet);
  void frame_rest(unsigned stream, Outlet& outlet);
  std::uint32_t reads() const { return reads_used_; }
  std::size_t bindings() const { return bindings_.size(); }
  /// Answers from closed regions that a stream refers to still.
  std::uint32_t kept() const { return kept_; }
  /// Memory of the desk that is held until the peer moves.
  bool holds_staged() const { return staged_ > 0; }
  /// Begins another period of waiting for the peer. False: a stream keeps some of a closed region for too long.
  bool next_keep_period(std::span<Inlet> inlets, std::span<Outlet> outlets);
  /// The stream let go of the payload of the answer `owner`.
  void on_released(std::uint32_t owner);
  /// The path is gone.
  void clear();

  const std::string& peer() const { return peer_; }
  std::uint64_t bytes_in() const { return bytes_in_; }
  std::uint64_t bytes_out() const { return bytes_out_; }

 private:
  struct Bound {
    std::uint32_t index = 0, generation = 0;
    std::byte* base = nullptr;
    std::uint64_t size = 0;
    Rights rights = Rights::kNone;
    std::shared_ptr<fileio::File> file;  ///< `base` is null then.
    std::uint64_t file_offset = 0;       ///< Where the region begins in it.
    std::shared_ptr<SingleUse> once;     ///< Of a grant for one transfer.
    bool valid = false;
    std::uint8_t announced = 0;  ///< Streams on which it was bound and not unbound.
  };
  /// How long the peer has held memory of the desk, and when it last moved.
  struct Patience {
    std::uint32_t since = 0, moved_in = 0;  ///< Periods.
    std::uint64_t moved = 0;
  };
  struct Landing {
    bool active = false;
    bool covered = false;
    bool durable = false;
    wire::Outcome outcome = wire::Outcome::kOk;
    std::uint32_t region = 0, generation = 0;
    std::uint64_t frame = 0;  ///< Its number on the stream.
    wire::ChunkHead chunk;
    std::vector<Piece> pieces;
    std::shared_ptr<fileio::File> file;  ///< Then the payload comes to `staged`, as the one piece `whole`.
    std::uint64_t file_offset = 0;
    Staged staged;
    OperationCharge charge;  ///< While it lands.
    Piece whole;
    Patience patience;
  };
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
    Patience patience;
  };

  bool has_room_for_binding();
  bool has_read_credit(std::span<const Outlet> outlets) const;
  void free_reply(std::uint32_t number);
  void frame_data(std::uint32_t number, unsigned stream, Outlet& outlet);
  void frame_end(std::uint32_t number, Outlet& outlet);
  bool is_void(unsigned stream, std::uint64_t frame);
  bool keep_void(const wire::VoidWrite& write, std::span<const Inlet> inlets);
  void acknowledge_stop(Landing& landing, Inlet& inlet);
  void withdraw(Reply& reply);
  bool has_patience(Patience& patience, std::uint64_t position) const;
  void take_back_staged(std::span<Inlet> inlets, std::span<Outlet> outlets);
  bool acknowledge(std::uint32_t tag, wire::Outcome outcome);
  wire::Outcome charge(OperationCharge& charge, std::uint64_t bytes);
  wire::Outcome resolve(const wire::ChunkHead& chunk, Rights right, std::span<const wire::RemotePiece> pieces,
                        std::vector<Piece>& out, Bound* found);
  Staged stage(std::uint64_t bytes);
  void unstage(Staged& staged);
  FileJob file_job(hawser::Operation op, const Bound& bound, const wire::ChunkHead& chunk, std::uint64_t bytes) const;
  void land_in_file(const Bound& bound, Landing& landing, Inlet& inlet);
  void write_file(Landing& landing, const Inlet& inlet);
  bool load(std::uint32_t number, const wire::ChunkHead& chunk, const Bound& bound);
  void stop_landing(Landing& landing, Inlet& inlet);
  bool stop_reply(Reply& reply, wire::Outcome outcome, std::span<Outlet> outlets);
  void stop_sending(Reply& reply, wire::Outcome outcome, Outlet& outlet);

  RegionTable& regions_;
  EventQueue& events_;
  Path* path_;
  FileDesk* files_;
  const std::string peer_;
  std::uint64_t small_max_;
  const std::shared_ptr<PeerAccount> account_;      ///< Outlives the charges below.
  bool owes_quotas_ = false, told_quotas_ = false;  ///< The peer is to be told its quotas; it was.
  std::unordered_map<std::uint32_t, Bound> bindings_;
  std::array<Landing, kStreamsMax> landings_;
  std::vector<Reply> reads_;  ///< Grows to kReadsMax, more where streams hold on to what was sent.
  std::uint32_t reads_used_ = 0, kept_ = 0, keep_period_ = 0;
  std::array<Ring<std::uint32_t>, 2> replies_;             ///< Waiting reads: small ones, bulk.
  std::array<Ring<std::uint32_t>, kStreamsMax> rests_;     ///< Begun, and not wholly framed.
  std::vector<std::pair<unsigned, std::uint64_t>> voids_;  ///< Frames to come that nothing may land of.
  Ring<std::uint32_t> acks_;
  std::uint64_t bytes_in_ = 0, bytes_out_ = 0;
  std::uint64_t staged_ = 0;  ///< At the desk, for this path. A peer's paths together hold kStagedPerPeer at most.
};

}  // namespace hawser::backend::stream
