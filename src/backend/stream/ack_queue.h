#pragma once

// AckQueue: what this end has to say of the peer's chunks, until a frame carries it. A peer that keeps to its own bound
// never has more than kAcksWaitingMax to hear: each chunk once, and once more when it is void.
//
// Thread rule: one thread.

#include <algorithm>
#include <cstdint>

#include "backend/stream/chunk_limits.h"
#include "backend/stream/frame_writer.h"
#include "backend/stream/outlet.h"
#include "backend/stream/ring.h"
#include "wire/stream_frames.h"

namespace hawser::backend::stream {

inline constexpr std::uint32_t kAcksWaitingMax = 2 * kChunksMax;

class AckQueue {
 public:
  bool empty() const { return acks_.empty(); }
  /// Whether another chunk of the peer may begin.
  bool has_room() const { return acks_.count() < kAcksWaitingMax; }
  /// For a chunk that was let in: it has its room.
  void add(std::uint32_t tag, wire::Outcome outcome) { acks_.push(wire::ack_entry(tag, outcome)); }
  /// False: the peer asks for more than it may.
  bool try_add(std::uint32_t tag, wire::Outcome outcome) {
    if (!has_room()) return false;
    add(tag, outcome);
    return true;
  }
  /// Frames ACK on stream 0, as far as there is room.
  void stage(Outlet& control) {
    while (!acks_.empty() && control.has_room(kFrameRoom)) {
      const std::size_t count = std::min(acks_.count(), wire::kAcksMax);
      FrameWriter frame(control, {.type = wire::FrameType::kAck, .meta_size = static_cast<std::uint16_t>(count * 4)});
      for (std::size_t i = 0; i < count; ++i) frame.meta().u32(acks_.pop());
    }
  }
  void clear() { acks_.clear(); }

 private:
  Ring<std::uint32_t> acks_;
};

}  // namespace hawser::backend::stream
