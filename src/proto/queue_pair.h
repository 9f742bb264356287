#pragma once

// The life of one queue pair of an RDMA path, as a table: (role, state, event) -> next state and what to do.
//
// A path's opener is the active end and decides when to connect; the other end is passive. Each attempt has an epoch,
// one higher than the last, so that a message that is late, repeated or of a dead attempt is recognised. Failure is a
// state that is left again, never a tombstone.
//
//   active                                   passive
//   absent --want--> connecting  --connect-->  absent, ready, draining: reset, make anew, join
//          proving   <--accept--               accepted
//          (one write of no bytes goes through and is acknowledged)
//          ready     --ready-->                ready
//   ready --fault, broken--> draining --> backoff --> connecting with the next epoch
//
// The fence: the active end resets its queue pair before it sends a Connect, the passive end before it answers. So at
// the active end an Accept, and at the passive end a Connect of a later epoch, means that nothing of the earlier epoch
// lands any more, at either end; what had been posted may be posted again, on any queue pair (kReportFenced).
//
// Thread rule: one thread at a time; the table is constant.

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace hawser::proto {

enum class QueuePairRole : std::uint8_t { kActive = 0, kPassive = 1 };
inline constexpr std::size_t kQueuePairRoles = 2;

enum class QueuePairState : std::uint8_t {
  kAbsent = 0,
  kConnecting = 1,  ///< Active: the peer's Accept is awaited.
  kProving = 2,     ///< Active: both ends are joined; the first write is under way.
  kAccepted = 3,    ///< Passive: joined; the peer's Ready is awaited.
  kReady = 4,
  kDraining = 5,  ///< In error: what was posted comes back.
  kBackoff = 6,   ///< Active: waits before the next attempt.
  kClosed = 7,    ///< For good.
};
inline constexpr std::size_t kQueuePairStates = 8;

enum class QueuePairEvent : std::uint8_t {
  kWant = 0,          ///< Connect, or do not wait any longer before the next attempt.
  kConnect = 1,       ///< The peer's Connect with a later epoch.
  kConnectAgain = 2,  ///< The same Connect once more.
  kAccept = 3,        ///< The peer's Accept of this epoch.
  kReadyHeard = 4,    ///< The peer's Ready of this epoch. Of the passive end's user: try again, do not wait any longer.
  kBroken = 5,        ///< The peer says that this epoch is over.
  kProved = 6,        ///< The first write was acknowledged.
  kFault = 7,         ///< A call failed, a completion was an error, the device or its port went.
  kDrained = 8,       ///< Everything posted came back.
  kTimer = 9,         ///< Time to say it again; in backoff: to try again.
  kExpired = 10,      ///< The state's time is over.
  kClose = 11,
};
inline constexpr std::size_t kQueuePairEvents = 12;

enum class QueuePairAction : std::uint8_t {
  kNone = 0,
  kNextEpoch = 1,
  kMake = 2,  ///< The queue pair exists, is fresh and in INIT, with a new first packet number.
  kJoin = 3,  ///< INIT -> RTR -> RTS, towards the endpoint that the peer told.
  kProve = 4,
  kSendConnect = 5,
  kSendAccept = 6,
  kSendReady = 7,
  kSendBroken = 8,
  kDrain = 9,  ///< To the error state: posted work is flushed.
  kReset =
      10,  ///< Neither end's memory is touched by this queue pair any more; what was posted and not reported is over.
  kArm = 11,  ///< Start the state's timers.
  kArmBackoff = 12,
  kDisarm = 13,
  kReportReady = 14,
  kReportLost = 15,    ///< It was ready and is not any more.
  kReportFenced = 16,  ///< Nothing of earlier epochs lands at the peer any more.
  kReportFailed = 17,  ///< An attempt failed.
};

std::string_view to_string(QueuePairState state);
std::string_view to_string(QueuePairEvent event);
std::string_view to_string(QueuePairAction action);

inline constexpr std::size_t kQueuePairActionsMax = 8;

struct QueuePairStep {
  QueuePairState next = QueuePairState::kAbsent;
  std::uint8_t count = 0;
  std::array<QueuePairAction, kQueuePairActionsMax> actions{};

  /// In the order in which to do them. When one fails, the rest is left out and kFault is fed.
  std::span<const QueuePairAction> to_do() const { return std::span(actions).first(count); }
};

/// The whole machine.
const QueuePairStep& step(QueuePairRole role, QueuePairState state, QueuePairEvent event);

/// State and epoch of one queue pair. Messages are offered with their epoch; what is stale gives nothing to do.
class QueuePairMachine {
 public:
  explicit QueuePairMachine(QueuePairRole role) : role_(role) {}

  QueuePairRole role() const { return role_; }
  QueuePairState state() const { return state_; }
  std::uint32_t epoch() const { return epoch_; }
  bool is_ready() const { return state_ == QueuePairState::kReady; }

  /// Events of this end: kWant, kProved, kFault, kDrained, kTimer, kExpired, kClose.
  std::span<const QueuePairAction> on(QueuePairEvent event);
  /// Messages of the peer.
  std::span<const QueuePairAction> on_connect(std::uint32_t epoch);
  std::span<const QueuePairAction> on_message(QueuePairEvent event, std::uint32_t epoch);
  /// For kNextEpoch.
  void next_epoch() { ++epoch_; }

 private:
  QueuePairRole role_;
  QueuePairState state_ = QueuePairState::kAbsent;
  std::uint32_t epoch_ = 0;
};

/// The table as text, one line per role, state and event that does anything.
std::string queue_pair_table();

}  // namespace hawser::proto
