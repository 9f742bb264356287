#include "agent/core.h"

#include <sodium.h>

#include <algorithm>
#include <chrono>
#include <limits>
#include <utility>

#include "agent/agent_counters.h"
#include "agent/fork_guard.h"
#include "agent/metrics_source.h"
#include "agent/peer_names.h"
#include "base/try.h"
#include "wire/limits.h"

namespace hawser::agent {
namespace {

/// How long opening waits until an etcd has the card; when it has not, that goes on beside.
constexpr Duration kPublishMax = std::chrono::seconds(6);

tls::KeyPair repeatable_keys(base::Rng& rng) {
  tls::KeyPair::Seed seed;
  for (std::byte& byte : seed) byte = static_cast<std::byte>(rng.u64());
  return tls::KeyPair::from(seed);
}

std::uint64_t seed_of(const AgentOptions& options) {
  return options.seed != 0 ? options.seed : base::random_id128().lo;
}

/// A name for an error: what cannot be printed is a question mark, and no more than a line of it is.
std::string printable(std::string_view name) {
  constexpr std::size_t kShown = 60;
  std::string text(name.substr(0, kShown));
  std::replace_if(
      text.begin(), text.end(), [](unsigned char c) { return c < 0x20 || c == 0x7f; }, '?');
  return "'" + text + (name.size() > kShown ? "'..." : "'");
}

Status check_limits(const AgentLimits& limits) {
  struct Limit {
    std::string_view name;
    std::uint32_t value, least, most;
  };
  constexpr std::uint32_t kAny = std::numeric_limits<std::uint32_t>::max();
  for (const Limit& limit :
       {Limit{"transfers", limits.transfers, 1, 1u << 24}, Limit{"peers", limits.peers, 1, kAny},
        Limit{"regions", limits.regions, 1, kAny}, Limit{"events", limits.events, 1, kAny},
        Limit{"notification_bytes", limits.notification_bytes, proto::kNotificationCostMax, kAny},
        Limit{"notification_bytes_total", limits.notification_bytes_total, proto::kNotificationCostMax, kAny}}) {
    if (limit.value >= limit.least && limit.value <= limit.most) continue;
    return Status(Code::kInvalid, "Agent::open: limits." + std::string(limit.name) + " = " +
                                      std::to_string(limit.value) + " must be from " + std::to_string(limit.least) +
                                      " to " + std::to_string(limit.most));
  }
  return {};
}

Status check_options(const AgentOptions& options) {
  if (!wire::is_agent_name(options.name)) {
    return Status(Code::kInvalid, "Agent::open: name " + printable(options.name) + " of " +
                                      std::to_string(options.name.size()) +
                                      " bytes is not 1 to 255 bytes without control characters");
  }
  const std::pair<std::string_view, Duration> times[] = {{"heartbeat", options.heartbeat},
                                                         {"peer_timeout", options.peer_timeout},
                                                         {"default_deadline", options.default_deadline},
                                                         {"identity.look", options.identity.look}};
  for (const auto& [name, value] : times) {
    if (value > Duration::zero()) continue;
    return Status(Code::kInvalid,
                  "Agent::open: " + std::string(name) + " = " + std::to_string(value.count()) + " ns must be positive");
  }
  if (!options.identity.folder.empty() && options.security == Security::kNone) {
    return Status(Code::kInvalid, "Agent::open: an identity is shown over TLS, and security `none` has none")
        .with_advice("leave out one of the two options");
  }
  return check_limits(options.limits);
}

/// Null: the agent has no identity.
Result<std::unique_ptr<identity::Authenticator>> open_identity(const AgentOptions& options, const base::Logger& log) {
  if (options.identity.folder.empty()) return std::unique_ptr<identity::Authenticator>();
  auto opened = identity::Authenticator::open({.agent = options.name,
                                               .folder = options.identity.folder,
                                               .names = options.identity.names,
                                               .period = options.identity.look},
                                              log);
  if (opened) return opened;
  const Status& why = opened.error();
  return Status(why.code(), "Agent::open: the identity: " + std::string(why.message()))
      .with_advice(std::string(why.advice()));
}

std::uint64_t wall_clock() {
  const auto since_1970 = std::chrono::system_clock::now().time_since_epoch();
  const auto nanoseconds = std::chrono::duration_cast<std::chrono::nanoseconds>(since_1970).count();
  return static_cast<std::uint64_t>(std::max<std::int64_t>(nanoseconds, 1));  // 0 would say that it is not known.
}

}  // namespace

class Core::Rest final : public BackendOpener::Host, public RegionCloser::Users, public RegionRegistrar::Host {
 public:
  explicit Rest(Core& core) : core_(core) {}

  void take_submissions(Instant now) override HAWSER_REQUIRES(in_lane) {
    core_.lane.take_submissions(kSubmissionsMax, now);
  }
  void end_use(const LocalRegion& region, Instant now) override {
    core_.engine.cancel_region(region, now);
    core_.engine.on_own_region_closed(region.entry->index, region.entry->generation, now);
  }
  void forget(const backend::RegionEntry& region) override HAWSER_REQUIRES(in_lane) {
    core_.backend_opener.forget(region);
  }
  void card_changed() override HAWSER_REQUIRES(in_lane) { core_.tell_of_card(); }
  std::uint64_t draw() override { return core_.engine.rng_.u64(); }
  Status watch_port(int fd) override { return core_.lane.watch_port(fd); }
  void take_in(OpenBackend&& backend) override { core_.engine.add_backend(std::move(backend)); }
  void has_more_ways() override HAWSER_REQUIRES(in_lane) {
    core_.engine.bury(core_.now());  // What no backend led to may be reached by this one.
    core_.tell_of_card();
  }
  std::shared_ptr<LocalRegion> make(const RegionRegistrar::Entry& entry, bool has_huge_pages) override {
    return std::make_shared<LocalRegion>(core_.shared_from_this(), entry, has_huge_pages);
  }
  base::Id128 make_key() override HAWSER_REQUIRES(in_lane) {
    // Two words of the agent's own randomness are as good as the system's only when no seed was set.
    if (core_.options.seed == 0) return core_.region_keys_.take();
    return base::Id128{core_.engine.rng_.u64(), core_.engine.rng_.u64()};
  }

 private:
  Core& core_;
};

Core::Core(AgentOptions its_options, std::vector<backend::Factory> factories, Hooks its_hooks)
    : options(std::move(its_options)),
      hooks(std::move(its_hooks)),
      clock(options.clock ? options.clock : std::shared_ptr<const Clock>(&Clock::steady(), [](const Clock*) {})),
      log(options.log),
      regions(options.limits.regions),
      slots(new SlotPool(options.limits.transfers)),
      inbox(options.limits.events),
      lane(*this, *clock),
      engine(*this, base::Rng(seed_of(options))),
      presence(*this),
      rest_(std::make_unique<Rest>(*this)),
      backend_opener({.lane = lane,
                      .clock = *clock,
                      .options = options,
                      .log = log,
                      .life = life,
                      .identity = identity,
                      .keys = keys,
                      .authenticator = authenticator,
                      .table = regions,
                      .book = region_book,
                      .card = own_card,
                      .reports = backend_reports,
                      .backends = engine.backends(),
                      .host = *rest_},
                     std::move(factories)),
      region_closer({.lane = lane,
                     .clock = *clock,
                     .log = log,
                     .agent = options.name,
                     .life = life,
                     .table = regions,
                     .book = region_book,
                     .names = region_names,
                     .card = own_card,
                     .backends = engine.backends(),
                     .users = *rest_}),
      region_registrar({.lane = lane,
                        .log = log,
                        .agent = options.name,
                        .life = life,
                        .table = regions,
                        .book = region_book,
                        .names = region_names,
                        .card = own_card,
                        .backends = engine.backends(),
                        .host = *rest_,
                        .must_all_serve = !options.backends.empty()}),
      region_maker({.lane = lane,
                    .life = life,
                    .options = options,
                    .log = log,
                    .backends = engine.backends(),
                    .arenas = arenas,
                    .registrar = region_registrar,
                    .closer = region_closer,
                    .add_backend = [this](const BackendSpec& spec) { return backend_opener.add(spec); }}) {
  engine.add_service(atomics);
  if (hooks.tenant) {
    tenant = hooks.tenant(engine);
    engine.add_service(*tenant);
  }
  lane.add_part(presence);
  lane.add_part(region_closer);
  lane.add_part(status_teller);
}

Core::~Core() {
  forget_core(this);
  if (!disowned()) {
    lane.lock();
    engine.shut_down(now());
    lane.unlock();
  }
  slots->orphan();
}

Result<std::shared_ptr<Core>> Core::open(AgentOptions options, std::vector<backend::Factory> factories, Hooks hooks) {
  if (Status bad = check_options(options); !bad.ok()) return bad;
  if (sodium_init() < 0) return Status(Code::kFailed, "Agent::open: libsodium could not be initialised");
  std::shared_ptr<Core> core(new Core(std::move(options), std::move(factories), std::move(hooks)));
  base::Rng rng(seed_of(core->options));
  core->identity.name = core->options.name;
  core->identity.incarnation = core->options.seed != 0 ? base::Id128{rng.u64(), rng.u64()} : base::random_id128();
  core->identity.driven = core->options.driven;
  const Instant published_by = core->now() + kPublishMax;
  core->identity.born = core->learn_born(core->hooks.wall ? core->hooks.wall() : wall_clock(), published_by);
  if (core->options.security != Security::kNone) {
    core->identity.admission = core->options.seed != 0 ? base::Id128{rng.u64(), rng.u64()} : base::random_id128();
  }
  core->identity.version_min = core->hooks.versions.min;
  core->identity.version_max = core->hooks.versions.max;
  core->keys = core->options.seed != 0 ? repeatable_keys(rng) : tls::KeyPair::make();
  core->identity.public_key = core->keys->public_key();
  HAWSER_TRY_ASSIGN(core->authenticator, open_identity(core->options, core->log));
  core->slots->core = core;
  if (Status status = core->lane.open(); !status.ok()) return status;
  core->status_teller.open();
  core->peer_book.open(std::make_shared<PeerCore>(core, core->options.name, core->identity.incarnation));
  core->own_card.open(core->identity);
  if (Status status = core->backend_opener.open_all(); !status.ok()) return status;
  remember_core(core.get());
  core->await_presence(published_by);
  core->metrics = serve_metrics(*core);
  return core;
}

void Core::disown_after_fork() {
  keep_ = shared_from_this();  // The child's copy is never destroyed: its destructors would speak for the parent.
  for (OpenBackend& backend : engine.backends()) backend.backend->disown_after_fork();
  backend_opener.disown_after_fork();
  lane.disown_after_fork();
  status_teller.disown_after_fork();
  if (tenant != nullptr) tenant->disown_after_fork();
}

void Core::forget(const PeerCore& peer) {
  peer_book.forget(peer);
  inbox.let_go_of(peer);
}

void Core::tell_of_card() {
  engine.card_changed();
  presence.ask();
}

void Core::renew_extras(OpenBackend& open) {
  assume_in_lane();
  backend_opener.renew_extras(open);
  presence.ask();
}

void Core::say_driven(bool driven) {
  const InLaneGuard guard(lane);
  if (std::exchange(identity.driven, driven) == driven) return;
  own_card.say_driven(driven);
  tell_of_card();
}

void Core::release(const std::shared_ptr<PeerCore>& peer, std::size_t bytes) {
  const Released::Sum all = peer->released.add(bytes);
  // The lane is kept out of most calls, unless the sender may be waiting.
  const bool may_wait = peer->is_pinched.load(std::memory_order_seq_cst);
  if (!may_wait && all.bytes + all.messages * wire::kNotificationCost < kUntoldMax) return;
  lane.lock();
  engine.release_notifications(peer);
  lane.unlock();
  lane.wake();
}

AgentCounters Core::counters() {
  AgentCounters result;
  result.agent = options.name;
  result.incarnation = base::to_hex(identity.incarnation);
  if (disowned()) return result;
  {
    const InLaneGuard guard(lane);
    count_traffic(past, engine.sessions(), engine.backends(), &result);
    result.transfers_in_flight_gauge = engine.in_flight();
  }
  count_inbox(inbox, &result);
  count_regions(regions, &result);
  return result;
}

Result<Agent> open_with(AgentOptions options, std::vector<backend::Factory> factories, Hooks hooks) {
  Result<std::shared_ptr<Core>> core = Core::open(std::move(options), std::move(factories), std::move(hooks));
  if (!core) return core.error();
  return Agent(std::move(*core));
}

std::size_t turn(Agent& agent, Instant* next) {
  Core& core = *agent.core();
  if (core.is_closed()) return 0;
  const std::size_t work = core.lane.try_turn();
  if (work > 0) return work;
  if (!core.lane.arm(next)) return 1;
  core.lane.disarm();
  return 0;
}

}  // namespace hawser::agent
