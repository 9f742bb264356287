#pragma once

// For tests of the halves of Target: a region that a peer has bound, and what the peer is told.
//
// Thread rule: the test's thread.

#include <gtest/gtest.h>

#include <array>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "backend/stream/events.h"
#include "backend/stream/frame_writer.h"
#include "backend/stream/serving.h"
#include "backend/stream/test_frames.h"

namespace hawser::backend::stream {

struct TestServing {
  explicit TestServing(const PeerQuotas& quotas = {}) : guard(std::make_shared<PeerGuard>(quotas)) {
    RegionEntry entry;
    entry.key = {7, 9};
    entry.base = memory.data();
    entry.size = memory.size();
    entry.rights = Rights::kReadWrite;
    region = regions.add(std::move(entry)).value();
    std::string meta;
    base::ByteWriter out(&meta);
    wire::encode_bind(out, {.binding = 1, .index = region->index, .generation = region->generation, .key = {7, 9}});
    EXPECT_TRUE(bound.on_bind(0, base::as_bytes(meta)));
  }
  void close_region() { regions.close(region->index, region->generation); }
  /// Tags and outcomes that wait to be told.
  std::vector<std::pair<std::uint32_t, wire::Outcome>> acked() {
    Outlet outlet;
    acks.stage(outlet);
    std::vector<std::pair<std::uint32_t, wire::Outcome>> all;
    for (const TestFrame& frame : frames_of(outlet)) {
      for (std::size_t i = 0; i < frame.meta.size() / 4; ++i) {
        auto& [tag, outcome] = all.emplace_back();
        EXPECT_TRUE(wire::decode_ack(frame.u32(i), &tag, &outcome));
      }
    }
    return all;
  }

  std::vector<std::byte> memory = std::vector<std::byte>(1 << 20, std::byte{0xee});
  RegionTable regions{8};
  std::shared_ptr<const RegionEntry> region;
  std::shared_ptr<PeerGuard> guard;
  PeerCharges charges{guard->account({1, 1}), "peer"};
  BoundRegions bound{regions, nullptr, charges.account()};
  AckQueue acks;
  DeskShare desk{nullptr, nullptr, nullptr, charges.account()};
  Serving serving{.regions = bound, .charges = charges, .acks = acks, .desk = desk};
  EventQueue events;
};

using Acked = std::vector<std::pair<std::uint32_t, wire::Outcome>>;

}  // namespace hawser::backend::stream
