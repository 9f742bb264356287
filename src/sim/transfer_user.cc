#include "sim/transfer_user.h"

#include <cstring>
#include <utility>
#include <vector>

#include "agent/inner_simulator.h"
#include "base/inside.h"

namespace hawser::simulation {
namespace {

constexpr std::size_t kOwnWords = 256;  ///< Of one life.

}  // namespace

void TransferUser::submit_new(Life& life) {
  if (!courses_.make_room(life)) return;
  Life* const to = peers_.pick(life);
  Course* const course = to == nullptr ? nullptr : courses_.make(life, *to);
  if (course != nullptr) submit(life, *course);
}

void TransferUser::submit_again(Life& life) {
  if (life.courses.empty()) return submit_new(life);
  Course& course = *life.courses[rng_.below(life.courses.size())];
  if (course.tainted || !theater_.judge().transfers().idle(course) || life.scratch->closing) return;
  submit(life, course);
}

void TransferUser::write_again(Life& life, Life& to, Instant since) {
  if (!life.alive || life.closing || !life.host->running() || life.scratch->closing) return;
  Judge& judge = theater_.judge();
  judge.observe(life);
  Course* last = nullptr;
  std::vector<Course*> again;
  for (const auto& course : life.courses) {
    const bool fits = course->to == &to && course->write && !course->bait && !course->tainted &&
                      judge.transfers().idle(*course) && course->latest != nullptr;
    if (!fits) continue;
    if (course->latest->final_at >= since) again.push_back(course.get());
    if (last == nullptr || course->latest->final_at > last->latest->final_at) last = course.get();
  }
  if (last == nullptr) return;
  if (again.empty()) again.push_back(last);
  for (Course* const course : again) {
    if (!judge.failed()) submit(life, *course);
  }
  life.host->wake();
}

bool TransferUser::submit(Life& life, Course& course) {
  Judge& judge = theater_.judge();
  judge.transfers().check_stays(course);
  if (judge.failed()) return false;
  Move& move = judge.transfers().make(course);
  move.submitted = theater_.universe().world.now();
  Extras extras;
  const SubmitOptions options = draw(life, course, move, extras);
  if (course.write) {
    for (const Pair& pair : course.pairs) pair.local->plot->write(pair.local_lease, move.uid, pair.position);
  }
  theater_.universe().world.note("submit", life.name, move.uid, course.bytes);
  Result<Transfer> transfer = course.plan.submit(options);
  if (!transfer) {
    const bool lost = move.leader != nullptr && judge.transfers().ended_badly(*move.leader);
    judge.transfers().drop(move);
    if (lost && transfer.error().code() == Code::kCancelled) return false;
    judge.transfers().on_refused(life, course, transfer.error());
    return false;
  }
  move.transfer = std::move(*transfer);
  course.current = &move;
  course.latest = &move;
  if (move.signal) course.to->digits.push_back(&move);
  if (move.after) set_later(life, *move.after);
  life.in_flight.push_back(&move);
  judge.observe(life);
  return true;
}

SubmitOptions TransferUser::draw(Life& life, Course& course, Move& move, Extras& extras) {
  SubmitOptions options;
  extras.text = note_of(move.uid);
  move.notify = rng_.chance(0.5);
  if (move.notify) options.notify = extras.text;
  if (rng_.chance(0.4)) options.deadline = Duration(rng_.range(200'000, 60'000'000));
  move.due = move.submitted + (options.deadline.count() > 0 ? options.deadline : theater_.settings().default_deadline);
  options.priority = static_cast<Priority>(rng_.below(3));
  move.queued = rng_.chance(0.6);
  if (move.queued) options.queue = &life.queue;
  options.cookie = move.uid;
  draw_signal(life, course, move, extras, options);
  draw_words(life, move, extras, options);
  return options;
}

void TransferUser::draw_signal(Life& life, const Course& course, Move& move, Extras& extras, SubmitOptions& options) {
  Life& to = *course.to;
  const Peer& peer = life.bonds[&to].peer;
  const std::size_t digit = to.digits.size();
  // A peer that was forgotten and added again is another one to plans made before.
  const bool same_peer = agent::inner::is_same(agent::inner::peer_of(course.plan), peer);
  const bool fits = rng_.chance(0.35) && digit < kWords * kDigitsPerWord && !to.words->closing && same_peer;
  if (!fits) return;
  move.signal = Digit{.word = digit / kDigitsPerWord, .place = static_cast<unsigned>(digit % kDigitsPerWord)};
  extras.signal = {.word = peer.range("words", 8 * move.signal->word, 8), .add = move.signal->one()};
  options.signal = &extras.signal;
}

void TransferUser::draw_words(Life& life, Move& move, Extras& extras, SubmitOptions& options) {
  if (rng_.chance(0.1) && life.next_own_word + 2 < kOwnWords) {
    move.after = life.next_own_word++;
    extras.after = {.word = life.own_words->region.range(8 * *move.after, 8), .value = 1};
    options.after = &extras.after;
  }
  if (rng_.chance(0.15)) {
    move.leader = pick_leader(life);
    if (move.leader != nullptr) options.after_transfer = &move.leader->transfer;
  }
  if (rng_.chance(0.2) && life.next_own_word + 2 < kOwnWords) {
    move.done = life.next_own_word++;
    extras.done = {.word = life.own_words->region.range(8 * *move.done, 8), .value = move.uid};
    options.done = &extras.done;
  }
}

void TransferUser::set_later(Life& life, std::size_t word) {
  if (rng_.chance(0.2)) return;  // Never: the deadline comes first.
  theater_.universe().world.after(Duration(rng_.range(0, 8'000'000)), [&life, word] {
    if (!life.alive) return;
    const std::uint64_t one = 1;
    std::memcpy(life.own_words->plot->bytes().data() + 8 * word, &one, 8);
    life.host->wake();
  });
}

/// One in flight whose handle is there.
Move* TransferUser::pick_leader(Life& life) {
  if (life.in_flight.empty()) return nullptr;
  Move* const move = life.in_flight[rng_.below(life.in_flight.size())];
  return move->held ? move : nullptr;
}

void TransferUser::cancel(Life& life) {
  if (life.in_flight.empty()) return;
  Move& move = *life.in_flight[rng_.below(life.in_flight.size())];
  if (!move.held) return;
  move.ended_by_us = true;
  theater_.universe().world.note("cancel", life.name, move.uid);
  if (move.queued && rng_.chance(0.3)) {
    move.held = false;
    move.transfer = Transfer();  // Dropping is cancelling; only the queue tells of it then.
  } else {
    move.transfer.cancel();
  }
}

void TransferUser::try_stale_plans() {
  // By number: time goes on meanwhile, and lives may begin.
  for (std::size_t i = 0; i < theater_.lives().size(); ++i) {
    Life* const life = theater_.lives()[i].get();
    if (!life->alive || life->scratch->closing) continue;
    for (const auto& course : life->courses) {
      if (theater_.judge().failed()) return;
      if (course->to->alive || course->current != nullptr || !core_of(course->plan)) continue;
      if (course->pairs.front().local != life->scratch) continue;
      Result<Transfer> transfer = course->plan.submit({.deadline = std::chrono::seconds(2)});
      if (!transfer && transfer.error().code() == Code::kDisconnected) continue;
      if (!transfer) {
        theater_.judge().fail(*life, "a plan to a peer that is gone was refused with " + transfer.error().to_string());
        return;
      }
      life->host->wake();
      sim::World& world = theater_.universe().world;
      // Its deadline, and until it is quiet where nobody answers.
      world.run_until(world.now() + std::chrono::seconds(5), [&] { return transfer->done(); });
      const Status status = transfer->status();
      // A polled agent is judged by its process, its sockets and deadlines, and of this one's end nobody was told.
      const bool unknown = !theater_.settings().driven && course->to->lost_power && status.code() == Code::kTimedOut;
      if (!transfer->done() || (status.code() != Code::kDisconnected && !unknown)) {
        const std::string how = !transfer->done() ? "never"
                                : status.ok()     ? "with success"
                                                  : "with " + status.to_string();
        theater_.judge().fail(*life, "a plan to a peer that is gone ended " + how);
      }
      break;  // One per life is enough: the others would tell the same.
    }
  }
}

}  // namespace hawser::simulation
