#include "runtime/succession.h"

#include <algorithm>
#include <utility>

#include "agent/inner.h"
#include "base/planted.h"
#include "base/try.h"
#include "runtime/quorum.h"
#include "runtime/rank_list.h"

namespace hawser::runtime {

using agent::inner::Need;
using base::planted;
using base::Planted;

// ---- Agreement.

void Succession::begin_agreement(const std::shared_ptr<Agreeing>& call, std::uint8_t calls, bool flag, Duration timeout,
                                 Instant now) {
  const RankFates& fates = site_.failures->fates();
  call->value = {.calls = calls, .flag = flag, .last_good = hooks_.last_good(), .dead = fates.dead()};
  call->ending = [this](Agreeing& over) { on_agreement_over(over); };
  site_.accord->begin(call, site_.requests->patience(timeout), now, site_.failures->is_undecided());
}

Request Succession::agree(bool flag, Duration timeout) {
  const auto call = std::make_shared<Agreeing>();
  return site_.requests->begin(call, "agree", [this, call, flag, timeout](Instant now) {
    const Status refused = aborted_.ok() ? recovery_.note_call("agree", site_.name) : aborted_;
    if (!refused.ok()) return site_.requests->end_unbegun(*call, refused);
    begin_agreement(call, kCallsAgree, flag, timeout, now);
    mailbox().run_jobs(now);
    return Need::kTurn;
  });
}

/// Within the accord: what follows from it comes later.
void Succession::on_agreement_over(Agreeing& over) {
  const RankFates& fates = site_.failures->fates();
  const bool recovers = recovery_.policy() == RecoveryPolicy::kAutomatic && fates.has_any_failed();
  if (over.is_own || over.status.code() == Code::kBusy) return;
  // This rank agreed, and the others shrank already.
  if (recovers && over.status.code() == Code::kInvalid) over.status = fates.first_failure();
  if (over.status.ok() && (over.value.calls & kCallsAgree) == 0) {
    recovery_.end(Status(Code::kInvalid, "recovered: the program shrank world '" + site_.name + "' by itself"));
    mailbox().note_end();
  }
  take_step(recovery_.note_call_over());
}

/// What has been agreed upon; what it says to have failed has failed here afterwards.
Result<AgreementValue> Succession::settle(const Agreeing& call) {
  for (std::uint32_t rank = 0; rank < site_.roster->size(); ++rank) {
    if (!call.value.failed[rank]) continue;
    const bool is_own = rank == site_.roster->own();
    const Status why(Code::kDisconnected, "the ranks agreed that it has failed");
    if (is_own) site_.failures->exclude(Status(Code::kDisconnected, "the ranks agreed that this rank has failed"));
    if (!is_own) site_.failures->note_failure(rank, why);
  }
  HAWSER_TRY(site_.failures->fates().excluded());
  return call.value;
}

Result<AgreementValue> Succession::outcome(Operation* operation) {
  const auto* const call = dynamic_cast<Agreeing*>(operation);
  if (call == nullptr || !call->final.load(std::memory_order_acquire)) {
    return Status(Code::kInvalid, "this request is no agreement that is over");
  }
  HAWSER_TRY(call->status);
  Result<AgreementValue> value{AgreementValue()};
  HAWSER_TRY(agent::inner::under_lane(site_.seat->agent, "agree", [&](Instant now) {
    value = settle(*call);
    mailbox().run_jobs(now);
  }));
  return value;
}

// ---- Shrink.

std::uint8_t Succession::shrinking() const {
  return site_.quorum == Quorum::kMajority ? kCallsShrinkByMajority : kCallsShrink;
}

/// Under the lane. Who calls it may know of fewer failures than the agreement will.
Status Succession::check_left_without(const std::vector<std::uint32_t>& without) const {
  const RankFates& fates = site_.failures->fates();
  return check_quorum(
      site_.quorum, site_.name,
      {.size = site_.roster->size(), .left = fates.count_left_without(without), .dead = fates.count_dead()});
}

Request Succession::begin_shrink(std::span<const std::uint32_t> without, Duration timeout) {
  const auto refuse = [&](const Status& why) { return site_.requests->request(std::make_shared<Agreeing>(), why); };
  for (const std::uint32_t rank : without) {
    if (Status bad = check_rank("shrink", site_.name, rank, site_.roster->size()); !bad.ok()) return refuse(bad);
    if (rank == site_.roster->own()) {
      return refuse(Status(Code::kInvalid, "shrink: this rank cannot leave itself out; close the world"));
    }
  }
  const auto call = std::make_shared<Agreeing>();
  const auto begin = [this, call, gone = std::vector(without.begin(), without.end()), timeout](Instant now) {
    Status refused = check_left_without(gone);  // Before it harms the others.
    if (refused.ok()) refused = aborted_;
    if (refused.ok()) refused = recovery_.note_call("shrink", site_.name);
    if (!refused.ok()) return site_.requests->end_unbegun(*call, refused);
    for (const std::uint32_t rank : gone) {
      site_.failures->note_failure(rank, Status(Code::kCancelled, "it was left out by shrink"));
    }
    site_.failures->revoke_once_decided(Status(Code::kCancelled, "world '" + site_.name + "' was shrunk"), now);
    begin_agreement(call, shrinking(), true, timeout, now);
    mailbox().run_jobs(now);
    return Need::kTurn;
  };
  return site_.requests->begin(call, "shrink", begin);
}

Succession::NextWorld Succession::shrunk(Operation* operation) {
  HAWSER_TRY_ASSIGN(const AgreementValue decision, outcome(operation));
  const bool has_shrunk = decision.calls == kCallsShrink || decision.calls == kCallsShrinkByMajority;
  if (!has_shrunk || std::exchange(static_cast<Agreeing*>(operation)->is_taken, true)) {
    return Status(Code::kInvalid, "shrunk: this request is none of ishrink, or its world was taken before");
  }
  NextWorld made{std::shared_ptr<WorldCore>()};
  HAWSER_TRY(agent::inner::under_lane(site_.seat->agent, "shrink", [&](Instant now) {
    made = make_next(decision, now);
    mailbox().run_jobs(now);
  }));
  return made;
}

Succession::NextWorld Succession::make_next(const AgreementValue& decision, Instant now) {
  const std::uint32_t size = site_.roster->size();
  std::vector<std::uint32_t> ranks;
  for (std::uint32_t rank = 0; rank < size; ++rank) {
    const bool is_out = planted(Planted::kShrinksAsSeen) && site_.failures->fates().has_failed(rank);
    if (!decision.failed[rank] && !is_out) ranks.push_back(rank);
  }
  std::uint32_t dead = 0;
  for (std::uint32_t rank = 0; rank < decision.dead.size(); ++rank) {
    dead += decision.failed[rank] && decision.dead[rank] ? 1 : 0;
  }
  HAWSER_TRY(check_quorum(site_.quorum, site_.name,
                          {.size = size, .left = static_cast<std::uint32_t>(ranks.size()), .dead = dead}));
  return hooks_.make(std::move(ranks), decision.last_good, now);
}

// ---- Recovery by itself.

/// A job does it: it must not happen in the midst of what found the failure.
void Succession::take_step(Recovery::Step step) {
  if (step == Recovery::Step::kNothing) return;
  mailbox().run_soon([this, step](Instant now) {
    if (step == Recovery::Step::kAbort) return abort(now);
    if (!recovery_.is_over()) begin_recovery(now);
  });
}

void Succession::begin_recovery(Instant now) {
  const RankFates& fates = site_.failures->fates();
  site_.failures->revoke(fates.first_failure(), false, now);  // All others hear of the failure.
  auto call = std::make_shared<Agreeing>();
  call->value = {.calls = shrinking(), .last_good = hooks_.last_good(), .dead = fates.dead()};
  call->is_own = true;
  call->ending = [this](Agreeing& over) {
    const auto kept = std::static_pointer_cast<Agreeing>(over.self);
    if (kept == nullptr) return recovery_.end(over.status);  // It did not begin.
    mailbox().run_soon([this, kept](Instant at) { recover(kept, at); });
  };
  constexpr Duration kLeast = std::chrono::seconds(10);  // Then it goes on with the same agreement.
  const Duration patience = std::max(site_.requests->patience(Duration::zero()), kLeast);
  site_.accord->begin(call, patience, now, site_.failures->is_undecided());
}

/// The agreement is over.
void Succession::recover(const std::shared_ptr<Agreeing>& call, Instant now) {
  if (recovery_.is_over()) return;
  const Code code = call->status.code();
  if (code == Code::kTimedOut || code == Code::kInvalid) return take_step(recovery_.note_call_over());
  Status why = call->status;
  if (why.ok()) {
    const Result<AgreementValue> decision = settle(*call);
    NextWorld made = decision ? make_next(*decision, now) : NextWorld(decision.error());
    if (made) {
      std::vector<std::uint32_t> failed;
      for (std::uint32_t rank = 0; rank < site_.roster->size(); ++rank) {
        if (decision->failed[rank]) failed.push_back(rank);
      }
      recovery_.end(Recovery::Made{.world = std::move(*made), .failed = std::move(failed)});
    } else {
      why = made.error();
    }
  }
  if (!why.ok()) recovery_.end(why);
  mailbox().note_end();
}

Result<Recovery::Made> Succession::recovered(Duration timeout) {
  if (recovery_.policy() != RecoveryPolicy::kAutomatic) {
    return Status(Code::kInvalid, "recovered: world '" + site_.name + "' does not recover by itself")
        .with_advice("open it with the recovery policy 'automatic', or call shrink");
  }
  const Agent& agent = site_.seat->agent;
  const auto is_over = [this] { return recovery_.is_over(); };
  if (!is_over()) {
    static_cast<void>(agent::inner::wait_until(agent, is_over, agent::inner::now(agent) + timeout));
  }
  HAWSER_TRY(agent::inner::not_forked(agent, "recovered"));
  if (!is_over()) return Status(Code::kTimedOut, "recovered: world '" + site_.name + "' has no event yet");
  Result<Recovery::Made> made = Status(Code::kCancelled, "world '" + site_.name + "' was closed");
  static_cast<void>(agent::inner::under_lane(agent, "recovered", [&](Instant) { made = recovery_.take(site_.name); }));
  return made;
}

// ---- Ends.

void Succession::note_excluded(const Status& why) {
  recovery_.end(why);
  if (recovery_.policy() == RecoveryPolicy::kAbort) note_failure();
}

void Succession::abort(Instant now) {
  const RankFates& fates = site_.failures->fates();
  const Status why = fates.has_any_failed() ? fates.first_failure() : fates.excluded();
  aborted_ = Status(Code::kDisconnected, std::string(why.message()) + "; its recovery policy ends all operations")
                 .with_peer(why.peer())
                 .because(why.cause());
  hooks_.abort(aborted_, now);
  mailbox().note_end();
}

}  // namespace hawser::runtime
