#pragma once

// CourtClock: the deadlines of a court, by the mailbox. From the moment when something is undecided it gives all losses
// time to show; then those that have the verdict time to tell it.
//
// Thread rule: under the lane's lock. Lifetime: within the mailbox's.

#include <cstdint>
#include <functional>

#include "runtime/mailbox.h"

namespace hawser::runtime {

class CourtClock final : Listener {
 public:
  struct Hooks {
    std::function<void()> settle;   ///< All losses have shown.
    std::function<void()> give_up;  ///< No verdict came.
  };
  /// The agent's times.
  CourtClock(Mailbox& mailbox, Duration heartbeat, Duration peer_timeout, Hooks hooks);
  ~CourtClock();
  CourtClock(const CourtClock&) = delete;
  CourtClock& operator=(const CourtClock&) = delete;

  /// Whether something is undecided. Called after whatever may have changed that.
  void watch(bool is_open);

 private:
  /// Which of its deadlines runs.
  enum class Stage : std::uint8_t { kNone, kSettling, kGivingUp };

  void on_late(Operation& alarm, Instant now) override;

  Mailbox& mailbox_;
  const Duration heartbeat_, peer_timeout_;
  const Hooks hooks_;
  Operation alarm_{OperationKind::kSeveral};
  Stage stage_ = Stage::kNone;
};

}  // namespace hawser::runtime
