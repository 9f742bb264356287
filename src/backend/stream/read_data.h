#pragma once

// ReadData: the data of reads that this end asked for. Each DATA frame lands in the read's pieces in order. A covered
// read that came as a whole is told to the target by LANDED.
//
// Thread rule: one thread. Lifetime: pieces stay valid until the read's end is told (B3).

#include <cstdint>
#include <span>

#include "backend/stream/chunk_slots.h"
#include "backend/stream/inlet.h"
#include "backend/stream/outlet.h"
#include "backend/stream/ring.h"
#include "wire/stream_frames.h"

namespace hawser::backend::stream {

class ReadData {
 public:
  enum class End : std::uint8_t {
    kGoesOn,  ///< More frames of it will come.
    kOver,    ///< The last frame, or the peer gave up: the slot's outcome tells.
    kSenseless,
  };

  /// A DATA frame began on `stream`; says where its bytes land. The bytes of a read that was cancelled land nowhere.
  /// False: senseless. `slot` may be null.
  static bool begin(ChunkSlot* slot, unsigned stream, Inlet& inlet, std::span<const Outlet> outlets);
  /// The frame is there.
  static End end(ChunkSlot& slot, const Inlet& inlet);
  /// Nothing more of it lands. True: some of its data is in place.
  static bool cancel(const ChunkSlot& slot, std::span<Inlet> inlets);

  /// All data of a covered read is there, and its caller will be told.
  void note_landed(const ChunkSlot& slot) { landed_.push({slot.transfer, slot.index}); }
  bool has_landed() const { return !landed_.empty(); }
  /// Frames LANDED on stream 0, as far as there is room.
  void stage_landed(Outlet& control);

 private:
  Ring<wire::Landed> landed_;
};

}  // namespace hawser::backend::stream
