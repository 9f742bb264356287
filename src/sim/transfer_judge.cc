#include "sim/transfer_judge.h"

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "agent/inner_simulator.h"
#include "agent/region.h"

namespace hawser::simulation {
namespace {

std::string describe(const Move& move) {
  const Course& course = *move.course;
  return fmt::format("{} {} of {} bytes from {} to {}", course.write ? "write" : "read", move.uid, course.bytes,
                     course.from->name, course.to->name);
}

}  // namespace

Move& TransferJudge::make(Course& course) {
  Move& move = all_.emplace_back();
  move.uid = uses_.writers.take();
  move.course = &course;
  by_uid_[move.uid] = &move;
  return move;
}

Move* TransferJudge::find(std::uint64_t uid) const {
  const auto at = by_uid_.find(uid);
  return at == by_uid_.end() ? nullptr : at->second;
}

void TransferJudge::drop(Move& move) {
  by_uid_.erase(move.uid);
  all_.pop_back();
}

bool TransferJudge::idle(const Course& course) {
  const Move* const latest = course.latest;
  if (latest == nullptr) return true;
  if (!latest->final) return false;
  // A peer that is gone takes nothing any more; one that lives may still be told.
  const bool told = (!latest->notify || latest->notified) && (!latest->signal || latest->bumped);
  return told || !course.to->alive;
}

void TransferJudge::observe_finals(Life& life) {
  // By index: the list changes while we look.
  for (std::size_t i = 0; i < life.in_flight.size() && !failed();) {
    Move& move = *life.in_flight[i];
    // A dropped handle cannot be asked; its completion, or at last the end of the run, tells.
    if (!move.held || !move.transfer.done()) {
      ++i;
      continue;
    }
    life.in_flight.erase(life.in_flight.begin() + static_cast<std::ptrdiff_t>(i));
    move.status = move.transfer.wait(Duration::zero());
    on_final(life, move);
  }
}

void TransferJudge::on_completion(Life& life, const Completion& entry) {
  const auto at = by_uid_.find(entry.cookie);
  if (at == by_uid_.end() || !at->second->queued) return fail(life, "a completion with a cookie that nobody gave");
  Move& move = *at->second;
  if (++move.completions > 1) return fail(life, describe(move) + " was completed twice in its queue");
  if (!move.held) {
    std::erase(life.in_flight, &move);
    move.status = entry.status;
    on_final(life, move);
  } else if (!(move.status == entry.status)) {
    fail(life, describe(move) + " ended as '" + move.status.to_string() + "' but its completion says '" +
                   entry.status.to_string() + "'");
  }
}

void TransferJudge::on_notified(Life& life, Life& from, Move& move) {
  if (move.course->from != &from || move.course->to != &life || !move.notify) {
    return fail(life, fmt::format("notification {} came from {} to the wrong place", move.uid, from.name));
  }
  if (move.notified)
    return fail(life, fmt::format("the notification of transfer {} from {} came twice", move.uid, from.name));
  move.notified = true;
  const bool tainted_by_later = move.course->last_writer > move.uid;
  if (move.course->write && !tainted_by_later && !all_landed(move)) {
    return fail(life, fmt::format("the notification of write {} from {} came before its bytes ({})", move.uid,
                                  from.name, move.final ? move.status.to_string() : "in flight"));
  }
  if (!move.course->write && !move.final && from.alive) {
    return fail(life, fmt::format("the notification of read {} by {} came before it was done", move.uid, from.name));
  }
}

void TransferJudge::observe_words(Life& life) {
  if (life.words == nullptr || life.words->closed) return;
  for (std::size_t i = 0; i < life.digits.size() && !failed(); ++i) {
    Move& move = *life.digits[i];
    if (move.bumped) continue;
    std::uint64_t word = 0;
    std::memcpy(&word, life.words->plot->bytes().data() + 8 * move.signal->word, 8);
    const std::uint64_t digit = (word >> (2 * move.signal->place)) & 3;
    if (digit == 0) continue;
    if (digit > 1) return fail(life, describe(move) + " added to its signal twice");
    move.bumped = true;
    if (move.course->write && !all_landed(move)) {
      return fail(life, describe(move) + " raised its signal before its bytes were visible");
    }
  }
}

void TransferJudge::check_hangs(Life& life) {
  const Instant now = uses_.universe.world.now();
  for (const Move* move : life.in_flight) {
    if (now > move->due + uses_.reasons.allowance(life)) {
      const auto late = std::chrono::duration<double, std::milli>(now - move->due).count();
      return fail(life, fmt::format("{} is not final {:.1f} ms after its deadline", describe(*move), late));
    }
  }
}

bool TransferJudge::all_landed(const Move& move) {
  if (move.landed) return true;
  for (const Pair& pair : move.course->pairs) {
    if (pair.remote->closed) continue;
    if (!has_pattern(pair.remote->plot->bytes(pair.remote_lease), move.uid, pair.position)) return false;
  }
  return true;
}

bool TransferJudge::any_landed(const Move& move) {
  for (const Pair& pair : move.course->pairs) {
    const auto bytes = pair.remote->plot->bytes(pair.remote_lease);
    const std::size_t probe = std::min<std::size_t>(bytes.size(), 16);
    if (has_pattern(bytes.first(probe), move.uid, pair.position)) return true;
  }
  return false;
}

Area* TransferJudge::landing_in(const Move& move) {
  for (const Pair& pair : move.course->pairs) {
    const auto bytes = pair.remote->plot->bytes(pair.remote_lease);
    const std::size_t probe = std::min<std::size_t>(bytes.size(), 16);
    const bool begun = has_pattern(bytes.first(probe), move.uid, pair.position);
    if (begun && !has_pattern(bytes, move.uid, pair.position)) return pair.remote;
  }
  return nullptr;
}

void TransferJudge::on_final(Life& life, Move& move) {
  if (move.final) return fail(life, describe(move) + " became final twice");
  move.final = true;
  move.final_at = uses_.universe.world.now();
  move.course->current = nullptr;
  uses_.universe.world.note("final", life.name, move.uid, static_cast<std::uint64_t>(move.status.code()));
  check_status(life, move);
  if (failed()) return;
  if (move.status.ok()) {
    ++good_;
    ++(move.course->write ? life.good_writes : life.good_reads);
    (move.course->write ? life.bytes_written : life.bytes_read) += move.course->bytes;
  } else {
    ++life.bad_ends;
  }
  if (!move.course->write) {
    check_read(life, move);
  } else if (move.status.ok()) {
    check_good_write(life, move);
  } else {
    check_bad_write(life, move);
  }
  scribble(move);
  if (move.done) {
    std::uint64_t word = 0;
    std::memcpy(&word, life.own_words->plot->bytes().data() + 8 * *move.done, 8);
    if ((word == move.uid) != move.status.ok()) fail(life, describe(move) + " ended, and its `done` word does not fit");
  }
}

/// What is known of one whose handle is gone comes by its queue, later than its followers learn of it.
bool TransferJudge::may_have_ended_well(const Move& move) {
  if (move.final) return move.status.ok();
  return !move.held || (move.transfer.done() && move.transfer.status().ok());
}

bool TransferJudge::ended_badly(const Move& move) {
  if (move.final) return !move.status.ok();
  return !move.held || (move.transfer.done() && !move.transfer.status().ok());
}

/// From when on nothing of ours kept it from moving: its deadline, where its leader was never seen to end well.
Instant TransferJudge::began(const Move& move) {
  if (move.leader == nullptr) return move.submitted;
  const Move& leader = *move.leader;
  return leader.final && leader.status.ok() ? std::max(move.submitted, leader.final_at) : move.due;
}

void TransferJudge::check_status(Life& life, Move& move) {
  const Instant now = uses_.universe.world.now();
  const Code code = move.status.code();
  const auto wrong = [&](const std::string& why) {
    fail(life, describe(move) + " ended as '" + move.status.to_string() + "', " + why);
  };
  // A path that came after a card with the truth is told by that one what the region is.
  const bool lied = move.course->bait && is_lie(*move.course);
  if (lied && move.status.ok()) return wrong("though nothing gives it the right");
  switch (code) {
    case Code::kOk:
      if (move.leader != nullptr && !may_have_ended_well(*move.leader)) return wrong("before the one that it follows");
      break;
    case Code::kTimedOut:
      if (now < move.due) return wrong("before its deadline");
      if (!move.after && !move.ended_by_us && !uses_.reasons.may_be_late(life, *move.course->to, began(move), move.due))
        return wrong("though nothing held it up");
      break;
    case Code::kCancelled:
      if (!move.ended_by_us && (move.leader == nullptr || !ended_badly(*move.leader)))
        return wrong("but nobody cancelled it");
      break;
    case Code::kDenied: {
      const auto& pairs = move.course->pairs;
      const bool may = move.course->bait || std::any_of(pairs.begin(), pairs.end(), [](const Pair& pair) {
                         return pair.remote->closing || pair.remote->closed || pair.remote->bait;
                       });
      if (!may) return wrong("but it has every right");
      break;
    }
    case Code::kDisconnected:
      if (!uses_.reasons.may_be_cut_off(life, *move.course->to, move.submitted))
        return wrong("but nothing parted them for good");
      break;
    case Code::kBusy:
      if (!move.notify && !move.signal) return wrong("but it needs no room");
      break;
    case Code::kInvalid:
      if (!move.ended_by_us && !move.course->bait) return wrong("but nothing about it is invalid");
      break;
    default:
      return wrong("which is none of the ends that it may have");
  }
}

void TransferJudge::check_good_write(Life& life, Move& move) {
  for (const Pair& pair : move.course->pairs) {
    if (pair.remote->closed) continue;
    if (!has_pattern(pair.remote->plot->bytes(pair.remote_lease), move.uid, pair.position)) {
      return fail(life, fmt::format("{} ended well, but its bytes are not at {}+{}", describe(move),
                                    pair.remote->plot->name(), pair.remote_lease.offset));
    }
    pair.remote->plot->accept(pair.remote_lease);
  }
  move.course->last_writer = move.uid;
  move.landed = true;
}

void TransferJudge::check_bad_write(Life& life, Move& move) {
  const bool was_tainted = std::exchange(move.course->tainted, true);
  move.course->last_writer = move.uid;
  bool any_old = false, any_new = false;
  for (const Pair& pair : move.course->pairs) {
    if (pair.remote->closed) continue;
    const auto bytes = pair.remote->plot->bytes(pair.remote_lease);
    const auto old = pair.remote->plot->expected(pair.remote_lease);
    any_old = any_old || !has_pattern(bytes, move.uid, pair.position);
    any_new = any_new || !std::equal(bytes.begin(), bytes.end(), old.begin());
  }
  if (move.status.buffer() == BufferState::kUntouched && any_new) {
    return fail(life, describe(move) + " says that it left the target untouched: '" + move.status.to_string() + "'");
  }
  if (move.status.buffer() == BufferState::kComplete && any_old) {
    return fail(life, describe(move) + " says that it is complete at the target: '" + move.status.to_string() + "'");
  }
  // Closed regions hide what was moved, and an earlier write that ended badly may have left some of the same bytes.
  const bool is_seen = !was_tainted && std::ranges::none_of(move.course->pairs, [](const Pair& pair) {
    return pair.remote->closed || pair.remote->closing;
  });
  if (is_seen && move.status.buffer() == BufferState::kPartlyWritten && any_old != any_new) {
    return fail(life, fmt::format("{} says that it is partly written, and {} of its bytes are there: '{}'",
                                  describe(move), any_new ? "all" : "none", move.status.to_string()));
  }
  check_tainted(*move.course);
}

void TransferJudge::check_tainted(const Course& course) {
  std::vector<std::byte> fresh;
  for (const Pair& pair : course.pairs) {
    if (pair.remote->closed) continue;
    const auto bytes = pair.remote->plot->bytes(pair.remote_lease);
    const auto old = pair.remote->plot->expected(pair.remote_lease);
    fresh.resize(bytes.size());
    fill_pattern(fresh, course.last_writer, pair.position);
    for (std::size_t i = 0; i < bytes.size(); ++i) {
      const bool is_filler = uses_.may_fill && bytes[i] == std::byte{0};
      if (bytes[i] == old[i] || bytes[i] == fresh[i] || is_filler) continue;
      return fail(*course.to, fmt::format("{}+{} holds neither what it held nor what write {} of {} brings",
                                          pair.remote->plot->name(), pair.remote_lease.offset + i, course.last_writer,
                                          course.from->name));
    }
  }
}

void TransferJudge::check_read(Life& life, Move& move) {
  if (!move.status.ok()) return;
  for (const Pair& pair : move.course->pairs) {
    if (pair.local->closed) continue;
    if (!has_pattern(pair.local->plot->bytes(pair.local_lease), pair.remote->writer, pair.remote_lease.offset)) {
      return fail(life, fmt::format("{} ended well, but brought other bytes than {}+{} holds", describe(move),
                                    pair.remote->plot->name(), pair.remote_lease.offset));
    }
  }
}

void TransferJudge::scribble(Move& move) {
  // Whoever still reads or writes the local memory now will be seen.
  for (const Pair& pair : move.course->pairs) {
    if (!pair.local->closed) pair.local->plot->write(pair.local_lease, uses_.writers.take(), 0);
  }
}

void TransferJudge::on_refused(Life& life, Course& course, const Status& status) {
  uses_.universe.world.note("refused", life.name, static_cast<std::uint64_t>(status.code()));
  const Bond& bond = life.bonds[course.to];
  switch (status.code()) {
    case Code::kBusy:
      return;
    case Code::kDisconnected:
      // Only where the peer is gone for good; a session that can be mended takes submissions.
      if (bond.broken || !course.to->alive || course.to->closing || life.closing) return;
      // A plan may be older than the peer's handle: what was forgotten and added again is another peer to it.
      if (agent::inner::peer_of(course.plan).state() == PeerState::kDown) return;
      break;
    case Code::kInvalid:
      if (life.closing) return;
      for (const Pair& pair : course.pairs) {
        if (pair.local->closing || pair.local->closed) return;
      }
      break;
    case Code::kDenied:
    case Code::kNotFound:
      if (course.bait) return;
      break;
    default:
      break;
  }
  fail(life, "submit was refused without reason: " + status.to_string());
}

bool TransferJudge::are_told() const {
  return std::all_of(all_.begin(), all_.end(), [](const Move& move) {
    const Course& course = *move.course;
    if (!move.final || !move.status.ok() || !course.from->alive || !course.to->alive) return true;
    const Bond& there = course.from->bonds[course.to];
    const Bond& back = course.to->bonds[course.from];
    if (there.broken || back.broken) return true;
    return (!move.notify || move.notified) && (!move.signal || move.bumped || course.to->words->closed);
  });
}

void TransferJudge::check_ended(const Life& from) {
  if (from.in_flight.empty()) return;
  fail(from, fmt::format("{} transfers never ended, the first {}", from.in_flight.size(), from.in_flight.front()->uid));
}

void TransferJudge::check_settled() {
  for (const Move& move : all_) {
    const Course& course = *move.course;
    if (!course.from->alive || !course.to->alive || !move.final || failed()) continue;
    if (move.queued && move.completions != 1) {
      return fail(*course.from, fmt::format("transfer {} ended and was reported {} times", move.uid, move.completions));
    }
    if (!move.status.ok() || course.from->bonds[course.to].broken || course.to->bonds[course.from].broken) continue;
    if (move.notify && !move.notified) {
      return fail(*course.to,
                  fmt::format("the notification of transfer {} from {} never came", move.uid, course.from->name));
    }
    if (move.signal && !move.bumped && !course.to->words->closed) {
      return fail(*course.to, fmt::format("the signal of transfer {} from {} never rose", move.uid, course.from->name));
    }
  }
}

/// Our memory is ours again since the last transfer ended.
void TransferJudge::check_local(Life& life, const Course& course) {
  if (course.latest == nullptr || !course.latest->final) return;
  for (const Pair& pair : course.pairs) {
    if (pair.local->closed) continue;
    const auto bytes = pair.local->plot->bytes(pair.local_lease);
    if (std::equal(bytes.begin(), bytes.end(), pair.local->plot->expected(pair.local_lease).begin())) continue;
    return fail(life, fmt::format("{}+{} was touched after transfer {} had ended", pair.local->plot->name(),
                                  pair.local_lease.offset, course.latest->uid));
  }
}

/// What a good write brought stays until the next one, or until its region is closed.
void TransferJudge::check_stays(const Course& course) {
  const Move* const latest = course.latest;
  if (!course.write || course.bait || course.tainted || latest == nullptr || !latest->final) return;
  for (const Pair& pair : course.pairs) {
    if (pair.remote->closed) continue;
    const auto bytes = pair.remote->plot->bytes(pair.remote_lease);
    if (std::equal(bytes.begin(), bytes.end(), pair.remote->plot->expected(pair.remote_lease).begin())) continue;
    return fail(*course.to, fmt::format("what write {} of {} brought to {}+{} did not stay", latest->uid,
                                        course.from->name, pair.remote->plot->name(), pair.remote_lease.offset));
  }
}

void TransferJudge::check_memory(Life& life, const Course& course) {
  if (course.write && course.tainted && !failed()) check_tainted(course);
  if (!failed()) check_stays(course);
  if (course.current == nullptr && !failed()) check_local(life, course);
}

bool TransferJudge::is_lie(const Course& course) {
  // A later card may have told the truth meanwhile, and part of a region that claims too much is really there.
  const Area& area = *course.pairs.front().remote;
  const auto known = course.from->bonds[course.to].peer.region(area.plot->name());
  const backend::RegionEntry& truth = *area.truth;
  if (!known || known->region->key != truth.key || known->region->rights != truth.rights) return true;
  return std::any_of(course.pairs.begin(), course.pairs.end(), [&](const Pair& pair) {
    return !backend::in_bounds(pair.remote_lease.offset, pair.remote_lease.size, truth.size);
  });
}

}  // namespace hawser::simulation
