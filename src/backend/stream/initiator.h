#pragma once

// Initiator: the half of the remote-memory protocol that asks. It takes chunks, chooses when each is framed, and acts
// on what the peer says of it. Its members keep the chunks (ChunkSlots), name the peer's regions (RemoteBindings), land
// data of reads (ReadData), follow cancelled writes (CancelledWrites) and tell the lane how chunks ended
// (ChunkReports).
//
// Small chunks and all read requests go out on stream 0; bulk writes wait in one queue from which the bulk streams pull
// when they run dry, so the least loaded stream takes the next.
//
// Thread rule: one thread. Lifetime: pieces and bindings of a chunk stay valid until its end (B3).

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "backend/backend.h"
#include "backend/stream/cancelled_writes.h"
#include "backend/stream/chunk_limits.h"
#include "backend/stream/chunk_reports.h"
#include "backend/stream/chunk_slots.h"
#include "backend/stream/events.h"
#include "backend/stream/inlet.h"
#include "backend/stream/outlet.h"
#include "backend/stream/read_data.h"
#include "backend/stream/remote_bindings.h"
#include "backend/stream/ring.h"
#include "wire/stream_frames.h"

namespace hawser::backend::stream {

class Initiator {
 public:
  struct Options {
    std::string peer;
    std::uint64_t small_max = 0;
  };
  Initiator(EventQueue& events, Path* path, Options options)
      : small_max_(options.small_max), reports_(events, path, std::move(options.peer)), cancelled_(slots_, reports_) {}

  Binding* bind(const RemoteRegionRef& region) { return bindings_.bind(region); }
  void unbind(std::uint32_t index, std::uint32_t generation) { bindings_.unbind(index, generation); }

  /// False: no room now. `control` is stream 0's.
  bool take(const Chunk& chunk, Outlet& control);
  bool has_bulk() const { return !bulk_.empty(); }
  bool idle() const { return slots_.count() == 0; }
  /// Frames the next bulk write for `stream`.
  void frame_bulk(unsigned stream, Outlet& outlet);

  /// Ends what can be ended; see Path::cancel.
  void cancel(std::uint64_t transfer, std::span<Outlet> outlets, std::span<Inlet> inlets);
  /// Cancelled writes that have not ended: the peer has not said what became of them.
  std::uint32_t cancelled_writes() const { return cancelled_.count(); }
  /// Begins another period of waiting for those; see kAnswerPeriod. False: a stream refers to the memory of some for
  /// too long.
  bool next_cancel_period(std::span<const Outlet> outlets) { return cancelled_.next_period(outlets); }

  // What came in; false: senseless.
  bool on_ack(std::uint32_t tag, wire::Outcome outcome, std::span<Outlet> outlets);
  bool on_data(unsigned stream, std::uint32_t tag, Inlet& inlet, std::span<const Outlet> outlets) {
    return ReadData::begin(slots_.find(tag), stream, inlet, outlets);
  }
  bool on_data_end(std::uint32_t tag, const Inlet& inlet);
  /// Streams let go of more memory.
  void on_released(std::span<Outlet> outlets);

  /// Frames of its own that wait: UNBIND on any stream, LANDED and VOID on stream 0.
  bool has_notes(unsigned stream) const {
    return bindings_.has_unbinds() || (stream == 0 && (reads_.has_landed() || cancelled_.has_questions()));
  }
  void stage_notes(unsigned stream, Outlet& outlet);
  /// The bound that kept `take` from the last chunk that it did not take; empty when there was none.
  std::string_view last_full() const { return last_full_; }
  std::uint32_t in_flight() const { return slots_.count(); }
  std::uint64_t bytes_in_flight() const { return slots_.bytes(); }

  /// Ends every chunk; `outlets` tell how far each got.
  void fail(const Status& why, std::span<Outlet> outlets);

  void note_quotas(const wire::Quotas& quotas) { reports_.note_quotas(quotas); }

 private:
  using State = ChunkSlot::State;

  bool refuse(std::string_view bound);
  void cancel_slot(ChunkSlot& slot, std::span<Outlet> outlets, std::span<Inlet> inlets);
  void end_read(ChunkSlot& slot);
  void tell(ChunkSlot& slot, Status status);
  void free_slot(ChunkSlot& slot);

  const std::uint64_t small_max_;
  ChunkSlots slots_;
  RemoteBindings bindings_;
  ChunkReports reports_;
  CancelledWrites cancelled_;
  ReadData reads_;
  Ring<std::uint32_t> bulk_;  ///< Slots in kQueued.
  std::string_view last_full_;
  std::uint32_t acked_ = 0;  ///< Slots in kAcked.
};

}  // namespace hawser::backend::stream
