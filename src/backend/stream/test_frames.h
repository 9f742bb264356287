#pragma once

// For tests of what frames and what is framed: an outlet's bytes, frames cut from them, and bytes for an inlet.
//
// Thread rule: the test's thread.

#include <algorithm>
#include <array>
#include <cstring>
#include <span>
#include <vector>

#include "backend/stream/inlet.h"
#include "backend/stream/outlet.h"
#include "base/bytes.h"

namespace hawser::backend::stream {

/// A frame as its receiver sees it.
struct TestFrame {
  wire::FrameHead head;
  std::vector<std::byte> meta;
  std::vector<std::byte> payload;
  wire::Outcome trailer = wire::Outcome::kOk;

  std::uint32_t u32(std::size_t index) const {
    return base::load_little_endian<std::uint32_t>(meta.data() + 4 * index);
  }
};

/// The next bytes of `outlet`, at most `most`; they are sent and released.
inline std::vector<std::byte> bytes_of(Outlet& outlet, std::uint64_t most = UINT64_MAX, bool release = true) {
  std::vector<std::byte> bytes;
  std::array<iovec, 64> parts;
  while (outlet.has_unsent() && bytes.size() < most) {
    const std::size_t count = outlet.gather(parts, most - bytes.size());
    std::uint64_t sent = 0;
    for (const iovec& part : std::span(parts).first(count)) {
      const auto* from = static_cast<const std::byte*>(part.iov_base);
      bytes.insert(bytes.end(), from, from + part.iov_len);
      sent += part.iov_len;
    }
    outlet.sent(sent);
  }
  if (release) outlet.released(outlet.sent_total());
  return bytes;
}

/// Gives `bytes` to the inlet where it wants them. Returns how many it took until something was complete.
inline std::size_t feed(Inlet& inlet, std::span<const std::byte> bytes) {
  std::array<iovec, 16> parts;
  std::size_t got = 0;
  for (const iovec& part : std::span(parts).first(inlet.landing(parts, 1 << 20))) {
    const std::size_t size = std::min(part.iov_len, bytes.size() - got);
    if (size > 0) std::memcpy(part.iov_base, bytes.data() + got, size);
    got += size;
  }
  inlet.received(got);
  return got;
}

/// Feeds until the next frame's head is there, or its payload, and says which. kMore: `bytes` are used up.
inline Inlet::Next next_of(Inlet& inlet, std::span<const std::byte>& bytes) {
  for (Inlet::Next next = inlet.next();; next = inlet.next()) {
    if (next != Inlet::Next::kMore || bytes.empty()) return next;
    bytes = bytes.subspan(feed(inlet, bytes));
  }
}

inline std::vector<TestFrame> cut(std::span<const std::byte> bytes) {
  std::vector<TestFrame> frames;
  Inlet inlet;
  Piece piece;
  for (Inlet::Next next = next_of(inlet, bytes); next != Inlet::Next::kMore; next = next_of(inlet, bytes)) {
    HAWSER_ASSERT(next != Inlet::Next::kCorrupt, "the test framed well");
    if (next == Inlet::Next::kPayload) {
      frames.back().trailer = static_cast<wire::Outcome>(inlet.trailer());
      continue;
    }
    TestFrame& frame = frames.emplace_back();
    frame.head = inlet.head();
    frame.meta.assign(inlet.meta().begin(), inlet.meta().end());
    frame.payload.resize(inlet.head().payload_size);
    piece = {.local = frame.payload.data(), .remote = 0, .size = frame.payload.size()};
    if (!frame.payload.empty()) inlet.land({&piece, 1});
  }
  return frames;
}

/// All frames that wait in `outlet`.
inline std::vector<TestFrame> frames_of(Outlet& outlet) { return cut(bytes_of(outlet)); }

}  // namespace hawser::backend::stream
