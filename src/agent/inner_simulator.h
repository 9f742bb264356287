#pragma once

// The inner door, simulators: how they turn an agent step by step, kill its process, and look into its books to judge
// it.
//
// Thread rule: confined to the simulator's thread.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <hawser/agent.h>

#include "backend/region_table.h"
#include "base/id128.h"
#include "proto/credit.h"
#include "proto/notify_credit.h"

namespace hawser::agent {
class Core;
}

namespace hawser::agent::inner {

/// Turns an agent's lane. Keeps what stands behind the agent alive, and closes nothing.
class Turner {
 public:
  Turner() = default;
  explicit Turner(const Agent& agent);

  /// One round of work; how much there was.
  std::size_t turn() const;
  /// Whether it may sleep now, at most until `*next`. Then `disarm` before the next turn.
  bool arm(Instant* next) const;
  void disarm() const;
  /// Runs `call` under the lane's lock, without a turn.
  void under_lane(const std::function<void()>& call) const;

 private:
  std::shared_ptr<Core> core_;
};

/// The handle lets go of its agent without closing it: its process is dead.
void let_go(Agent& agent);
/// As the agent's last handle would.
void close_for_good(const Agent& agent);

/// The longest Traits::quiesce_max of its open backends.
Duration quiesce_max(const Agent& agent);
/// What stands behind the region's handle.
std::shared_ptr<const backend::RegionEntry> entry_of(const Region& region);
/// Peers can still reach it: its entry is not taken out of the agent's table.
bool is_registered(const Agent& agent, const std::shared_ptr<const backend::RegionEntry>& entry);
/// The key of the peer's region that the table is of.
base::Id128 key_of(const RangeTable& table);
/// The peer that the plan was made for; its handle compares equal to others of the same peer.
Peer peer_of(const Plan& plan);
/// The peer whose region it is of; none: it names no region, or nobody knows the peer any more.
std::optional<Peer> peer_of(const RemoteRange& range);
bool is_same(const Peer& one, const Peer& other);

/// What the peer's cards told.
struct KnownCard {
  std::uint64_t revision = 0;                                              ///< 0: not known in full.
  std::map<std::uint32_t, std::pair<std::uint32_t, base::Id128>> regions;  ///< Index to generation and key.
};
KnownCard card_known(const Peer& peer);

/// Messages that an agent has taken and its user has not, also of one that is dead.
void each_waiting_message(const Agent& agent,
                          const std::function<void(const Peer&, std::uint32_t, std::string_view)>& see);

/// What one agent keeps of its session with another.
struct SessionBooks {
  std::uint64_t number = 0, peer_number = 0;
  bool has_control = false;  ///< Some path carries its messages.
  bool goes_best = false;    ///< A path of the first backend may carry transfers.
  std::string leftovers;     ///< What it still has to do or to tell; empty: nothing.
  proto::CreditSender notify_out;
  proto::NotifyReceiver notify_in;
  std::uint64_t untold = 0;  ///< Notifications that were read, and the peer was not told yet.
  std::map<std::uint32_t, proto::CreditReceiver> channels_in;
  std::map<std::uint32_t, proto::CreditSender> channels_out;  ///< Of `channels` that were asked for.
  std::vector<Acknowledged> acknowledged;
};
/// Nothing where the two have no session. `channels_of`: whose incoming channels `channels_out` tells of; null: none.
std::optional<SessionBooks> books_with(const Agent& agent, const Incarnation& other,
                                       const SessionBooks* channels_of = nullptr);

}  // namespace hawser::agent::inner
