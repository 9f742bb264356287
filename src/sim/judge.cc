#include "sim/judge.h"

#include <algorithm>
#include <array>
#include <cstring>

#include <fmt/format.h>

#include "agent/inner_simulator.h"
#include "base/bytes.h"
#include "base/inside.h"

namespace hawser::simulation {
namespace {

/// Beyond what the backend says: turns, latencies, retransmissions.
constexpr Duration kSlack = std::chrono::milliseconds(60);

std::string describe(const Move& move) {
  const Course& course = *move.course;
  return fmt::format("{} {} of {} bytes from {} to {}", course.write ? "write" : "read", move.uid, course.bytes,
                     course.from->name, course.to->name);
}

}  // namespace

std::string note_of(std::uint64_t uid) {
  std::string text = "note:" + std::to_string(uid) + ":";
  text.append(uid % 8 == 5 ? 20'000 : uid % 40, '.');  // Of many sizes, so that few fill a small inbox.
  return text;
}

std::uint64_t uid_of(std::string_view note) {
  if (!note.starts_with("note:")) return 0;
  const std::uint64_t uid = std::strtoull(std::string(note.substr(5)).c_str(), nullptr, 10);
  return note == note_of(uid) ? uid : 0;
}

std::string message_of(const Life& from, std::uint32_t channel, std::uint64_t number, std::size_t size) {
  std::string text = fmt::format("{}/{}/{}/", from.number, channel, number);
  const std::size_t head = text.size();
  text.resize(std::max(size, head));
  const std::span<char> rest(text.data() + head, text.size() - head);
  fill_pattern(std::as_writable_bytes(rest), from.number * 1000 + channel, number);
  return text;
}

void Judge::fail(const Life& life, const std::string& what) {
  if (failed()) return;
  failure_ = fmt::format("at {:.6f} s, {} (life {}): {}", static_cast<double>(universe_.world.now().ns()) / 1e9,
                         life.name, life.number, what);
  universe_.world.note("FAILED", failure_);
}

Life* Judge::life_of(const Incarnation& incarnation) {
  const auto at = lives_.find(incarnation);
  return at == lives_.end() ? nullptr : at->second;
}

Move& Judge::new_move(Course& course) {
  Move& move = moves_.emplace_back();
  move.uid = new_writer();
  move.course = &course;
  by_uid_[move.uid] = &move;
  return move;
}

void Judge::drop_move(Move& move) {
  by_uid_.erase(move.uid);
  moves_.pop_back();
}

bool Judge::idle(const Course& course) const {
  const Move* const latest = course.latest;
  if (latest == nullptr) return true;
  if (!latest->final) return false;
  // A peer that is gone takes nothing any more; one that lives may still be told.
  const bool told = (!latest->notify || latest->notified) && (!latest->signal || latest->bumped);
  return told || !course.to->alive;
}

Duration Judge::allowance(const Life& life) const {
  const auto excused = excused_.find(&life);
  const Duration quiesce = agent::inner::quiesce_max(life.agent);
  return kSlack + quiesce + 100 * life.host->pace() + (excused == excused_.end() ? Duration::zero() : excused->second);
}

void Judge::observe(Life& life) {
  if (!life.alive || failed()) return;
  observe_finals(life);
  observe_atomics(life);
  observe_queue(life);
  observe_words(life);
  observe_atomic_words(life);
  check_hangs(life);
  check_atomic_hangs(life);
}

void Judge::observe_finals(Life& life) {
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

void Judge::observe_queue(Life& life) {
  std::array<Completion, 128> entries;  // More than a life's queue holds: all of them, hints among them.
  const std::size_t count = life.queue.poll(entries);
  for (std::size_t i = 0; i < count && !failed(); ++i) {
    if (entries[i].kind != CompletionKind::kTransfer) continue;
    if (const auto atomic = atomics_by_uid_.find(entries[i].cookie); atomic != atomics_by_uid_.end()) {
      on_atomic_completion(life, *atomic->second, entries[i]);
      continue;
    }
    const auto at = by_uid_.find(entries[i].cookie);
    if (at == by_uid_.end() || !at->second->queued) return fail(life, "a completion with a cookie that nobody gave");
    Move& move = *at->second;
    if (++move.completions > 1) return fail(life, describe(move) + " was completed twice in its queue");
    if (!move.held) {
      std::erase(life.in_flight, &move);
      move.status = entries[i].status;
      on_final(life, move);
    } else if (!(move.status == entries[i].status)) {
      return fail(life, describe(move) + " ended as '" + move.status.to_string() + "' but its completion says '" +
                            entries[i].status.to_string() + "'");
    }
  }
}

void Judge::observe_words(Life& life) {
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

void Judge::check_hangs(Life& life) {
  const Instant now = universe_.world.now();
  for (const Move* move : life.in_flight) {
    if (now > move->due + allowance(life)) {
      const auto late = std::chrono::duration<double, std::milli>(now - move->due).count();
      return fail(life, fmt::format("{} is not final {:.1f} ms after its deadline", describe(*move), late));
    }
  }
}

bool Judge::all_landed(const Move& move) {
  if (move.landed) return true;
  for (const Pair& pair : move.course->pairs) {
    if (pair.remote->closed) continue;
    if (!has_pattern(pair.remote->plot->bytes(pair.remote_lease), move.uid, pair.position)) return false;
  }
  return true;
}

bool Judge::any_landed(const Move& move) {
  for (const Pair& pair : move.course->pairs) {
    const auto bytes = pair.remote->plot->bytes(pair.remote_lease);
    const std::size_t probe = std::min<std::size_t>(bytes.size(), 16);
    if (has_pattern(bytes.first(probe), move.uid, pair.position)) return true;
  }
  return false;
}

Area* Judge::landing_in(const Move& move) {
  for (const Pair& pair : move.course->pairs) {
    const auto bytes = pair.remote->plot->bytes(pair.remote_lease);
    const std::size_t probe = std::min<std::size_t>(bytes.size(), 16);
    const bool begun = has_pattern(bytes.first(probe), move.uid, pair.position);
    if (begun && !has_pattern(bytes, move.uid, pair.position)) return pair.remote;
  }
  return nullptr;
}

void Judge::on_final(Life& life, Move& move) {
  if (move.final) return fail(life, describe(move) + " became final twice");
  move.final = true;
  move.final_at = universe_.world.now();
  move.course->current = nullptr;
  universe_.world.note("final", life.name, move.uid, static_cast<std::uint64_t>(move.status.code()));
  check_status(life, move);
  if (failed()) return;
  if (move.status.ok()) {
    ++good_moves_;
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
  scribble(life, move);
  if (move.done) {
    std::uint64_t word = 0;
    std::memcpy(&word, life.own_words->plot->bytes().data() + 8 * *move.done, 8);
    if ((word == move.uid) != move.status.ok()) fail(life, describe(move) + " ended, and its `done` word does not fit");
  }
}

/// What is known of one whose handle is gone comes by its queue, later than its followers learn of it.
bool Judge::may_have_ended_well(const Move& move) {
  if (move.final) return move.status.ok();
  return !move.held || (move.transfer.done() && move.transfer.status().ok());
}

bool Judge::ended_badly(const Move& move) {
  if (move.final) return !move.status.ok();
  return !move.held || (move.transfer.done() && !move.transfer.status().ok());
}

/// From when on nothing of ours kept it from moving: its deadline, where its leader was never seen to end well.
Instant Judge::began(const Move& move) {
  if (move.leader == nullptr) return move.submitted;
  const Move& leader = *move.leader;
  return leader.final && leader.status.ok() ? std::max(move.submitted, leader.final_at) : move.due;
}

void Judge::check_status(Life& life, Move& move) {
  const Instant now = universe_.world.now();
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
      if (!move.after && !move.ended_by_us && !may_be_late(life, *move.course->to, began(move), move.due))
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
      if (!may_be_cut_off(life, *move.course->to, move.submitted)) return wrong("but nothing parted them for good");
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

void Judge::check_good_write(Life& life, Move& move) {
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

void Judge::check_bad_write(Life& life, Move& move) {
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

void Judge::check_tainted(Course& course) {
  std::vector<std::byte> fresh;
  for (const Pair& pair : course.pairs) {
    if (pair.remote->closed) continue;
    const auto bytes = pair.remote->plot->bytes(pair.remote_lease);
    const auto old = pair.remote->plot->expected(pair.remote_lease);
    fresh.resize(bytes.size());
    fill_pattern(fresh, course.last_writer, pair.position);
    for (std::size_t i = 0; i < bytes.size(); ++i) {
      const bool is_filler = may_fill_ && bytes[i] == std::byte{0};
      if (bytes[i] == old[i] || bytes[i] == fresh[i] || is_filler) continue;
      return fail(*course.to, fmt::format("{}+{} holds neither what it held nor what write {} of {} brings",
                                          pair.remote->plot->name(), pair.remote_lease.offset + i, course.last_writer,
                                          course.from->name));
    }
  }
}

void Judge::check_read(Life& life, Move& move) {
  if (!move.status.ok()) return;
  for (const Pair& pair : move.course->pairs) {
    if (pair.local->closed) continue;
    if (!has_pattern(pair.local->plot->bytes(pair.local_lease), pair.remote->writer, pair.remote_lease.offset)) {
      return fail(life, fmt::format("{} ended well, but brought other bytes than {}+{} holds", describe(move),
                                    pair.remote->plot->name(), pair.remote_lease.offset));
    }
  }
}

void Judge::scribble(Life&, Move& move) {
  // Whoever still reads or writes the local memory now will be seen.
  for (const Pair& pair : move.course->pairs) {
    if (!pair.local->closed) pair.local->plot->write(pair.local_lease, new_writer(), 0);
  }
}

void Judge::on_refused(Life& life, Course& course, const Status& status) {
  universe_.world.note("refused", life.name, static_cast<std::uint64_t>(status.code()));
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

void Judge::on_close(Life& life, Area& area, const Status& status) {
  if (!status.ok()) return;
  area.closed = true;
  universe_.world.note("closed", life.name + "/" + area.plot->name());
  area.plot->write_all(new_writer());
}

}  // namespace hawser::simulation
