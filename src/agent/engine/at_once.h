#pragma once

// AtOnce: small transfers that are over before submit returns, with their notification: no slot, no list, nothing to
// give back.
//
// Thread rule: confined to the lane.

#include <cstdint>
#include <optional>
#include <string_view>

#include <hawser/time.h>

#include "agent/engine/session_table.h"
#include "agent/engine/transfer_times.h"
#include "agent/plan.h"
#include "agent/session.h"

namespace hawser::agent {

class AtOnce {
 public:
  AtOnce(const SessionTable& sessions, const TransferTimes& times, const Clock& clock)
      : sessions_(sessions), times_(times), clock_(clock) {}

  /// Moves the plan's one chunk here and now, all of it, where its path can and nothing waits before it. False: nothing
  /// was done, and a slot says why or waits.
  bool move(PlanCore& plan, const std::optional<std::string_view>& notify) const;
  /// The session of the plan's peer if transfers to it need not wait for anything.
  Session* free_session(const PlanCore& plan) const;

 private:
  static bool move_and_tell(const PlanCore& plan, Session& session, const PathEntry& entry, std::string_view notify);
  static bool move_alone(const PlanCore& plan, Session& session, const PathEntry& entry);
  static bool tell(Session& session, const PathEntry& entry, std::uint64_t id, std::string_view notify);

  const SessionTable& sessions_;
  const TransferTimes& times_;
  const Clock& clock_;
};

}  // namespace hawser::agent
