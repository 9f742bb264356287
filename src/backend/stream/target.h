#pragma once

// Target: the half of the remote-memory protocol that serves. Its members know what the peer has bound (BoundRegions),
// land its writes (WriteLandings), answer its reads (ReadReplies), gather what it is to be told of them (AckQueue), and
// keep it to its quotas (PeerCharges) and to its part of the FileDesk (DeskShare), through which chunks on files pass.
//
// Thread rule: one thread. Memory: bounded by kReadsMax reads of kPiecesMax pieces, and by bindings of regions that are
// open here.

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>

#include "backend/backend.h"
#include "backend/peer_guard.h"
#include "backend/stream/ack_queue.h"
#include "backend/stream/bound_regions.h"
#include "backend/stream/desk_share.h"
#include "backend/stream/events.h"
#include "backend/stream/file_desk.h"
#include "backend/stream/inlet.h"
#include "backend/stream/outlet.h"
#include "backend/stream/peer_charges.h"
#include "backend/stream/read_replies.h"
#include "backend/stream/write_landings.h"

namespace hawser::backend::stream {

class Target {
 public:
  /// `peer` is a name, for the log. Without `files` regions in files are none. Without an `account` the path has one of
  /// its own, with the default quotas.
  Target(RegionTable& regions, EventQueue& events, Path* path, FileDesk* files, std::string peer,
         std::uint64_t small_max, std::shared_ptr<PeerAccount> account = nullptr);
  ~Target() { clear(); }
  Target(const Target&) = delete;
  Target& operator=(const Target&) = delete;

  // Frames that came in on `stream`. False: malformed, or beyond what a peer may have outstanding.
  bool on_bind(unsigned stream, std::span<const std::byte> meta) { return bound_.on_bind(stream, meta); }
  bool on_unbind(unsigned stream, std::span<const std::byte> meta) { return bound_.on_unbind(stream, meta); }
  bool on_write(unsigned stream, Inlet& inlet) { return writes_.on_write(stream, inlet); }
  bool on_write_end(unsigned stream, const Inlet& inlet) { return writes_.on_write_end(stream, inlet); }
  bool on_void(std::span<const std::byte> meta, std::span<Inlet> inlets) { return writes_.on_void(meta, inlets); }
  bool on_read(std::span<const std::byte> meta, std::span<const Outlet> outlets) {
    return reads_.on_read(meta, outlets);
  }
  bool on_landed(std::span<const std::byte> meta);
  /// What the desk did for it.
  void on_file(FileJob job);

  /// At the start of a turn: what still lands or is read stops if its region closed.
  void recheck(std::span<Inlet> inlets, std::span<Outlet> outlets);
  /// Nothing touches this region any more after it, except what the answer false stands for: a stream's own reference.
  bool let_go_region(std::uint32_t index, std::uint32_t generation, std::span<Inlet> inlets, std::span<Outlet> outlets);

  bool has_acks() const { return !acks_.empty(); }
  void stage_acks(Outlet& control);
  bool has_replies(bool bulk) const { return reads_.has_waiting(bulk); }
  /// Answers that have begun on `stream`, where the rest of them must go.
  bool has_rest(unsigned stream) const { return reads_.has_rest(stream); }
  bool has_rests() const { return reads_.has_rests(); }
  /// Begins the next answer to a read, or goes on with one that has begun.
  void frame_reply(bool bulk, unsigned stream, Outlet& outlet) { reads_.frame_next(bulk, stream, outlet); }
  void frame_rest(unsigned stream, Outlet& outlet) { reads_.frame_rest(stream, outlet); }
  std::size_t bindings() const { return bound_.count(); }
  /// Answers from closed regions that a stream refers to still.
  std::uint32_t kept() const { return reads_.kept(); }
  /// Memory of the desk that is held until the peer moves.
  bool holds_staged() const { return desk_.held() > 0; }
  /// Begins another period of waiting for the peer. False: a stream keeps some of a closed region for too long.
  bool next_keep_period(std::span<Inlet> inlets, std::span<Outlet> outlets);
  /// The stream let go of the payload of the answer `owner`.
  void on_released(std::uint32_t owner) { reads_.on_released(owner); }
  /// The path is gone.
  void clear();

  const std::string& peer() const { return charges_.peer(); }
  std::uint64_t bytes_in() const { return writes_.bytes(); }
  std::uint64_t bytes_out() const { return reads_.bytes(); }

 private:
  EventQueue& events_;
  Path* path_;
  PeerCharges charges_;
  BoundRegions bound_;
  AckQueue acks_;
  DeskShare desk_;
  WriteLandings writes_;
  ReadReplies reads_;
  std::uint32_t period_ = 0;
};

}  // namespace hawser::backend::stream
