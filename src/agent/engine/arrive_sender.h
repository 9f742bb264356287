#pragma once

// ArriveSender: what the target of a transfer is told of it: how many chunks to count before its notification and
// signal are due, that it counts no further, that it expects nothing any more.
//
// Thread rule: confined to the lane.

#include <cstddef>
#include <cstdint>

#include "agent/engine/session_link.h"
#include "agent/engine/session_table.h"
#include "agent/slot.h"

namespace hawser::agent {

class ArriveSender {
 public:
  ArriveSender(SessionTable& sessions, SessionLink& link) : sessions_(sessions), link_(link) {}

  /// Tells of the transfer, once. `chunks`: how many of them the target counts; 0: all is visible there. False: there
  /// is no room now.
  bool announce(Slot& slot, Session& session, std::uint32_t chunks);
  /// Tells the peer not to count further: every chunk is visible. False: there is no room now.
  bool tell_all_visible(Slot& slot, Session& session);
  /// It was announced and failed: the peer may hold a place for what will never arrive.
  void cancel(Session& session, std::uint64_t transfer);
  /// The peer may wait for chunks that it will not hear of. Where the transfer goes on, its end tells that all is
  /// there.
  void on_uncounted(Session& session, std::uint64_t transfer);
  /// Sends what is left to be told. False: there is no room now.
  bool pump(Session& session, std::size_t* work);

 private:
  SessionTable& sessions_;
  SessionLink& link_;
};

}  // namespace hawser::agent
