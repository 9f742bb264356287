#include "sim/user.h"

#include <algorithm>
#include <array>
#include <cstring>

#include <fmt/format.h>

#include "agent/inner_simulator.h"
#include "base/inside.h"

namespace hawser::simulation {
namespace {

/// Bounds on what one life keeps: leases must not run out.
constexpr std::size_t kCoursesMax = 24;
constexpr std::size_t kAreasMax = 16;
constexpr std::size_t kOwnWords = 256;

std::size_t pick_size(base::Rng& rng) {
  switch (rng.below(8)) {
    case 0:
      return 1 + rng.below(8);
    case 1:
      return 8;
    case 2:
    case 3:
      return 1 + rng.below(300);
    case 4:
    case 5:
      return 1 + rng.below(2000);
    case 6:
      return 4096;
    default:
      return 1 + rng.below(9000);
  }
}

}  // namespace

void User::act(Life& life) {
  if (!life.alive || life.closing) return;
  const std::uint64_t dice = rng_.below(100);
  if (dice < 40) {
    submit_new(life);
  } else if (dice < 49) {
    submit_again(life);
  } else if (dice < 55) {
    rng_.chance(0.7) ? cancel(life) : cancel_atomic(life);
  } else if (dice < 64) {
    ask_atomics(life);
  } else if (dice < 78) {
    send(life);
  } else if (dice < 82) {
    note(life);
  } else if (dice < 86) {
    close_one(life);
  } else if (dice < 88) {
    open_one(life);
  } else if (dice < 89) {
    forget(life);
  } else if (dice < 92) {
    if (Life* other = pick_peer(life)) theater_.introduce(life, *other);
  } else if (dice < 94) {
    life.greedy_until =
        static_cast<std::uint64_t>((theater_.universe().world.now() + std::chrono::milliseconds(40)).ns());
  }
  const auto now = static_cast<std::uint64_t>(theater_.universe().world.now().ns());
  if (now >= life.greedy_until) read(life);
  theater_.judge().observe(life);
  life.host->wake();
}

void User::read(Life& life) {
  if (!life.alive) return;
  Judge& judge = theater_.judge();
  judge.observe(life);
  while (!judge.failed()) {
    auto event = life.agent.take_event();
    if (!event) break;
    judge.messages().on_event(life, *event);
  }
  std::array<Notification, 16> notes;
  const std::size_t count = life.agent.take_notifications(notes);
  for (std::size_t i = 0; i < count && !judge.failed(); ++i) judge.on_notification(life, notes[i]);
  for (const std::uint32_t channel : kChannels) {
    for (int i = 0; i < 8 && !judge.failed(); ++i) {
      auto message = life.agent.take_message(channel);
      if (!message) break;
      judge.messages().on_message(life, *message);
    }
  }
  life.host->wake();
}

Life* User::pick_peer(Life& life) {
  const std::size_t node = rng_.below(theater_.nodes() - 1);
  Life& other = theater_.at(node < life.node ? node : node + 1);
  Bond& bond = life.bonds[&other];
  if (!bond.known) theater_.introduce(life, other);
  return bond.known && !theater_.judge().failed() ? &other : nullptr;
}

Area* User::pick_remote(Life& to, bool write, bool* bait) {
  std::vector<Area*> fit;
  *bait = rng_.chance(0.1);
  for (const auto& area : to.areas) {
    if (area.get() == to.words || area->for_atomics || area->bait != *bait || area->closed) continue;
    if (area->bait ? write : allows(area->plot->rights(), write ? Rights::kWrite : Rights::kRead)) {
      // What is written to is never read, so that its bytes are known at any time.
      const bool mixed = !write && area->plot->rights() == Rights::kReadWrite;
      if (!mixed || area->bait) fit.push_back(area.get());
    }
  }
  return fit.empty() ? nullptr : fit[rng_.below(fit.size())];
}

bool User::lease_pairs(Life& life, Course& course, Area& remote) {
  static constexpr std::array<std::size_t, 6> kCounts{1, 1, 2, 4, 8, 16};
  const std::size_t count = kCounts[rng_.below(kCounts.size())];
  const std::size_t large = rng_.chance(0.1) ? 24 * 1024 : 0;
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t size = remote.bait ? 64 : i == 0 && large > 0 ? large : pick_size(rng_);
    const Pair* before = course.pairs.empty() ? nullptr : &course.pairs.back();
    Pair pair{
        .local = life.scratch, .remote = &remote, .local_lease = {}, .remote_lease = {}, .position = course.bytes};
    auto local = pair.local->plot->take(rng_, size, before != nullptr ? &before->local_lease : nullptr);
    if (!local) break;
    auto there = remote.plot->take(rng_, size, before != nullptr ? &before->remote_lease : nullptr);
    if (!there) {
      pair.local->plot->give_back(*local);
      break;
    }
    pair.local_lease = *local;
    pair.remote_lease = *there;
    course.bytes += size;
    course.pairs.push_back(pair);
  }
  return !course.pairs.empty();
}

Result<Plan> User::plan(Life& life, Course& course) {
  if (rng_.chance(0.4)) return plan_by_table(life, course);
  std::vector<LocalRange> local;
  std::vector<RemoteRange> remote;
  const Peer& peer = life.bonds[course.to].peer;
  for (const Pair& pair : course.pairs) {
    local.push_back(pair.local->region.range(pair.local_lease.offset, pair.local_lease.size));
    remote.push_back(peer.range(pair.remote->plot->name(), pair.remote_lease.offset, pair.remote_lease.size));
  }
  return course.write ? life.agent.plan_write(peer, local, remote) : life.agent.plan_read(peer, remote, local);
}

Result<Plan> User::plan_by_table(Life& life, Course& course) {
  const Peer& peer = life.bonds[course.to].peer;
  std::vector<StridedRange> local, remote;
  std::vector<std::uint32_t> index;
  for (const Pair& pair : course.pairs) {
    local.push_back({.offset = pair.local_lease.offset,
                     .size = pair.local_lease.size,
                     .stride = pair.local_lease.size,
                     .count = 1});
    remote.push_back({.offset = pair.remote_lease.offset,
                      .size = pair.remote_lease.size,
                      .stride = pair.remote_lease.size,
                      .count = 1});
    index.push_back(static_cast<std::uint32_t>(index.size()));
  }
  rng_.shuffle(index);
  const RangeTable ours = course.pairs.front().local->region.table(local);
  const RangeTable theirs = peer.table(course.pairs.front().remote->plot->name(), remote);
  return course.write ? life.agent.plan_write(peer, ours, index, theirs, index)
                      : life.agent.plan_read(peer, theirs, index, ours, index);
}

Course* User::make_course(Life& life, Life& to) {
  auto course = std::make_unique<Course>();
  course->write = rng_.chance(0.65);
  course->from = &life;
  course->to = &to;
  Area* const remote = pick_remote(to, course->write, &course->bait);
  if (remote == nullptr || life.scratch->closing || !lease_pairs(life, *course, *remote)) return nullptr;
  Result<Plan> made = plan(life, *course);
  if (!made) {
    for (const Pair& pair : course->pairs) {
      pair.local->plot->give_back(pair.local_lease);
      pair.remote->plot->give_back(pair.remote_lease);
    }
    const Code code = made.error().code();
    // Its card here may be older than the region, newer than a lie, or gone with the peer.
    const bool fair = code == Code::kNotFound || code == Code::kDisconnected || course->bait ||
                      life.bonds[&to].broken ||
                      (code == Code::kInvalid && !life.bonds[&to].peer.region(remote->plot->name()));
    if (!fair) theater_.judge().fail(life, "a plan was refused: " + made.error().to_string());
    return nullptr;
  }
  course->plan = *made;
  if (course->bait) course->bait = TransferJudge::is_lie(*course);
  if (course->plan.bytes() != course->bytes) theater_.judge().fail(life, "a plan has other bytes than it was given");
  life.courses.push_back(std::move(course));
  return life.courses.back().get();
}

void User::retire(Life& life) {
  if (life.courses.size() < kCoursesMax) return;
  for (std::size_t i = 0; i < life.courses.size(); ++i) {
    Course& course = *life.courses[i];
    if (!theater_.judge().transfers().idle(course) || course.tainted) continue;
    for (const Pair& pair : course.pairs) {
      pair.local->plot->give_back(pair.local_lease);
      pair.remote->plot->give_back(pair.remote_lease);
    }
    theater_.judge().forget(std::move(life.courses[i]));
    life.courses.erase(life.courses.begin() + static_cast<std::ptrdiff_t>(i));
    return;
  }
}

void User::submit_new(Life& life) {
  retire(life);
  if (life.courses.size() >= 4 * kCoursesMax) return;
  Life* const to = pick_peer(life);
  Course* const course = to == nullptr ? nullptr : make_course(life, *to);
  if (course != nullptr) submit(life, *course);
}

void User::write_again(Life& life, Life& to, Instant since) {
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

void User::submit_again(Life& life) {
  if (life.courses.empty()) return submit_new(life);
  Course& course = *life.courses[rng_.below(life.courses.size())];
  if (course.tainted || !theater_.judge().transfers().idle(course) || life.scratch->closing) return;
  submit(life, course);
}

void User::set_later(Life& life, std::size_t word) {
  if (rng_.chance(0.2)) return;  // Never: the deadline comes first.
  theater_.universe().world.after(Duration(rng_.range(0, 8'000'000)), [&life, word] {
    if (!life.alive) return;
    const std::uint64_t one = 1;
    std::memcpy(life.own_words->plot->bytes().data() + 8 * word, &one, 8);
    life.host->wake();
  });
}

/// One in flight whose handle is there.
Move* User::pick_leader(Life& life) {
  if (life.in_flight.empty()) return nullptr;
  Move* const move = life.in_flight[rng_.below(life.in_flight.size())];
  return move->held ? move : nullptr;
}

bool User::submit(Life& life, Course& course) {
  Judge& judge = theater_.judge();
  judge.transfers().check_stays(course);
  if (judge.failed()) return false;
  Move& move = judge.transfers().make(course);
  move.submitted = theater_.universe().world.now();
  SubmitOptions options;
  const std::string text = note_of(move.uid);
  move.notify = rng_.chance(0.5);
  if (move.notify) options.notify = text;
  if (rng_.chance(0.4)) options.deadline = Duration(rng_.range(200'000, 60'000'000));
  move.due = move.submitted + (options.deadline.count() > 0 ? options.deadline : theater_.settings().default_deadline);
  options.priority = static_cast<Priority>(rng_.below(3));
  move.queued = rng_.chance(0.6);
  if (move.queued) options.queue = &life.queue;
  options.cookie = move.uid;
  Life& to = *course.to;
  SignalTarget signal;
  const std::size_t digit = to.digits.size();
  // A peer that was forgotten and added again is another one to plans made before.
  const bool same_peer = agent::inner::is_same(agent::inner::peer_of(course.plan), life.bonds[&to].peer);
  if (rng_.chance(0.35) && digit < kWords * kDigitsPerWord && !to.words->closing && same_peer) {
    move.signal = Digit{.word = digit / kDigitsPerWord, .place = static_cast<unsigned>(digit % kDigitsPerWord)};
    signal = {.word = life.bonds[&to].peer.range("words", 8 * move.signal->word, 8), .add = move.signal->one()};
    options.signal = &signal;
  }
  SignalWord after, done;
  if (rng_.chance(0.1) && life.next_own_word + 2 < kOwnWords) {
    move.after = life.next_own_word++;
    after = {.word = life.own_words->region.range(8 * *move.after, 8), .value = 1};
    options.after = &after;
  }
  if (rng_.chance(0.15)) {
    move.leader = pick_leader(life);
    if (move.leader != nullptr) options.after_transfer = &move.leader->transfer;
  }
  if (rng_.chance(0.2) && life.next_own_word + 2 < kOwnWords) {
    move.done = life.next_own_word++;
    done = {.word = life.own_words->region.range(8 * *move.done, 8), .value = move.uid};
    options.done = &done;
  }
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
  if (move.signal) to.digits.push_back(&move);
  if (move.after) set_later(life, *move.after);
  life.in_flight.push_back(&move);
  judge.observe(life);
  return true;
}

void User::cancel(Life& life) {
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

void User::send(Life& life) {
  Life* const to = pick_peer(life);
  if (to == nullptr) return;
  Bond& bond = life.bonds[to];
  const std::uint32_t channel = kChannels[rng_.below(std::size(kChannels))];
  const std::size_t burst = rng_.chance(0.2) ? 20 : 1 + rng_.below(3);
  for (std::size_t i = 0; i < burst; ++i) {
    const std::size_t size = rng_.chance(0.1) ? 1 + rng_.below(20'000) : rng_.below(200);
    const std::string text = message_of(life, channel, bond.sent[channel], size);
    const Result<std::uint64_t> sent = bond.peer.send(channel, std::as_bytes(std::span(text)));
    if (!sent) {
      const Code code = sent.error().code();
      // No credit yet, or none left; or the peer is gone.
      const bool gone = bond.broken || bond.peer.state() == PeerState::kDown || life.closing;
      if (code != Code::kBusy && !(code == Code::kDisconnected && gone)) {
        theater_.judge().fail(life, "send was refused: " + sent.error().to_string());
      }
      return;
    }
    theater_.judge().messages().on_sent(life, *to, channel, *sent);
  }
}

void User::note(Life& life) {
  Life* const to = pick_peer(life);
  if (to == nullptr) return;
  Bond& bond = life.bonds[to];
  const std::uint64_t uid = theater_.judge().new_writer();
  const Status sent = bond.peer.notify(note_of(uid));
  if (sent.ok()) {
    bond.notes_sent.insert(uid);
  } else if (sent.code() != Code::kBusy &&
             !(sent.code() == Code::kDisconnected && (bond.broken || bond.peer.state() == PeerState::kDown))) {
    theater_.judge().fail(life, "notify was refused: " + sent.to_string());
  }
}

void User::close_one(Life& life) {
  std::vector<Area*> fit;
  for (const auto& area : life.areas) {
    if (!area->closing && area.get() != life.words && area.get() != life.own_words && !area->bait)
      fit.push_back(area.get());
  }
  if (fit.empty()) return;
  Area& area = *fit[rng_.below(fit.size())];
  // The memory that all own transfers use goes less often, and is replaced at once.
  if (&area == life.scratch && !rng_.chance(0.3)) return;
  if (&area == life.scratch) return theater_.close_scratch(life);
  theater_.close_area(life, area);
  if (!area.atomic_words.empty()) theater_.add_atomic_area(life, fmt::format("atoms-{}", ++opened_));
}

void User::open_one(Life& life) {
  if (life.areas.size() >= kAreasMax) return;
  const bool in = rng_.chance(0.5);
  theater_.add_area(life, fmt::format("{}-{}", in ? "in" : "out", ++opened_), 16 * 1024,
                    in ? Rights::kWrite : Rights::kRead);
}

void User::forget(Life& life) {
  Life* const other = pick_peer(life);
  if (other == nullptr) return;
  Bond& bond = life.bonds[other];
  bond.broken = true;
  theater_.universe().world.note("invalidate", life.name, other->number);
  if (const Status gone = life.agent.invalidate(bond.peer); !gone.ok()) {
    theater_.judge().fail(life, "invalidate: " + gone.to_string());
  }
}

void User::try_stale_plans() {
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
