#include "worldsim/stage.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "agent/inner_simulator.h"
#include "agent/open.h"
#include "base/inside.h"
#include "runtime/world_core.h"

namespace hawser::worldsim {
namespace {

using std::chrono::microseconds;
using std::chrono::seconds;

/// How long a turn that found nothing, but may not sleep, waits before it looks again.
constexpr Duration kLookAgain = microseconds(50);
constexpr std::uint32_t kTurnsWithoutRestMax = 50'000;
constexpr Duration kOpenMax = seconds(10);
constexpr std::int64_t kJobPauseMax = 3'000'000;     ///< Nanoseconds until a handler runs,
constexpr std::int64_t kLongJobPause = 600'000'000;  ///< or, rarely, so many.

}  // namespace

Stage::Stage(sim::Universe& universe, WorldJudge& judge, const Settings& settings)
    : universe_(universe), judge_(judge), settings_(settings) {}

Stage::~Stage() {
  for (const auto& actor : actors_) {
    if (actor->is_alive) crash(*actor, false);
  }
}

void Stage::open(Actor& actor) {
  WorldOptions options;
  options.name = "world";
  options.size = static_cast<std::uint32_t>(settings_.ranks);
  options.topology = settings_.topology;
  options.timeout = settings_.timeout;
  options.quorum = settings_.majority ? Quorum::kMajority : Quorum::kNone;
  if (settings_.automatic) options.recovery = RecoveryPolicy::kAutomatic;
  options.agent.backends.push_back({"sim", {}});
  options.agent.heartbeat = settings_.heartbeat;
  options.agent.peer_timeout = settings_.peer_timeout;
  options.agent.log.level = LogLevel::kOff;
  options.agent.clock = universe_.world.clock();
  options.agent.seed = rng().u64() | 1;
  const sim::Seat place{.host = actor.host, .mode = settings_.mode, .address = fmt::format("sim:{}", actor.name)};
  runtime::SeatHooks hooks;
  hooks.open = [this, place, host = actor.host.get()](AgentOptions agent, const runtime::SeatHooks::Tenant& tenant) {
    const Instant wall = universe_.world.now() + std::chrono::hours(1);
    return agent::open_with(std::move(agent), {sim::make_factory(universe_, place)},
                            {.pause = [host](Instant until) { host->pause(until); },
                             .wall = [wall] { return static_cast<std::uint64_t>(wall.ns()); },
                             .tenant = tenant});
  };
  constexpr double kNever = schedule::kCallNsMax, kAlways = 1e-6;
  schedule::CostModel costs{.board_ns = settings_.boards ? kAlways : kNever};
  if (settings_.maps) {  // Mapped is the cheapest.
    costs = {.message_ns = kAlways, .combined_byte_ns = kAlways, .read_byte_ns = kAlways, .board_ns = kAlways};
    hooks.read_at_once = 64;  // So that faults come while a rank reads.
  }
  if (settings_.piece > 0) {
    hooks.piece_bytes = settings_.piece;
    hooks.read_at_once = 2 * settings_.piece;
  }
  if (actor.number == 0) hooks.told_costs = costs;  // The others hear of it when they enter.
  hooks.run = [this, &actor](std::function<void()> job) { run_later(actor, std::move(job)); };
  const std::size_t block = (settings_.ranks + settings_.hosts - 1) / settings_.hosts;
  hooks.host = 1 + (settings_.in_blocks ? actor.number / block : actor.number % settings_.hosts);
  cores_.push_back(
      runtime::WorldCore::open_agent(options, static_cast<std::uint32_t>(actor.number), options.size, hooks).value());
  actor.seat = cores_.back()->seat();
  if (settings_.maps) {
    const AllocateOptions wanted{.size = Lender::kBytes, .huge_pages = HugePages::kOff};
    actor.lender = std::make_unique<Lender>(std::move(cores_.back()->agent().allocate(wanted)).value());
  }
  actor.turner = agent::inner::Turner(cores_.back()->agent());
  actor.is_alive = true;
  actor.host->set_turn([this, &actor](Instant) { return turn(actor); });
}

/// One after another: a call that waits lets time pass for all.
void Stage::introduce() {
  std::vector<std::vector<Peer>> peers(settings_.ranks);
  for (std::size_t rank = 0; rank < settings_.ranks; ++rank) {
    Agent& agent = cores_[rank]->agent();
    for (std::size_t other = 0; other < settings_.ranks; ++other) {
      const bool is_self = other == rank;
      peers[rank].push_back(is_self ? agent.self() : agent.add_peer(cores_[other]->agent().card().value()).value());
    }
  }
  for (std::size_t rank = 0; rank < settings_.ranks; ++rank) {
    const Status status = cores_[rank]->connect(peers[rank], universe_.world.now() + kOpenMax);
    if (!status.ok()) judge_.fail("the ranks do not come up: " + status.to_string());
  }
  Realm& realm = judge_.realms().empty() ? judge_.open_realm({}, 0) : *judge_.realms().front();
  for (std::size_t rank = 0; rank < settings_.ranks && !judge_.failed(); ++rank) {
    if (const Status status = cores_[rank]->enter(std::move(peers[rank])); !status.ok()) {
      judge_.fail("a rank does not enter its world: " + status.to_string());
    }
    actors_[rank]->enters = [core = std::weak_ptr(cores_[rank])](Duration timeout) {
      return core.lock()->all_entered(timeout);
    };
    actors_[rank]->main = {
        .realm = &realm, .rank = static_cast<std::uint32_t>(rank), .world = World(std::move(cores_[rank]))};
    actors_[rank]->host->wake();
  }
  cores_.clear();
}

bool Stage::open() {
  judge_.set_majority(settings_.majority);
  judge_.set_automatic(settings_.automatic);
  judge_.set_topology(settings_.topology, settings_.ranks);
  std::vector<std::size_t> numbers;
  for (std::size_t number = 0; number < settings_.ranks; ++number) numbers.push_back(number);
  Realm& realm = judge_.open_realm(numbers, settings_.seed);
  realm.first_number = 0;
  realm.acts = settings_.acts;
  for (const std::size_t number : numbers) {
    auto actor = std::make_unique<Actor>();
    actor->number = number;
    actor->name = fmt::format("world.{}", number);
    actor->host = sim::Host::create(universe_.world, actor->name, static_cast<std::uint32_t>(number));
    actors_.push_back(std::move(actor));
  }
  judge_.set_cast(actors_);
  for (const auto& actor : actors_) open(*actor);
  introduce();
  return !judge_.failed();
}

sim::Host::Turned Stage::turn(Actor& actor) {
  if (!actor.is_alive) return {};
  const agent::inner::Turner turner = actor.turner;  // It may end in its turn.
  const std::size_t work = turner.turn();
  if (turned_) turned_(actor);
  if (!actor.is_alive) return {};
  if (++actor.turns_without_rest > kTurnsWithoutRestMax) {
    judge_.fail(fmt::format("{} turned {} times without rest", actor.name, kTurnsWithoutRestMax));
  }
  if (work > 0) return {.more = true};
  Instant next = Instant::max();
  const bool is_armed = turner.arm(&next);
  if (next > universe_.world.now()) actor.turns_without_rest = 0;
  if (!is_armed) return {.more = false, .next = universe_.world.now() + kLookAgain};
  turner.disarm();
  return {.more = false, .next = next};
}

/// As a thread of the process would, which stops with it.
void Stage::run_later(Actor& actor, std::function<void()> job) {
  actor.jobs.push_back(std::move(job));
  const Duration pause(rng().chance(0.05) ? kLongJobPause : rng().range(0, kJobPauseMax));
  universe_.world.after(pause, [this, &actor] { run_job(actor); });
}

void Stage::run_job(Actor& actor) {
  if (!actor.is_alive || actor.jobs.empty()) return;
  if (!actor.host->running()) return universe_.world.after(kLookAgain * 20, [this, &actor] { run_job(actor); });
  const std::function<void()> job = std::move(actor.jobs.front());
  actor.jobs.pop_front();
  job();
  actor.host->wake();
}

void Stage::crash(Actor& actor, bool power) {
  universe_.world.note(power ? "power loss" : "crash", actor.name);
  actor.host->die();
  const auto number = static_cast<std::uint32_t>(actor.number);
  power ? universe_.net.lose_power(number) : universe_.net.crash(number);
  universe_.hub.died(actor.host);
  judge_.on_gone(actor);
  actor.is_alive = false;
  // What the process held is gone with it: its operations end here, and nobody hears of it.
  if (const std::shared_ptr<runtime::RankSeat> seat = actor.seat.lock()) {
    const Instant now = universe_.world.now();
    actor.turner.under_lane([&] { seat->mailbox->close_all(now); });
    agent::inner::let_go(seat->agent);
  }
  end(actor);
}

void Stage::end(Actor& actor) {
  actor.is_alive = false;
  actor.phase = Phase::kOut;
  for (const auto& deed : actor.deeds) deed->request = Request();
  actor.pending.clear();
  actor.jobs.clear();
  actor.groups.clear();
  actor.main.world = World();
  actor.lender.reset();
  actor.turner = {};
  actor.host->die();
}

bool Stage::is_needed(const Actor& actor) {
  if (!is_sparse(settings_)) return false;
  const std::shared_ptr<runtime::RankSeat> seat = actor.seat.lock();
  bool is_free = false;
  actor.turner.under_lane([&] { is_free = seat->root.lock()->is_free_to_leave(universe_.world.now()); });
  return !is_free;
}

void Stage::end_by(Actor& actor, const std::function<Status()>& call, const std::function<void()>& before_end) {
  is_blocked_ = actor.is_blocking = true;
  const Status status = call();
  universe_.world.note("ends", actor.name, static_cast<std::uint64_t>(status.code()));
  before_end();
  end(actor);
  is_blocked_ = actor.is_blocking = false;
}

}  // namespace hawser::worldsim
