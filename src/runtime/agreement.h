#pragma once

// Agreement: the ranks of a world come to one answer, whichever of them fail meanwhile.
//
// The lowest rank that has not failed leads. It collects the vote of every other rank, proposes what the votes come to,
// and tells the decision once all have accepted the proposal. When the leader fails, each rank votes again with the
// next one, and tells what it has accepted; the new leader proposes the newest of that. A decision was accepted by all
// that live, so two leaders never decide differently (Skeen, "Nonblocking commit protocols", SIGMOD 1981). That holds
// because a verdict of failure is final: from then on a rank hears nothing of the one that failed.
//
// A leader that stood still may find that all others hold it for failed, and hold them for failed. So a shrink that
// wants a majority is decided only if more than half of the ranks whose end is not proven have accepted it. Where fewer
// have, the decision counts those that failed meanwhile, and so tells the caller that there is no quorum.
//
// It is about messages and failures only: no clock, no sockets. Messages between two ranks arrive in order.
//
// Thread rule: one thread at a time. Lifetime: a world's.

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "wire/runtime.h"

namespace hawser::runtime {

/// What ranks vote for, and what is decided.
struct AgreementValue {
  std::uint8_t calls = 0;         ///< What the voters called: bits of AgreementCall. More than one bit: they differ.
  bool flag = true;               ///< The AND of all votes.
  std::uint64_t last_good = 0;    ///< The least of all votes.
  std::vector<bool> failed = {};  ///< By rank: what anyone knew of.
  std::vector<bool> dead = {};    ///< By rank: whose end anyone had proof of, or who had left. Empty: of none.
  friend bool operator==(const AgreementValue&, const AgreementValue&) = default;
};

enum AgreementCall : std::uint8_t { kCallsAgree = 1, kCallsShrink = 2, kCallsShrinkByMajority = 4 };

struct AgreementMessage {
  std::uint64_t number = 0;
  wire::AgreementPhase phase = wire::AgreementPhase::kVote;
  std::uint32_t ballot = 0;  ///< In a vote: the rank whose proposal the voter accepted, plus 1. 0: none.
  AgreementValue value;      ///< A vote's own, or what was accepted; of kAbsent only `failed` counts.
};

class Agreement {
 public:
  using Tell = std::function<void(std::uint32_t to, const AgreementMessage& message)>;

  Agreement(std::uint32_t rank, std::uint32_t size, Tell tell);

  /// Votes, and returns the number of the agreement. A vote that this rank gave before in the running one stays;
  /// then `value` does not count.
  std::uint64_t vote(AgreementValue value);
  /// Final. Not of this rank.
  void note_failed(std::uint32_t rank);
  /// Its end is proven, or it has left. Counts in what is proposed from now on.
  void note_dead(std::uint32_t rank) { dead_[rank] = true; }
  void hear(std::uint32_t from, const AgreementMessage& message);

  /// The decision of the agreement `number`, which is the running one or the one before it. Null: there is none yet.
  const AgreementValue* decision(std::uint64_t number) const;
  bool has_decided() const { return number_ > 1; }
  /// Of the running one.
  std::uint64_t number() const { return number_; }
  std::uint32_t leader() const { return leader_; }
  /// Asks the leader for whom it waits. Its answer shows in `absent`.
  void ask_for_absent();
  /// For whom the running agreement waits. Of another rank than the leader: as the leader told last, else the leader.
  std::vector<std::uint32_t> absent() const;

 private:
  struct Round {
    std::optional<AgreementValue> own;
    std::uint32_t ballot = 0;  ///< Of what is accepted.
    AgreementValue accepted;
    // Of a leader.
    std::map<std::uint32_t, AgreementMessage> votes;
    bool has_proposed = false;
    std::set<std::uint32_t> accepts;
    std::vector<bool> told_absent;  ///< By the leader.
  };

  void tell_all(wire::AgreementPhase phase, const AgreementValue& value);
  void vote_with_leader();
  void propose_if_complete();
  void decide_if_accepted();
  bool has_majority() const;
  void decide(const AgreementValue& value);
  AgreementValue sum_of_votes() const;
  void hear_before(std::uint32_t from, const AgreementMessage& message);
  void hear_now(std::uint32_t from, const AgreementMessage& message);
  template <typename Missing>
  std::vector<std::uint32_t> others_where(Missing missing) const;
  /// How many others have not failed.
  std::size_t others() const;
  std::vector<std::uint32_t> missing_votes() const;
  std::vector<std::uint32_t> missing_accepts() const;

  const std::uint32_t rank_;
  const std::uint32_t size_;
  const Tell tell_;
  std::vector<bool> failed_, dead_;
  std::uint32_t leader_ = 0;
  std::uint64_t number_ = 1;  ///< Of the running one.
  Round now_;
  std::map<std::uint32_t, AgreementMessage> early_;  ///< Votes of those who have decided the running one already.
  AgreementValue last_;                              ///< What the one before was decided to be.
};

}  // namespace hawser::runtime
