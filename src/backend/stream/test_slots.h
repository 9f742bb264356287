#pragma once

// For tests of what follows single chunks: slots with chunks of one piece, two streams, and what the lane was told.
//
// Thread rule: the test's thread.

#include <gtest/gtest.h>

#include <array>
#include <deque>
#include <vector>

#include "backend/stream/chunk_frames.h"
#include "backend/stream/chunk_reports.h"
#include "backend/stream/chunk_slots.h"
#include "backend/stream/test_frames.h"

namespace hawser::backend::stream {

struct TestSlots {
  TestSlots() {
    binding.bind = {.binding = 1, .index = 3, .generation = 1, .key = {7, 9}};
    binding.announced = 0xff;
  }
  /// A chunk of `bytes`, which its slot has in one piece of `memory`.
  ChunkSlot& add(Operation op, std::uint64_t bytes) {
    Chunk chunk;
    chunk.op = op;
    chunk.covered = true;
    chunk.transfer = 77;
    chunk.index = chunk.cookie = slots.count();
    chunk.target = &binding;
    chunk.pieces = {&pieces.emplace_back(Piece{memory.data(), 0, bytes}), 1};
    chunk.bytes = bytes;
    return *slots.add(chunk);
  }
  ChunkSlot& framed_write(std::uint64_t bytes, unsigned stream) {
    ChunkSlot& slot = add(Operation::kWrite, bytes);
    frame_write(slot, slots.tag_of(slot), stream, outlets[stream]);
    return slot;
  }
  ChunkSlot& framed_read(std::uint64_t bytes) {
    ChunkSlot& slot = add(Operation::kRead, bytes);
    frame_read(slot, slots.tag_of(slot), outlets[0]);
    return slot;
  }
  std::vector<PortEvent> told() {
    std::array<PortEvent, 8> out;
    return {out.begin(), out.begin() + static_cast<std::ptrdiff_t>(events.poll(out))};
  }

  std::vector<std::byte> memory = std::vector<std::byte>(64 * 1024, std::byte{0xab});
  std::deque<Piece> pieces;
  RemoteBinding binding;
  ChunkSlots slots;
  EventQueue events;
  ChunkReports reports{events, nullptr, "peer"};
  std::array<Outlet, 2> outlets;
  std::array<Inlet, 2> inlets;
};

}  // namespace hawser::backend::stream
