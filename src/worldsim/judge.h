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
// Each of these has a member that judges it; see there.
//
// Thread rule: one thread. Lifetime: the run's.

#include <cstdint>
#include <string>
#include <vector>

#include "worldsim/call_judge.h"
#include "worldsim/deadline_judge.h"
#include "worldsim/fates.h"
#include "worldsim/realms.h"
#include "worldsim/result_judge.h"
#include "worldsim/shrink_judge.h"
#include "worldsim/status_judge.h"
#include "worldsim/trouble_times.h"
#include "worldsim/verdict.h"

namespace hawser::worldsim {

class WorldJudge {
 public:
  explicit WorldJudge(sim::Universe& universe) : universe_(universe) {}
  WorldJudge(const WorldJudge&) = delete;
  WorldJudge& operator=(const WorldJudge&) = delete;

  bool failed() const { return verdict_.failed(); }
  const std::string& failure() const { return verdict_.failure(); }
  void fail(const std::string& what) { verdict_.fail(what); }
  Vault& vault() { return vault_; }
  std::uint64_t new_uid() { return realms_.new_uid(); }

  /// The actors of the run, of its life.
  void set_cast(const Actors::All& actors) { actors_.set(actors); }
  Realm& open_realm(std::vector<std::size_t> actors, std::uint64_t seed) {
    return realms_.open(std::move(actors), seed);
  }
  /// The realm that a shrink or a group gave an actor; the same for all that have it.
  Realm& realm_of(Realm& parent, bool is_group, const std::vector<std::size_t>& actors) {
    return realms_.derive(parent, is_group, actors, [this](std::size_t actor) { return fates_.is_gone(actor); });
  }
  const std::deque<std::unique_ptr<Realm>>& realms() const { return realms_.all(); }
  Remote& new_remote(Realm& realm, std::uint32_t from, std::uint32_t to) {
    return calls_.make(new_uid(), realm, from, to);
  }

  void on_begun(Deed& deed);
  void on_end(Deed& deed, const Status& status);
  /// A handler of this rank begins with a call.
  void on_run(const Realm& realm, std::uint32_t rank, std::uint64_t uid) { calls_.on_run(realm, rank, uid); }
  void on_agreed(Deed& deed, bool flag) { results_.on_agreed(deed, flag); }
  /// The shrink gave this world.
  Realm* on_shrunk(Deed& deed, const World& world);
  /// Something may end this realm's collectives with this code.
  static void disturb(Realm& realm, Code code) { realm.disturbances.insert(code); }
  void doom(Realm& realm) { realms_.doom(realm); }
  /// What an actor has under way may be late.
  void observe(const Actor& actor);
  /// Whether this recovery, which has not come, may still come. It must, soon after a rank has failed.
  bool may_recover(const Actor& actor, const Deed& deed) { return deadlines_.may_recover(actor, deed); }
  void check_failed(const Actor& actor, const Membership& membership);
  /// Before a rank leaves its last world.
  void check_kept(const Actor& actor);
  void on_misfit(const Deed& deed) { misfits_.push_back(&deed); }

  // See Fates.
  void on_gone(const Actor& actor) { fates_.on_gone(actor); }
  void on_left(const Actor& actor) { fates_.on_left(actor); }
  void on_out(const Actor& actor) { fates_.on_out(actor); }
  void on_parted(const Actor& one, const Actor& other) { fates_.on_parted(one, other); }
  void set_topology(const Topology& topology, std::size_t ranks) { fates_.set_topology(topology, ranks); }
  const Ways& ways() const { return fates_.ways(); }
  void may_accuse() { fates_.may_accuse(); }
  bool accuses() const { return fates_.accuses(); }
  bool is_gone(std::size_t actor) const { return fates_.is_gone(actor); }

  void set_majority(bool majority) { rules_.has_majority = majority; }
  void set_automatic(bool automatic) { rules_.is_automatic = automatic; }
  /// Whether a shrink of this realm may find that it has none.
  bool may_refuse(const Realm& realm) const { return worldsim::may_refuse(uses_, realm); }
  /// Links are cut, or processes stopped, until then.
  void trouble(Duration span) { times_.trouble(universe_.world.now(), span); }
  /// What is on its way comes later until then.
  void delay(Duration span) { times_.delay(universe_.world.now(), span); }
  void check_end();

  std::uint64_t good() const { return good_; }
  std::uint64_t deeds() const { return deeds_; }
  std::uint64_t bad() const { return bad_; }

 private:
  void check_lost_letters();
  bool is_passed(const Actor& actor, const Deed& send) const;

  sim::Universe& universe_;
  Verdict verdict_{universe_};
  Vault vault_;
  Actors actors_;
  Realms realms_{universe_};
  Fates fates_{universe_, verdict_, realms_, actors_};
  TroubleTimes times_;
  WorldRules rules_;
  const JudgeUses uses_{
      .universe = universe_, .verdict = verdict_, .fates = fates_, .actors = actors_, .times = times_, .rules = rules_};
  StatusJudge statuses_{uses_};
  ResultJudge results_{uses_, realms_};
  CallJudge calls_{uses_};
  ShrinkJudge shrinks_{uses_};
  DeadlineJudge deadlines_{uses_};
  std::vector<const Deed*> misfits_;
  std::uint64_t deeds_ = 0, good_ = 0, bad_ = 0;
};

}  // namespace hawser::worldsim
