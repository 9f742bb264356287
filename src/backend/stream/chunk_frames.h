#pragma once

// Frames of the chunks that this end asks for: WRITE, with its payload copied or referred to, and READ.
//
// Thread rule: values of one thread.

#include <cstdint>

#include "backend/stream/chunk_slots.h"
#include "backend/stream/outlet.h"

namespace hawser::backend::stream {

/// Whether the wire can carry it: 1 to 256 pieces that add up to its size.
bool is_well_formed(const Chunk& chunk);

/// Frames a write on `stream`, and notes in the slot where. Payload up to kInlineMax is copied.
void frame_write(ChunkSlot& slot, std::uint32_t tag, unsigned stream, Outlet& outlet);
/// Frames a read request on stream 0.
void frame_read(ChunkSlot& slot, std::uint32_t tag, Outlet& control);

/// Takes back a frame of which nothing was sent: its head says SKIP now, and payload that it only refers to is left
/// out. False: it has begun.
bool withdraw_frame(ChunkSlot& slot, Outlet& outlet);

}  // namespace hawser::backend::stream
