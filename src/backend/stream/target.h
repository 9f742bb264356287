#pragma once

// Target: the half of the remote-memory protocol that serves. It checks each access against the RegionTable, names
// where written bytes land, answers reads straight from the region, and gathers acknowledgements. Chunks on files pass
// through staged memory of the FileDesk.
//
// Thread rule: one thread. Memory: bounded by kReadsMax reads of kPiecesMax pieces and kBindingsMax bindings.

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "backend/backend.h"
#include "backend/stream/events.h"
#include "backend/stream/file_desk.h"
#include "backend/stream/initiator.h"
#include "backend/stream/inlet.h"
#include "backend/stream/outlet.h"
#include "backend/stream/ring.h"
#include "wire/stream_frames.h"

namespace hawser::backend::stream {

/// Regions that one peer may have bound at once.
inline constexpr std::size_t kBindingsMax = 64 * 1024;

class Target {
 public:
  /// `peer` is a name, for the log. Without `files` regions in files are none.
  Target(RegionTable& regions, EventQueue& events, Path* path, FileDesk* files, std::string peer,
         std::uint64_t small_max)
      : regions_(regions), events_(events), path_(path), files_(files), peer_(std::move(peer)), small_max_(small_max) {}
  ~Target() { clear(); }

  // Frames that came in on `stream`. False: malformed, or beyond what a peer may have outstanding.
  bool on_bind(unsigned stream, std::span<const std::byte> meta);
  bool on_unbind(unsigned stream, std::span<const std::byte> meta);
  bool on_write(unsigned stream, Inlet& inlet);
  void on_write_end(unsigned stream, const Inlet& inlet);
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
  /// Frames the next answer to a read.
  void frame_reply(bool bulk, unsigned stream, Outlet& outlet);
  std::uint32_t reads() const { return reads_used_; }
  /// Answers from closed regions that a stream refers to still.
  std::uint32_t kept() const { return kept_; }
  /// To be called from time to time while `kept`; false: some have been kept since before the last call.
  bool next_keep_period();
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
    bool valid = false;
    std::uint8_t announced = 0;  ///< Streams on which it was bound and not unbound.
  };
  struct Landing {
    bool active = false;
    bool covered = false;
    bool durable = false;
    wire::Outcome outcome = wire::Outcome::kOk;
    std::uint32_t region = 0, generation = 0;
    wire::ChunkHead chunk;
    std::vector<Piece> pieces;
    std::shared_ptr<fileio::File> file;  ///< Then the payload comes to `staged`, as the one piece `whole`.
    Staged staged;
    Piece whole;
  };
  struct Reply {
    enum class State : std::uint8_t { kFree, kLoading, kWaiting, kFramed };
    State state = State::kFree;
    bool stopped = false;  ///< Its region closed.
    bool quiet = false;    ///< Then: nothing refers to the region any more.
    std::uint8_t stream = 0;
    std::uint32_t tag = 0, region = 0, generation = 0;
    std::uint32_t keep_period = 0;  ///< When it was stopped.
    std::uint64_t bytes = 0, begin = 0, end = 0;
    std::byte* head = nullptr;
    std::vector<Piece> pieces;
    Staged staged;  ///< Holds what was read from a file.
  };

  bool has_read_credit(std::span<const Outlet> outlets) const;
  bool acknowledge(std::uint32_t tag, wire::Outcome outcome);
  wire::Outcome resolve(std::uint32_t binding, Rights right, std::span<const wire::RemotePiece> pieces,
                        std::vector<Piece>& out, Bound* found);
  Staged stage(std::uint64_t bytes);
  void unstage(Staged& staged);
  FileJob file_job(hawser::Operation op, const Bound& bound, const wire::ChunkHead& chunk, std::uint64_t bytes) const;
  void land_in_file(const Bound& bound, Landing& landing, Inlet& inlet);
  void write_file(Landing& landing, const Inlet& inlet);
  bool load(std::uint32_t number, const wire::ChunkHead& chunk, const Bound& bound);
  void stop_landing(Landing& landing, Inlet& inlet);
  bool stop_reply(Reply& reply, std::span<Outlet> outlets);

  RegionTable& regions_;
  EventQueue& events_;
  Path* path_;
  FileDesk* files_;
  const std::string peer_;
  std::uint64_t small_max_;
  std::unordered_map<std::uint32_t, Bound> bindings_;
  std::array<Landing, kStreamsMax> landings_;
  std::vector<Reply> reads_;  ///< Grows to kReadsMax, more where streams hold on to what was sent.
  std::uint32_t reads_used_ = 0, kept_ = 0, keep_period_ = 0;
  std::array<Ring<std::uint32_t>, 2> replies_;  ///< Waiting reads: small ones, bulk.
  Ring<std::uint32_t> acks_;
  std::uint64_t bytes_in_ = 0, bytes_out_ = 0;
  std::uint64_t staged_ = 0;  ///< At the desk, for this peer; kStagedPerPeer at most.
};

}  // namespace hawser::backend::stream
