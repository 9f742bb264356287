#include "worldsim/judge.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "wire/runtime.h"

namespace hawser::worldsim {
namespace {

using std::chrono::milliseconds;

/// An operation may end so long after its deadline.
constexpr Duration kSlack = milliseconds(300);
/// All ranks' collectives of a world end so soon after one's ended badly, or a rank died: peer_timeout and then some.
constexpr Duration kNoticeMax = milliseconds(1500);
/// So long a letter may be on its way.
constexpr Duration kOnItsWay = milliseconds(100);
/// A rank that knows of a failure ends all that the failure ends at once.
constexpr Duration kAtOnce = milliseconds(20);

/// A call's deadline counts from when it came; and so long its end may be on its way.
constexpr Duration kCallSlack = milliseconds(200);

}  // namespace

void WorldJudge::fail(const std::string& what) {
  if (failed()) return;
  failure_ = fmt::format("at {:.6f} s, {}", static_cast<double>(universe_.world.now().ns()) / 1e9, what);
  universe_.world.note("FAILED", failure_);
}

Realm& WorldJudge::open_realm(std::vector<std::size_t> actors, std::uint64_t seed) {
  Realm& realm = *realms_.emplace_back(std::make_unique<Realm>());
  realm.uid = new_uid();
  realm.seed = seed;
  realm.actors = std::move(actors);
  realm.parts.resize(realm.actors.size());
  return realm;
}

Realm& WorldJudge::realm_of(Realm& parent, bool is_group, const std::vector<std::size_t>& actors) {
  for (const auto& realm : realms_) {
    if (realm->parent == &parent && realm->is_group == is_group && realm->actors == actors) return *realm;
  }
  Realm& realm = open_realm(actors, parent.seed * 31 + actors.size() * 7 + (is_group ? 3 : 5));
  realm.parent = &parent;
  realm.is_group = is_group;
  realm.epoch = parent.epoch + (is_group ? 0 : 1);
  realm.acts = realm.seed % (is_group ? 4 : 6);
  for (const std::size_t actor : realm.actors) {
    if (!gone_.contains(actor)) continue;
    doom(realm);
    realm.bereft = realm.doomed;
  }
  return realm;
}

Remote& WorldJudge::new_remote(Realm& realm, std::uint32_t from, std::uint32_t to) {
  Remote& remote = remotes_.emplace_back();
  remote.uid = new_uid();
  remote.realm = &realm;
  remote.from = from;
  remote.to = to;
  return remote;
}

void WorldJudge::on_begun(Deed& deed) {
  ++deeds_;
  Part& part = part_of(deed);
  if (deed.kind == DeedKind::kCollective) ++part.begun;
  if (deed.kind == DeedKind::kReceive) deed.posted = part.book.post(deed.source, deed.tag);
  universe_.world.note("begun", describe(deed), deed.uid);
}

void WorldJudge::wrong(const Deed& deed, const Status& status, const std::string& why) {
  fail(fmt::format("{} ended as '{}', {}", describe(deed), status.to_string(), why));
}

void WorldJudge::on_end(Actor& actor, Deed& deed, const Status& status) {
  deed.is_over = true;
  deed.ended = universe_.world.now();
  deed.is_good = status.ok();
  universe_.world.note("ended", describe(deed), deed.uid, static_cast<std::uint64_t>(status.code()));
  ++(status.ok() ? good_ : bad_);
  check_status(actor, deed, status);
  if (failed()) return;
  if (deed.kind == DeedKind::kCollective) check_collective(deed, status);
  if (deed.kind == DeedKind::kReceive) check_received(deed, status);
  if (deed.kind == DeedKind::kCall) check_answer(deed, status);
  for (Loan* const loan : {deed.input, deed.output}) {
    if (loan != nullptr && !loan->is_back) vault_.take_back(*loan);
  }
}

void WorldJudge::disturb(Realm& realm, Code code) { realm.disturbances.insert(code); }

void WorldJudge::doom(Realm& realm) {
  if (!realm.doomed) realm.doomed = universe_.world.now();
}

void WorldJudge::trouble(Duration span) {
  troubled_until_ = std::max(troubled_until_, universe_.world.now() + span);
  delay(span);
}

void WorldJudge::delay(Duration span) {
  delayed_until_ = std::max(delayed_until_, universe_.world.now() + span + kNoticeMax);
}

void WorldJudge::on_gone(const Actor& actor) {
  for (const auto& each : *actors_) look_at_ways(*each);
  look_at_verdict(actor);
  ways_.note_gone(static_cast<std::uint32_t>(actor.number));
  count_as_gone(actor);
}

void WorldJudge::count_as_gone(const Actor& actor) {
  gone_.insert(actor.number);
  for (const auto& realm : realms_) {
    const auto at = std::ranges::find(realm->actors, actor.number);
    if (at == realm->actors.end()) continue;
    Part& part = realm->parts[static_cast<std::size_t>(at - realm->actors.begin())];
    if (!realm->bereft) realm->bereft = universe_.world.now();
    if (!std::exchange(part.is_left, true)) doom(*realm);
  }
}

void WorldJudge::on_parted(const Actor& one, const Actor& other) {
  parting_ = {.one = one.number, .other = other.number, .when = universe_.world.now()};
  if (!ways_.is_sparse()) return count_as_gone(one.number < other.number ? other : one);
  for (const auto& each : *actors_) look_at_ways(*each);
  bool has_changed = !left_.empty();  // Ranks leave, or go by smaller graphs: what they know of each other differs.
  for (const auto& each : *actors_)
    has_changed = has_changed || ways_.generation(static_cast<std::uint32_t>(each->number)) > 0;
  if (has_changed) may_accuse();
  parting_->out = ways_.note_lost(static_cast<std::uint32_t>(one.number), static_cast<std::uint32_t>(other.number));
  for (const std::uint32_t rank : parting_->out) {
    universe_.world.note("to be left out", (*actors_)[rank]->name);
    ways_.note_gone(rank);
    count_as_gone(*(*actors_)[rank]);
  }
}

void WorldJudge::on_left(const Actor& actor) {
  for (const auto& realm : realms_) {
    const auto at = std::ranges::find(realm->actors, actor.number);
    if (at == realm->actors.end()) continue;
    realm->parts[static_cast<std::size_t>(at - realm->actors.begin())].is_left = true;
    disturb(*realm, Code::kCancelled);
  }
}

void WorldJudge::on_out(const Actor& actor) {
  left_.insert(static_cast<std::uint32_t>(actor.number));
  if (!ways_.is_sparse() || accuses() || gone_.contains(actor.number)) return;
  for (const std::size_t number : actor.main.realm->actors) {
    const Actor& other = *(*actors_)[number];
    if (other.has_said_left || gone_.contains(number)) continue;
    fail(fmt::format("{} leaves, and {} still needs it as a relay", actor.name, other.name));
  }
}

// ---- Sparse worlds.

void WorldJudge::set_topology(const Topology& topology, std::size_t ranks) {
  ways_.open(topology, static_cast<std::uint32_t>(ranks));
}

/// Which graph the actor goes by: it may have heard of a smaller one from a neighbour, or have made it by itself.
void WorldJudge::look_at_ways(const Actor& actor) {
  const std::shared_ptr<runtime::RankSeat> seat = ways_.is_sparse() && actor.is_alive ? actor.seat.lock() : nullptr;
  if (seat == nullptr) return;
  actor.turner.under_lane([&] {
    const runtime::Relay& relay = *seat->relay;
    const auto rank = static_cast<std::uint32_t>(actor.number);
    const std::uint64_t generation = relay.routes().generation();
    if (generation > ways_.generation(rank)) ways_.note_graph(rank, generation, relay.routes().graph());
    if (relay.dropped() > 0) fail(fmt::format("{} dropped {} frames", actor.name, relay.dropped()));
  });
}

/// One of two that lost each other may end before all have heard the verdict. If it is the one that stays, nobody need
/// be left out. If it is the other one, a rank that it was the only relay of is by itself.
void WorldJudge::look_at_verdict(const Actor& actor) {
  const bool is_party = parting_ && (actor.number == parting_->one || actor.number == parting_->other);
  if (!ways_.is_sparse() || !is_party) return;
  const bool stays = !gone_.contains(actor.number);
  for (const auto& each : *actors_) {
    const std::shared_ptr<runtime::RankSeat> seat = each->is_alive ? each->seat.lock() : nullptr;
    if (seat == nullptr || each->number == actor.number || gone_.contains(each->number) == stays) continue;
    each->turner.under_lane([&] {
      const bool has_heard =
          stays ? std::ranges::all_of(parting_->out, [&](std::uint32_t rank) { return seat->relay->has_failed(rank); })
                : seat->relay->is_excluded();
      if (!has_heard) may_accuse();
    });
  }
}

/// Nothing that this deed says to the rank reaches it any more.
bool WorldJudge::is_lost(const Deed& deed, std::uint32_t rank) const {
  const std::size_t other = deed.realm->actors[rank];
  if (gone_.contains(other) || deed.realm->parts[rank].is_left) return true;
  const auto own = static_cast<std::uint32_t>(deed.realm->actors[deed.rank]);
  return !ways_.joins(own, static_cast<std::uint32_t>(other), left_);
}

// ---- Statuses.

bool WorldJudge::has_gone(const Realm& realm) const {
  return std::ranges::any_of(realm.actors, [&](std::size_t actor) { return gone_.contains(actor); });
}

bool WorldJudge::has_left(const Realm& realm) const {
  return std::ranges::any_of(realm.parts, [](const Part& part) { return part.is_left; });
}

bool WorldJudge::has_left_alive(const Realm& realm) const {
  for (std::uint32_t rank = 0; rank < realm.size(); ++rank) {
    if (realm.parts[rank].is_left && !gone_.contains(realm.actors[rank])) return true;
  }
  return false;
}

bool WorldJudge::has_lost(const Deed& deed, std::string_view name) const {
  for (std::uint32_t rank = 0; rank < deed.realm->size(); ++rank) {
    if ((*actors_)[deed.realm->actors[rank]]->name == name) return is_lost(deed, rank);
  }
  return false;
}

void WorldJudge::check_disconnected(const Deed& deed, const Status& status) {
  if (accuses() || gone_.contains(deed.realm->actors[deed.rank])) return;  // It may be told that it has failed.
  const bool any = has_gone(*deed.realm) || has_left(*deed.realm);
  if (!any) return wrong(deed, status, "but nobody failed or left");
  switch (deed.kind) {
    case DeedKind::kCollective:
      if (!has_lost(deed, status.peer())) wrong(deed, status, "and names none that failed");
      return;
    case DeedKind::kSend:
      if (!is_lost(deed, deed.letter.to)) wrong(deed, status, "but its target lives");
      return;
    case DeedKind::kReceive:
      if (deed.source && !is_lost(deed, *deed.source)) wrong(deed, status, "but its source lives");
      return;
    case DeedKind::kCall:
      if (!is_lost(deed, deed.remote->to)) wrong(deed, status, "but the rank that it calls lives");
      return;
    default:
      if (is_automatic_ && has_gone(*deed.realm)) return;  // The others recover.
      return wrong(deed, status, "but nobody may hold this rank for failed");
  }
}

bool WorldJudge::is_letter_for(const Deed& send, const Deed& receive) {
  return send.kind == DeedKind::kSend && send.realm == receive.realm && send.letter.to == receive.rank &&
         receive.source.value_or(send.rank) == send.rank && receive.tag.value_or(send.letter.tag) == send.letter.tag;
}

/// A large letter may be on its way to this receive, unless its sender had stopped it before.
bool WorldJudge::may_be_landing(const Deed& receive) const {
  const Part& part = receive.realm->parts[receive.rank];
  for (const auto& actor : *actors_) {
    for (const auto& deed : actor->deeds) {
      const bool is_stopped = deed->is_over && !deed->is_good && deed->ended + kOnItsWay < receive.begun;
      const bool is_large = is_letter_for(*deed, receive) && deed->letter.size > wire::kRuntimeBodyMax;
      if (is_large && !is_stopped && !part.book.has(deed->letter)) return true;
    }
  }
  return false;
}

bool WorldJudge::letter_waits(const Deed& receive) const {
  const Part& part = receive.realm->parts[receive.rank];
  if (accuses() || universe_.world.now() < delayed_until_ || may_be_landing(receive)) return false;
  for (const auto& actor : *actors_) {
    if (gone_.contains(actor->number)) continue;
    for (const auto& deed : actor->deeds) {
      const Letter& letter = deed->letter;
      const bool is_sent = deed->is_good && is_letter_for(*deed, receive) && deed->ended + kOnItsWay < receive.due;
      if (is_sent && letter.size <= wire::kRuntimeBodyMax && !part.book.has(letter)) return true;
    }
  }
  return false;
}

void WorldJudge::check_timed_out(const Deed& deed, const Status& status) {
  // Where the whole world broke, not all of its ranks may have made the group.
  const Realm& whole = deed.realm->is_group ? *deed.realm->parent : *deed.realm;
  const bool may_lack_ranks = deed.realm->is_group && whole.doomed;
  const bool is_others =
      deed.kind == DeedKind::kCollective && (deed.realm->disturbances.contains(Code::kTimedOut) || may_lack_ranks);
  if (universe_.world.now() < deed.due && !is_others) return wrong(deed, status, "before its deadline");
  const bool is_broken = !deed.realm->disturbances.empty() || may_lack_ranks;
  const bool is_calm = gone_.empty() && !accuses() && !is_broken;
  const bool may_be_late = deed.kind != DeedKind::kCollective || !is_calm;
  if (!may_be_late) return wrong(deed, status, "though nothing held it up");
  if (deed.kind == DeedKind::kReceive && letter_waits(deed)) wrong(deed, status, "though a letter waits for it");
}

void WorldJudge::check_cancelled(const Deed& deed, const Status& status) {
  const bool is_ours = deed.is_cancelled || part_of(deed).is_left;
  const bool is_stopped = deed.kind == DeedKind::kReceive && deed.capacity == 0;
  const bool is_others = deed.realm->disturbances.contains(Code::kCancelled) &&
                         (deed.kind == DeedKind::kCollective || deed.kind == DeedKind::kReceive);
  const bool has_closed = deed.kind == DeedKind::kCall && deed.realm->parts[deed.remote->to].is_left;
  if (!is_ours && !is_stopped && !is_others && !has_closed) wrong(deed, status, "but nobody cancelled it");
}

void WorldJudge::check_invalid(const Deed& deed, const Status& status) {
  const bool is_misfit = deed.kind == DeedKind::kCollective && deed.realm->disturbances.contains(Code::kInvalid);
  const bool is_short = deed.kind == DeedKind::kReceive && deed.capacity < wire::kRuntimeBodyMax;
  if (!is_misfit && !is_short) wrong(deed, status, "but nothing about it is invalid");
}

void WorldJudge::check_status(const Actor& actor, const Deed& deed, const Status& status) {
  static_cast<void>(actor);
  switch (status.code()) {
    case Code::kOk:
      return;
    case Code::kTimedOut:
      return check_timed_out(deed, status);
    case Code::kDisconnected:
      return check_disconnected(deed, status);
    case Code::kCancelled:
      return check_cancelled(deed, status);
    case Code::kInvalid:
      return check_invalid(deed, status);
    case Code::kNotFound: {
      const bool may_be = deed.kind == DeedKind::kCall && (deed.handler == "nobody" || deed.realm->parent != nullptr);
      if (!may_be) wrong(deed, status, "but it is there");
      return;
    }
    case Code::kBusy: {
      const bool agrees = deed.kind == DeedKind::kAgree || deed.kind == DeedKind::kShrink;
      if (!is_automatic_ || !agrees) wrong(deed, status, "but nothing is in its way");
      return;
    }
    case Code::kDenied:
      if (deed.kind == DeedKind::kShrink && may_refuse(*deed.realm)) return;
      if (deed.kind != DeedKind::kCall || deed.handler != "refuse") wrong(deed, status, "but nobody denied it");
      return;
    default:
      return wrong(deed, status, "which is none of the ends that it may have");
  }
}

// ---- What came.

void WorldJudge::check_barrier(const Deed& deed) {
  const Realm& realm = *deed.realm;
  for (std::uint32_t rank = 0; rank < realm.size(); ++rank) {
    if (realm.parts[rank].begun > deed.number - realm.first_number) continue;
    return fail(fmt::format("{} ended before rank {} had begun it", describe(deed), rank));
  }
}

void WorldJudge::check_collective(const Deed& deed, const Status& status) {
  if (!status.ok()) {
    if ((*actors_)[deed.realm->actors[deed.rank]]->is_alive) doom(*deed.realm);
    const bool is_failure = status.code() == Code::kDisconnected && !has_left_alive(*deed.realm);
    if (is_failure && !part_of(deed).knows) part_of(deed).knows = universe_.world.now();
    return;
  }
  part_of(deed).good.insert(deed.number);
  if (deed.is_misfit) return;
  if (deed.act.what == schedule::Operation::kBarrier) check_barrier(deed);
  if (deed.output != nullptr && !std::ranges::equal(deed.output->bytes, output_of(deed.act, deed.rank))) {
    fail(describe(deed) + " ended well and gave other bytes than it should");
  }
  const bool is_input_whole = deed.input == nullptr || deed.input == deed.output ||
                              std::ranges::equal(deed.input->bytes, input_of(deed.act, deed.rank));
  if (!is_input_whole) fail(describe(deed) + " ended well and changed its input");
}

void WorldJudge::check_received(const Deed& deed, const Status& status) {
  Part& part = part_of(deed);
  if (!status.ok()) {
    if (status.code() != Code::kInvalid) part.book.give_up(deed.posted);
    return;
  }
  const Received received = deed.request.received();
  const std::span<const std::byte> bytes =
      deed.output != nullptr ? std::span<const std::byte>(deed.output->bytes) : deed.request.bytes();
  if (received.bytes > bytes.size()) return fail(describe(deed) + " says that it got more than its buffer holds");
  const std::optional<Letter> letter = read_letter(bytes.first(received.bytes));
  if (!letter) return fail(describe(deed) + " ended well and gave torn bytes");
  if (letter->realm != deed.realm->uid) {
    return fail(fmt::format("{} got a letter of realm {}", describe(deed), letter->realm));
  }
  if (letter->to != deed.rank) return fail(fmt::format("{} got a letter to rank {}", describe(deed), letter->to));
  if (letter->from != received.source || letter->tag != received.tag) {
    return fail(describe(deed) + " says that its letter has another source or tag than it has");
  }
  if (const std::string fault = part.book.take(deed.posted, *letter); !fault.empty()) {
    fail(fmt::format("{}: {}", describe(deed), fault));
  }
}

void WorldJudge::check_answer(const Deed& deed, const Status& status) {
  if (!status.ok()) return;
  if (deed.handler == "nobody" || deed.handler == "refuse") return wrong(deed, status, "but it must not");
  const std::optional<Letter> answer = read_letter(deed.request.bytes());
  if (!answer || answer->number != deed.remote->uid || answer->realm != deed.realm->uid) {
    return fail(describe(deed) + " got an answer that is not its own");
  }
  if (deed.remote->runs != 1) {
    fail(fmt::format("{} was answered and its handler ran {} times", describe(deed), deed.remote->runs));
  }
}

void WorldJudge::on_run(Realm& realm, std::uint32_t rank, std::uint64_t uid) {
  const auto found = std::ranges::find_if(remotes_, [uid](const Remote& remote) { return remote.uid == uid; });
  const Instant now = universe_.world.now();
  universe_.world.note("runs", {}, uid);
  if (found == remotes_.end()) return fail(fmt::format("a handler got call {} that nobody made", uid));
  Remote& remote = *found;
  const std::string name =
      fmt::format("call {} of rank {} at rank {} of realm {}", uid, remote.from, remote.to, remote.realm->uid);
  if (remote.realm != &realm || remote.to != rank) {
    return fail(fmt::format("{} ran at rank {} of realm {}", name, rank, realm.uid));
  }
  if (++remote.runs > 1) return fail(name + " ran twice");
  // Where a neighbour has just died, a call waits at a relay until it is known.
  if (now < (ways_.is_sparse() ? delayed_until_ : troubled_until_)) return;
  if (now > remote.due + kCallSlack) return fail(name + " began after its deadline");
  if (remote.taken_back && now > *remote.taken_back + kCallSlack) {
    fail(name + " began after its caller had taken it back");
  }
}

// ---- Agreements.

void WorldJudge::check_vote(const Realm& realm, std::size_t agreement, bool flag, const Deed& deed) {
  bool some_against = false;
  for (std::uint32_t rank = 0; rank < realm.size(); ++rank) {
    const Part& part = realm.parts[rank];
    const bool is_lost = gone_.contains(realm.actors[rank]) || part.is_left;
    const bool is_against = part.votes.size() > agreement && part.votes[agreement] == false;
    some_against = some_against || is_against;
    if (flag && is_against && !is_lost && !accuses()) {
      return fail(fmt::format("{} gave true, but rank {} voted false", describe(deed), rank));
    }
    const bool differs = part.decisions.size() > agreement && part.decisions[agreement].value_or(flag) != flag;
    if (differs && !accuses()) {
      return fail(fmt::format("{} gave {}, but rank {} got {}", describe(deed), flag, rank, !flag));
    }
  }
  if (!flag && !some_against) fail(describe(deed) + " gave false, but nobody voted false");
}

void WorldJudge::on_agreed(Deed& deed, bool flag) {
  Part& part = part_of(deed);
  const std::size_t agreement = part.decisions.size();
  part.decisions.emplace_back(flag);
  universe_.world.note("agreed", describe(deed), flag ? 1 : 0);
  check_vote(*deed.realm, agreement, flag, deed);
}

/// Two ranks of which neither holds the other for failed have the same world. Where nobody can be taken for failed that
/// lives, all have.
void WorldJudge::check_same(const Deed& deed, const Shrunk& mine) {
  std::vector<std::optional<Shrunk>>& all = deed.realm->shrunk;
  all.resize(deed.realm->size());
  const auto sees = [&](const Shrunk& one, std::uint32_t rank) {
    return std::ranges::find(one.failed, deed.realm->actors[rank]) == one.failed.end() &&
           std::ranges::find(one.actors, deed.realm->actors[rank]) != one.actors.end();
  };
  for (std::uint32_t rank = 0; rank < deed.realm->size(); ++rank) {
    if (!all[rank] || all[rank]->actors == mine.actors) continue;
    const bool are_apart = accuses() && !(sees(mine, rank) && sees(*all[rank], deed.rank));
    if (!are_apart) return fail(fmt::format("{} gave other ranks than rank {} got", describe(deed), rank));
  }
  all[deed.rank] = mine;
}

bool WorldJudge::may_refuse(const Realm& realm) const {
  const auto lost = std::ranges::count_if(realm.actors, [&](std::size_t actor) { return gone_.contains(actor); });
  const auto left = std::ranges::count_if(realm.parts, [](const Part& part) { return part.is_left; });
  return has_majority_ && (accuses() || 2 * (lost + left) >= static_cast<std::ptrdiff_t>(realm.size()));
}

/// Of two worlds that follow one, one has nobody left.
void WorldJudge::check_alone(const Deed& deed, const Shrunk& mine) {
  for (const std::optional<Shrunk>& other : deed.realm->shrunk) {
    if (!other || other->actors == mine.actors) continue;
    const bool lives = std::ranges::any_of(  // A process that has ended is proven dead.
        other->actors, [&](std::size_t actor) { return !gone_.contains(actor) && (*actors_)[actor]->is_alive; });
    if (lives) return fail(describe(deed) + " made a second world, which both cannot have a majority");
  }
}

/// Nobody goes on with both of two that lost each other.
void WorldJudge::check_parted(const Deed& deed, const std::vector<std::size_t>& actors) {
  if (!parting_ || deed.begun < parting_->when + kNoticeMax) return;
  const auto is_in = [&](std::size_t actor) { return std::ranges::find(actors, actor) != actors.end(); };
  if (is_in(parting_->one) && is_in(parting_->other)) {
    fail(describe(deed) + " made a world with two ranks that had lost each other");
  }
}

/// The new world has more than half of those whose end nobody can have proven. Some may have died since it was decided,
/// which only makes this easier to meet.
void WorldJudge::check_majority(const Deed& deed, std::size_t ranks) {
  const Realm& realm = *deed.realm;
  std::size_t living = 0;
  for (std::uint32_t rank = 0; rank < realm.size(); ++rank) {
    living += (*actors_)[realm.actors[rank]]->is_alive && !realm.parts[rank].is_left ? 1 : 0;
  }
  if (2 * ranks > living) return;
  fail(fmt::format("{} goes on with {} ranks of {} that live, which is no majority", describe(deed), ranks, living));
}

Realm* WorldJudge::on_shrunk(Deed& deed, const World& world) {
  const std::uint64_t last_good = world.last_good();
  Realm& parent = *deed.realm;
  std::vector<std::size_t> actors;
  for (std::uint32_t rank = 0; rank < world.size(); ++rank) {
    const std::uint32_t old = world.old_rank(rank);
    const bool in_order = actors.empty() || parent.actors[old] > actors.back();
    if (!in_order) fail(describe(deed) + " gave ranks in another order than before");
    actors.push_back(parent.actors[old]);
  }
  std::vector<std::size_t> failed;
  for (const std::uint32_t rank : world.failed()) failed.push_back(actors[rank]);
  for (const std::size_t actor : parent.actors) {
    const bool is_in = std::ranges::find(actors, actor) != actors.end();
    if (!is_in && !gone_.contains(actor) && !accuses()) {
      fail(fmt::format("{} left out {}, which lives", describe(deed), (*actors_)[actor]->name));
    }
  }
  if (has_majority_) {
    check_majority(deed, actors.size());
    check_alone(deed, {.actors = actors, .failed = failed});
  }
  check_parted(deed, actors);
  check_same(deed, {.actors = actors, .failed = failed});
  const Part& part = part_of(deed);
  for (std::uint64_t number = parent.first_number; number <= last_good; ++number) {
    if (number == 0 || part.good.contains(number)) continue;
    fail(fmt::format("{} says that collectives up to {} ended well, but {} did not here", describe(deed), last_good,
                     number));
  }
  return &realm_of(parent, false, actors);
}

// ---- Time.

bool WorldJudge::may_recover(const Actor& actor, const Deed& deed) {
  const Instant now = universe_.world.now();
  if (now < std::max(deed.due, troubled_until_ + (deed.due - deed.begun)) + actor.excused) return true;
  if (!actor.main.world.failed().empty()) fail(describe(deed) + " does not come, though the rank knows of a failure");
  return false;
}

void WorldJudge::check_failed(const Actor& actor, const Membership& membership) {
  if (gone_.contains(actor.number)) return;  // It lost the rank that stays.
  for (const std::uint32_t rank : membership.world.failed()) {
    const std::size_t other = membership.realm->actors[rank];
    if (gone_.contains(other) || accuses()) continue;
    fail(fmt::format("{} holds {} for failed, which lives", actor.name, (*actors_)[other]->name));
  }
}

void WorldJudge::check_kept(const Actor& actor) {
  const std::shared_ptr<runtime::RankSeat> seat = actor.seat.lock();
  std::size_t kept = 0;
  actor.turner.under_lane([&] { kept = seat->mailbox->kept_without_world(); });
  if (kept > 0) fail(fmt::format("{} keeps messages of worlds that it has left: {}", actor.name, kept));
}

void WorldJudge::observe(Actor& actor) {
  look_at_ways(actor);
  const Instant now = universe_.world.now();
  if (failed() || !actor.is_alive || actor.is_blocking || !actor.host->running() || now < troubled_until_) return;
  for (const Deed* const deed : actor.pending) {
    if (now > deed->due + kSlack + actor.excused) {
      std::string all;
      for (const auto& other : *actors_) all += "\n  " + describe(*other);
      return fail(fmt::format("{} has not ended {:.1f} ms after its deadline. Who waits for whom:{}", describe(*deed),
                              std::chrono::duration<double, std::milli>(now - deed->due).count(), all));
    }
    const Realm& realm = *deed->realm;
    if (!realm.doomed || has_left_alive(realm)) continue;
    const bool is_any = deed->kind == DeedKind::kReceive && !deed->source && realm.bereft;
    if (deed->kind != DeedKind::kCollective && !is_any) continue;
    const std::optional<Instant> knows = realm.parts[deed->rank].knows;
    const bool is_landing = is_any && may_be_landing(*deed);
    const Instant told = knows && deed->begun < *knows && !is_landing ? *knows + kAtOnce : Instant::max();
    const Instant doomed = is_any ? *realm.bereft : *realm.doomed;  // A collective that ended badly ends no receive.
    const Instant since = std::max(std::max(doomed, deed->begun), troubled_until_);
    if (now > std::min(since + kNoticeMax + actor.excused, told + actor.excused)) {
      return fail(fmt::format("{} goes on, though a rank failed or a collective ended badly {:.1f} ms before",
                              describe(*deed), std::chrono::duration<double, std::milli>(now - since).count()));
    }
  }
}

// ---- The end.

void WorldJudge::check_lost_letters() {
  std::map<const Part*, std::size_t> missing;
  for (const auto& actor : *actors_) {
    for (const auto& deed : actor->deeds) {
      if (deed->kind != DeedKind::kSend || !deed->is_good) continue;  // What ended badly may have been taken back.
      const bool is_parted = gone_.contains(actor->number) || gone_.contains(deed->realm->actors[deed->letter.to]);
      if (is_parted) continue;
      const Part& part = deed->realm->parts[deed->letter.to];
      Letter later = deed->letter;
      bool is_passed = false;
      for (const auto& other : actor->deeds) {
        const Letter& its = other->letter;
        const bool is_later = other->kind == DeedKind::kSend && other->realm == deed->realm && its.to == later.to &&
                              its.tag == later.tag && its.priority == later.priority && its.number > later.number;
        is_passed = is_passed || (is_later && part.book.has(its));
      }
      if (is_passed && !part.book.has(later) && ++missing[&part] > part.book.lost()) {
        return fail(describe(*deed) + " was passed by a later one and never came");
      }
    }
  }
}

/// Each rank sends something or waits for something, unless there are no elements.
void WorldJudge::check_misfit(const Deed& deed) {
  const Realm& realm = *deed.realm;
  const bool is_begun =
      std::ranges::all_of(realm.parts, [&](const Part& part) { return part.begun > deed.number - realm.first_number; });
  const Act& act = deed.act;
  const bool is_whole = act.what == schedule::Operation::kBarrier || act.count >= act.size ||
                        (!act.counts.empty() && std::ranges::find(act.counts, 0U) == act.counts.end());
  if (!is_whole || !is_begun || has_gone(realm) || realm.doomed) return;
  fail(describe(deed) + " and nobody noticed");
}

void WorldJudge::check_end() {
  for (const Deed* const deed : misfits_) {
    if (!accuses()) check_misfit(*deed);
  }
  for (const auto& actor : *actors_) {
    for (const auto& deed : actor->deeds) {
      if (!deed->is_over && actor->is_alive) fail(describe(*deed) + " has not ended");
    }
    if (!actor->seat.expired()) fail(actor->name + " has ended, and something still holds its worlds");
  }
  if (!accuses()) check_lost_letters();
  if (const Loan* const touched = vault_.first_touched()) {
    for (const auto& actor : *actors_) {
      for (const auto& deed : actor->deeds) {
        if (deed->uid == touched->owner) fail(describe(*deed) + " has ended, and its memory was changed afterwards");
      }
    }
  }
}

}  // namespace hawser::worldsim
