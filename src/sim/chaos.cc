#include "sim/chaos.h"

#include <algorithm>

#include "agent/inner.h"
#include "backend/sim/factory.h"
#include "base/inside.h"

namespace hawser::simulation {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

bool is_up(Life& life, Life& other) {
  const auto at = life.bonds.find(&other);
  return at != life.bonds.end() && at->second.known && at->second.peer.state() == PeerState::kUp;
}

}  // namespace

Chaos::Chaos(Theater& theater, std::size_t aims) : theater_(theater), rng_(theater.rng().fork()) {
  const sim::Mode mode = theater.settings().mode;
  const Instant start = theater.universe().world.now();
  // The first aim walks through all cells as the seeds do, so that none is left to luck.
  // Runs without devices are what they were before there were any; in the others each first aim is at one.
  const bool devices = theater.settings().devices;
  const bool breaks = theater.settings().breaks;
  std::vector<Aim> cells, of_devices, of_breaks;
  for (std::size_t fault = 0; fault < kFaults; ++fault) {
    for (std::size_t step = 0; step < kSteps; ++step) {
      const Aim aim{static_cast<Fault>(fault), static_cast<Step>(step), start};
      if (!possible(mode, aim.fault, aim.step)) continue;
      if (mode == sim::Mode::kMapped && aim.fault == Fault::kReset) {
        of_breaks.push_back(aim);
        if (!breaks) continue;
      }
      if (aim.fault != Fault::kDevice || devices) cells.push_back(aim);
      if (aim.fault == Fault::kDevice) of_devices.push_back(aim);
    }
  }
  const std::vector<Aim> of_moves = {{Fault::kReset, Step::kPrepare, start},
                                     {Fault::kReset, Step::kInFlight, start},
                                     {Fault::kReset, Step::kAck, start}};
  std::vector<Aim> of_cuts;
  for (const Aim& cell : cells) {
    const bool cuts = cell.fault == Fault::kPartition || cell.fault == Fault::kOneWay || cell.fault == Fault::kStop;
    if (cuts) of_cuts.push_back(cell);
  }
  const bool late = theater.settings().late;
  if (theater.settings().cuts) aims = 1;
  if (late) aims = std::max<std::size_t>(aims, 1);
  if (breaks) aims = std::max<std::size_t>(aims, 3);
  for (std::size_t i = 0; i < aims; ++i) {
    const bool cuts = theater.settings().cuts;
    const std::vector<Aim>& first = devices  ? of_devices
                                    : late   ? of_moves
                                    : cuts   ? of_cuts
                                    : breaks ? of_breaks
                                             : cells;
    const bool has_own = devices || late || cuts || breaks;
    const std::uint64_t seed = has_own ? theater.settings().seed / 8 : theater.settings().seed;
    Aim aim = i == 0 ? first[seed % first.size()] : cells[rng_.below(cells.size())];
    if (breaks && i > 0 && rng_.chance(0.7)) aim = of_breaks[rng_.below(of_breaks.size())];
    const std::int64_t window = theater.settings().busy_time.count();
    aim.not_before = start + Duration(aim.step <= Step::kHello && i == 0 ? 0 : rng_.range(0, window / 2));
    aims_.push_back(aim);
  }
}

Duration Chaos::span(std::int64_t short_us, std::int64_t long_us) {
  // Mostly short; now and then long enough that peers give up.
  return microseconds(rng_.chance(0.75) ? rng_.range(short_us, short_us * 20) : rng_.range(short_us * 20, long_us));
}

/// How long a fault silences a link or a process. In runs about silence it draws a tenth of peer_timeout to twice of
/// it: with users' peer_timeout of 5 s that is 0.5 to 10 s.
Duration Chaos::silence(std::int64_t short_us, std::int64_t long_us) {
  if (!theater_.settings().cuts) return span(short_us, long_us);
  const std::int64_t patience = theater_.settings().peer_timeout.count();
  return Duration(rng_.chance(0.6) ? rng_.range(patience / 10, patience / 2) : rng_.range(patience / 2, 2 * patience));
}

std::optional<Chaos::Target> Chaos::find_connecting(Step step) {
  sim::Universe& universe = theater_.universe();
  for (std::size_t a = 0; a < theater_.nodes(); ++a) {
    for (std::size_t b = 0; b < theater_.nodes(); ++b) {
      Life& from = theater_.at(a);
      Life& to = theater_.at(b);
      if (a == b || !from.alive || !to.alive) continue;
      const Target target{.from = &from, .to = &to, .closing = nullptr};
      if (theater_.settings().mode == sim::Mode::kMapped) {
        const auto phase = universe.hub.phase_of(from.host, to.host);
        if (phase &&
            *phase == (step == Step::kConnect ? sim::MappedHub::Phase::kKnocking : sim::MappedHub::Phase::kAnswered))
          return target;
        continue;
      }
      for (const auto& connection : universe.net.between(from.host->number(), to.host->number())) {
        if (connection->host(0) != from.host->number()) continue;
        const auto state = connection->state(0);
        if (step == Step::kConnect && state == backend::stream::StreamState::kConnecting) return target;
        const bool fresh = connection->in(0).arrived() == 0 || connection->in(1).arrived() == 0;
        if (step == Step::kHello && state == backend::stream::StreamState::kOpen && fresh) return target;
      }
    }
  }
  return std::nullopt;
}

std::optional<Chaos::Target> Chaos::find_move(Step step) {
  for (std::size_t node = 0; node < theater_.nodes(); ++node) {
    Life& from = theater_.at(node);
    if (!from.alive) continue;
    for (const auto& course : from.courses) {
      const Move* move = course->latest;
      Life& to = *course->to;
      if (move == nullptr || !course->write || !to.alive || course->bait) continue;
      const Target target{.from = &from, .to = &to, .closing = nullptr};
      if (move->final || move->ended_by_us || !is_up(from, to)) continue;
      const bool any = TransferJudge::any_landed(*move);
      if (step == Step::kPrepare && !any) return target;
      if (!any) continue;
      if ((step == Step::kAck) == TransferJudge::all_landed(*move)) return target;
    }
  }
  return std::nullopt;
}

std::optional<Chaos::Target> Chaos::find_note() {
  for (std::size_t node = 0; node < theater_.nodes(); ++node) {
    Life& from = theater_.at(node);
    if (!from.alive) continue;
    const auto on_its_way_to = [&](Life& to) { return to.alive && !agent::inner::has_notifications(to.agent); };
    for (const auto& course : from.courses) {
      const Move* move = course->latest;
      if (move == nullptr || !course->write || move->ended_by_us || !on_its_way_to(*course->to)) continue;
      const bool owed = (move->notify && !move->notified) || (move->signal && !move->bumped);
      if (owed && (!move->final || move->status.ok()) && TransferJudge::all_landed(*move)) {
        return Target{.from = &from, .to = course->to, .closing = nullptr};
      }
    }
    for (auto& [to, bond] : from.bonds) {
      if (bond.notes_sent.size() > bond.notes_received.size() && on_its_way_to(*to) && is_up(from, *to)) {
        return Target{.from = &from, .to = to, .closing = nullptr};
      }
    }
  }
  return std::nullopt;
}

std::optional<Chaos::Target> Chaos::find_atomic(Step step) {
  for (std::size_t node = 0; node < theater_.nodes(); ++node) {
    Life& from = theater_.at(node);
    if (!from.alive) continue;
    for (const AtomicCall* call : from.atomics) {
      if (!call->to->alive || call->ended_by_us || call->digit == 0 || call->area->closing) continue;
      const bool done = (call->area->atomic_words[call->word].seen & call->digit) != 0;
      if (done == (step == Step::kAnswer) && is_up(from, *call->to)) {
        return Target{.from = &from, .to = call->to, .closing = nullptr};
      }
    }
  }
  return std::nullopt;
}

std::optional<Chaos::Target> Chaos::find_closing() {
  for (std::size_t node = 0; node < theater_.nodes(); ++node) {
    Life& life = theater_.at(node);
    if (!life.alive) continue;
    const bool region = std::any_of(life.areas.begin(), life.areas.end(),
                                    [](const auto& area) { return area->closing && !area->closed; });
    if (!region && !life.closing) continue;
    Life& other = theater_.at((node + 1 + rng_.below(theater_.nodes() - 1)) % theater_.nodes());
    if (other.alive) return Target{.from = &other, .to = &life, .closing = &life};
  }
  return theater_.settings().mode == sim::Mode::kMapped ? close_under_move() : close_under_own_move();
}

/// Closes that take time are rare: this makes one. What comes by a stream is stopped at once where it lands, so nobody
/// waits for that; but a region's own transfers have bytes on their way that are still to be sent or acknowledged.
std::optional<Chaos::Target> Chaos::close_under_own_move() {
  const auto moving = find_move(Step::kInFlight);
  if (!moving || moving->from->closing || moving->from->scratch->closing) return std::nullopt;
  Life& closing = *moving->from;
  const Area& area = *closing.scratch;
  theater_.close_scratch(closing);
  if (area.closed) return std::nullopt;
  return Target{.from = moving->to, .to = &closing, .closing = &closing};
}

/// Of mapped memory: under the pin of who copies.
std::optional<Chaos::Target> Chaos::close_under_move() {
  for (std::size_t node = 0; node < theater_.nodes(); ++node) {
    Life& from = theater_.at(node);
    for (const auto& course : from.courses) {
      const bool moves = course->latest != nullptr && !course->latest->final && course->write && !course->bait;
      if (!from.alive || !course->to->alive || !moves) continue;
      Area* const area = TransferJudge::landing_in(*course->latest);
      if (area == nullptr || area->closing || area->bait) continue;
      theater_.close_area(*course->to, *area);
      if (area->closed) return std::nullopt;
      return Target{.from = &from, .to = course->to, .closing = course->to};
    }
  }
  return std::nullopt;
}

std::optional<Chaos::Target> Chaos::find(Step step) {
  switch (step) {
    case Step::kConnect:
    case Step::kHello:
      return find_connecting(step);
    case Step::kNotification:
      return find_note();
    case Step::kClose:
      return find_closing();
    case Step::kAsk:
    case Step::kAnswer:
      return find_atomic(step);
    default:
      return find_move(step);
  }
}

void Chaos::look() {
  const Instant now = theater_.universe().world.now();
  for (std::size_t i = 0; i < aims_.size(); ++i) {
    if (now < aims_[i].not_before) continue;
    const Aim aim = aims_[i];
    const auto target = find(aim.step);
    if (!target) continue;
    aims_.erase(aims_.begin() + static_cast<std::ptrdiff_t>(i));
    coverage_.count(theater_.settings().mode, aim.fault, aim.step);
    ++struck_;
    theater_.universe().world.note(to_string(aim.fault), to_string(aim.step), target->from->number, target->to->number);
    strike(aim.fault, *target);
    return;  // The next look sees what this one did.
  }
}

void Chaos::strike(Fault fault, const Target& target) {
  switch (fault) {
    case Fault::kCrash:
    case Fault::kPowerLoss:
    case Fault::kRestart:
    case Fault::kSlow:
    case Fault::kStop: {
      // Either side; who closes stays alive, or there is nothing left to see.
      Life& victim = target.closing != nullptr || rng_.chance(0.5) ? *target.from : *target.to;
      strike_process(fault, victim);
      break;
    }
    case Fault::kDevice:
      take_device(rng_.chance(0.5) ? *target.from : *target.to);
      break;
    default:
      strike_links(fault, *target.from, *target.to);
      break;
  }
}

void Chaos::restart_later(Life& victim, Duration pause) {
  theater_.universe().world.after(pause, [this, &victim] {
    if (&theater_.at(victim.node) != &victim) return;
    theater_.begin(victim.node);
    Life& fresh = theater_.at(victim.node);
    // Others hear of it one by one, and it of them.
    for (std::size_t node = 0; node < theater_.nodes(); ++node) {
      if (node == victim.node) continue;
      theater_.universe().world.after(Duration(rng_.range(0, 30'000'000)),
                                      [this, node, &fresh] { theater_.introduce(theater_.at(node), fresh); });
      theater_.universe().world.after(Duration(rng_.range(0, 30'000'000)),
                                      [this, node, &fresh] { theater_.introduce(fresh, theater_.at(node)); });
    }
  });
}

void Chaos::trouble_all(const Life& victim, Duration time, Reasons::Harm harm) {
  for (std::size_t node = 0; node < theater_.nodes(); ++node) {
    if (node != victim.node) theater_.judge().reasons().trouble(victim.node, node, time, harm);
  }
}

void Chaos::strike_process(Fault fault, Life& victim) {
  sim::World& world = theater_.universe().world;
  Judge& judge = theater_.judge();
  if (fault == Fault::kSlow) {
    const Duration time = span(500, 200'000);
    const Duration pace = microseconds(rng_.range(50, 5'000));
    victim.host->set_pace(pace);
    judge.reasons().excuse(victim, time + 50 * pace);
    trouble_all(victim, time + 50 * pace, Reasons::Harm::kDelays);
    world.after(time, [host = victim.host] { host->set_pace(microseconds(1)); });
    return;
  }
  if (fault == Fault::kStop) {
    const Duration time = silence(200, 600'000);
    victim.host->stop();
    judge.reasons().excuse(victim, time);
    trouble_all(victim, time, Reasons::Harm::kSilences);
    world.after(time, [host = victim.host] { host->resume(); });
    return;
  }
  if (victim.closing) return;  // In the middle of its own call; its end is near anyway.
  theater_.crash(victim, fault == Fault::kPowerLoss);
  const bool comes_back = fault == Fault::kRestart || rng_.chance(0.6);
  if (comes_back)
    restart_later(victim, fault == Fault::kRestart ? microseconds(rng_.range(0, 300)) : span(300, 700'000));
}

/// And gives it back; some come and go several times. Nobody is to notice but by the path that is taken.
void Chaos::take_device(Life& victim) {
  Duration at{};
  for (std::uint64_t left = 1 + rng_.below(3); left > 0; --left) {
    const auto set = [this, device = victim.device, host = victim.host](bool is_away) {
      device->is_away = is_away && !is_healed_;
      host->wake();
    };
    theater_.universe().world.after(at, [set] { set(true); });
    at = at + span(200, 1'000'000);
    theater_.universe().world.after(at, [set] { set(false); });
    at = at + span(500, 1'500'000);
  }
}

/// Of a whole path: one of its streams that breaks at once would end it for both.
void Chaos::reset_late(Life& from, Life& to) {
  sim::Universe& universe = theater_.universe();
  const auto connections = universe.net.between(from.host->number(), to.host->number());
  const std::uint32_t opener = connections[rng_.below(connections.size())]->host(0);
  const Duration kept = microseconds(rng_.range(0, 800)), pause = microseconds(rng_.range(2'000, 30'000));
  theater_.judge().reasons().trouble(from.node, to.node, kept + pause, Reasons::Harm::kDelays);
  for (const auto& each : connections) {
    if (each->host(0) == opener) universe.net.reset_late(each, from.host->number(), kept, pause);
  }
  // What it does meanwhile goes where late bytes would land.
  constexpr int kTimes = 8;
  const Instant lost = universe.world.now() + kept;
  for (int i = 1; i <= kTimes; ++i) {
    universe.world.after(kept + pause * i / (kTimes + 1), [this, &from, &to, lost] {
      if (gone_on_) gone_on_(from, to, lost);
    });
  }
}

/// Of both backends, if there are two: as where a message is sent again and its path is lost again.
void Chaos::break_mapped(const Life& from, const Life& to) {
  theater_.judge().reasons().trouble(from.node, to.node, Duration::zero(), Reasons::Harm::kDelays);
  const auto strike = [this, one = from.host, other = to.host] {
    theater_.universe().hub.sever(one, other, {rng_.chance(0.5), rng_.chance(0.5)});
  };
  strike();
  if (rng_.chance(0.3)) theater_.universe().world.after(microseconds(rng_.range(0, 100)), strike);
}

void Chaos::strike_links(Fault fault, Life& from, Life& to) {
  if (theater_.settings().mode == sim::Mode::kMapped && fault == Fault::kReset) return break_mapped(from, to);
  sim::Universe& universe = theater_.universe();
  sim::World& world = universe.world;
  sim::Fabric& fabric = universe.net.fabric();
  const std::uint32_t a = from.host->number(), b = to.host->number();
  const bool cut = fault == Fault::kPartition || fault == Fault::kOneWay;
  const Duration time = cut ? silence(200, 700'000) : span(200, 700'000);
  if (fault != Fault::kReset && fault != Fault::kHalfClose) {
    // Behind a window of 200 bytes heartbeats wait for their turn, and may be late, too.
    const bool clogged = fault == Fault::kFullQueue && theater_.settings().mode == sim::Mode::kStream;
    const bool silences = cut || clogged;
    theater_.judge().reasons().trouble(from.node, to.node, time,
                                       silences ? Reasons::Harm::kSilences : Reasons::Harm::kDelays);
  }
  if (fault == Fault::kLoss || fault == Fault::kDelay) {
    sim::LinkOptions bad = fabric.default_options();
    (fault == Fault::kLoss ? bad.loss : bad.loss) = fault == Fault::kLoss ? 0.3 : bad.loss;
    if (fault == Fault::kDelay) bad.jitter_max = milliseconds(3);
    for (const auto& [x, y] : {std::pair(a, b), std::pair(b, a)}) fabric.set_link(x, y, bad);
    if (theater_.settings().mode == sim::Mode::kMapped) universe.hub.options().wake_latency = milliseconds(1);
    world.after(time, [this, a, b] {
      sim::Universe& all = theater_.universe();
      for (const auto& [x, y] : {std::pair(a, b), std::pair(b, a)})
        all.net.fabric().set_link(x, y, all.net.fabric().default_options());
      all.hub.options().wake_latency = microseconds(2);
    });
  } else if (fault == Fault::kPartition || fault == Fault::kOneWay) {
    const bool forth = fault == Fault::kPartition || rng_.chance(0.5);
    if (forth) fabric.cut(a, b);
    if (fault == Fault::kPartition || !forth) fabric.cut(b, a);
    world.after(time, [this, a, b] {
      theater_.universe().net.fabric().heal(a, b);
      theater_.universe().net.fabric().heal(b, a);
    });
  } else if (fault == Fault::kFullQueue) {
    universe.hub.options().ring_bytes = 256;
    universe.hub.options().queue_chunks = 1;
    for (const auto& connection : universe.net.between(a, b)) universe.net.set_capacity(connection, 200);
    world.after(time, [this, a, b] {
      theater_.universe().hub.options() = mapped_options(theater_.settings());
      for (const auto& connection : theater_.universe().net.between(a, b)) {
        theater_.universe().net.set_capacity(connection, theater_.universe().net.options().pipe.capacity_bytes);
      }
    });
  } else {
    const auto connections = universe.net.between(a, b);
    if (connections.empty()) return;
    const auto& one = connections[rng_.below(connections.size())];
    if (fault == Fault::kReset && theater_.settings().late) {
      reset_late(from, to);
    } else if (fault == Fault::kReset) {
      universe.net.reset(one);
    }
    if (fault == Fault::kHalfClose) universe.net.half_close(one, rng_.chance(0.5) ? a : b);
  }
}

void Chaos::heal() {
  aims_.clear();
  is_healed_ = true;
  sim::Universe& universe = theater_.universe();
  universe.net.fabric().heal_all();
  universe.hub.options() = mapped_options(theater_.settings());
  for (std::size_t node = 0; node < theater_.nodes(); ++node) {
    Life& life = theater_.at(node);
    if (!life.alive) continue;
    life.host->set_pace(microseconds(1));
    life.host->resume();
    life.greedy_until = 0;
    if (life.device) life.device->is_away = false;
    for (std::size_t other = 0; other < theater_.nodes(); ++other) {
      if (other == node) continue;
      universe.net.fabric().set_link(life.host->number(), theater_.at(other).host->number(),
                                     universe.net.fabric().default_options());
    }
  }
  for (std::size_t a = 0; a < theater_.nodes(); ++a) {
    for (std::size_t b = a + 1; b < theater_.nodes(); ++b) {
      for (const auto& connection :
           universe.net.between(static_cast<std::uint32_t>(a), static_cast<std::uint32_t>(b))) {
        universe.net.set_capacity(connection, universe.net.options().pipe.capacity_bytes);
      }
    }
  }
}

}  // namespace hawser::simulation
