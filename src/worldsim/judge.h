#pragma once

// WorldJudge: checks what ranks get against what docs/worlds.md promises. The first broken promise ends the run.
//
//   collectives   one that ends well has the right bytes, and a barrier does not end before all ranks have begun it
//   statuses      every operation ends once, with a status for which there is a reason: a deadline that has come, a
//                 cancellation, a rank that died and is named
//   hangs         nothing outlives its deadline; once a rank has died or a collective has ended badly, all others of
//                 the world end soon
//   messages      whole, of this world, in order by source, tag and class, none twice, none lost while nobody failed
//   calls         right answers, run at most once, not after their deadline, not after they were taken back
//   agreements    all ranks get the same answer, which is the AND of the votes
//   worlds        a shrunk world is the same to all its ranks, in the old order; what it says of the last good
//                 collective is true
//   memory        nothing touches the memory of an operation that has ended
//   leaks         at the end no rank holds anything of a world that it left
//   ways          of a sparse world: as long as the ranks that live have ways to one another, all of the above holds
//                 for them as in a full world, whichever ranks and links between them are gone. Where they have none,
//                 each may take the other for failed. No rank is ever sent a frame that it has to drop.
//
// Thread rule: one thread. Lifetime: the run's.

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "worldsim/cast.h"
#include "worldsim/ways.h"

namespace hawser::worldsim {

class WorldJudge {
 public:
  explicit WorldJudge(sim::Universe& universe) : universe_(universe) {}

  bool failed() const { return !failure_.empty(); }
  const std::string& failure() const { return failure_; }
  void fail(const std::string& what);
  Vault& vault() { return vault_; }
  std::uint64_t new_uid() { return next_uid_++; }

  /// The actors of the run, of its life.
  void set_cast(const std::vector<std::unique_ptr<Actor>>& actors) { actors_ = &actors; }
  Realm& open_realm(std::vector<std::size_t> actors, std::uint64_t seed);
  /// The realm that a shrink or a group gave an actor; the same for all that have it.
  Realm& realm_of(Realm& parent, bool is_group, const std::vector<std::size_t>& actors);
  const std::deque<std::unique_ptr<Realm>>& realms() const { return realms_; }
  Remote& new_remote(Realm& realm, std::uint32_t from, std::uint32_t to);

  void on_begun(Deed& deed);
  void on_end(Actor& actor, Deed& deed, const Status& status);
  /// A handler of this rank begins with a call.
  void on_run(Realm& realm, std::uint32_t rank, std::uint64_t uid);
  void on_agreed(Deed& deed, bool flag);
  /// The shrink gave this world.
  Realm* on_shrunk(Deed& deed, const World& world);
  /// Something may end this realm's collectives with this code.
  void disturb(Realm& realm, Code code);
  void doom(Realm& realm);
  /// What an actor has under way may be late.
  void observe(Actor& actor);
  /// Whether this recovery, which has not come, may still come. It must, soon after a rank has failed.
  bool may_recover(const Actor& actor, const Deed& deed);
  void check_failed(const Actor& actor, const Membership& membership);
  /// Before a rank leaves its last world.
  void check_kept(const Actor& actor);
  void on_misfit(const Deed& deed) { misfits_.push_back(&deed); }

  /// The process is gone, or its rank closed without leaving.
  void on_gone(const Actor& actor);
  /// The process says that it leaves, after all that it called has ended well,
  void on_left(const Actor& actor);
  /// and relays nothing for others from now on: all that live have said the same.
  void on_out(const Actor& actor);
  /// Two ranks lose each other for good, and both reach all others: the higher one fails, and nobody else. In a sparse
  /// world they are neighbours: see Ways::note_lost.
  void on_parted(const Actor& one, const Actor& other);
  /// The world that all enter has this topology.
  void set_topology(const Topology& topology, std::size_t ranks);
  const Ways& ways() const { return ways_; }
  /// From now on ranks may lose sight of each other though both live.
  void may_accuse() { may_accuse_ = true; }
  bool accuses() const { return may_accuse_ || ways_.were_apart(); }
  /// Only more than half of a realm's ranks that are not proven dead may go on.
  void set_majority(bool majority) { has_majority_ = majority; }
  /// Worlds recover by themselves.
  void set_automatic(bool automatic) { is_automatic_ = automatic; }
  /// Whether a shrink of this realm may find that it has none.
  bool may_refuse(const Realm& realm) const;
  /// Links are cut, or processes stopped, until then.
  void trouble(Duration span);
  /// What is on its way comes later until then.
  void delay(Duration span);
  bool is_gone(std::size_t actor) const { return gone_.contains(actor); }
  void check_end();

  std::uint64_t good() const { return good_; }
  std::uint64_t deeds() const { return deeds_; }
  std::uint64_t bad() const { return bad_; }

 private:
  /// Two that lost each other for good.
  struct Parting {
    std::size_t one = 0, other = 0;
    Instant when;
    Ways::Ranks out = {};  ///< These ranks must be left out.
  };

  void wrong(const Deed& deed, const Status& status, const std::string& why);
  void check_status(const Actor& actor, const Deed& deed, const Status& status);
  void check_disconnected(const Deed& deed, const Status& status);
  void check_timed_out(const Deed& deed, const Status& status);
  void check_cancelled(const Deed& deed, const Status& status);
  void check_invalid(const Deed& deed, const Status& status);
  void check_collective(const Deed& deed, const Status& status);
  void check_received(const Deed& deed, const Status& status);
  void check_answer(const Deed& deed, const Status& status);
  void check_barrier(const Deed& deed);
  static bool is_letter_for(const Deed& send, const Deed& receive);
  bool may_be_landing(const Deed& receive) const;
  bool letter_waits(const Deed& receive) const;
  bool has_gone(const Realm& realm) const;
  bool has_lost(const Deed& deed, std::string_view name) const;
  bool has_left(const Realm& realm) const;
  bool has_left_alive(const Realm& realm) const;
  bool is_lost(const Deed& deed, std::uint32_t rank) const;
  void count_as_gone(const Actor& actor);
  void look_at_ways(const Actor& actor);
  void look_at_verdict(const Actor& actor);
  void check_vote(const Realm& realm, std::size_t agreement, bool flag, const Deed& deed);
  void check_same(const Deed& deed, const Shrunk& mine);
  void check_lost_letters();
  void check_misfit(const Deed& deed);
  void check_alone(const Deed& deed, const Shrunk& mine);
  void check_parted(const Deed& deed, const std::vector<std::size_t>& actors);
  void check_majority(const Deed& deed, std::size_t ranks);

  sim::Universe& universe_;
  std::string failure_;
  Vault vault_;
  const std::vector<std::unique_ptr<Actor>>* actors_ = nullptr;
  std::deque<std::unique_ptr<Realm>> realms_;
  std::deque<Remote> remotes_;
  std::vector<const Deed*> misfits_;
  std::set<std::size_t> gone_;
  Ways ways_;
  Ways::Ranks left_;  ///< Actors that need not relay any more.
  bool has_majority_ = false, is_automatic_ = false;
  bool may_accuse_ = false;
  std::optional<Parting> parting_;
  Instant troubled_until_ = Instant::min(), delayed_until_ = Instant::min();
  std::uint64_t next_uid_ = 1;
  std::uint64_t deeds_ = 0, good_ = 0, bad_ = 0;
};

}  // namespace hawser::worldsim
