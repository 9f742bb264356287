#include "worldsim/mishaps.h"

#include <algorithm>

#include "backend/sim/factory.h"

namespace hawser::worldsim {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

/// After a fault that parts ranks: until sessions are up again or given up.
constexpr Duration kMendMax = milliseconds(1000);
constexpr std::int64_t kStrikeMax = 600'000;      ///< Nanoseconds from sight to strike.
constexpr std::int64_t kStrikeSoonMax = 30'000;   ///< The same, where what is struck is soon over.
constexpr std::int64_t kLateMax = 1'000'000'000;  ///< Nanoseconds.

}  // namespace

Mishaps::Mishaps(Stage& stage) : stage_(stage), rng_(stage.rng().fork()) {
  const Settings& settings = stage.settings();
  const Instant now = stage.universe().world.now();
  std::vector<Aim> cells;
  for (std::size_t fault = 0; fault < kFaults; ++fault) {
    for (std::size_t moment = 0; moment < kMoments; ++moment) {
      const Aim aim{static_cast<Fault>(fault), static_cast<Moment>(moment), now};
      const bool is_there = aim.moment != Moment::kRelay || is_sparse(settings);
      if (is_there && possible(settings.mode, aim.fault)) cells.push_back(aim);
    }
  }
  // The first aim walks through all cells as the seeds do, so that none is left to luck.
  for (std::size_t i = 0; i < settings.faults; ++i) {
    Aim aim = cells[i == 0 ? settings.seed % cells.size() : rng_.below(cells.size())];
    if (settings.parts) aim.fault = Fault::kCut;
    if (settings.dissents && i > 0) aim.moment = rng_.chance(0.5) ? Moment::kShrink : Moment::kDecide;
    if (settings.dissents && i > 0 && rng_.chance(0.5)) aim.fault = Fault::kCrash;
    // Such moments are short where memory is shared.
    const bool may_be_relay = is_sparse(settings) && (i > 0 || settings.mode == sim::Mode::kMapped);
    if (may_be_relay && rng_.chance(0.4)) aim.moment = Moment::kRelay;
    if (i > 0) aim.not_before = now + Duration(rng_.range(0, 20'000'000));
    aims_.push_back(aim);
  }
}

/// Whether the actor has heard what this deed of another one waits for.
bool Mishaps::knows(const Actor& actor, const Deed& deed) {
  const Realm& realm = *deed.realm;
  const auto at = std::ranges::find(realm.actors, actor.number);
  if (at == realm.actors.end() || !actor.is_alive) return false;
  const auto rank = static_cast<std::size_t>(at - realm.actors.begin());
  if (deed.kind == DeedKind::kAgree) {
    return realm.parts[rank].decisions.size() > realm.parts[deed.rank].decisions.size();
  }
  const bool has_taken = rank < realm.shrunk.size() && realm.shrunk[rank];
  return deed.kind == DeedKind::kShrink && (has_taken || (actor.shrunk != nullptr && actor.shrunk->realm == &realm));
}

/// With a second one, while a third has not.
bool Mishaps::has_decided(const Actor& actor) const {
  for (const auto& other : stage_.actors()) {
    for (const Deed* const deed : other->pending) {
      // Every run has an agreement. Where ranks dissent there are shrinks, too: these are waited for.
      if (stage_.settings().dissents && deed->kind == DeedKind::kAgree) continue;
      const auto count = std::ranges::count_if(stage_.actors(), [&](const auto& one) { return knows(*one, *deed); });
      if (count >= 2 && knows(actor, *deed)) return true;
    }
  }
  return false;
}

/// For a letter or a call that is under way.
bool Mishaps::relays(const Actor& actor) const {
  const auto goes_by = [&](const Deed* deed) {
    if (deed->kind != DeedKind::kSend && deed->kind != DeedKind::kCall) return false;
    const std::vector<std::size_t>& actors = deed->realm->actors;
    const std::uint32_t to = deed->kind == DeedKind::kSend ? deed->letter.to : deed->remote->to;
    return stage_.judge().ways().leads_by(static_cast<std::uint32_t>(actors[deed->rank]),
                                          static_cast<std::uint32_t>(actors[to]),
                                          static_cast<std::uint32_t>(actor.number));
  };
  return std::ranges::any_of(stage_.actors(),
                             [&](const auto& other) { return std::ranges::any_of(other->pending, goes_by); });
}

bool Mishaps::is_at(const Actor& actor, Moment moment) const {
  if (!actor.is_alive || Stage::is_blocking(actor) || !actor.host->running()) return false;
  const auto has = [&](DeedKind kind) {
    return std::ranges::any_of(actor.pending, [kind](const Deed* deed) { return deed->kind == kind; });
  };
  switch (moment) {
    case Moment::kCollective:
      return actor.phase == Phase::kActing && has(DeedKind::kCollective);
    case Moment::kLetter:
      return has(DeedKind::kSend);
    case Moment::kCall:
      return has(DeedKind::kCall);
    case Moment::kAgree:
      return has(DeedKind::kAgree);
    case Moment::kShrink:
      return has(DeedKind::kShrink);
    case Moment::kDecide:
      return has_decided(actor);
    case Moment::kLeave:
      return actor.phase == Phase::kLeaving;
    case Moment::kRelay:
      return relays(actor);
  }
  return false;
}

Actor* Mishaps::find(Moment moment) {
  std::vector<Actor*> there;
  for (const auto& actor : stage_.actors()) {
    if (is_at(*actor, moment)) there.push_back(actor.get());
  }
  if (there.empty()) return nullptr;
  return moment == Moment::kDecide ? there.front() : there[rng_.below(there.size())];  // The first one leads.
}

/// In a sparse world it gives a neighbour, because ranks have connections with their neighbours only.
Actor* Mishaps::other_than(const Actor& actor) {
  std::vector<Actor*> others;
  for (const auto& each : stage_.actors()) {
    const bool is_near = stage_.judge().ways().are_neighbours(static_cast<std::uint32_t>(actor.number),
                                                              static_cast<std::uint32_t>(each->number));
    if (each->host != actor.host && each->is_alive && is_near) others.push_back(each.get());
  }
  return others.empty() ? nullptr : others[rng_.below(others.size())];
}

void Mishaps::look() {
  const Instant now = stage_.universe().world.now();
  for (std::size_t i = 0; i < aims_.size(); ++i) {
    if (now < aims_[i].not_before) continue;
    const Aim aim = aims_[i];
    Actor* const actor = find(aim.moment);
    if (actor == nullptr) continue;
    aims_.erase(aims_.begin() + static_cast<std::ptrdiff_t>(i));
    const bool is_mapped = stage_.settings().mode == sim::Mode::kMapped;
    const std::int64_t soon = is_mapped ? 0 : kStrikeSoonMax;  // Ranks that share memory hear at almost the same time.
    const std::int64_t most = aim.moment == Moment::kDecide ? soon : kStrikeMax;
    stage_.universe().world.after(Duration(rng_.range(0, most)), [this, aim, actor] { strike(aim, *actor); });
    return;
  }
}

void Mishaps::strike(const Aim& aim, Actor& actor) {
  if (!actor.is_alive || Stage::is_blocking(actor) || stage_.judge().failed()) return;
  if (is_at(actor, aim.moment)) coverage_.count(aim.fault, aim.moment);
  ++struck_;
  stage_.judge().delay(kMendMax);
  stage_.universe().world.note(to_string(aim.fault), actor.name, static_cast<std::uint64_t>(aim.moment));
  const bool dies = (aim.fault == Fault::kCrash || aim.fault == Fault::kPowerLoss) && may_die(actor);
  if (dies && aim.moment == Moment::kDecide) lose_last_words(actor);
  switch (aim.fault) {
    case Fault::kCrash:
    case Fault::kPowerLoss:
    case Fault::kStop:
    case Fault::kSlow:
      return strike_process(aim.fault, actor);
    case Fault::kDelay:
    case Fault::kLoss:
    case Fault::kFull:
      return strike_all(aim.fault);
    default:
      if (Actor* const other = other_than(actor)) strike_link(aim.fault, actor, *other);
  }
}

/// What is on its way to those that have not decided never comes: it was lost, and nobody is there to send it again.
void Mishaps::lose_last_words(const Actor& actor) {
  for (const auto& other : stage_.actors()) {
    const bool waits = std::ranges::any_of(other->pending, [&](const Deed* deed) { return knows(actor, *deed); });
    if (waits) stage_.universe().net.fabric().cut(actor.host->number(), other->host->number());
  }
}

/// Mostly short; now and then long enough that peers give up.
Duration Mishaps::span() {
  return microseconds(rng_.chance(0.7) ? rng_.range(200, 10'000) : rng_.range(10'000, 700'000));
}

/// Ranks do not hear each other for so long. Silences that end well before peer_timeout fail nobody, also where one
/// follows upon the other. In mapped memory nobody is judged by silence; what a stop does there is judged as before.
void Mishaps::silence(Duration time) {
  silent_ += time;
  const bool is_long = silent_ > stage_.settings().peer_timeout / 2;
  if (is_long || stage_.settings().mode == sim::Mode::kMapped) stage_.judge().may_accuse();
  stage_.judge().trouble(time + kMendMax);
}

bool Mishaps::may_die(const Actor& actor) const {
  const auto lives_elsewhere = [&](const auto& each) { return each->is_alive && each->host != actor.host; };
  return std::ranges::any_of(stage_.actors(), lives_elsewhere) && !Stage::is_blocking(actor);
}

void Mishaps::strike_process(Fault fault, Actor& actor) {
  if (fault == Fault::kCrash || fault == Fault::kPowerLoss) {
    if (may_die(actor)) stage_.crash(actor, fault == Fault::kPowerLoss);
    return;
  }
  const Duration time = span();
  silence(time);
  for (Actor* const rank : actor.process->ranks) rank->excused += time;
  if (fault == Fault::kStop) {
    actor.host->stop();
    return stage_.universe().world.after(time, [host = actor.host] { host->resume(); });
  }
  actor.host->set_pace(microseconds(rng_.range(50, 3'000)));
  stage_.universe().world.after(time, [host = actor.host] { host->set_pace(microseconds(1)); });
}

void Mishaps::strike_link(Fault fault, Actor& from, Actor& to) {
  sim::Universe& universe = stage_.universe();
  const std::uint32_t a = from.host->number(), b = to.host->number();
  if (fault == Fault::kCut && stage_.settings().parts) {
    stage_.judge().on_parted(from, to);
    universe.net.fabric().cut(a, b);
    universe.net.fabric().cut(b, a);
    if (!is_sparse(stage_.settings()) || rng_.chance(0.5)) return;
    // Too late: both have given up their session, and a verdict is final.
    const Duration late = 2 * stage_.settings().peer_timeout + Duration(rng_.range(0, kLateMax));
    return universe.world.after(late, [&universe, a, b] {
      universe.net.fabric().heal(a, b);
      universe.net.fabric().heal(b, a);
    });
  }
  if (fault == Fault::kCut) {
    const Duration time = span();
    silence(time);
    const bool is_forth = rng_.chance(0.7);
    if (is_forth) universe.net.fabric().cut(a, b);
    if (!is_forth || rng_.chance(0.7)) universe.net.fabric().cut(b, a);
    return universe.world.after(time, [&universe, a, b] {
      universe.net.fabric().heal(a, b);
      universe.net.fabric().heal(b, a);
    });
  }
  const auto connections = universe.net.between(a, b);
  if (connections.empty()) return;
  const auto& one = connections[rng_.below(connections.size())];
  if (fault == Fault::kReset) {
    universe.net.reset(one);
  } else {
    universe.net.half_close(one, rng_.chance(0.5) ? a : b);
  }
}

void Mishaps::strike_all(Fault fault) {
  sim::Universe& universe = stage_.universe();
  const Duration time = span();
  const sim::LinkOptions good = universe.net.fabric().default_options();
  const sim::MappedOptions mapped = universe.hub.options();
  // Behind a small window heartbeats wait for their turn, and behind a segment that is sent again and again.
  const bool holds_up = fault == Fault::kFull || fault == Fault::kLoss;
  if (holds_up && stage_.settings().mode == sim::Mode::kStream) {
    stage_.judge().may_accuse();
    stage_.judge().trouble(time + kMendMax);
  }
  if (fault == Fault::kFull) {
    universe.hub.options().ring_bytes = 256;
    universe.hub.options().queue_chunks = 1;
  }
  if (fault == Fault::kDelay) universe.hub.options().wake_latency = milliseconds(1);
  const std::size_t window = fault == Fault::kFull ? 500 : universe.net.options().pipe.capacity_bytes;
  sim::LinkOptions bad = good;
  if (fault == Fault::kDelay) bad.jitter_max = milliseconds(3);
  if (fault == Fault::kLoss) bad.loss = 0.3;
  const auto set_all = [this, &universe](const sim::LinkOptions& link, std::size_t bytes) {
    const auto count = static_cast<std::uint32_t>(stage_.actors().size());
    for (std::uint32_t a = 0; a < count; ++a) {
      for (std::uint32_t b = 0; b < count; ++b) {
        if (a != b) universe.net.fabric().set_link(a, b, link);
        for (const auto& one : universe.net.between(a, b)) universe.net.set_capacity(one, bytes);
      }
    }
  };
  set_all(bad, window);
  universe.world.after(time, [&universe, set_all, good, mapped] {
    set_all(good, universe.net.options().pipe.capacity_bytes);
    universe.hub.options() = mapped;
  });
}

}  // namespace hawser::worldsim
