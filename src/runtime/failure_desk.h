#pragma once

// FailureDesk: what a rank does about failures in one world. It hears of ranks that are gone, lost or left, finds or
// takes over the verdict who failed, tells it to the others, and ends what cannot go on. What is known of each rank it
// keeps in RankFates.
//
// Of two live ranks that lose each other a court says which one failed: in a full world this one's (Hearing), in a
// sparse world the relay's. Until then the loss is known to this rank alone, and nothing goes on that needs both.
//
// Thread rule: under the lane's lock. Lifetime: its world's. What the Site names outlives it.

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "runtime/accord.h"
#include "runtime/hearing.h"
#include "runtime/mailbox.h"
#include "runtime/rank_fates.h"
#include "runtime/relay.h"
#include "runtime/roster.h"

namespace hawser::runtime {

class FailureDesk {
 public:
  struct Site {
    std::uint64_t world = 0;
    std::string name;
    const Roster* roster = nullptr;  ///< Open.
    Mailbox* mailbox = nullptr;
    Relay* relay = nullptr;  ///< Null in a full world.
    Accord* accord = nullptr;
    Duration heartbeat{}, peer_timeout{};  ///< The agent's.
  };
  /// All are set.
  struct Hooks {
    /// Ends the collectives that are under way,
    std::function<void(const Status& why, Instant now)> end_collectives;
    /// or those of them that wait for that rank's board,
    std::function<void(std::uint32_t rank, const Status& why, Instant now)> end_waits_for;
    /// and the calls of handlers to that peer and from it.
    std::function<void(const Peer& peer)> end_calls;
    /// A rank has failed.
    std::function<void()> failed;
    /// The others hold this rank for failed.
    std::function<void(const Status& why)> excluded;
  };

  void open(Site site, Hooks hooks);
  /// This rank closes the world: nothing goes on, and nobody is told.
  void close(const Status& why);

  const RankFates& fates() const { return fates_; }
  /// The user knows of all failures so far.
  void acknowledge() { fates_.acknowledge(); }
  /// Ranks have lost each other. Nobody votes until it is decided who failed.
  bool is_undecided() const;

  // What happens here.
  void note_failure(std::uint32_t rank, const Status& cause);
  /// The others go on without this rank.
  void exclude(const Status& why);
  /// Ends the world for all. `tell`: the others do not know.
  void revoke(const Status& why, bool tell, Instant now);
  /// The same, and the others are told once it is decided who failed: while a court is open they go on.
  void revoke_once_decided(const Status& why, Instant now);
  /// Tells again that the world is at an end, if it is. A rank that revokes a world and closes is gone for some before
  /// others have read why.
  void tell_revoked_again(Instant now);
  /// Of a world made of the ranks of `parent`, in this order. What the parent's ranks know is not told again.
  void take_over(const FailureDesk& parent, std::span<const std::uint32_t> ranks);

  /// Not good: the rank failed or left, and its agent goes on, so that messages to it would be for nobody.
  Status why_gone(std::uint32_t rank) const;

  // What the session with a peer, or the peer, says.
  void on_down(const Peer& peer, const Status& cause);
  void on_failed(const Peer& by, std::uint32_t rank, bool is_dead);
  void on_left(const Peer& peer);
  void on_revoke(const Peer& by, const Status& why);
  void on_lost(const Peer& by, std::span<const std::byte> lost, bool asks);
  void on_decided(Instant now);
  /// A peer asks why nothing goes on.
  void tell_why_not(const Peer& peer, Instant now);

 private:
  std::uint32_t size() const { return site_.roster->size(); }
  void open_hearing();
  void note_lost(std::uint32_t rank, const Status& cause);
  void note_dead(std::uint32_t rank);
  void note_closed(const Peer& peer, std::uint32_t rank);
  /// Ends what this rank sends to it, and waits for.
  void end_dealings(const Peer& peer, const Status& status);
  void convict(std::uint32_t rank);
  std::vector<std::uint32_t> lost_by_this() const;
  void tell_all(const Word& word, Instant now);
  void tell_revoked(Instant now);

  Site site_;
  Hooks hooks_;
  RankFates fates_;
  std::unique_ptr<Hearing> hearing_;  ///< Of a full world, as long as the others do not hold this rank for failed.
  bool tells_later_ = false;          ///< The others are told of the end once the court has decided.
};

}  // namespace hawser::runtime
