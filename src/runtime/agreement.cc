#include "runtime/agreement.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "base/planted.h"

namespace hawser::runtime {
namespace {

using base::Planted;
using base::planted;
using wire::AgreementPhase;

void add(AgreementValue& sum, const AgreementValue& value) {
  sum.calls |= value.calls;
  sum.flag = sum.flag && value.flag;
  sum.last_good = std::min(sum.last_good, value.last_good);
  for (std::size_t i = 0; i < sum.failed.size(); ++i) sum.failed[i] = sum.failed[i] || value.failed[i];
  if (sum.dead.size() < value.dead.size()) sum.dead.resize(value.dead.size());
  for (std::size_t i = 0; i < value.dead.size(); ++i) sum.dead[i] = sum.dead[i] || value.dead[i];
}

}  // namespace

Agreement::Agreement(std::uint32_t rank, std::uint32_t size, Tell tell)
    : rank_(rank), size_(size), tell_(std::move(tell)), failed_(size), dead_(size) {}

// ---- Who is who.

template <typename Missing>
std::vector<std::uint32_t> Agreement::others_where(Missing missing) const {
  std::vector<std::uint32_t> all;
  for (std::uint32_t other = 0; other < size_; ++other) {
    if (other != rank_ && !failed_[other] && missing(other)) all.push_back(other);
  }
  return all;
}

std::size_t Agreement::others() const { return static_cast<std::size_t>(std::ranges::count(failed_, false)) - 1; }

std::vector<std::uint32_t> Agreement::missing_votes() const {
  return others_where([this](std::uint32_t other) { return !now_.votes.contains(other); });
}

std::vector<std::uint32_t> Agreement::missing_accepts() const {
  return others_where([this](std::uint32_t other) { return !now_.accepts.contains(other); });
}

std::vector<std::uint32_t> Agreement::absent() const {
  if (leader_ == rank_) return now_.has_proposed ? missing_accepts() : missing_votes();
  std::vector<std::uint32_t> all;
  for (std::uint32_t other = 0; other < now_.told_absent.size(); ++other) {
    if (now_.told_absent[other]) all.push_back(other);
  }
  return all.empty() ? std::vector<std::uint32_t>{leader_} : all;
}

void Agreement::ask_for_absent() {
  if (leader_ != rank_)
    tell_(leader_, {.number = number_, .phase = AgreementPhase::kAsk, .value = {.failed = failed_}});
}

const AgreementValue* Agreement::decision(std::uint64_t number) const {
  HAWSER_ASSERT(number == number_ || number + 1 == number_, "only the last decision is kept");
  return number + 1 == number_ ? &last_ : nullptr;
}

// ---- What this rank does.

std::uint64_t Agreement::vote(AgreementValue value) {
  const std::uint64_t number = number_;
  if (now_.own) return number;
  value.failed = failed_;
  now_.own = std::move(value);
  vote_with_leader();
  return number;
}

void Agreement::vote_with_leader() {
  if (leader_ == rank_) return propose_if_complete();
  if (!now_.own) return;
  add(*now_.own, {.last_good = now_.own->last_good, .failed = std::vector<bool>(size_), .dead = dead_});
  const bool has_accepted = now_.ballot != 0 && !planted(Planted::kForgetsAccepted);
  tell_(leader_, {.number = number_,
                  .phase = AgreementPhase::kVote,
                  .ballot = has_accepted ? now_.ballot : 0,
                  .value = has_accepted ? now_.accepted : *now_.own});
}

void Agreement::note_failed(std::uint32_t rank) {
  HAWSER_ASSERT(rank < size_ && rank != rank_, "not a rank that can fail");
  if (failed_[rank]) return;
  failed_[rank] = true;
  if (rank != leader_) {
    propose_if_complete();
    return decide_if_accepted();
  }
  while (failed_[leader_]) ++leader_;
  now_.told_absent.clear();
  // Its last words may have been a decision that the new leader has not heard.
  if (number_ > 1 && leader_ != rank_ && !planted(Planted::kKeepsDecision)) {
    tell_(leader_, {.number = number_ - 1, .phase = AgreementPhase::kDecision, .value = last_});
  }
  vote_with_leader();
}

AgreementValue Agreement::sum_of_votes() const {
  std::uint32_t newest = now_.ballot;
  AgreementValue sum = newest != 0 ? now_.accepted : *now_.own;
  for (const auto& [from, vote] : now_.votes) {
    if (failed_[from]) continue;
    if (vote.ballot > newest && !planted(Planted::kIgnoresBallot)) {
      newest = vote.ballot;
      sum = vote.value;
    } else if (newest == 0) {
      add(sum, vote.value);
    }
  }
  if (newest == 0) add(sum, {.last_good = sum.last_good, .failed = failed_, .dead = dead_});
  return sum;
}

void Agreement::propose_if_complete() {
  if (leader_ != rank_ || !now_.own || now_.has_proposed) return;
  if (now_.votes.size() < others() && !planted(Planted::kProposesEarly)) return;  // Else it looks who has voted.
  if (!missing_votes().empty() && !planted(Planted::kProposesEarly)) return;
  const AgreementValue value = sum_of_votes();
  now_.ballot = rank_ + 1;
  now_.accepted = value;
  now_.has_proposed = true;
  tell_all(AgreementPhase::kProposal, value);
  decide_if_accepted();
}

void Agreement::decide_if_accepted() {
  if (!now_.has_proposed || leader_ != rank_) return;
  if (now_.accepts.size() < others() && !planted(Planted::kDecidesEarly)) return;
  if (!missing_accepts().empty() && !planted(Planted::kDecidesEarly)) return;
  AgreementValue decided = now_.accepted;
  if (decided.calls == kCallsShrinkByMajority && !has_majority()) {
    add(decided, {.flag = decided.flag, .last_good = decided.last_good, .failed = failed_, .dead = dead_});
  }
  decide(decided);
}

/// Whether the proposal was accepted by more than half of the ranks whose end is not proven.
bool Agreement::has_majority() const {
  if (planted(Planted::kDecidesAlone)) return true;
  const auto accepted = static_cast<std::ptrdiff_t>(now_.accepts.size()) + 1;
  return accepted > std::ranges::count(dead_, false) / 2;
}

/// A leader tells the others, also of a decision that it has heard from one of them.
void Agreement::decide(const AgreementValue& value) {
  if (leader_ == rank_) tell_all(AgreementPhase::kDecision, value);
  last_ = value;
  ++number_;
  now_ = {};
  now_.votes = std::exchange(early_, {});
}

void Agreement::tell_all(AgreementPhase phase, const AgreementValue& value) {
  const AgreementMessage message = {.number = number_, .phase = phase, .value = value};
  for (const std::uint32_t other : others_where([](std::uint32_t) { return true; })) tell_(other, message);
}

// ---- What others say.

void Agreement::hear(std::uint32_t from, const AgreementMessage& message) {
  if (from >= size_ || from == rank_ || message.value.failed.size() != size_) return;
  if (failed_[from] && !planted(Planted::kHearsTheDead)) return;
  if (message.number < number_) return hear_before(from, message);
  if (message.number == number_) return hear_now(from, message);
  if (message.number == number_ + 1 && message.phase == AgreementPhase::kVote) early_[from] = message;
}

/// A rank that is behind votes in what is decided here.
void Agreement::hear_before(std::uint32_t from, const AgreementMessage& message) {
  if (message.phase != AgreementPhase::kVote || message.number + 1 != number_) return;
  tell_(from, {.number = message.number, .phase = AgreementPhase::kDecision, .value = last_});
}

void Agreement::hear_now(std::uint32_t from, const AgreementMessage& message) {
  switch (message.phase) {
    case AgreementPhase::kVote:
      now_.votes[from] = message;
      return propose_if_complete();
    case AgreementPhase::kProposal:
      if (from != leader_ || !now_.own) return;
      now_.ballot = from + 1;
      now_.accepted = message.value;
      return tell_(from, {.number = number_, .phase = AgreementPhase::kAccept, .value = {.failed = failed_}});
    case AgreementPhase::kAccept:
      if (!now_.has_proposed) return;
      now_.accepts.insert(from);
      return decide_if_accepted();
    case AgreementPhase::kDecision:
      return decide(message.value);
    case AgreementPhase::kAsk: {
      AgreementMessage answer = {.number = number_, .phase = AgreementPhase::kAbsent, .value = {.failed = {}}};
      answer.value.failed.resize(size_);
      const bool leads = leader_ == rank_;
      for (const std::uint32_t rank : absent()) answer.value.failed[rank] = leads;
      if (leads && !now_.own) answer.value.failed[rank_] = true;
      return tell_(from, answer);
    }
    case AgreementPhase::kAbsent:
      if (from == leader_) now_.told_absent = message.value.failed;
      return;
  }
}

}  // namespace hawser::runtime
