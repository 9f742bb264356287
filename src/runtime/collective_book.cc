#include "runtime/collective_book.h"

#include <algorithm>
#include <string>
#include <utility>

#include "base/planted.h"
#include "base/quantity.h"
#include "runtime/rank_list.h"

namespace hawser::runtime {

using base::planted;
using base::Planted;
namespace {

/// For whom it waits, and who is known not to have called it.
std::string missing_of(const Collective& waiting) {
  const std::vector<std::uint32_t> awaited = waiting.awaited();
  const std::vector<std::uint32_t>& absent = waiting.roll.absent();
  std::string text;
  if (!awaited.empty()) text += "; it waits for rank " + list_of(awaited);
  if (absent.size() == 1) text += "; rank " + list_of(absent) + " has not called it";
  if (absent.size() > 1) text += "; ranks " + list_of(absent) + " have not called it";
  return text;
}

}  // namespace

std::uint64_t CollectiveBook::record(FlightEntry flight, std::uint64_t number, Instant now) {
  Recorder* const its = recorder();
  if (its == nullptr) return 0;
  flight.world = site_.world;
  flight.number = number;
  return its->begin(flight, now);
}

/// It is one of those that are under way.
void CollectiveBook::admit(const std::shared_ptr<Collective>& collective, const Ticket& ticket) {
  collective->number = ticket.number;
  collective->recorded = ticket.recorded;
  collective->world_name = site_.name;
  collective->ended = [this](Collective& over, Instant at) { on_ended(over, at); };
  // The others wait for what this rank will not send any more, unless they found out by themselves. Of a peer that is
  // gone they hear from its session.
  collective->failing = [this](const Status& why, Instant at) {
    if (why.code() != Code::kDisconnected && hooks_.why_not().ok()) hooks_.revoke(why, at);
  };
  collective->late = [](Collective& over, Instant at) {
    over.fail(Status(Code::kTimedOut, over.title() + " did not end by its deadline" + missing_of(over)), at);
  };
  collective->checking = [this](Collective& waiting, Instant at) { check_awaited(waiting, at); };
  collective->rerouted = [this](const Collective& its) {
    Recorder* const where = recorder();
    if (where != nullptr) where->change_algorithm(its.recorded, static_cast<std::uint32_t>(its.taken) + 1);
  };
  collective->self = collective;
  under_way_.push_back(*collective);
}

void CollectiveBook::begin(const std::shared_ptr<Collective>& collective, Instant deadline, Instant now) {
  const std::uint64_t number = next_number_++;
  admit(collective, {.number = number, .recorded = record(collective->flight, number, now)});
  if (Status status = hooks_.why_not(); !status.ok()) return collective->fail(status, now);
  collective->set_deadline(deadline, now);
  if (!planted(Planted::kLedgerForgets)) ledger_.note(number, collective->digest);
  const Arrived* const misfit = site_.mailbox->find_misfit(site_.world, number, collective->digest);  // It came before.
  if (misfit != nullptr) return collective->fail(not_the_same(misfit->from, number), now);
  collective->begin(now);
}

std::optional<CollectiveBook::Ticket> CollectiveBook::take_ticket(std::uint64_t digest, const FlightEntry& flight,
                                                                  Instant now) {
  if (!hooks_.why_not().ok() || site_.mailbox->find_misfit(site_.world, next_number_, digest) != nullptr) {
    return std::nullopt;
  }
  const std::uint64_t number = next_number_++;
  if (!planted(Planted::kLedgerForgets)) ledger_.note(number, digest);
  return Ticket{.number = number, .recorded = record(flight, number, now)};
}

void CollectiveBook::take_over(const std::shared_ptr<Collective>& collective, const Ticket& ticket, Instant deadline,
                               Instant now) {
  admit(collective, ticket);
  collective->set_deadline(deadline, now);
}

void CollectiveBook::end_well(const Ticket& ticket, Instant now) {
  note_end(ticket, Code::kOk, now);
  note_good(ticket.number);
  end_left_over(ticket.number, now);
}

void CollectiveBook::end_all(const Status& status, Instant now) {
  while (Collective* const next = under_way_.front()) next->fail(status, now);
}

std::uint64_t CollectiveBook::held_bytes() {
  std::uint64_t bytes = 0;
  for (const Collective& each : under_way_) bytes += each.held_bytes();
  return bytes;
}

void CollectiveBook::end_waits_for(std::uint32_t rank, const Status& status, Instant now) {
  const auto waits = [rank](const Collective& each) {
    const std::vector<std::uint32_t> awaited = each.is_on_board() ? each.awaited() : std::vector<std::uint32_t>();
    return std::ranges::find(awaited, rank) != awaited.end();
  };
  std::vector<std::uint64_t> numbers;
  for (const Collective& each : under_way_) {
    if (waits(each)) numbers.push_back(each.number);
  }
  for (const std::uint64_t number : numbers) {
    if (Collective* const its = under_way(number)) its->fail(status, now);
  }
}

Status CollectiveBook::not_the_same(const Peer& by, std::uint64_t number) const {
  const std::optional<std::uint32_t> rank = hooks_.rank_of(by);
  return Status(Code::kInvalid, "number " + std::to_string(number) + " of world '" + site_.name +
                                    "' is another operation at rank " + (rank ? std::to_string(*rank) : "?") +
                                    ": the ranks differ in what they call")
      .with_peer(by.name());
}

Collective* CollectiveBook::under_way(std::uint64_t number) {
  for (Collective& each : under_way_) {
    if (each.number == number) return &each;
  }
  return nullptr;
}

bool CollectiveBook::is_misfit(const wire::MessageEnvelope& envelope) const {
  if (planted(Planted::kLedgerForgets)) return false;
  return ledger_.differs(envelope.tag, envelope.digest) || is_past(envelope.tag);
}

void CollectiveBook::on_misfit(const Peer& by, std::uint64_t number, Instant now) {
  if (hooks_.why_not().ok()) end_misfit(by, number, now);
}

/// This rank's call may be under way or have ended. Either way its result is not what the ranks meant.
void CollectiveBook::end_misfit(const Peer& by, std::uint64_t number, Instant now) {
  const Status why = not_the_same(by, number);
  if (Collective* const its = under_way(number)) return its->fail(why, now);
  hooks_.revoke(why, now);
}

/// Ranks that differ in what they call may each wait for a message that nobody sends.
void CollectiveBook::check_awaited(Collective& waiting, Instant now) {
  const std::optional<std::uint32_t> unseen = waiting.out_of_sight();
  if (!unseen) waiting.unseen_since.reset();
  if (unseen && hooks_.out_of_sight(waiting, *unseen, now)) return;
  if (planted(Planted::kNeverChecks)) return;
  const bool is_first = &waiting == under_way_.front();  // It holds up the others.
  if (is_first && waiting.roll.take_told(now)) {
    hooks_.warn(waiting.title() + " has not ended after " + base::format_duration(kToldAfter) + missing_of(waiting));
  }
  const std::vector<std::uint32_t> awaited = waiting.awaited();
  const bool asks_all = waiting.roll.ask(now, is_first) && site_.ranks.size() <= kRollCallMax;
  for (std::uint32_t rank = 0; rank < site_.ranks.size(); ++rank) {
    const bool awaits = std::ranges::find(awaited, rank) != awaited.end();
    if (!asks_all && !awaits) continue;
    const Question question = {.number = waiting.number, .digest = waiting.digest, .awaits = awaits};
    site_.mailbox->tell_if_room(site_.ranks[rank], check_word(site_.world, question), now);
  }
}

/// What this rank sent for the number is on its way before the answer. So a rank that still waits then waits in vain.
CollectiveBook::Answer CollectiveBook::on_check(const Peer& by, const Question& question, Instant now) {
  const auto [number, digest, awaits] = question;
  if (number >= next_number_) return Answer::kNotYet;  // It may still call the same.
  const bool goes_on = hooks_.why_not().ok();
  const Collective* const its = under_way(number);
  const bool differs = (goes_on && ledger_.differs(number, digest)) ||
                       (its != nullptr && its->digest != digest);  // It is no more in the ledger.
  if (differs) end_misfit(by, number, now);
  if (differs || its != nullptr || !awaits) return Answer::kNone;
  return goes_on ? Answer::kOver : Answer::kEnded;
}

void CollectiveBook::on_checked(const Peer& by, std::uint64_t number, Code code, Instant now) {
  const std::optional<std::uint32_t> rank = hooks_.rank_of(by);
  Collective* const its = under_way(number);
  if (its != nullptr && rank && code == Code::kBusy) return its->roll.note_absent(*rank);
  const std::vector<std::uint32_t> awaited = its == nullptr ? std::vector<std::uint32_t>() : its->awaited();
  if (code == Code::kBusy || !rank || std::ranges::find(awaited, *rank) == awaited.end()) return;
  const bool has_closed = code == Code::kDisconnected;
  const Status gone = Status(Code::kDisconnected,
                             its->title() + " waits for rank " + std::to_string(*rank) + ", which has closed the world")
                          .with_peer(by.name());
  its->fail(has_closed ? gone : not_the_same(by, number), now);
  if (has_closed) hooks_.revoke(gone, now);
}

/// Mostly it is the next one.
void CollectiveBook::note_good(std::uint64_t number) {
  if (number != last_good_ + 1) {
    good_ahead_.insert(number);
    return;
  }
  ++last_good_;
  while (!good_ahead_.empty() && good_ahead_.erase(last_good_ + 1) != 0) ++last_good_;
}

void CollectiveBook::note_end(const Ticket& ticket, Code code, Instant now) {
  Recorder* const its = ticket.recorded == 0 ? nullptr : recorder();
  if (its != nullptr) its->end(ticket.recorded, code, now);
}

/// Each rank has counts of its own for an all_to_all: the digest does not hold them.
void CollectiveBook::end_left_over(std::uint64_t number, Instant now) {
  const Arrived* const left = planted(Planted::kLedgerForgets) ? nullptr : site_.mailbox->find_any(site_.world, number);
  if (left != nullptr && hooks_.why_not().ok()) end_misfit(left->from, number, now);
}

void CollectiveBook::on_ended(Collective& over, Instant now) {
  note_end({.number = over.number, .recorded = over.recorded}, over.status.code(), now);
  if (over.status.ok()) {
    note_good(over.number);
    if (planted(Planted::kLastGoodClaimed)) last_good_ = std::max(last_good_, over.number);
    return end_left_over(over.number, now);
  }
  over.status = hooks_.explained(over.status);
  if (over.status.code() != Code::kDisconnected && hooks_.why_not().ok()) hooks_.revoke(over.status, now);
}

}  // namespace hawser::runtime
