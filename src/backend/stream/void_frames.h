#pragma once

// VoidFrames: frames that are still to come and of which nothing may land, because the peer gave their writes up. Each
// is known by its stream and its number there.
//
// Thread rule: one thread. Memory: kChunksMax entries.

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "backend/stream/chunk_limits.h"
#include "backend/stream/inlet.h"

namespace hawser::backend::stream {

class VoidFrames {
 public:
  /// False: the peer gave up more than it can have under way. `inlets` tell which frames have come.
  bool add(unsigned stream, std::uint64_t frame, std::span<const Inlet> inlets) {
    if (frames_.size() == kChunksMax) {
      std::erase_if(frames_, [inlets](const auto& each) { return each.second < inlets[each.first].frames(); });
    }
    if (frames_.size() == kChunksMax) return false;
    frames_.emplace_back(stream, frame);
    return true;
  }
  /// The frame came: whether nothing of it may land. Told once.
  bool take(unsigned stream, std::uint64_t frame) {
    return !frames_.empty() && std::erase(frames_, std::pair(stream, frame)) > 0;
  }
  void clear() { frames_.clear(); }

 private:
  std::vector<std::pair<unsigned, std::uint64_t>> frames_;
};

}  // namespace hawser::backend::stream
