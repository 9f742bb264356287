#include "quicsim/mishaps.h"

#include <fmt/format.h>

#include <algorithm>

namespace hawser::quicsim {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using State = backend::quic::Connection::State;

constexpr double kHeavyLoss = 0.5;
constexpr std::uint16_t kShiftsMax = 40;

}  // namespace

QuicMishaps::QuicMishaps(sim::World& world, PacketNet& net, QuicJudge& judge, const Settings& settings,
                         std::span<const std::unique_ptr<QuicHost>> hosts)
    : world_(world), net_(net), judge_(judge), settings_(settings), hosts_(hosts), rng_(world.rng().fork()) {
  for (std::size_t i = 0; i < settings.faults; ++i) {
    Aim aim;
    do {
      aim = {.fault = static_cast<Fault>(rng_.below(kFaults)), .moment = static_cast<Moment>(rng_.below(kMoments))};
    } while (!possible(aim.fault, aim.moment));
    aims_.push_back(aim);
  }
}

Moment QuicMishaps::moment_of(const Line& line) const {
  const Talk& talk = judge_.talk(line.number());
  if (line.connection().state() != State::kUp || !talk.end(Side::kAcceptor).is_up) return Moment::kShaking;
  bool is_parting = false, is_held_up = false, is_flowing = false;
  for (const auto& [id, stream] : talk.streams) {
    const auto parted = [](const HalfBook& half) { return half.parting != Parting::kNone; };
    is_parting = is_parting || parted(stream[0]) != parted(stream[1]);
    for (const Side writer : {Side::kOpener, Side::kAcceptor}) {
      const HalfBook& from = stream[static_cast<std::size_t>(writer)];
      const HalfBook& to = stream[static_cast<std::size_t>(other_of(writer))];
      const bool is_under_way = to.read < from.written && !parted(to);
      is_held_up = is_held_up || (is_under_way && to.is_stuck);
      is_flowing = is_flowing || is_under_way;
    }
  }
  if (is_held_up) return Moment::kHeldUp;
  if (is_parting) return Moment::kParting;
  return is_flowing ? Moment::kFlowing : Moment::kQuiet;
}

void QuicMishaps::look() {
  for (std::size_t i = 0; i < aims_.size(); ++i) {
    std::vector<Target> all;
    for (const auto& host : hosts_) {
      if (host->side() != Side::kOpener || host->is_gone()) continue;
      for (const auto& line : host->lines()) {
        if (line->connection().state() != State::kEnded && moment_of(*line) == aims_[i].moment) {
          all.push_back({host.get(), line.get()});
        }
      }
    }
    if (all.empty() || !rng_.chance(0.3)) continue;
    const Aim aim = aims_[i];
    aims_.erase(aims_.begin() + static_cast<std::ptrdiff_t>(i));
    return strike(aim, all[rng_.below(all.size())]);
  }
}

QuicHost* QuicMishaps::acceptor_of(const Line& line, Line** its) const {
  for (const auto& host : hosts_) {
    if (host->side() != Side::kAcceptor) continue;
    for (const auto& each : host->lines()) {
      if (each->number() != line.number()) continue;
      *its = each.get();
      return host.get();
    }
  }
  return nullptr;
}

Duration QuicMishaps::span(Duration most) {
  return milliseconds(1) + Duration(rng_.range(0, most.count() >> rng_.below(8)));
}

void QuicMishaps::strike(const Aim& aim, const Target& target) {
  coverage_.count(aim.fault, aim.moment);
  ++struck_;
  world_.note(to_string(aim.fault), target.line->name(), static_cast<std::uint64_t>(aim.moment));
  const bool moves = aim.fault == Fault::kRebind || aim.fault == Fault::kMove || aim.fault == Fault::kReplay;
  for (const auto& line : target.host->lines()) {
    if (moves) judge_.talk(line->number()).has_moved = true;
  }
  switch (aim.fault) {
    case Fault::kLoss:
    case Fault::kCut:
    case Fault::kHalfCut:
    case Fault::kDelay:
    case Fault::kShrink:
    case Fault::kRebind:
    case Fault::kMove:
      return strike_way(aim.fault, *target.host);
    case Fault::kReplay:
      return replay(*target.line);
    default:
      break;
  }
  Line* theirs = nullptr;
  QuicHost* const peer = acceptor_of(*target.line, &theirs);
  const bool is_here = peer == nullptr || rng_.chance(0.5);
  strike_end(aim.fault, is_here ? *target.host : *peer, is_here ? *target.line : *theirs);
}

void QuicMishaps::strike_way(Fault fault, QuicHost& host) {
  PacketNet::Cable& cable = net_.cable(host.number());
  const std::size_t way = rng_.below(2);
  const Instant until = world_.now() + span(2 * settings_.options.idle_timeout);
  switch (fault) {
    case Fault::kLoss: {
      cable.weather[way].lost = kHeavyLoss;
      world_.at(until, [this, &cable, way] {  // In the calm it stays at none.
        if (cable.weather[way].lost > 0) cable.weather[way].lost = way == 0 ? settings_.up.lost : settings_.down.lost;
      });
      return;
    }
    case Fault::kCut:
      cable.dead_until = {until, until};
      return;
    case Fault::kHalfCut:
      cable.dead_until[way] = until;
      return;
    case Fault::kDelay:
      cable.weather[way].latency = cable.weather[way].latency + span(milliseconds(100));
      return;
    case Fault::kShrink: {
      cable.weather[way].datagram_max = 1200;
      world_.at(until, [this, &cable, way] {
        cable.weather[way].datagram_max = way == 0 ? settings_.up.datagram_max : settings_.down.datagram_max;
      });
      return;
    }
    case Fault::kRebind:
      cable.shift = static_cast<std::uint16_t>(PacketNet::kNatStep * (1 + cable.shift / PacketNet::kNatStep) %
                                               (PacketNet::kNatStep * kShiftsMax));
      return;
    default: {
      ++moves_;
      host.move(base::numeric_address({fmt::format("10.2.{}.{}", moves_, host.number() + 1), 0}).value());
      return;
    }
  }
}

void QuicMishaps::strike_end(Fault fault, QuicHost& host, Line& line) {
  switch (fault) {
    case Fault::kFull:
      return host.block(span(milliseconds(500)));
    case Fault::kStop:
      return host.stop(span(milliseconds(3000)));
    case Fault::kPowerLoss:
      return host.power_off();
    case Fault::kForget:
      return host.forget(line);
    case Fault::kClose:
      line.close(rng_.chance(0.5), false, world_.now());
      return host.wake();
    default:
      if (line.connection().state() == State::kUp && update_keys(line.connection(), world_.now())) {
        world_.note("new keys", line.name());
      }
      line.connection().is_dirty = true;
      return host.wake();
  }
}

/// The next datagram of that connection comes a second time, or first, from elsewhere.
void QuicMishaps::replay(const Line& line) {
  const std::uint16_t port = static_cast<std::uint16_t>(kPortBase + line.number());
  const Duration after = rng_.chance(0.5) ? Duration(0) : span(milliseconds(20));
  const base::SocketAddress from = base::numeric_address({kStranger, port}).value();
  net_.on_sent = [this, port, after, from, left = 1 + rng_.below(3)](std::size_t, const Route& route,
                                                                     std::span<const std::byte> bytes) mutable {
    if (left == 0 || route.local.port() != port) return;
    --left;
    world_.after(after, [this, from, to = route.remote, copy = std::vector<std::byte>(bytes.begin(), bytes.end())] {
      net_.replay(from, to, copy);
    });
  };
}

}  // namespace hawser::quicsim
