#pragma once

// LostFlights: what was posted on a queue pair that is gone and had not ended. It may land still, so it waits for the
// fence: a new connection of the same queue pair, which shows that nothing of the old one lands any more.
//
// Two things end a part of it before that. The peer may tell that it counted the immediate of a write, so the write has
// landed. And a queue pair that is gone sends nothing again, so what was cancelled is over after a while, also where
// the peer's agent is stopped and cannot fence it.
//
// Thread rule: one thread at a time. Values; no I/O.

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include <hawser/time.h>

#include "backend/verbs/queues/queue_pair.h"

namespace hawser::backend::verbs {

class LostFlights {
 public:
  /// What a queue pair had sent has landed or was lost so long after it is gone.
  static constexpr Duration kLinger = std::chrono::milliseconds(500);

  /// The queue pair of `epoch` went at `now`, and with it these. The fence is to come within `patience`.
  void add(std::vector<Flight> flights, std::uint32_t epoch, Instant now, Duration patience);
  /// Marks those of the transfer.
  void cancel(std::uint64_t transfer);

  /// The fence: all leave.
  std::vector<Flight> take_all();
  /// Those leave that were cancelled and are over.
  std::vector<Flight> take_quiet(Instant now);
  /// The peer counted so many immediates of that epoch: their chunks leave.
  std::vector<Flight> take_counted(std::uint32_t epoch, std::uint64_t counted);

  /// The fence did not come in time.
  bool is_stuck(Instant now) const { return !flights_.empty() && now >= stuck_at_; }
  Instant next_deadline() const;
  bool empty() const { return flights_.empty(); }
  std::size_t size() const { return flights_.size(); }

 private:
  template <typename Leaves>
  std::vector<Flight> take(Leaves&& leaves) {
    std::vector<Flight> taken;
    std::erase_if(flights_, [&](Flight& flight) {
      if (!leaves(std::as_const(flight))) return false;
      taken.push_back(std::move(flight));
      return true;
    });
    return taken;
  }

  std::vector<Flight> flights_;
  std::uint32_t epoch_ = 0;
  Instant quiet_at_ = Instant::max();  ///< From then on nothing of it is on its way any more.
  Instant stuck_at_ = Instant::max();
};

}  // namespace hawser::backend::verbs
