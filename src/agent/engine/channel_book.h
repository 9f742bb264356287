#pragma once

// ChannelBook: the channels that this agent has opened, for all peers, and how much may wait unread on each.
//
// Thread rule: confined to the lane.

#include <cstddef>
#include <cstdint>
#include <map>

#include <hawser/status.h>
#include <hawser/transfer.h>

#include "wire/session.h"

namespace hawser::agent {

struct Session;

/// How much may wait unread on a channel that was opened with `credit` messages.
wire::CreditLimits channel_window(std::uint32_t credit);

class ChannelBook {
 public:
  struct Opened {
    std::uint32_t credit = 0;
    Priority priority = Priority::kRealtime;  ///< In which class peers send on it.
  };
  /// A channel of a service. Before the first session.
  void add_own(std::uint32_t channel, const Opened& how);
  /// A channel of the user's. False: it was open before, and its credit stays. kInvalid: it was open in another class.
  /// kBusy: kChannelsMax are open.
  Result<bool> open(std::uint32_t channel, const Opened& how);
  /// All channels that are open, for a session that begins.
  void give_all(Session& session) const;
  /// One that was opened later.
  static void give(Session& session, std::uint32_t channel, const Opened& how);

 private:
  std::map<std::uint32_t, Opened> open_;
  std::size_t own_ = 0;  ///< So many of them are the services'.
};

}  // namespace hawser::agent
