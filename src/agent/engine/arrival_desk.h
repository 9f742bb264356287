#pragma once

// ArrivalDesk: what peers' transfers bring to this agent as their target: notifications and signals, each once all its
// bytes are visible here, and the credit that peers have for them.
//
// Thread rule: confined to the lane.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include <hawser/agent.h>
#include <hawser/status.h>

#include "agent/engine/news.h"
#include "agent/engine/session_link.h"
#include "agent/engine/session_table.h"
#include "backend/region_table.h"
#include "base/log.h"
#include "wire/session.h"

namespace hawser::agent {

class ArrivalDesk {
 public:
  /// What it works with; all of it outlives the desk.
  struct Uses {
    SessionTable& sessions;
    News& news;
    const Inbox& inbox;
    const backend::RegionTable& regions;
    std::uint64_t notification_bytes_total;  ///< What notifications of all peers may hold here.
    std::string_view agent;                  ///< Its name, for the log.
    base::Logger& log;
  };
  explicit ArrivalDesk(const Uses& uses) : uses_(uses) {}

  /// The peer tells of a transfer, or notifies without one. An error is the peer's.
  Status on_arrive(Session& session, const wire::Arrive& arrive);
  /// A covered chunk of the peer is visible here. An error is the peer's.
  Status on_chunk(Session& session, std::uint64_t transfer, std::uint32_t chunk);

  /// The user took notifications of the peer: their places go back to it.
  void release(PeerCore& peer);
  /// What the peer may send, to be told now.
  wire::CreditLimits take_credit(Session& session) const { return session.notify_in.take_limits(room()); }
  /// Tells the peer of more credit where that is owed. False: no room now.
  bool pump_credit(Session& session, std::size_t* work);
  /// The session's paths are gone, and what was under way on them.
  static void forget(Session& session);

 private:
  using Text = std::optional<std::span<const std::byte>>;

  std::uint64_t room() const;
  Status on_transfer(Session& session, const wire::Arrive& arrive);
  void deliver(Session& session, const Text& notify, const std::optional<wire::SignalBump>& signal);
  void bump(Session& session, const wire::SignalBump& signal);
  void deliver_waiting(Session& session, std::uint64_t cookie);
  void drop_waiting(Session& session, std::optional<std::uint64_t> cookie);
  void tell_credit(Session& session);
  void give_back(Session& session, std::uint64_t messages, std::uint64_t bytes);

  const Uses uses_;
};

}  // namespace hawser::agent
