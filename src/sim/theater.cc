#include "sim/theater.h"

#include <algorithm>

#include <fmt/format.h>

#include "agent/inner_simulator.h"
#include "agent/open.h"
#include "base/bytes.h"
#include "base/inside.h"
#include "wire/card.h"

namespace hawser::simulation {
namespace {

/// How long a turn that found nothing, but may not sleep, waits before it looks again.
constexpr Duration kLookAgain = std::chrono::microseconds(50);
constexpr std::string_view kDeviceName = "device", kSpareName = "spare";
constexpr std::size_t kBaitSize = 4096;
constexpr std::uint32_t kTurnsWithoutRestMax = 20'000;

/// What close would say of a region whose handle was dropped.
Status closed_by_itself(Life& life, const Area& area) {
  if (!agent::inner::is_registered(life.agent, area.truth)) return {};
  return Status(Code::kTimedOut, "it is not closed yet");
}

}  // namespace

Theater::Theater(sim::Universe& universe, Judge& judge, Settings settings)
    : universe_(universe), judge_(judge), settings_(settings), current_(settings.nodes, nullptr) {
  universe_.net.options().streams_are_apart = settings.apart;
  for (std::size_t node = 0; node < settings.nodes; ++node) begin(node);
}

Theater::~Theater() {
  for (const auto& life : lives_) {
    if (life->alive) crash(*life, false);
  }
}

sim::MappedOptions mapped_options(const Settings& settings) {
  sim::MappedOptions options;
  if (settings.narrow) options.queue_chunks = 1;
  if (settings.breaks) options.ring_bytes = 1024;  // So that links keep some, too, when one breaks.
  return options;
}

void Theater::begin(std::size_t node) {
  auto life = std::make_unique<Life>();
  life->node = node;
  life->number = lives_.size();
  life->name = fmt::format("agent-{}", node);
  life->host = sim::Host::create(universe_.world, life->name, static_cast<std::uint32_t>(node));
  life->born = universe_.world.now();
  AgentOptions options;
  options.name = life->name;
  if (settings_.devices) options.backends.push_back({kDeviceName.data(), {}});
  options.backends.push_back({"sim", {}});
  if (settings_.spare) options.backends.push_back({kSpareName.data(), {}});
  options.default_deadline = settings_.default_deadline;
  options.heartbeat = settings_.heartbeat;
  options.peer_timeout = settings_.peer_timeout;
  options.driven = settings_.driven;
  options.limits.notification_bytes = settings_.notification_bytes;
  options.limits.transfers = 256;
  options.limits.peers = 64;
  options.limits.regions = 256;
  options.log.level = LogLevel::kOff;
  options.clock = universe_.world.clock();
  options.seed = universe_.world.rng().u64() | 1;
  universe_.net.power_on(static_cast<std::uint32_t>(node));
  // Some machine's clock is behind: its later lives seem to be born before the earlier ones.
  const Duration behind = settings_.copies && rng().chance(0.2) ? std::chrono::seconds(10) : Duration::zero();
  const Instant wall = universe_.world.now() + std::chrono::hours(1) - behind;
  const agent::Hooks hooks{.pause =
                               [this, host = life->host.get()](Instant until) {
                                 if (watch_) watch_();
                                 host->pause(until);
                               },
                           .wall = [wall] { return static_cast<std::uint64_t>(wall.ns()); }};
  life->agent = agent::open_with(std::move(options), backends_of(*life), hooks).value();
  life->incarnation = life->agent.incarnation();
  life->queue = life->agent.make_queue(64).value();
  life->alive = true;
  judge_.enroll(*life);
  for (const std::uint32_t channel : kChannels) {
    const auto priority = static_cast<Priority>(channel % 3);  // All classes, whatever the channels are.
    if (const Status opened = life->agent.open_channel(channel, settings_.channel_credit, priority); !opened.ok()) {
      judge_.fail(*life, "open_channel: " + opened.to_string());
    }
  }
  life->host->set_turn([this, raw = life.get()](Instant now) { return turn(*raw, now); });
  current_[node] = life.get();
  lives_.push_back(std::move(life));
  open_areas(*current_[node]);
  universe_.world.note("born", current_[node]->name, current_[node]->number);
  current_[node]->host->wake();
}

/// The better one first.
std::vector<backend::Factory> Theater::backends_of(Life& life) {
  sim::Seat seat{.host = life.host,
                 .mode = settings_.mode,
                 .address = fmt::format("sim:{}", life.name),
                 .connections = settings_.connections,
                 .chunk_bytes_max = settings_.chunk_bytes};
  std::vector<backend::Factory> backends{sim::make_factory(universe_, seat)};
  const std::string_view second = settings_.spare ? kSpareName : kDeviceName;
  seat.name = second;
  seat.address = fmt::format("{}:{}", second, life.name);
  seat.may_be_lost = true;
  if (settings_.spare) backends.push_back(sim::make_factory(universe_, seat));
  if (!settings_.devices) return backends;
  life.device = std::make_shared<backend::Removable>();
  backend::Factory better = sim::make_factory(universe_, seat);
  better = backend::removable_factory(better.name, better.default_rank, better, life.device);
  backends.insert(backends.begin(), std::move(better));
  return backends;
}

void Theater::open_areas(Life& life) {
  life.scratch = &add_area(life, "mine", 64 * 1024, Rights::kNone);
  life.words = &add_area(life, "words", kWords * 8, Rights::kWrite);
  life.own_words = &add_area(life, "own", 256 * 8, Rights::kNone);
  for (Area* area : {life.words, life.own_words}) std::ranges::fill(area->plot->bytes(), std::byte{0});
  add_atomic_area(life, "atoms");
  Area& odd = add_area(life, "bait-odd", kBaitSize, Rights::kReadWrite);
  odd.bait = odd.for_atomics = true;
  add_area(life, "in", 48 * 1024, Rights::kReadWrite);
  add_area(life, "in-only", 16 * 1024, Rights::kWrite);
  add_area(life, "out", 32 * 1024, Rights::kRead);
  if (!settings_.lies) return;
  add_area(life, "bait-right", kBaitSize, Rights::kRead).bait = true;
  add_area(life, "bait-key", kBaitSize, Rights::kReadWrite).bait = true;
  add_area(life, "bait-size", kBaitSize, Rights::kReadWrite).bait = true;
}

Area& Theater::add_area(Life& life, const std::string& name, std::size_t size, Rights rights) {
  auto area = std::make_unique<Area>();
  area->writer = judge_.new_writer();
  area->plot = std::make_unique<Plot>(name, size, rights, area->writer);
  // Peers are told of one region that is larger than what is registered of it; of another the words are not aligned.
  const std::span<std::byte> all = area->plot->bytes();
  const std::span<std::byte> registered =
      name == "bait-size" ? all.first(size / 2) : all.subspan(name == "bait-odd" ? 4 : 0);
  area->region = life.agent.add_region({.name = name, .bytes = registered, .device = {}, .rights = rights}).value();
  area->truth = agent::inner::entry_of(area->region);
  life.areas.push_back(std::move(area));
  return *life.areas.back();
}

Area& Theater::add_atomic_area(Life& life, const std::string& name) {
  Area& area = add_area(life, name, kWords * sizeof(std::uint64_t), Rights::kReadWrite);
  std::ranges::fill(area.plot->bytes(), std::byte{0});
  area.atomic_words.resize(kWords);
  area.for_atomics = true;
  return area;
}

sim::Host::Turned Theater::turn(Life& life, Instant) {
  if (!life.alive) return {};
  const agent::inner::Turner turner(life.agent);
  const std::size_t work = turner.turn();
  judge_.observe(life);
  // With the little that users ask for here, an agent that is never done turns for nothing.
  if (++life.turns_without_rest > kTurnsWithoutRestMax) {
    judge_.fail(life, fmt::format("turned {} times without rest", kTurnsWithoutRestMax));
  }
  if (work > 0) return {.more = true};
  Instant next = Instant::max();
  const bool armed = turner.arm(&next);
  if (next > universe_.world.now()) life.turns_without_rest = 0;
  if (!armed) return {.more = false, .next = universe_.world.now() + kLookAgain};
  turner.disarm();
  return {.more = false, .next = next};
}

void Theater::close_area(Life& life, Area& area) {
  if (!area.closing) {
    area.closing = true;
    area.dropped = settings_.drops;
    universe_.world.note("closing", life.name + "/" + area.plot->name());
    for (Move* move : life.in_flight) {
      const auto& pairs = move->course->pairs;
      const bool uses = std::any_of(pairs.begin(), pairs.end(), [&](const Pair& pair) { return pair.local == &area; });
      move->ended_by_us = move->ended_by_us || uses;
    }
  }
  if (area.dropped) area.region = Region();
  const Status status = area.dropped ? closed_by_itself(life, area) : area.region.close(Duration::zero());
  judge_.observe(life);  // Finals first: they look at what the canary overwrites.
  judge_.on_close(life, area, status);
  life.host->wake();
}

void Theater::close_scratch(Life& life) {
  close_area(life, *life.scratch);
  const std::string name = fmt::format("mine.{}", life.areas.size());
  life.scratch = &add_area(life, name, life.scratch->plot->bytes().size(), Rights::kNone);
}

void Theater::tick() {
  for (Life* life : current_) {
    if (!life->alive || life->closing || !life->host->running()) continue;
    for (const auto& area : life->areas) {
      if (area->closing && !area->closed) close_area(*life, *area);
    }
    judge_.observe(*life);
  }
}

void Theater::drop_handles(Life& life) {
  for (Move* move : life.in_flight) move->transfer = Transfer();
  life.in_flight.clear();
  for (AtomicCall* call : life.atomics) {
    ++call->to->maybe_refusals;  // Nobody will hear of it.
    call->op = AtomicOp();
    call->range = RemoteRange();
  }
  life.atomics.clear();
  for (AtomicCall* call : life.ended_atomics) call->range = RemoteRange();
  life.ended_atomics.clear();
  for (const auto& course : life.courses) {
    if (course->current != nullptr) course->current->transfer = Transfer();
    course->plan = Plan();
  }
  for (auto& [other, bond] : life.bonds) {
    bond.peer = Peer();
    bond.sessions.clear();
  }
  for (const auto& area : life.areas) area->region = Region();
  life.queue = CompletionQueue();
}

void Theater::crash(Life& life, bool power) {
  universe_.world.note(power ? "power loss" : "crash", life.name, life.number);
  life.alive = false;
  life.lost_power = power;
  life.ended = universe_.world.now();
  life.host->die();
  const auto number = static_cast<std::uint32_t>(life.node);
  power ? universe_.net.lose_power(number) : universe_.net.crash(number);
  universe_.hub.died(life.host);
  judge_.messages().on_end(life);
  const agent::inner::Turner kept(life.agent);
  agent::inner::let_go(life.agent);
  drop_handles(life);
}

Status Theater::close(Life& life) {
  universe_.world.note("close", life.name, life.number);
  closing_one_ = life.closing = true;
  for (Move* move : life.in_flight) move->ended_by_us = true;
  for (AtomicCall* call : life.atomics) call->ended_by_us = true;
  const Status status = life.agent.close(std::chrono::milliseconds(300));
  if (!status.ok()) agent::inner::close_for_good(life.agent);  // As its last handle would.
  closing_one_ = false;
  if (judge_.failed()) return status;
  judge_.observe(life);
  if (!life.in_flight.empty() || !life.atomics.empty())
    judge_.fail(life, "its agent was closed, and a transfer or atomic operation is not final");
  life.alive = false;
  life.ended = universe_.world.now();
  for (const auto& area : life.areas) {
    if (status.ok() && !area->closed && area.get() != life.own_words) judge_.on_close(life, *area, status);
  }
  life.host->die();
  judge_.messages().on_end(life);
  drop_handles(life);
  agent::inner::let_go(life.agent);
  return status;
}

std::string Theater::card_of(Life& life, bool lies) {
  std::string bytes = life.agent.card().value();
  if (!lies || !settings_.lies) return bytes;
  wire::Card card = std::move(wire::decode_card(base::as_bytes(bytes)).value());
  for (wire::CardRegion& region : card.regions) {
    if (region.name == "bait-right") region.rights = Rights::kReadWrite;
    if (region.name == "bait-key") region.key.lo ^= 1;
    if (region.name == "bait-size") region.size = kBaitSize;
  }
  return wire::encode(card).value();
}

void Theater::introduce(Life& life, Life& other) {
  if (!life.alive || !other.alive || life.closing || other.closing || &life == &other) return;
  Bond& bond = life.bonds[&other];
  const Result<Peer> peer = life.agent.add_peer(card_of(other, !bond.known));
  life.host->wake();
  if (!peer) return judge_.fail(life, "add_peer: " + peer.error().to_string());
  if (life.bonds[&other].known && !(peer->incarnation() == other.incarnation))
    judge_.fail(life, "add_peer gave another peer");
  bond.peer = *peer;
  bond.known = true;
}

}  // namespace hawser::simulation
