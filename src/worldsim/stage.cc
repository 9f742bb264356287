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
constexpr Duration kCloseMax = std::chrono::milliseconds(500);  ///< An agent that had guests closes within it.
constexpr std::int64_t kJobPauseMax = 3'000'000;                ///< Nanoseconds until a handler runs,
constexpr std::int64_t kLongJobPause = 600'000'000;             ///< or, rarely, so many.

}  // namespace

Stage::Stage(sim::Universe& universe, WorldJudge& judge, const Settings& settings)
    : universe_(universe), judge_(judge), settings_(settings) {}

Stage::~Stage() {
  for (const auto& actor : actors_) {
    if (actor->is_alive) crash(*actor, false);
  }
}

AgentOptions Stage::agent_options(const std::string& name) {
  AgentOptions options;
  options.name = name;
  options.backends.push_back({"sim", {}});
  options.heartbeat = settings_.heartbeat;
  options.peer_timeout = settings_.peer_timeout;
  options.driven = true;  // By the stage.
  options.log.level = LogLevel::kOff;
  options.clock = universe_.world.clock();
  options.seed = rng().u64() | 1;
  return options;
}

WorldOptions Stage::world_options(std::size_t world) {
  WorldOptions options;
  options.name = world == 0 ? "world" : "other";
  options.size = static_cast<std::uint32_t>(settings_.ranks);
  options.topology = settings_.topology;
  options.timeout = settings_.timeout;
  options.quorum = settings_.majority ? Quorum::kMajority : Quorum::kNone;
  if (settings_.automatic) options.recovery = RecoveryPolicy::kAutomatic;
  return options;
}

Result<Agent> Stage::open_agent(AgentOptions options, const Actor& actor, const runtime::SeatHooks::Tenant& tenant) {
  const sim::Seat place{.host = actor.host, .mode = settings_.mode, .address = fmt::format("sim:{}", actor.name)};
  const Instant wall = universe_.world.now() + std::chrono::hours(1);
  return agent::open_with(std::move(options), {sim::make_factory(universe_, place)},
                          {.pause = [host = actor.host.get()](Instant until) { host->pause(until); },
                           .wall = [wall] { return static_cast<std::uint64_t>(wall.ns()); },
                           .tenant = tenant});
}

runtime::SeatHooks Stage::hooks_of(Actor& actor) {
  runtime::SeatHooks hooks;
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
  const std::uint32_t rank = actor.main.rank;
  if (rank == 0) hooks.told_costs = costs;  // The others hear of it when they enter.
  hooks.run = [this, &actor](std::function<void()> job) { run_later(actor, std::move(job)); };
  const std::size_t block = (settings_.ranks + settings_.hosts - 1) / settings_.hosts;
  const std::size_t process = actor.process->number;
  hooks.host = 1 + (settings_.in_blocks ? process / block : process % settings_.hosts);
  return hooks;
}

void Stage::open(Actor& actor) {
  Process& process = *actor.process;
  WorldOptions options = world_options(actor.world);
  options.rank = actor.main.rank;
  options.driven = !settings_.guests;  // Else the library's thread would run the agent.
  runtime::SeatHooks hooks = hooks_of(actor);
  if (settings_.guests) {
    if (!process.agent) process.agent = open_agent(agent_options(actor.name), actor, {}).value();
    cores_.push_back(runtime::WorldCore::open_guest(*process.agent, options, std::move(hooks)).value());
  } else {
    hooks.open = [this, &actor](AgentOptions its, const runtime::SeatHooks::Tenant& tenant) {
      return open_agent(std::move(its), actor, tenant);
    };
    options.agent = agent_options({});
    cores_.push_back(runtime::WorldCore::open_agent(options, options.rank, options.size, std::move(hooks)).value());
  }
  actor.seat = cores_.back()->seat();
  if (settings_.maps) {
    const AllocateOptions wanted{.size = Lender::kBytes, .huge_pages = HugePages::kOff};
    actor.lender = std::make_unique<Lender>(std::move(cores_.back()->agent().allocate(wanted)).value());
  }
  actor.turner = agent::inner::Turner(cores_.back()->agent());
  actor.is_alive = true;
  actor.host->set_turn([this, &process](Instant) { return turn(process); });
}

/// One after another: a call that waits lets time pass for all.
void Stage::introduce(std::size_t world) {
  const std::size_t first = world * settings_.ranks, ranks = settings_.ranks;
  std::vector<std::vector<Peer>> peers(ranks);
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    Agent& agent = cores_[first + rank]->agent();
    for (std::size_t other = 0; other < ranks; ++other) {
      const bool is_self = other == rank;
      peers[rank].push_back(is_self ? agent.self()
                                    : agent.add_peer(cores_[first + other]->agent().card().value()).value());
    }
  }
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    const Status status = cores_[first + rank]->connect(peers[rank], universe_.world.now() + kOpenMax);
    if (!status.ok()) judge_.fail("the ranks do not come up: " + status.to_string());
  }
  for (std::size_t rank = 0; rank < ranks && !judge_.failed(); ++rank) {
    std::shared_ptr<runtime::WorldCore>& core = cores_[first + rank];
    Actor& actor = *actors_[first + rank];
    if (const Status status = core->enter(std::move(peers[rank])); !status.ok()) {
      judge_.fail("a rank does not enter its world: " + status.to_string());
    }
    actor.enters = [its = std::weak_ptr(core)](Duration timeout) { return its.lock()->all_entered(timeout); };
    actor.main.world = World(std::move(core));
    actor.host->wake();
  }
}

/// The ranks of one world. The second one has its ranks in the processes of the first one, in another order.
void Stage::cast_world(std::size_t world) {
  const std::size_t first = world * settings_.ranks;
  std::vector<std::size_t> numbers;
  for (std::size_t rank = 0; rank < settings_.ranks; ++rank) numbers.push_back(first + rank);
  Realm& realm = judge_.open_realm(numbers, settings_.seed + world);
  realm.first_number = 0;
  realm.acts = settings_.acts;
  for (const std::size_t number : numbers) {
    auto actor = std::make_unique<Actor>();
    const std::size_t rank = number - first;
    actor->number = number;
    actor->world = world;
    actor->main = {.realm = &realm, .rank = static_cast<std::uint32_t>(rank), .world = {}};
    if (world == 0) {
      actor->process = std::make_shared<Process>();
      actor->process->number = number;
      actor->name = fmt::format("{}.{}", settings_.guests ? "node" : "world", number);
      actor->host = sim::Host::create(universe_.world, actor->name, static_cast<std::uint32_t>(number));
    } else {
      const Actor& mate = *actors_[settings_.ranks - 1 - rank];
      actor->process = mate.process;
      actor->name = mate.name;
      actor->host = mate.host;
    }
    actor->process->ranks.push_back(actor.get());
    actors_.push_back(std::move(actor));
  }
}

bool Stage::open() {
  judge_.set_majority(settings_.majority);
  judge_.set_automatic(settings_.automatic);
  judge_.set_topology(settings_.topology, settings_.ranks);
  const std::size_t worlds = settings_.guests ? 2 : 1;
  for (std::size_t world = 0; world < worlds; ++world) cast_world(world);
  judge_.set_cast(actors_);
  for (const auto& actor : actors_) open(*actor);
  for (std::size_t world = 0; world < worlds && !judge_.failed(); ++world) introduce(world);
  cores_.clear();
  return !judge_.failed();
}

sim::Host::Turned Stage::turn(Process& process) {
  const auto is_alive = [](const Actor* rank) { return rank->is_alive; };
  const auto first = std::ranges::find_if(process.ranks, is_alive);
  if (first == process.ranks.end()) return {};
  const agent::inner::Turner turner = (*first)->turner;  // It may end in its turn.
  const std::size_t work = turner.turn();
  for (Actor* const rank : process.ranks) {
    if (turned_ && rank->is_alive) turned_(*rank);
  }
  if (std::ranges::none_of(process.ranks, is_alive)) return {};
  if (++process.turns_without_rest > kTurnsWithoutRestMax) {
    judge_.fail(fmt::format("{} turned {} times without rest", (*first)->name, kTurnsWithoutRestMax));
  }
  if (work > 0) return {.more = true};
  Instant next = Instant::max();
  const bool is_armed = turner.arm(&next);
  if (next > universe_.world.now()) process.turns_without_rest = 0;
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

bool Stage::is_blocking(const Actor& actor) {
  return std::ranges::any_of(actor.process->ranks, [](const Actor* rank) { return rank->is_blocking; });
}

bool Stage::has_living_mates(const Actor& actor) {
  return std::ranges::any_of(actor.process->ranks, [&](const Actor* rank) { return rank != &actor && rank->is_alive; });
}

void Stage::crash(Actor& actor, bool power) {
  universe_.world.note(power ? "power loss" : "crash", actor.name);
  Process& process = *actor.process;
  actor.host->die();
  const std::uint32_t number = actor.host->number();
  power ? universe_.net.lose_power(number) : universe_.net.crash(number);
  universe_.hub.died(actor.host);
  std::vector<Actor*> dying;
  for (Actor* const rank : process.ranks) {
    if (rank->is_alive) dying.push_back(rank);
  }
  for (Actor* const rank : dying) {
    judge_.on_gone(*rank);
    rank->is_alive = false;
  }
  // What the process held is gone with it: its operations end here, and nobody hears of it.
  const Instant now = universe_.world.now();
  for (Actor* const rank : dying) {
    const std::shared_ptr<runtime::RankSeat> seat = rank->seat.lock();
    if (seat == nullptr) continue;
    rank->turner.under_lane([&] { seat->mailbox->close_all(now); });
    agent::inner::let_go(seat->agent);
  }
  if (process.agent) agent::inner::let_go(*process.agent);
  for (Actor* const rank : dying) end(*rank);
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
  if (has_living_mates(actor)) return;
  actor.process->agent.reset();
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
  const bool is_last = !has_living_mates(actor);
  if (is_last && actor.process->agent) static_cast<void>(actor.process->agent->close(kCloseMax));
  end(actor);
  is_blocked_ = actor.is_blocking = false;
}

}  // namespace hawser::worldsim
