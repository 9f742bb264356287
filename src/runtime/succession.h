#pragma once

// Succession: how the ranks of one world agree with each other, and what comes after the world: the agreement, the
// shrink that the user calls or that the world makes by itself, and the end of all operations where the policy says so.
//
// Thread rule: what gives a Request or a Result from any thread, the rest under the lane's lock. Lifetime: its world's.
// What the Site names outlives it.

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <hawser/world.h>

#include "runtime/accord.h"
#include "runtime/failure_desk.h"
#include "runtime/recovery.h"
#include "runtime/requests.h"
#include "runtime/roster.h"

namespace hawser::runtime {

class WorldCore;

class Succession {
 public:
  using NextWorld = Result<std::shared_ptr<WorldCore>>;
  struct Site {
    std::string name;
    Quorum quorum = Quorum::kNone;
    const Requests* requests = nullptr;
    const Roster* roster = nullptr;  ///< Open.
    RankSeat* seat = nullptr;
    FailureDesk* failures = nullptr;
    Accord* accord = nullptr;
  };
  /// All are set.
  struct Hooks {
    /// The last collective that was good here, with all before it.
    std::function<std::uint64_t()> last_good;
    /// Makes the world of these ranks, which all of them make now.
    std::function<std::shared_ptr<WorldCore>(std::vector<std::uint32_t> ranks, std::uint64_t last_good, Instant now)>
        make;
    /// Ends all operations of the world at this rank.
    std::function<void(const Status& why, Instant now)> abort;
  };

  /// Before `open`; one of the enumeration's.
  void set_policy(RecoveryPolicy policy) { recovery_.set_policy(policy); }
  RecoveryPolicy policy() const { return recovery_.policy(); }
  void open(Site site, Hooks hooks) {
    site_ = std::move(site);
    hooks_ = std::move(hooks);
  }

  /// All ranks that have not failed call it.
  Request agree(bool flag, Duration timeout);
  /// What came of an agreement that is over.
  Result<AgreementValue> outcome(Operation* operation);
  /// `without`: taken for failed.
  Request begin_shrink(std::span<const std::uint32_t> without, Duration timeout);
  NextWorld shrunk(Operation* operation);
  /// What came of the recovery by itself; waits for it.
  Result<Recovery::Made> recovered(Duration timeout);

  /// A rank has failed.
  void note_failure() { take_step(recovery_.note_failure()); }
  /// The others hold this rank for failed.
  void note_excluded(const Status& why);
  /// This rank closes the world. The first outcome stands.
  void end(const Status& why) { recovery_.end(why); }
  /// A world that was made, and that nobody has taken.
  std::shared_ptr<WorldCore> give_up() { return recovery_.give_up(); }
  /// Not ok: the policy has ended all operations.
  const Status& aborted() const { return aborted_; }

 private:
  void begin_agreement(const std::shared_ptr<Agreeing>& call, std::uint8_t calls, bool flag, Duration timeout,
                       Instant now);
  void on_agreement_over(Agreeing& over);
  Result<AgreementValue> settle(const Agreeing& call);
  NextWorld make_next(const AgreementValue& decision, Instant now);
  std::uint8_t shrinking() const;
  Status check_left_without(const std::vector<std::uint32_t>& without) const;
  void take_step(Recovery::Step step);
  void begin_recovery(Instant now);
  void recover(const std::shared_ptr<Agreeing>& call, Instant now);
  void abort(Instant now);
  Mailbox& mailbox() const { return *site_.seat->mailbox; }

  Site site_;
  Hooks hooks_;
  Recovery recovery_;
  Status aborted_;  ///< By RecoveryPolicy::kAbort.
};

}  // namespace hawser::runtime
