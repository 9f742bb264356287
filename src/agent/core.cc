#include "agent/core.h"

#include <sodium.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "agent/agent_counters.h"
#include "agent/check_options.h"
#include "agent/default_backends.h"
#include "agent/directory_calls.h"
#include "agent/fork_guard.h"
#include "agent/metrics_source.h"
#include "base/inside.h"
#include "base/try.h"

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

backend::PeerQuotas quotas_of(const AgentLimits& limits) {
  return {.connections = limits.peer_connections, .operations = limits.peer_operations, .bytes = limits.peer_bytes};
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

class Core::Rest final : public BackendOpener::Host,
                         public RegionCloser::Users,
                         public RegionRegistrar::Host,
                         public CardIntake::Host,
                         public AddressFinder::Strangers,
                         public PeerFinder::Host,
                         public Shutdown::Steps {
 public:
  explicit Rest(Core& core) : core_(core) {}

  // BackendOpener asks.
  std::uint64_t draw() override HAWSER_REQUIRES(in_lane) { return core_.engine.rng().u64(); }
  Status watch_port(int fd) override { return core_.lane.watch_port(fd); }
  void take_in(OpenBackend&& backend) override HAWSER_REQUIRES(in_lane) {
    core_.engine.ports().add(std::move(backend));
  }
  void has_more_ways() override HAWSER_REQUIRES(in_lane) {
    core_.engine.graveyard().bury();  // What no backend led to may be reached by this one.
    core_.tell_of_card();
  }

  // RegionCloser and RegionRegistrar ask.
  void take_submissions(Instant now) override HAWSER_REQUIRES(in_lane) {
    core_.lane.take_submissions(kSubmissionsMax, now);
  }
  void end_use(const LocalRegion& region, Instant now) override HAWSER_REQUIRES(in_lane) {
    core_.engine.transfers().cancel_region(region, now);
    core_.engine.bindings().on_own_region_closed(*core_.peer_book.self(), region.entry->index, region.entry->generation,
                                                 now);
  }
  void forget(const backend::RegionEntry& region) override HAWSER_REQUIRES(in_lane) {
    core_.backend_opener.forget(region);
  }
  void card_changed() override HAWSER_REQUIRES(in_lane) { core_.tell_of_card(); }
  std::shared_ptr<LocalRegion> make(const RegionRegistrar::Entry& entry, bool has_huge_pages) override {
    return std::make_shared<LocalRegion>(core_.shared_from_this(), entry, has_huge_pages);
  }
  base::Id128 make_key() override HAWSER_REQUIRES(in_lane) { return core_.make_key(); }

  // Those that find peers ask.
  void on_card_loaded(PeerCore& peer, const CardStore::Change& change) override HAWSER_REQUIRES(in_lane) {
    core_.engine.exchange().on_loaded(peer, change, core_.now());
  }
  void forget(const PeerCore& peer) override { core_.forget(peer); }
  void want(const std::shared_ptr<PeerCore>& peer) override HAWSER_REQUIRES(in_lane) {
    core_.engine.connector().want(core_.engine.sessions().of(peer), core_.now());
  }
  void check_card(const std::shared_ptr<PeerCore>& peer) override HAWSER_REQUIRES(in_lane) {
    core_.engine.exchange().check(core_.engine.sessions().of(peer));
  }
  Result<std::string> resolve(std::string_view address, Instant deadline) override {
    return resolve_address(address, deadline);
  }
  Result<std::uint64_t> open(std::string_view address, std::string_view name, const AdmissionTicket& ticket,
                             Instant deadline) override HAWSER_REQUIRES(in_lane) {
    return core_.engine.strangers().open(address, name, ticket, deadline, core_.now());
  }
  AddressFinder::Found take(std::uint64_t number) override HAWSER_REQUIRES(in_lane) {
    return core_.engine.strangers().take(number);
  }
  void drop(std::uint64_t number) override HAWSER_REQUIRES(in_lane) { core_.engine.strangers().drop(number); }
  void want_card(const std::shared_ptr<PeerCore>& peer) override HAWSER_REQUIRES(in_lane) {
    core_.engine.exchange().want(core_.engine.sessions().of(peer), core_.now());
  }
  std::uint64_t open_better_path(const std::shared_ptr<PeerCore>& peer, Instant deadline) override
      HAWSER_REQUIRES(in_lane) {
    return core_.engine.better().open(core_.engine.sessions().of(peer), deadline, core_.now());
  }
  bool is_opening(const std::shared_ptr<PeerCore>& peer, std::uint64_t serial) override HAWSER_REQUIRES(in_lane) {
    return core_.engine.better().is_opening(core_.engine.sessions().of(peer), serial);
  }

  // Shutdown asks.
  bool unpublish(Instant deadline) override;
  void begin() override;
  Status release(Instant deadline) override;
  bool is_used() override;
  void finish() override;

 private:
  Core& core_;
};

bool Core::Rest::unpublish(Instant deadline) {
  if (!core_.options.directory) return true;
  {
    const InLaneGuard guard(core_.lane);
    core_.presence.close();
    if (core_.revocation_watch != nullptr) core_.revocation_watch->close();
  }
  const std::string key = core_.options.directory_prefix + core_.options.name;
  return agent::unpublish(*core_.options.directory, key, core_.identity.incarnation, *core_.clock, deadline);
}

void Core::Rest::begin() {
  const InLaneGuard guard(core_.lane);
  const Instant now = core_.now();
  core_.lane.take_left_over(now);  // What was sent and submitted before the agent closes is in there.
  core_.lane.take_submissions(kSubmissionsMax, now);
  core_.engine.begin_close(now);
}

Status Core::Rest::release(Instant deadline) {
  const Duration left = std::max(Duration::zero(), deadline - core_.now());
  const Status status = core_.region_closer.close(core_.region_book.all(), left);
  for (;;) {
    core_.lane.lock();
    core_.lane.turn(core_.now());
    const bool is_quiet = core_.engine.closed();
    core_.lane.unlock();
    if (is_quiet) return status;
    if (core_.now() >= deadline) break;
    core_.lane.pause(std::min(deadline, core_.now() + std::chrono::milliseconds(1)));
  }
  if (!status.ok()) return status;
  return Status(Code::kTimedOut, "close: backends of agent '" + core_.options.name + "' were not quiet by the deadline")
      .with_advice("nobody touches its memory any more; peers may not have heard of its end");
}

bool Core::Rest::is_used() {
  return std::ranges::any_of(core_.region_book.all(), [](const auto& region) {
    return region->state.load(std::memory_order_acquire) != RegionState::kClosed;
  });
}

void Core::Rest::finish() {
  core_.metrics = metrics::Entry();  // Before the lane's lock: a scrape that is under way takes it.
  core_.lane.lock();
  const RegionCloser::Abandoned abandoned = core_.region_closer.abandon();
  core_.grant_ends.clear();
  core_.engine.shut_down(core_.now());
  core_.status_teller.close();
  core_.life.end();
  core_.refuse_what_is_left();
  core_.lane.unlock();
  if (Runner* const runner = core_.lane.runner()) runner->let_go(core_);
  core_.region_closer.release(abandoned);
  core_.lane.wake();  // For threads that wait for what never comes now.
  core_.lane.news();
  forget_core(&core_);
  core_.peer_book.forget_all();
}

Core::Core(AgentOptions its_options, std::vector<backend::Factory> factories, Hooks its_hooks)
    : options(std::move(its_options)),
      hooks(std::move(its_hooks)),
      clock(options.clock ? options.clock : std::shared_ptr<const Clock>(&Clock::steady(), [](const Clock*) {})),
      log(options.log),
      peer_guard(std::make_shared<backend::PeerGuard>(
          quotas_of(options.limits), &log,
          [this](const backend::PeerClaim& claim) { return peer_book.expects(claim); })),
      life(options.name),
      regions(options.limits.regions),
      slots(new SlotPool(options.limits.transfers)),
      inbox(options.limits.events),
      lane(*this, *clock),
      engine({.options = options,
              .identity = identity,
              .log = log,
              .inbox = inbox,
              .regions = regions,
              .slots = *slots,
              .clock = *clock,
              .peers = host,
              .cards = host,
              .keys = host,
              .waiters = host,
              .reports = backend_reports,
              .rng = base::Rng(seed_of(options))}),
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
                      .guard = peer_guard,
                      .table = regions,
                      .book = region_book,
                      .card = own_card,
                      .reports = backend_reports,
                      .backends = engine.ports().all(),
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
                     .grants = grants,
                     .backends = engine.ports().all(),
                     .users = *rest_}),
      region_registrar({.lane = lane,
                        .log = log,
                        .agent = options.name,
                        .life = life,
                        .table = regions,
                        .book = region_book,
                        .names = region_names,
                        .card = own_card,
                        .backends = engine.ports().all(),
                        .host = *rest_,
                        .must_all_serve = !options.backends.empty()}),
      region_maker({.lane = lane,
                    .life = life,
                    .options = options,
                    .log = log,
                    .backends = engine.ports().all(),
                    .arenas = arenas,
                    .registrar = region_registrar,
                    .closer = region_closer,
                    .add_backend = [this](const BackendSpec& spec) { return backend_opener.add(spec); }}),
      grant_maker({.lane = lane,
                   .clock = *clock,
                   .life = life,
                   .identity = identity,
                   .backends = engine.ports().all(),
                   .registrar = region_registrar,
                   .closer = region_closer,
                   .book = grants,
                   .ends = grant_ends}),
      card_intake(lane, peer_book, *rest_, {.agent = options.name, .regions = options.limits.peer_regions}),
      directory_finder(
          {.lane = lane, .clock = *clock, .options = options, .life = life, .peers = peer_book, .intake = card_intake}),
      address_finder(lane, *clock, *rest_),
      peer_finder({.lane = lane,
                   .clock = *clock,
                   .agent = options.name,
                   .life = life,
                   .peers = peer_book,
                   .directory = directory_finder,
                   .addresses = address_finder,
                   .host = *rest_}),
      shutdown(lane, *clock, options.name, life, *rest_) {
  engine.services().add(atomics);
  engine.services().add(grant_service);
  if (hooks.tenant) {
    tenant = hooks.tenant(engine.carrier());
    engine.services().add(*tenant);
  }
  lane.add_part(presence);
  lane.add_part(grant_ends);  // Before ports serve anybody.
  lane.add_part(region_closer);
  lane.add_part(status_teller);
}

Core::~Core() {
  forget_core(this);
  if (!disowned()) {
    const InLaneGuard guard(lane);
    engine.shut_down(now());
    if (!life.is_closed()) status_teller.close();  // It never opened.
  }
  slots->orphan();
}

Status Core::identify(Instant deadline) {
  base::Rng rng(seed_of(options));
  const auto draw = [&] { return options.seed != 0 ? base::Id128{rng.u64(), rng.u64()} : base::random_id128(); };
  identity.name = options.name;
  identity.incarnation = draw();
  identity.driven = options.driven;
  const std::uint64_t clock_ns = hooks.wall ? hooks.wall() : wall_clock();
  std::optional<DirectoryEvent> own_key;
  if (options.directory) {
    const Ticket ticket = options.directory->get(options.directory_prefix + options.name);
    own_key = ask_alone(*options.directory, ticket, *clock, deadline);
  }
  {
    const InLaneGuard guard(lane);
    identity.born = presence.begin(own_key, clock_ns);
  }
  if (options.security != Security::kNone) identity.admission = draw();
  identity.version_min = hooks.versions.min;
  identity.version_max = hooks.versions.max;
  keys = options.seed != 0 ? repeatable_keys(rng) : tls::KeyPair::make();
  if (hooks.secrets) {
    keys = tls::KeyPair::from(hooks.secrets->key);
    identity.admission = hooks.secrets->admission;
  }
  identity.public_key = keys->public_key();
  if (hooks.authenticator != nullptr) {
    authenticator = hooks.authenticator;
  } else {
    HAWSER_TRY_ASSIGN(authenticator, open_identity(options, log));
  }
  return {};
}

void Core::watch_revocations() {
  if (options.directory == nullptr || authenticator == nullptr) return;
  revocation_watch = std::make_unique<RevocationWatch>(
      RevocationWatch::Uses{.directory = options.directory, .authenticator = authenticator, .agent = options.name});
  lane.add_part(*revocation_watch);
}

Result<std::shared_ptr<Core>> Core::open(AgentOptions options, std::vector<backend::Factory> factories, Hooks hooks) {
  HAWSER_TRY(check_options(options));
  if (sodium_init() < 0) return Status(Code::kFailed, "Agent::open: libsodium could not be initialised");
  std::shared_ptr<Core> core(new Core(std::move(options), std::move(factories), std::move(hooks)));
  const Instant published_by = core->now() + kPublishMax;
  HAWSER_TRY(core->identify(published_by));
  core->slots->core = core;
  core->watch_revocations();
  HAWSER_TRY(core->lane.open());
  core->status_teller.open();
  core->peer_book.open(std::make_shared<PeerCore>(core, core->options.name, core->identity.incarnation));
  core->own_card.open(core->identity);
  HAWSER_TRY(core->backend_opener.open_all());
  remember_core(core.get());
  core->presence.open_and_wait(published_by);
  if (core->revocation_watch != nullptr) {
    const InLaneGuard guard(core->lane);
    core->revocation_watch->open();
  }
  core->metrics = serve_metrics(*core);
  return core;
}

void Core::disown_after_fork() {
  assume_in_lane();            // A forked child has one thread.
  keep_ = shared_from_this();  // The child's copy is never destroyed: its destructors would speak for the parent.
  for (OpenBackend& backend : engine.ports().all()) backend.backend->disown_after_fork();
  backend_opener.disown_after_fork();
  lane.disown_after_fork();
  status_teller.disown_after_fork();
  if (tenant != nullptr) tenant->disown_after_fork();
}

/// Either the thread that closes sees a submission that another thread leaves, or that thread sees the close.
void Core::refuse_what_is_left() {
  std::atomic_thread_fence(std::memory_order_seq_cst);
  lane.take_submissions(kSubmissionsMax, now());
  lane.refuse_left_over(usable("begin"), now());
}

std::vector<std::shared_ptr<PeerCore>> Core::peers() const {
  return disowned() ? std::vector<std::shared_ptr<PeerCore>>() : peer_book.all();
}

std::vector<BackendReport> Core::reports() const {
  return disowned() ? std::vector<BackendReport>() : backend_reports.all();
}

void Core::forget(const PeerCore& peer) {
  peer_book.forget(peer);
  inbox.let_go_of(peer);
}

void Core::tell_of_card() {
  engine.exchange().on_own_change();
  presence.ask();
}

void Core::renew_extras(OpenBackend& open) {
  assume_in_lane();  // The engine calls this in its turns, and tells sessions itself.
  backend_opener.renew_extras(open);
  presence.ask();
}

base::Id128 Core::make_key() {
  assume_in_lane();
  // Keys come from the system's randomness, unless a seed asks for a run that can be repeated.
  if (options.seed == 0) return region_keys_.take();
  return base::Id128{engine.rng().u64(), engine.rng().u64()};
}

void Core::say_driven(bool driven) {
  const InLaneGuard guard(lane);
  if (std::exchange(identity.driven, driven) == driven) return;
  own_card.say_driven(driven);
  tell_of_card();
}

AgentCounters Core::counters() {
  if (disowned()) return {.agent = options.name, .incarnation = base::to_hex(identity.incarnation)};
  CounterSnapshot snapshot;
  {
    const InLaneGuard guard(lane);
    begin_counters(snapshot);
    for (const Session* const session : engine.sessions().all()) snapshot.add(*session, true);
  }
  return finish_counters(snapshot);
}

void Core::begin_counters(CounterSnapshot& snapshot) {
  AgentCounters known{.agent = options.name, .incarnation = base::to_hex(identity.incarnation)};
  known.quota_refusals = peer_guard->refusals();
  known.transfers_in_flight_gauge = engine.transfers().in_flight();
  snapshot.begin(std::move(known), past, engine.ports().all());
}

AgentCounters Core::finish_counters(CounterSnapshot& snapshot) const {
  AgentCounters counters = snapshot.finish();
  count_inbox(inbox, &counters);
  count_regions(regions, &counters);
  return counters;
}

Result<Agent> open_with(AgentOptions options, std::vector<backend::Factory> factories, Hooks hooks) {
  Result<std::shared_ptr<Core>> core = Core::open(std::move(options), std::move(factories), std::move(hooks));
  if (!core) return core.error();
  return Agent(std::move(*core));
}

std::size_t turn(Agent& agent, Instant* next) {
  Core& core = *core_of(agent);
  if (core.is_closed()) return 0;
  const std::size_t work = core.lane.try_turn();
  if (work > 0) return work;
  if (!core.lane.arm(next)) return 1;
  core.lane.disarm();
  return 0;
}

}  // namespace hawser::agent
