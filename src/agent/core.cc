#include "agent/core.h"

#include <sodium.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <limits>
#include <utility>

#include "agent/agent_counters.h"
#include "agent/flow_sums.h"
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

void PastFlow::add(const Session& session) {
  add_flow(flow, session.flow);
  if (session.latency.count() == 0) return;
  if (latency == nullptr) latency = std::make_unique<base::Histogram>();
  latency->merge(session.latency);
}

Core::Core(AgentOptions its_options, std::vector<backend::Factory> factories, Hooks its_hooks)
    : options(std::move(its_options)),
      hooks(std::move(its_hooks)),
      clock(options.clock ? options.clock : std::shared_ptr<const Clock>(&Clock::steady(), [](const Clock*) {})),
      log(options.log),
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
              .waiters = host,
              .rng = base::Rng(seed_of(options))}),
      presence(*this),
      factories_(std::move(factories)),
      opener_(::getpid()) {
  engine.services().add(atomics);
  if (hooks.tenant) {
    tenant = hooks.tenant(engine.carrier());
    engine.services().add(*tenant);
  }
  lane.add_part(presence);
  lane.add_part(sweep);
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
  core->self_ = std::make_shared<PeerCore>(core, core->options.name, core->identity.incarnation);
  core->self_->is_self = true;
  if (Status status = core->open_backends(); !status.ok()) return status;
  {
    const base::MutexLock lock(core->mutex_);
    core->peers_.emplace(core->identity.incarnation, core->self_);
  }
  remember_core(core.get());
  core->await_presence(published_by);
  core->metrics = serve_metrics(*core);
  return core;
}

Status Core::not_forked(std::string_view call) const {
  if (!disowned()) return {};
  return Status(Code::kInvalid, std::string(call) + ": agent '" + options.name + "' was opened by process " +
                                    std::to_string(opener_) + ", this is a forked child")
      .with_advice("open an agent in the child");
}

Status Core::usable(std::string_view call) const {
  HAWSER_TRY(not_forked(call));
  if (closing_.load(std::memory_order_acquire)) {
    return Status(Code::kInvalid, std::string(call) + ": agent '" + options.name + "' is closed");
  }
  return {};
}

void Core::disown_after_fork() {
  keep_ = shared_from_this();  // The child's copy is never destroyed: its destructors would speak for the parent.
  for (OpenBackend& backend : engine.ports().all()) backend.backend->disown_after_fork();
  for (Arriving* each : arriving_) {
    if (each->open.backend) each->open.backend->disown_after_fork();
  }
  lane.disown_after_fork();
  status_teller.disown_after_fork();
  if (tenant != nullptr) tenant->disown_after_fork();
}

void Core::add_queue(const std::shared_ptr<QueueCore>& queue) {
  const base::MutexLock lock(mutex_);
  std::erase_if(queues_, [](const auto& weak) { return weak.expired(); });
  queues_.push_back(queue);
  has_queues_.store(true, std::memory_order_release);
}

void Core::hint(CompletionKind kind, std::uint64_t cookie) {
  if (!has_queues_.load(std::memory_order_acquire)) return;
  const base::MutexLock lock(mutex_);
  for (const auto& weak : queues_) {
    if (const auto queue = weak.lock()) queue->hint(kind, cookie);
  }
}

void Core::release(const std::shared_ptr<PeerCore>& peer, std::size_t bytes) {
  const Released::Sum all = peer->released.add(bytes);
  // The lane is kept out of most calls, unless the sender may be waiting.
  const bool may_wait = peer->is_pinched.load(std::memory_order_seq_cst);
  if (!may_wait && all.bytes + all.messages * wire::kNotificationCost < kUntoldMax) return;
  lane.lock();
  engine.arrivals().release(*peer);
  lane.unlock();
  lane.wake();
}

AgentCounters Core::counters() {
  if (disowned()) return {.agent = options.name, .incarnation = base::to_hex(identity.incarnation)};
  CounterSnapshot snapshot;
  lane.lock();
  snapshot.begin(*this);
  for (const Session* session : engine.sessions().all()) snapshot.add(*session, true);
  lane.unlock();
  return snapshot.finish(*this);
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
