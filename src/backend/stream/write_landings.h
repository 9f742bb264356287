#pragma once

// WriteLandings: the peer's writes. Each is checked against the regions, lands straight in its region or, for a file,
// in staged memory, and is acknowledged once all of it is there. One write lands on each stream at a time.
//
// Thread rule: one thread. Lifetime: regions, desk and queues outlive it.

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "backend/backend.h"
#include "backend/stream/events.h"
#include "backend/stream/inlet.h"
#include "backend/stream/message_order.h"
#include "backend/stream/serving.h"
#include "backend/stream/staging_patience.h"
#include "backend/stream/void_frames.h"
#include "wire/stream_frames.h"

namespace hawser::backend::stream {

class WriteLandings {
 public:
  WriteLandings(const Serving& serving, EventQueue& events, Path* path)
      : serving_(serving), events_(events), path_(path) {}

  // WRITE, the end of its payload, and VOID. False: malformed, or beyond what a peer may have outstanding.
  bool on_write(unsigned stream, Inlet& inlet);
  bool on_write_end(unsigned stream, const Inlet& inlet);
  bool on_void(std::span<const std::byte> meta, std::span<Inlet> inlets);
  /// The desk has written a chunk to its file, or could not.
  void on_file(FileJob& job);

  /// What lands in regions that closed lands no more.
  void stop_closed(std::span<Inlet> inlets);
  void stop_region(std::uint32_t index, std::uint32_t generation, std::span<Inlet> inlets);
  /// A peer that does not send what it announced loses its staged memory.
  void take_back_staged(std::span<Inlet> inlets, std::uint32_t period);
  /// The path is gone.
  void clear();

  std::uint64_t bytes() const { return bytes_; }

 private:
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
    StagingPatience patience;
  };

  void land_in_file(const BoundRegion& region, Landing& landing, const Inlet& inlet);
  void write_file(Landing& landing, const Inlet& inlet);
  static void stop(Landing& landing, Inlet& inlet);
  void landed(const wire::ChunkHead& chunk, std::uint64_t bytes, bool covered);

  Serving serving_;
  EventQueue& events_;
  Path* path_;
  std::array<Landing, kStreamsMax> landings_;
  VoidFrames voids_;
  std::uint64_t bytes_ = 0;
};

}  // namespace hawser::backend::stream
