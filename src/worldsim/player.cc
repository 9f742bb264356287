#include "worldsim/player.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "base/bytes.h"
#include "wire/runtime.h"
#include "wire/session.h"

namespace hawser::worldsim {
namespace {

using std::chrono::milliseconds;
using What = schedule::Operation;

constexpr std::uint64_t kTags = 3;
constexpr std::uint64_t kLargeLetter = 180'000;
constexpr std::uint32_t kEpochsMax = 3;   ///< From there on ranks vote for what is true.
constexpr std::uint64_t kDeedsMax = 150;  ///< Of one rank: then it only finishes.

std::uint64_t letter_size(base::Rng& rng, bool often_large) {
  if (rng.chance(often_large ? 0.3 : 0.1))
    return wire::kRuntimeBodyMax + rng.below(kLargeLetter - wire::kRuntimeBodyMax);
  return kLetterMin + rng.below(rng.chance(0.2) ? 20'000 : 200);
}

}  // namespace

Player::Player(Stage& stage)
    : stage_(stage), judge_(stage.judge()), settings_(stage.settings()), rng_(stage.rng().fork()) {}

void Player::begin() {
  for (const auto& actor : stage_.actors()) {
    register_handlers(*actor, actor->main);
    actor->phase = Phase::kActing;
    enter(*actor, actor->main);
    plan(*actor);
  }
}

bool Player::are_all_out() const {
  return std::ranges::all_of(stage_.actors(), [](const auto& actor) { return !actor->is_alive; });
}

/// A rank acts on its own, at random times.
void Player::plan(Actor& actor) {
  constexpr std::uint32_t kEagerActs = 16;
  constexpr std::uint32_t kSlowest = 16;
  // One that waits for long does less and less meanwhile.
  const std::uint32_t slower = std::min(kSlowest, 1 + actor.idle_acts++ / kEagerActs);
  const Duration pause(rng_.range(1, settings_.pause_max.count() * slower));
  stage_.universe().world.after(pause, [this, &actor] {
    if (!actor.is_alive || judge_.failed()) return;
    if (actor.host->running() && !actor.is_blocking) act(actor);
    if (actor.is_alive) plan(actor);
  });
}

void Player::act(Actor& actor) {
  observe(actor);
  switch (actor.phase) {
    case Phase::kActing:
      act_in_world(actor);
      break;
    case Phase::kAgreeing:
    case Phase::kShrinking:
      agree_on(actor);
      break;
    case Phase::kRecovering:
      recover(actor);
      break;
    case Phase::kLeaving:
      leave(actor);
      break;
    case Phase::kClosing:
      close(actor);
      break;
    case Phase::kEntering:
    case Phase::kOut:
      break;
  }
  if (actor.is_alive) actor.host->wake();
}

void Player::observe(Actor& actor) {
  for (std::size_t i = 0; i < actor.pending.size() && actor.is_alive && !judge_.failed();) {
    Deed& deed = *actor.pending[i];
    if (!deed.request.done()) {
      ++i;
      continue;
    }
    actor.pending.erase(actor.pending.begin() + static_cast<std::ptrdiff_t>(i));
    on_end(actor, deed, deed.request.status());
  }
  judge_.observe(actor);
}

// ---- In a world.

/// Nothing that all ranks do together is under way there.
bool Player::is_idle(const Actor& actor, const Realm& realm) const {
  return std::ranges::none_of(actor.pending, [&](const Deed* deed) {
    const bool is_common =
        deed->kind == DeedKind::kCollective || deed->kind == DeedKind::kAgree || deed->kind == DeedKind::kShrink;
    return deed->realm == &realm && is_common;
  });
}

bool Player::is_through(const Actor& actor, const Membership& membership) const {
  const Realm& realm = *membership.realm;
  const std::uint64_t all = realm.acts + 1 - realm.first_number;
  const bool is_done = membership.is_bad || realm.parts[membership.rank].begun >= all;
  return is_done && is_idle(actor, realm);
}

void Player::act_in_world(Actor& actor) {
  const bool are_groups_through =
      std::ranges::all_of(actor.groups, [&](const Membership& group) { return is_through(actor, group); });
  if (is_through(actor, actor.main) && are_groups_through) {
    if (!actor.jobs.empty()) return;  // Closing waits for handlers.
    leave_groups(actor);
    return agree(actor);
  }
  if (actor.deeds.size() > kDeedsMax || rng_.chance(0.5)) {
    for (Membership& group : actor.groups) call_next(actor, group);
    call_next(actor, actor.main);
    return;
  }
  const std::uint64_t what = rng_.below(20);
  if (what < 6) {
    send(actor);
  } else if (what < 13) {
    receive(actor);
  } else if (what < 17) {
    call(actor);
  } else if (what < 19 && settings_.cancels) {
    cancel_one(actor);
  }
}

bool Player::call_next(Actor& actor, Membership& membership) {
  const Realm& realm = *membership.realm;
  const auto running = std::ranges::count_if(
      actor.pending, [&](const Deed* deed) { return deed->realm == &realm && deed->kind == DeedKind::kCollective; });
  const Part& part = realm.parts[membership.rank];
  const bool has_more = realm.first_number + part.begun <= realm.acts;
  const bool enters = realm.first_number == 0 && part.begun == 1 && running > 0;  // Who has not entered calls nothing.
  if (enters || membership.is_bad || !has_more || running >= static_cast<std::ptrdiff_t>(settings_.at_once))
    return false;
  begin_collective(actor, membership);
  return true;
}

Duration Player::timeout() {
  if (settings_.impatient && rng_.chance(0.05)) return Duration(rng_.range(10'000, 3'000'000));
  return settings_.timeout;
}

Duration Player::patience() {
  if (settings_.impatient && rng_.chance(0.5)) return Duration(rng_.range(10'000, 5'000'000));
  return settings_.timeout;
}

Deed& Player::new_deed(Actor& actor, DeedKind kind, const Membership& membership, Duration timeout) {
  Deed& deed = *actor.deeds.emplace_back(std::make_unique<Deed>());
  deed.uid = judge_.new_uid();
  deed.kind = kind;
  deed.realm = membership.realm;
  deed.rank = membership.rank;
  deed.begun = stage_.universe().world.now();
  deed.due = deed.begun + timeout;
  return deed;
}

void Player::begun(Actor& actor, Deed& deed) {
  actor.pending.push_back(&deed);
  observe(actor);
}

void Player::enter(Actor& actor, Membership& membership) {
  if (membership.realm->first_number == 0) begin_collective(actor, membership);
}

void Player::begin_collective(Actor& actor, Membership& membership) {
  Realm& realm = *membership.realm;
  const Duration limit = timeout();
  Deed& deed = new_deed(actor, DeedKind::kCollective, membership, limit);
  deed.number = realm.first_number + realm.parts[membership.rank].begun;
  deed.act = act_of(realm.seed, deed.number, realm.acts, realm.size());
  const bool may_err = settings_.errs && !has_erred_ && deed.number > 0 && deed.number <= realm.acts &&
                       realm.size() > 1 && realm.parent == nullptr;
  if (may_err && rng_.chance(is_rooted(deed.act.what) ? 0.6 : 0.1)) {
    deed.is_misfit = has_erred_ = true;
    deed.act = misfit_of(deed.act);
    judge_.disturb(realm, Code::kInvalid);
    judge_.on_misfit(deed);
  }
  if (limit != settings_.timeout) judge_.disturb(realm, Code::kTimedOut);
  judge_.on_begun(deed);
  const bool may_have_boards = settings_.mode == sim::Mode::kMapped;
  const bool may_end_here = may_have_boards && (deed.number + deed.rank) % 3 == 0;
  const CollectiveOptions options = {
      .timeout = limit, .reproducible = deed.act.reproducible, .is_waited_for = may_end_here};
  deed.request = deed.number == 0 ? actor.enters(limit) : start(actor, membership, deed, options);
  begun(actor, deed);
}

Request Player::start(Actor& actor, Membership& membership, Deed& deed, const CollectiveOptions& options) {
  const Act& act = deed.act;
  World& world = membership.world;
  if (act.what == What::kBarrier) return world.ibarrier(options);
  const ReduceOp op = act.op.value_or(ReduceOp::kSum);
  Vault& vault = judge_.vault();
  Lender* const lender = actor.lender.get();
  const std::size_t out_size = output_count(act, deed.rank) * size_of(act.type);
  if (act.what == What::kBroadcast) {
    const bool is_root = deed.rank == act.root;
    deed.output =
        is_root ? &vault.lend(deed.uid, input_of(act, deed.rank), lender) : &vault.lend(deed.uid, out_size, lender);
    return world.ibroadcast(deed.output->bytes.data(), act.count, act.type, act.root, options);
  }
  deed.input = &vault.lend(deed.uid, input_of(act, deed.rank), lender);
  deed.output = &vault.lend(deed.uid, out_size, lender);
  const void* const in = deed.input->bytes.data();
  void* const out = deed.output->bytes.data();
  switch (act.what) {
    case What::kReduce:
      return world.ireduce(in, out, act.count, act.type, op, act.root, options);
    case What::kAllReduce:
      return world.iall_reduce(in, out, act.count, act.type, op, options);
    case What::kAllGather:
      return world.iall_gather(in, out, act.counts, act.type, options);
    case What::kReduceScatter:
      return world.ireduce_scatter(in, out, act.counts, act.type, op, options);
    case What::kGather:
      return world.igather(in, out, act.counts, act.type, act.root, options);
    case What::kScatter:
      return world.iscatter(in, out, act.counts, act.type, act.root, options);
    case What::kAllToAll: {
      if (is_even_exchange(act)) return world.iall_to_all(in, out, act.counts[0], act.type, options);
      std::vector<std::uint64_t> counts;
      for (std::uint32_t other = 0; other < act.size; ++other) {
        counts.push_back(exchange_count(act, deed.rank, other));
      }
      return world.iall_to_all(in, out, counts, counts, act.type, options);
    }
    default:
      return world.iscan(in, out, act.count, act.type, op, act.what == What::kExclusiveScan, options);
  }
}

// ---- Groups.

/// Of all ranks, or of those with even and those with odd numbers: all ranks decide the same.
void Player::make_group(Actor& actor) {
  actor.has_grouped = true;
  const Realm& realm = *actor.main.realm;
  const bool is_duplicate = realm.seed % 2 == 0;
  std::vector<std::uint32_t> ranks;
  std::vector<std::size_t> members;
  for (std::uint32_t rank = 0; rank < realm.size(); ++rank) {
    if (!is_duplicate && rank % 2 != actor.main.rank % 2) continue;
    ranks.push_back(rank);
    members.push_back(realm.actors[rank]);
  }
  Result<World> world = is_duplicate ? actor.main.world.duplicate() : actor.main.world.group(ranks);
  if (!world) return judge_.fail(actor.name + " makes no group: " + world.error().to_string());
  Realm& group = judge_.realm_of(*actor.main.realm, true, members);
  const auto own = static_cast<std::uint32_t>(std::ranges::find(members, actor.number) - members.begin());
  actor.groups.push_back({.realm = &group, .rank = own, .world = std::move(*world)});
  Membership& made = actor.groups.back();
  if (made.world.rank() != own || made.world.size() != members.size()) {
    judge_.fail(actor.name + " has another number in its group than it should");
  }
  register_handlers(actor, made);
}

void Player::leave_groups(Actor& actor) {
  for (Membership& group : actor.groups) drop(actor, group);
  actor.groups.clear();
}

/// What is under way there ends, as the world is closed or as its requests are dropped.
void Player::drop(Actor& actor, Membership& membership) {
  Realm& realm = *membership.realm;
  realm.parts[membership.rank].is_left = true;
  judge_.disturb(realm, Code::kCancelled);
  const bool closes = rng_.chance(0.5);
  for (Deed* const deed : std::vector<Deed*>(actor.pending)) {
    if (deed->realm != &realm) continue;
    deed->is_cancelled = true;
    if (!closes) deed->request.cancel();
  }
  if (closes) static_cast<void>(membership.world.close(Duration::zero()));
  observe(actor);
  membership.world = World();
}

Membership& Player::pick(Actor& actor) {
  const std::size_t which = rng_.below(actor.groups.size() + 1);
  return which == 0 ? actor.main : actor.groups[which - 1];
}

// ---- Letters and calls.

void Player::send(Actor& actor) {
  Membership& membership = pick(actor);
  Part& part = membership.realm->parts[membership.rank];
  Deed& deed = new_deed(actor, DeedKind::kSend, membership, timeout());
  const auto to = static_cast<std::uint32_t>(rng_.below(membership.realm->size()));
  const std::uint64_t tag = rng_.below(kTags);
  const auto priority = static_cast<Priority>(rng_.below(wire::kClasses));
  deed.letter = {.realm = membership.realm->uid,
                 .from = membership.rank,
                 .to = to,
                 .tag = tag,
                 .number = ++part.sent[{to, tag, priority}],
                 .size = letter_size(rng_, settings_.cancels),
                 .priority = priority};
  deed.input = &judge_.vault().lend(deed.uid, write_letter(deed.letter));
  judge_.on_begun(deed);
  deed.request =
      membership.world.isend(deed.input->bytes, to, tag, {.timeout = deed.due - deed.begun, .priority = priority});
  begun(actor, deed);
}

void Player::receive(Actor& actor) {
  Membership& membership = pick(actor);
  const Duration limit = rng_.chance(0.3) ? Duration(rng_.range(1'000'000, 250'000'000)) : timeout();
  Deed& deed = new_deed(actor, DeedKind::kReceive, membership, limit);
  if (rng_.chance(0.6)) deed.source = static_cast<std::uint32_t>(rng_.below(membership.realm->size()));
  if (rng_.chance(0.6)) deed.tag = rng_.below(kTags);
  const bool has_buffer = rng_.chance(0.7);
  if (has_buffer) {
    deed.capacity = rng_.chance(0.05) ? kLetterMin + 20 : kLargeLetter;
    deed.output = &judge_.vault().lend(deed.uid, deed.capacity);
  }
  judge_.on_begun(deed);
  const std::uint32_t source = deed.source.value_or(kAnySource);
  const MessageOptions options = {.timeout = deed.due - deed.begun};
  deed.request = has_buffer ? membership.world.ireceive(deed.output->bytes, source, deed.tag, options)
                            : membership.world.ireceive_any_size(source, deed.tag, options);
  begun(actor, deed);
}

void Player::call(Actor& actor) {
  Membership& membership = pick(actor);
  const auto to = static_cast<std::uint32_t>(rng_.below(membership.realm->size()));
  const Duration limit = rng_.chance(0.2) ? Duration(milliseconds(100)) : settings_.timeout;
  Deed& deed = new_deed(actor, DeedKind::kCall, membership, limit);
  deed.remote = &judge_.new_remote(*membership.realm, membership.rank, to);
  deed.remote->due = deed.due;
  constexpr std::array kHandlers = {"echo", "echo", "work", "work", "work", "refuse", "nobody"};
  deed.handler = kHandlers[rng_.below(kHandlers.size())];
  const Letter letter = {.realm = membership.realm->uid,
                         .from = membership.rank,
                         .to = to,
                         .tag = 0,
                         .number = deed.remote->uid,
                         .size = letter_size(rng_, settings_.cancels)};
  deed.input = &judge_.vault().lend(deed.uid, write_letter(letter));
  judge_.on_begun(deed);
  deed.request = membership.world.icall(to, deed.handler, deed.input->bytes, {.timeout = limit});
  begun(actor, deed);
}

void Player::cancel_one(Actor& actor) {
  if (actor.pending.empty()) return;
  Deed* picked = actor.pending[rng_.below(actor.pending.size())];
  const auto send = std::ranges::find(actor.pending, DeedKind::kSend, &Deed::kind);
  if (send != actor.pending.end() && rng_.chance(0.6)) picked = *send;
  Deed& deed = *picked;
  if (deed.kind == DeedKind::kCollective && deed.number == 0) return;  // `open` cannot be cancelled.
  if (deed.kind == DeedKind::kAgree || deed.kind == DeedKind::kShrink) return;
  if (deed.kind == DeedKind::kCollective && rng_.chance(0.8)) return;
  deed.is_cancelled = true;
  const bool is_told = deed.kind == DeedKind::kCollective || deed.kind == DeedKind::kSend;
  if (is_told) judge_.disturb(*deed.realm, Code::kCancelled);
  if (deed.kind == DeedKind::kCall) deed.remote->taken_back = stage_.universe().world.now();
  deed.request.cancel();
  observe(actor);
}

void Player::register_handlers(Actor& actor, Membership& membership) {
  Realm* const realm = membership.realm;
  const std::uint32_t rank = membership.rank;
  const auto answer = [this, realm, rank](const IncomingCall& call) -> Result<CallAnswer> {
    const std::optional<Letter> letter = read_letter(call.arguments);
    if (!letter || letter->from != call.source) {
      judge_.fail(fmt::format("rank {} of realm {} got torn arguments", rank, realm->uid));
      return Status(Code::kFailed, "torn");
    }
    judge_.on_run(*realm, rank, letter->number);
    return write_letter(
        {.realm = realm->uid, .from = rank, .to = letter->from, .number = letter->number, .size = letter->size / 2});
  };
  const auto refuse = [answer](const IncomingCall& call) -> Result<CallAnswer> {
    static_cast<void>(answer(call));
    return Status(Code::kDenied, "this handler refuses");
  };
  for (const Status& status : {membership.world.register_handler("echo", answer, {.runs_inline = true}),
                               membership.world.register_handler("work", answer),
                               membership.world.register_handler("refuse", refuse, {.runs_inline = true})}) {
    if (!status.ok()) judge_.fail(actor.name + " registers no handler: " + status.to_string());
  }
}

// ---- What all agree upon.

void Player::agree(Actor& actor) {
  actor.phase = Phase::kAgreeing;
  const Membership& main = actor.main;
  Part& part = main.realm->parts[main.rank];
  const Duration limit = patience();
  Deed& deed = new_deed(actor, DeedKind::kAgree, main, limit);
  const bool dissents = settings_.dissents && main.realm->epoch < kEpochsMax && rng_.chance(0.3);
  if (part.votes.size() == part.decisions.size()) part.votes.emplace_back(!main.is_bad && !dissents);
  judge_.on_begun(deed);
  deed.request = actor.main.world.iagree(*part.votes.back(), limit);
  begun(actor, deed);
}

void Player::shrink(Actor& actor) {
  actor.phase = Phase::kShrinking;
  const Duration limit = patience();
  Deed& deed = new_deed(actor, DeedKind::kShrink, actor.main, limit);
  judge_.disturb(*actor.main.realm, Code::kCancelled);
  judge_.on_begun(deed);
  deed.request = actor.main.world.ishrink({}, limit);
  begun(actor, deed);
}

/// An agreement that ran out of time is taken up again.
void Player::agree_on(Actor& actor) {
  if (!is_idle(actor, *actor.main.realm)) return;
  if (actor.phase == Phase::kAgreeing) return agree(actor);
  if (actor.shrunk == nullptr) return shrink(actor);
  if (!actor.jobs.empty() || stage_.universe().world.now() < actor.takes_at) return;
  Deed& deed = *std::exchange(actor.shrunk, nullptr);
  go_on(actor, deed, actor.main.world.shrunk(deed.request));
}

void Player::on_agreement(Actor& actor, Deed& deed, const Status& status) {
  if (status.code() == Code::kTimedOut) return;  // Once more, when this rank acts again.
  if (!status.ok()) {
    actor.phase = settings_.automatic ? Phase::kRecovering : Phase::kClosing;
    return;
  }
  if (deed.kind == DeedKind::kShrink) {
    constexpr std::int64_t kDawdleMax = 300'000'000;
    actor.shrunk = &deed;
    // The world may be taken much later.
    actor.takes_at = stage_.universe().world.now() + Duration(rng_.chance(0.15) ? rng_.range(0, kDawdleMax) : 0);
    return;
  }
  const Result<bool> flag = actor.main.world.agreed(deed.request);
  if (!flag && flag.error().code() == Code::kDisconnected && may_be_out(actor)) {
    actor.phase = Phase::kClosing;
    return;
  }
  if (!flag) return judge_.fail(describe(deed) + " ended well, and says: " + flag.error().to_string());
  judge_.on_agreed(deed, *flag);
  judge_.check_failed(actor, actor.main);
  actor.phase = *flag ? Phase::kLeaving : Phase::kShrinking;
  if (*flag) begin_collective(actor, actor.main);
}

/// Waits for the world that the runtime makes by itself.
void Player::recover(Actor& actor) {
  constexpr Duration kRecoveryMax = std::chrono::seconds(5);
  if (!is_idle(actor, *actor.main.realm) || !actor.jobs.empty()) return;
  if (actor.recovers == nullptr) {
    actor.recovers = &new_deed(actor, DeedKind::kShrink, actor.main, kRecoveryMax);
    judge_.disturb(*actor.main.realm, Code::kCancelled);
    judge_.on_begun(*actor.recovers);
  }
  Deed& deed = *actor.recovers;
  Result<Recovered> event = actor.main.world.recovered();
  const bool is_on_its_way = !event && event.error().code() == Code::kTimedOut;
  if (is_on_its_way && judge_.may_recover(actor, deed)) return;
  actor.recovers = nullptr;
  deed.is_over = true;
  if (is_on_its_way) {  // Nobody has failed.
    actor.phase = Phase::kClosing;
    return;
  }
  if (event && actor.main.realm->actors[event->old_rank] != actor.number) {
    return judge_.fail(describe(deed) + " says that this rank was another one");
  }
  go_on(actor, deed, event ? Result<World>(std::move(event->world)) : Result<World>(event.error()));
}

/// The old world is dropped; the new one takes its place.
void Player::go_on(Actor& actor, Deed& deed, Result<World> made) {
  const bool is_excluded = !made && made.error().code() == Code::kDisconnected && may_be_out(actor);
  const bool is_refused = !made && made.error().code() == Code::kDenied && judge_.may_refuse(*deed.realm);
  if (is_excluded || is_refused) {
    actor.phase = Phase::kClosing;
    return;
  }
  if (!made) return judge_.fail(describe(deed) + " ended well, and says: " + made.error().to_string());
  Realm* const realm = judge_.on_shrunk(deed, *made);
  if (judge_.failed()) return;
  const std::uint32_t rank = made->rank();
  if (rank >= realm->size() || realm->actors[rank] != actor.number || made->epoch() != realm->epoch) {
    return judge_.fail(describe(deed) + " gave this rank another number or epoch than it should have");
  }
  deed.request = Request();
  drop(actor, actor.main);
  actor.main = {.realm = realm, .rank = rank, .world = std::move(*made)};
  register_handlers(actor, actor.main);
  actor.has_grouped = false;
  actor.phase = Phase::kActing;
}

// ---- The end.

void Player::leave(Actor& actor) {
  if (!is_idle(actor, *actor.main.realm) || !actor.jobs.empty() || stage_.is_blocked()) return;
  if (actor.main.is_bad) {
    actor.phase = Phase::kClosing;
    return;
  }
  if (!std::exchange(actor.has_said_left, true)) judge_.on_left(actor);
  if (stage_.is_needed(actor)) return;
  // There may be some of a group that was not made here, and of what the other rank of the agent has not shrunk to yet.
  if (!settings_.groups && !Stage::has_living_mates(actor)) judge_.check_kept(actor);
  judge_.on_out(actor);
  for (Deed* const deed : actor.pending) deed->is_cancelled = true;
  constexpr Duration kLeaveMax = std::chrono::seconds(2);
  stage_.end_by(
      actor, [&] { return actor.main.world.leave(kLeaveMax); }, [&] { observe(actor); });
}

void Player::close(Actor& actor) {
  if (stage_.is_blocked() || !actor.jobs.empty()) return;
  leave_groups(actor);
  for (Deed* const deed : actor.pending) deed->is_cancelled = true;
  actor.main.realm->parts[actor.main.rank].is_left = true;
  judge_.doom(*actor.main.realm);
  judge_.on_gone(actor);
  constexpr Duration kCloseMax = milliseconds(500);
  stage_.end_by(
      actor, [&] { return actor.main.world.close(kCloseMax); }, [&] { observe(actor); });
}

void Player::on_collective(Actor& actor, const Deed& deed, const Status& status) {
  const bool enters = deed.number == 0 && deed.realm == actor.main.realm;
  if (enters && !status.ok()) {  // `open` would have failed.
    actor.phase = Phase::kClosing;
    return;
  }
  const auto group = std::ranges::find_if(actor.groups, [&](const auto& one) { return one.realm == deed.realm; });
  if (deed.realm != actor.main.realm && group == actor.groups.end()) return;  // A world that it has left.
  Membership& membership = deed.realm == actor.main.realm ? actor.main : *group;
  if (!status.ok()) membership.is_bad = true;
  const bool is_main = &membership == &actor.main;
  if (!status.ok() && is_main) {  // Others may wait in a group that not all ranks have made.
    for (Membership& each : actor.groups) {
      judge_.disturb(*each.realm, Code::kCancelled);
      each.world.revoke(Status(Code::kCancelled, "its world broke"));
    }
  }
  if (!status.ok() && !is_main && !actor.main.is_bad) {  // This rank will call no more, for which others would wait.
    actor.main.is_bad = true;
    judge_.disturb(*actor.main.realm, Code::kCancelled);
    actor.main.world.revoke(Status(Code::kCancelled, "a group of it broke"));
  }
  const bool is_time = is_main && status.ok() && deed.number == deed.realm->acts / 2 && settings_.groups;
  if (is_time && actor.phase == Phase::kActing && !actor.has_grouped) make_group(actor);
}

void Player::on_end(Actor& actor, Deed& deed, const Status& status) {
  judge_.on_end(deed, status);
  if (judge_.failed()) return;
  actor.idle_acts = 0;
  if (deed.kind == DeedKind::kSend && !status.ok()) judge_.disturb(*deed.realm, Code::kCancelled);
  if (deed.kind == DeedKind::kCollective) on_collective(actor, deed, status);
  if (deed.kind == DeedKind::kAgree || deed.kind == DeedKind::kShrink) on_agreement(actor, deed, status);
  if (actor.shrunk != &deed) deed.request = Request();  // It would keep its world.
}

}  // namespace hawser::worldsim
