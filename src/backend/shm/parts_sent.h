#pragma once

// PartsSent: the beginnings of the messages that a producer sent in parts. The ring cannot show them all by itself: the
// first part of a message may be overwritten before the peer has read the last one.
//
// Thread rule: confined to the lane. Memory: as many messages as the ring holds lines for, whatever the peer says.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "backend/shm/ring.h"

namespace hawser::backend::shm {

class PartsSent {
 public:
  /// The first part of a message went into the ring, at `position`. `read`: up to there the producer knows that the
  /// peer has read; it lies at most the ring's size behind the producer, and messages that end before it are forgotten.
  void begin(std::span<const std::byte> head, std::span<const std::byte> body, std::uint64_t position,
             std::uint64_t read) {
    std::erase_if(all_, [read](const Sent& each) { return each.end <= read; });
    Sent& one = all_.emplace_back();
    one.first = position;
    for (const std::span<const std::byte> part : {head, body}) {
      const std::size_t count = std::min(part.size(), one.begin.size() - one.size);
      std::ranges::copy(part.first(count), one.begin.begin() + static_cast<std::ptrdiff_t>(one.size));
      one.size += count;
    }
  }
  /// The last part of the message that began last is in the ring, which the producer has filled up to `position`.
  void finish(std::uint64_t position) { all_.back().end = position; }
  /// Calls `see` with the beginning of each message that ends behind `read`, or is not all in the ring.
  template <typename See>
  void each_behind(std::uint64_t read, See see) const {
    for (const Sent& each : all_) {
      if (each.end > read) see(std::span(each.begin).first(each.size));
    }
  }
  /// Whether a message begins with the part at `position`.
  bool begins_at(std::uint64_t position) const { return std::ranges::find(all_, position, &Sent::first) != all_.end(); }
  std::size_t size() const { return all_.size(); }

 private:
  struct Sent {
    std::uint64_t first = 0;         ///< The position of its first part.
    std::uint64_t end = UINT64_MAX;  ///< The producer's position behind the message, once all of it is in the ring.
    std::size_t size = 0;            ///< Bytes in `begin`.
    std::array<std::byte, kLinePayload> begin;
  };
  std::vector<Sent> all_;
};

}  // namespace hawser::backend::shm
