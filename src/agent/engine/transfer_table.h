#pragma once

// TransferTable: all transfers that are not final, from when they are let in until each has ended, exactly once.
//
// ChunkDispatcher offers their chunks to paths. An end comes in two steps: no further chunk
// is offered (`end_early`), and once no path has one any more the outcome is published (`finalize`).
//
// Thread rule: confined to the lane. Lifetime: slots outlive it.

#include <cstddef>
#include <cstdint>
#include <string_view>

#include <hawser/status.h>
#include <hawser/time.h>

#include "agent/engine/arrive_sender.h"
#include "agent/engine/held_transfers.h"
#include "agent/engine/news.h"
#include "agent/engine/session_table.h"
#include "agent/engine/transfer_times.h"
#include "agent/slot.h"
#include "base/intrusive_list.h"

namespace hawser::agent {

inline constexpr std::uint64_t kPlainBit = std::uint64_t{1} << 63;  ///< Set in ids of transfers that nothing covers.

class TransferTable {
 public:
  /// What it works with; all of it outlives the table.
  struct Uses {
    SessionTable& sessions;
    HeldTransfers& held;
    ArriveSender& arrives;
    const TransferTimes& times;
    News& news;
    SlotPool& slots;
    const Clock& clock;
    std::string_view agent;  ///< Its name, for errors.
  };
  explicit TransferTable(const Uses& uses) : uses_(uses) {}
  TransferTable(const TransferTable&) = delete;
  TransferTable& operator=(const TransferTable&) = delete;
  ~TransferTable();

  /// Lets a submission in: it has a number from now on, and waits if it must. An error: nothing happened.
  Status enter(Slot& slot, Session& session, Instant now);
  /// Ends a submission that was taken from its submitter and cannot be let in.
  void refuse(Slot& slot, Status status, Instant now);

  /// All its chunks ended and the peer knows what it must: its outcome is published.
  void finalize(Slot& slot, Status status, Instant now);
  /// No further chunks. Final at once, or when the last that a path has has ended (`end_quiet`).
  void end_early(Slot& slot, Status status, Instant now);
  /// It was ended early, and no path has a chunk of it any more, or will tell.
  void end_quiet(Slot& slot, Instant now);

  /// Ends what is overdue. Returns how much.
  std::size_t expire(Instant now);
  /// Not after the earliest deadline; exact after `expire`.
  Instant next_deadline() const { return earliest_deadline_; }
  /// Ends that one if it is in flight and was cancelled.
  bool apply_cancel(Slot& slot, Instant now);
  /// Looks at all in this way.
  std::size_t apply_cancels(Instant now);
  void cancel_region(const LocalRegion& region, Instant now);
  std::size_t end_label(std::uint64_t label, const Status& status, Instant now);
  void end_all(const Status& status, Instant now);
  /// The session is over.
  void end_of(Session& session, const Status& status, Instant now);
  /// Its paths were released, so they end chunks without a word.
  void on_paths_gone(Session& session, Instant now);
  /// No path is left anywhere.
  void shut_down(Instant now);

  std::uint32_t in_flight() const { return count_; }

 private:
  Status admit(Slot& slot, Session& session, Instant now);
  static Status admit_covered(Slot& slot, Session& session);
  void link(Slot& slot, Session& session);
  void count_end(const Slot& slot, const Status& status, Instant now);
  void time(const Slot& slot, Session& session, Duration took);

  const Uses uses_;
  base::IntrusiveList<Slot, &Slot::flight_hook> in_flight_;
  std::uint32_t count_ = 0;
  Instant earliest_deadline_ = Instant::max();
};

}  // namespace hawser::agent
