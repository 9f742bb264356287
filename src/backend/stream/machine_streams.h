#pragma once

// MachineStreams: both directions of each stream of one path: up to kStreamsMax that carry operations, and those of
// links, which carry messages only.
//
// Thread rule: one thread.

#include <algorithm>
#include <array>
#include <memory>
#include <span>

#include "backend/stream/inlet.h"
#include "backend/stream/message_order.h"
#include "backend/stream/outlet.h"

namespace hawser::backend::stream {

class MachineStreams {
 public:
  explicit MachineStreams(unsigned streams) : streams_(streams) {
    HAWSER_ASSERT(streams >= 1 && streams <= kStreamsMax, "a path has 1 to 8 streams");
  }

  /// From here on bulk may go to this stream, or its link has it.
  void open(unsigned stream) {
    if (is_link_stream(stream)) {
      links_[stream - kStreamsMax] = std::make_unique<Both>();
    } else {
      is_open_[stream] = true;
    }
  }

  // Those of operations.
  std::span<Outlet> outlets() { return {outlets_.data(), streams_}; }
  std::span<Inlet> inlets() { return {inlets_.data(), streams_}; }
  // Those of any stream that is open.
  Outlet& outlet(unsigned stream) { return is_link_stream(stream) ? link(stream).outlet : outlets_[stream]; }
  const Outlet& outlet(unsigned stream) const {
    return is_link_stream(stream) ? link(stream).outlet : outlets_[stream];
  }
  const Inlet& inlet(unsigned stream) const { return is_link_stream(stream) ? link(stream).inlet : inlets_[stream]; }
  Inlet& inlet(unsigned stream) { return is_link_stream(stream) ? link(stream).inlet : inlets_[stream]; }

  /// Bulk chunks go there: to streams 1.. once one of them is open; until then, and when there is one only, to stream
  /// 0.
  bool carries_bulk(unsigned stream) const {
    if (stream > 0 || streams_ == 1) return true;
    return std::none_of(is_open_.begin() + 1, is_open_.begin() + streams_, [](bool open) { return open; });
  }
  /// Some is queued on a stream of operations; on one of a link.
  bool has_unsent() const {
    return std::any_of(outlets_.begin(), outlets_.begin() + streams_,
                       [](const Outlet& each) { return each.has_unsent(); });
  }
  bool has_unsent_links() const {
    return std::ranges::any_of(links_, [](const auto& each) { return each != nullptr && each->outlet.has_unsent(); });
  }

  /// Bytes of bulk are on their way on a stream that carries nothing else.
  bool moves_bulk() const {
    const auto moves = [this](unsigned stream) { return outlet(stream).has_unsent() || inlet(stream).in_payload(); };
    for (unsigned stream = 1; stream < streams_; ++stream) {
      if (moves(stream)) return true;
    }
    for (std::size_t index = 0; index < links_.size(); ++index) {
      if (wire::Link::at(index).priority() != Priority::kBulk || links_[index] == nullptr) continue;
      if (moves(stream_of(wire::Link::at(index)))) return true;
    }
    return false;
  }

  /// The streams are closed.
  void clear() {
    for (Outlet& each : outlets()) each.clear();
    for (Inlet& each : inlets()) each.clear();
    for (const auto& each : links_) {
      if (each == nullptr) continue;
      each->outlet.clear();
      each->inlet.clear();
    }
  }

 private:
  struct Both {
    Outlet outlet;
    Inlet inlet;
  };
  Both& link(unsigned stream) const { return *links_[stream - kStreamsMax]; }

  const unsigned streams_;
  std::array<Outlet, kStreamsMax> outlets_;
  std::array<Inlet, kStreamsMax> inlets_;
  std::array<std::unique_ptr<Both>, wire::kLinks> links_;
  std::array<bool, kStreamsMax> is_open_ = {true};
};

}  // namespace hawser::backend::stream
