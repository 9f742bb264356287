#pragma once

// CollectiveBook: the collectives of one rank of a world, by their numbers: which are under way, what the last ones
// were, up to which all ended well; and how ranks find out that they differ in what they call.
//
// Ranks match collectives by number. A message of another collective by a number that this rank called shows that they
// differ, whenever it comes (CallLedger). Where no message comes at all, a rank that waits asks those of whom it waits
// (`check`), and they answer whether they called the same.
//
// Thread rule: under the lane's lock. Lifetime: what the Site names outlives it.

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include <hawser/peer.h>
#include <hawser/status.h>

#include "base/intrusive_list.h"
#include "runtime/call_ledger.h"
#include "runtime/collective.h"
#include "runtime/mailbox.h"
#include "wire/runtime.h"

namespace hawser::runtime {

class CollectiveBook {
 public:
  struct Site {
    std::uint64_t world = 0;
    std::string name;  ///< Of the world.
    std::span<const Peer> ranks;
    Mailbox* mailbox = nullptr;
  };
  struct Hooks {
    /// Why no collective of the world may go on. Ok: they may.
    std::function<Status()> why_not;
    std::function<std::optional<std::uint32_t>(const Peer& peer)> rank_of;
    /// All ranks are told that the world is at an end.
    std::function<void(const Status& why, Instant now)> revoke;
    /// This rank can read the board of that one no more. True: what is waiting has been ended.
    std::function<bool(Collective& waiting, std::uint32_t rank, Instant now)> out_of_sight;
    /// What becomes of the status of a collective that ended badly: who left, or failed.
    std::function<Status(const Status& status)> explained;
    /// A line for the log.
    std::function<void(const std::string& text)> warn;
    /// Where the world's collectives are written down. Null, or empty: nowhere.
    std::function<Recorder*()> recorder = {};
  };
  /// What is answered to a peer who asks whether this rank called the same.
  enum class Answer : std::uint8_t {
    kNone,  ///< The same.
    kNotYet,
    kOver,   ///< This rank is past it.
    kEnded,  ///< The world is at an end.
  };

  void open(Site site, Hooks hooks) {
    site_ = std::move(site);
    hooks_ = std::move(hooks);
  }
  /// The number of the next one. At first 1.
  void begin_with(std::uint64_t number) { next_number_ = number; }

  /// The next one. What may not begin ends at once.
  void begin(const std::shared_ptr<Collective>& collective, Instant deadline, Instant now);
  /// The number of a call that one thread carries through while nothing else of the world happens here.
  struct Ticket {
    std::uint64_t number = 0;
    std::uint64_t recorded = 0;  ///< See Collective.
  };
  /// None: it may not begin, or ranks differ in what they call. `begin` says so.
  std::optional<Ticket> take_ticket(std::uint64_t digest, const FlightEntry& flight, Instant now);
  /// The call has ended well.
  void end_well(const Ticket& ticket, Instant now);
  /// It has not ended yet: the collective goes on with it, under the rules of all others.
  void take_over(const std::shared_ptr<Collective>& collective, const Ticket& ticket, Instant deadline, Instant now);
  void end_all(const Status& status, Instant now);
  /// Ends those that wait for that rank's board.
  void end_waits_for(std::uint32_t rank, const Status& status, Instant now);
  std::uint64_t last_number() const { return next_number_ - 1; }
  /// Of those under way.
  std::uint64_t held_bytes();
  /// It and all before it ended well here.
  std::uint64_t last_good() const { return last_good_; }

  // What peers say.
  bool is_misfit(const wire::MessageEnvelope& envelope) const;
  void on_misfit(const Peer& by, std::uint64_t number, Instant now);
  Answer on_check(const Peer& by, const Question& question, Instant now);
  void on_checked(const Peer& by, std::uint64_t number, Code code, Instant now);

 private:
  Collective* under_way(std::uint64_t number);
  const Collective* under_way(std::uint64_t number) const {
    return const_cast<CollectiveBook*>(this)->under_way(number);
  }
  /// This rank's call of the number has ended: it has received all that it wanted.
  bool is_past(std::uint64_t number) const { return number < next_number_ && under_way(number) == nullptr; }
  void end_misfit(const Peer& by, std::uint64_t number, Instant now);
  Status not_the_same(const Peer& by, std::uint64_t number) const;
  void check_awaited(Collective& waiting, Instant now);
  Recorder* recorder() const { return hooks_.recorder ? hooks_.recorder() : nullptr; }
  std::uint64_t record(FlightEntry flight, std::uint64_t number, Instant now);
  void admit(const std::shared_ptr<Collective>& collective, const Ticket& ticket);
  void note_good(std::uint64_t number);
  void note_end(const Ticket& ticket, Code code, Instant now);
  void end_left_over(std::uint64_t number, Instant now);
  void on_ended(Collective& over, Instant now);

  Site site_;
  Hooks hooks_;
  std::uint64_t next_number_ = 1;
  CallLedger ledger_;
  base::IntrusiveList<Collective, &Collective::hook> under_way_;
  std::uint64_t last_good_ = 0;
  std::set<std::uint64_t> good_ahead_;  ///< Numbers of later ones that ended well.
};

}  // namespace hawser::runtime
