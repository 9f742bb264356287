#pragma once

// AgreementSimulation, for tests: the ranks of an agreement as objects. Messages arrive in order between two ranks, and
// in any order otherwise. A rank may die at any moment, between two messages of one step too; the others find out one
// by one, each by the end of what arrives of the dead one's words, or from a rank that found out before. A rank that
// lives may also be taken for dead.
//
// Thread rule: one thread at a time.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <iterator>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/rng.h"
#include "runtime/agreement.h"

namespace hawser::runtime {

class AgreementSimulation {
 public:
  AgreementSimulation(std::uint32_t size, std::uint64_t seed)
      : rng_(seed), is_dead_(size), breath_(size), votes_(size), knows_(size, std::vector<bool>(size)) {
    for (std::uint32_t rank = 0; rank < size; ++rank) {
      ranks_.push_back(
          std::make_unique<Agreement>(rank, size, [this, rank](std::uint32_t to, const AgreementMessage& message) {
            say(rank, to, {message, {}});
          }));
    }
  }

  Agreement& of(std::uint32_t rank) { return *ranks_[rank]; }
  std::uint32_t size() const { return static_cast<std::uint32_t>(ranks_.size()); }
  bool is_dead(std::uint32_t rank) const { return is_dead_[rank]; }
  base::Rng& rng() { return rng_; }

  /// Rank r's `last_good` is 10 + r.
  void vote(std::uint32_t rank, bool flag) {
    if (is_dead_[rank]) return;
    votes_[rank].push_back(flag);
    of(rank).vote({.calls = kCallsAgree, .flag = flag, .last_good = 10 + rank});
    note_decision(rank);
  }
  const std::vector<bool>& votes(std::uint32_t rank) const { return votes_[rank]; }
  /// What it decided while it lived.
  const AgreementValue* decision(std::uint32_t rank, std::uint64_t number) const {
    const auto found = decisions_.find({rank, number});
    return found == decisions_.end() ? nullptr : &found->second;
  }

  /// Dies once it has said so many more things, or now.
  void kill(std::uint32_t rank, std::uint64_t breath) {
    if (is_dead_[rank] || breath_[rank] != 0) return;
    if (breath == 0) {
      die(rank);
    } else {
      breath_[rank] = breath;
    }
  }
  /// `rank` takes the other one for dead, whether it is or not.
  void accuse(std::uint32_t rank, std::uint32_t other) {
    if (rank != other && !is_dead_[other]) learn(rank, other);
    if (!is_dead_[rank]) note_decision(rank);
  }
  /// One thing arrives. False: nothing is on its way.
  bool deliver_one() {
    std::erase_if(lines_, [](const auto& line) { return line.second.empty(); });
    if (lines_.empty()) return false;
    const auto line = std::next(lines_.begin(), static_cast<std::ptrdiff_t>(rng_.below(lines_.size())));
    const auto [from, to] = line->first;
    const Item item = line->second.front();
    line->second.pop_front();
    if (is_dead_[to]) return true;
    if (item.failed) {
      learn(to, *item.failed);
    } else {
      of(to).hear(from, item.message);
    }
    note_decision(to);
    return true;
  }
  void deliver_all() {
    while (deliver_one()) {
    }
  }

 private:
  struct Item {
    AgreementMessage message;
    std::optional<std::uint32_t> failed;
  };

  void say(std::uint32_t from, std::uint32_t to, Item item) {
    if (is_dead_[from]) return;
    lines_[{from, to}].push_back(std::move(item));
    if (breath_[from] != 0 && --breath_[from] == 0) die(from);
  }
  void note_decision(std::uint32_t rank) {
    const std::uint64_t number = votes_[rank].size();
    if (is_dead_[rank] || number == 0) return;
    if (const AgreementValue* const decision = of(rank).decision(number)) decisions_[{rank, number}] = *decision;
  }
  void die(std::uint32_t rank) {
    is_dead_[rank] = true;
    const bool loses_all = rng_.chance(0.5);
    for (std::uint32_t other = 0; other < size(); ++other) {
      if (other == rank) continue;
      std::deque<Item>& line = lines_[{rank, other}];
      if (loses_all) line.clear();
      line.resize(line.size() - rng_.below(line.size() + 1));
      line.push_back({{}, rank});
    }
  }
  void learn(std::uint32_t rank, std::uint32_t failed) {
    if (is_dead_[rank] || knows_[rank][failed]) return;
    knows_[rank][failed] = true;
    for (std::uint32_t other = 0; other < size(); ++other) {
      if (other != rank) say(rank, other, {{}, failed});
    }
    if (rank == failed) is_dead_[rank] = true;  // It was told that it is left out: it passes that on, and says no more.
    if (!is_dead_[rank]) of(rank).note_failed(failed);
  }

  base::Rng rng_;
  std::vector<std::unique_ptr<Agreement>> ranks_;
  std::vector<bool> is_dead_;
  std::vector<std::uint64_t> breath_;  ///< So many things until it dies. 0: it does not.
  std::vector<std::vector<bool>> votes_;
  std::map<std::pair<std::uint32_t, std::uint64_t>, AgreementValue> decisions_;  ///< By rank and number.
  std::vector<std::vector<bool>> knows_;                                         ///< knows_[rank][failed].
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::deque<Item>> lines_;
};

/// What is wrong with the decisions of one agreement, those of ranks that died afterwards among them. Empty: nothing.
inline std::string complaint_of(const AgreementSimulation& ranks, std::uint64_t number) {
  const AgreementValue* first = nullptr;
  bool all_true = true, some_false = false;
  for (std::uint32_t rank = 0; rank < ranks.size(); ++rank) {
    const std::vector<bool>& votes = ranks.votes(rank);
    const bool has_voted = votes.size() >= number;
    all_true = all_true && (!has_voted || votes[number - 1]);
    const AgreementValue* const decision = ranks.decision(rank, number);
    if (decision == nullptr) {
      if (!ranks.is_dead(rank)) return "rank " + std::to_string(rank) + " did not decide";
      continue;
    }
    some_false = some_false || !votes[number - 1];
    if (first == nullptr) first = decision;
    if (*first != *decision) return "two ranks decided differently";
    if (!ranks.is_dead(rank) && decision->failed[rank]) return "a rank that lives is said to have failed";
  }
  if (first == nullptr) return "";
  if (first->flag && some_false) return "a vote against was lost";
  if (!first->flag && all_true) return "nobody voted against";
  return "";
}

/// Rank 0 takes rank 1 for dead before that one has accepted, decides with the others, and dies before anybody hears of
/// either. Rank 1, which leads now, must decide the same. Chance does not find this.
inline std::string run_lost_acceptance() {
  constexpr std::uint32_t kRanks = 4;
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::deque<AgreementMessage>> lines;
  std::vector<std::unique_ptr<Agreement>> ranks;
  for (std::uint32_t rank = 0; rank < kRanks; ++rank) {
    ranks.push_back(std::make_unique<Agreement>(rank, kRanks, [&lines, rank](std::uint32_t to, const auto& message) {
      lines[{rank, to}].push_back(message);
    }));
    ranks[rank]->vote({.calls = kCallsAgree, .flag = rank != 0});
  }
  const auto deliver = [&](std::uint32_t from, std::uint32_t to) {
    for (const AgreementMessage& message : std::exchange(lines[{from, to}], {})) ranks[to]->hear(from, message);
  };
  for (const std::uint32_t other : {1U, 2U, 3U}) deliver(other, 0);  // It proposes,
  for (const std::uint32_t other : {2U, 3U}) deliver(0, other);      // which rank 1 does not hear.
  for (const std::uint32_t other : {2U, 3U}) deliver(other, 0);
  ranks[0]->note_failed(1);
  const AgreementValue* const decided = ranks[0]->decision(1);
  if (decided == nullptr) return "rank 0 did not decide";
  for (const std::uint32_t other : {1U, 2U, 3U}) lines[{0, other}].clear();
  for (const std::uint32_t other : {1U, 2U, 3U}) ranks[other]->note_failed(0);
  for (int round = 0; round < 4; ++round) {
    for (const std::uint32_t other : {2U, 3U}) deliver(other, 1);
    for (const std::uint32_t other : {2U, 3U}) deliver(1, other);
  }
  for (const std::uint32_t other : {1U, 2U, 3U}) {
    const AgreementValue* const later = ranks[other]->decision(1);
    if (later == nullptr || *later != *decided) return "a decision that was made did not stand";
  }
  return "";
}

/// Rank 0 of five leads a shrink that wants a majority. All have voted; then it takes those for failed that have not
/// accepted its proposal.
struct LonelyLeader {
  std::uint32_t accepted;  ///< So many others accepted.
  std::uint32_t dead;      ///< Of so many of the rest the end is proven.
  std::uint32_t left;      ///< So many ranks its decision must leave.
};

/// The proposal, of all ranks, stands where more than half of those that are not proven dead have accepted it, the
/// leader among them. Else the decision counts those that failed.
inline constexpr LonelyLeader kLonelyLeaders[] = {{4, 0, 5}, {2, 0, 5}, {1, 0, 2}, {0, 0, 1}, {1, 2, 5}, {1, 1, 2}};

/// Returns what is wrong; empty: nothing. Chance finds this once in thousands of seeds.
inline std::string run_lonely_leader(const LonelyLeader& with) {
  constexpr std::uint32_t kRanks = 5;
  Agreement leader(0, kRanks, [](std::uint32_t, const AgreementMessage&) {});
  const AgreementValue vote = {.calls = kCallsShrinkByMajority, .failed = std::vector<bool>(kRanks)};
  leader.vote(vote);
  for (std::uint32_t other = 1; other < kRanks; ++other) {
    leader.hear(other, {.number = 1, .phase = wire::AgreementPhase::kVote, .value = vote});
  }
  for (std::uint32_t other = 1; other <= with.accepted; ++other) {
    leader.hear(other, {.number = 1, .phase = wire::AgreementPhase::kAccept, .value = vote});
  }
  for (std::uint32_t other = with.accepted + 1; other < kRanks; ++other) {
    if (kRanks - other <= with.dead) leader.note_dead(other);
    leader.note_failed(other);
  }
  const AgreementValue* const decision = leader.decision(1);
  if (decision == nullptr) return "the leader did not decide";
  const auto left = static_cast<std::uint32_t>(std::ranges::count(decision->failed, false));
  if (left == with.left) return "";
  return "after " + std::to_string(with.accepted) + " acceptances and " + std::to_string(with.dead) +
         " deaths the decision leaves " + std::to_string(left) + " ranks and not " + std::to_string(with.left);
}

/// Runs three agreements of 2 to 6 ranks, of which all but one may fail. Returns what is wrong; empty: nothing.
inline std::string run_agreement_seed(std::uint64_t seed) {
  constexpr std::uint64_t kAgreements = 3;
  base::Rng rng(seed);
  AgreementSimulation ranks(2 + static_cast<std::uint32_t>(rng.below(5)), rng.u64());
  std::uint64_t to_die = rng.below(ranks.size());
  const auto kill_one = [&] {
    if (to_die == 0) return;
    --to_die;
    if (rng.chance(0.3)) {
      return ranks.accuse(static_cast<std::uint32_t>(rng.below(ranks.size())),
                          static_cast<std::uint32_t>(rng.below(ranks.size())));
    }
    ranks.kill(static_cast<std::uint32_t>(rng.below(ranks.size())), rng.below(ranks.size() + 2));
  };
  for (std::uint64_t number = 1; number <= kAgreements; ++number) {
    std::vector<std::uint32_t> callers;
    for (std::uint32_t rank = 0; rank < ranks.size(); ++rank) callers.push_back(rank);
    rng.shuffle(callers);
    while (!callers.empty()) {
      const std::uint64_t what = rng.below(10);
      if (what < 3) {
        ranks.vote(callers.back(), !rng.chance(0.2));
        callers.pop_back();
      } else if (what == 3) {
        kill_one();
      } else {
        ranks.deliver_one();
      }
    }
    while (ranks.deliver_one()) {
      if (rng.chance(0.1)) kill_one();
    }
    if (std::string complaint = complaint_of(ranks, number); !complaint.empty()) return complaint;
  }
  return "";
}

}  // namespace hawser::runtime
