#include "agent/inner.h"

#include <utility>

#include "agent/core.h"
#include "agent/default_backends.h"
#include "agent/directory_calls.h"
#include "agent/inner_identity.h"
#include "base/inside.h"

namespace hawser::agent::inner {
namespace {

void call_lightly(Core& core, const std::function<Need(Instant now)>& call, bool waits) HAWSER_RELEASE(in_lane) {
  const Instant now = core.lane.now();
  core.lane.let_older_go_first();
  if (waits) core.lane.note_looker(now);  // Before it looks: the driver keeps away from the lane meanwhile.
  const Need need = call(now);
  if (need == Need::kNothing) core.lane.note_found(now);
  if (need == Need::kTurn || core.lane.lacks_turn(now)) core.lane.turn(now);
  core.lane.unlock();
  if (need != Need::kNothing) core.lane.wake();
  core.lane.news();  // Whatever ended is told to waiters in the next turn only.
}

/// False: too many wait for the driver already.
bool leave(Core& core, Beginning begin) {
  if (!core.lane.leave({.kind = LeftOver::Kind::kBeginning, .begin = std::move(begin)})) return false;
  if (core.is_closed()) {  // Its last turn may be over.
    core.lane.lock();
    core.refuse_what_is_left();
    core.lane.unlock();
    core.lane.news();
  }
  return true;
}

}  // namespace

Result<Agent> open(AgentOptions options, std::function<std::shared_ptr<Service>(Carrier& carrier)> tenant) {
  std::vector<backend::Factory> factories = all_backends(options.plugin_paths, base::Logger(options.log));
  return open_with(std::move(options), std::move(factories), {.tenant = std::move(tenant)});
}

Result<std::shared_ptr<Service>> tenant_of(const Agent& agent, std::string_view what,
                                           const std::function<std::shared_ptr<Service>(Carrier& carrier)>& make) {
  std::shared_ptr<Service> tenant;
  Status status = under_lane(agent, what, [&](Instant) {
    assume_in_lane();
    Core& core = *core_of(agent);
    if (core.tenant == nullptr) {
      core.tenant = make(core.engine.carrier());
      core.engine.add_service(*core.tenant);
    }
    tenant = core.tenant;
  });
  if (!status.ok()) return status;
  return tenant;
}

bool knows(const Agent& agent, const Peer& peer) {
  return core_of(peer) != nullptr && core_of(peer)->core.lock() == core_of(agent);
}

Agent borrowed(const Agent& agent) { return Agent(core_of(agent)); }

Result<Agent> open_as(AgentOptions options, const OwnSecrets& secrets) {
  if (options.security == Security::kNone) {
    return Status(Code::kInvalid,
                  "Agent::open: with security `none` nobody proves anything, and a token counts for nothing")
        .with_advice("leave security as it is, or the token out");
  }
  std::vector<backend::Factory> factories = all_backends(options.plugin_paths, base::Logger(options.log));
  return open_with(std::move(options), std::move(factories), {.secrets = secrets});
}

Result<Agent> open_with_identity(AgentOptions options, std::shared_ptr<identity::Authenticator> authenticator) {
  std::vector<backend::Factory> factories = all_backends(options.plugin_paths, base::Logger(options.log));
  return open_with(std::move(options), std::move(factories), {.authenticator = std::move(authenticator)});
}

std::string address_with(std::string_view address, const OwnSecrets& secrets) {
  const AdmissionTicket ticket{.public_key = tls::KeyPair::from(secrets.key).public_key(),
                               .admission = secrets.admission};
  return std::string(address) + "#" + to_string(ticket);
}

Result<std::string> resolve(std::string_view address, Instant deadline) { return resolve_address(address, deadline); }

std::optional<DirectoryEvent> ask(Directory& directory, Ticket ticket, Instant deadline,
                                  const std::function<void()>& rest) {
  return ask_directory(directory, ticket, Clock::steady(), deadline, rest);
}

Status under_lane(const Agent& agent, std::string_view what, const std::function<void(Instant now)>& call) {
  const std::shared_ptr<Core>& core = core_of(agent);
  if (!core) return Status(Code::kInvalid, std::string(what) + ": the agent is empty");
  if (Status status = core->usable(what); !status.ok()) return status;
  core->lane.lock();
  const Instant now = core->now();
  core->lane.let_older_go_first();
  call(now);
  core->lane.turn(now);
  core->lane.unlock();
  core->lane.wake();
  return {};
}

Status begin_in_lane(const Agent& agent, std::string_view what, const std::function<Need(Instant now)>& call,
                     const std::function<Beginning()>& later) {
  const std::shared_ptr<Core>& core = core_of(agent);
  if (!core) return Status(Code::kInvalid, std::string(what) + ": the agent is empty");
  if (Status status = core->usable(what); !status.ok()) return status;
  if (!core->lane.try_lock()) {
    if (core->lane.driven() && leave(*core, later())) return {};
    core->lane.lock();
  }
  call_lightly(*core, call, false);
  return {};
}

Status under_lane_lightly(const Agent& agent, std::string_view what, const std::function<Need(Instant now)>& call,
                          bool waits) {
  const std::shared_ptr<Core>& core = core_of(agent);
  if (!core) return Status(Code::kInvalid, std::string(what) + ": the agent is empty");
  if (Status status = core->usable(what); !status.ok()) return status;
  core->lane.lock();
  call_lightly(*core, call, waits);
  return {};
}

bool wait_until(const Agent& agent, const std::function<bool()>& reached, Instant deadline) {
  const std::shared_ptr<Core>& core = core_of(agent);
  if (core->life.disowned())
    return reached();  // Nobody makes progress in a forked child; a turn would be the parent's.
  return core->lane.wait_until(reached, deadline);
}

std::vector<Peer> flush(const Agent& agent, Instant deadline) {
  constexpr Duration kPause = std::chrono::microseconds(100);
  if (!under_lane(agent, "flush", [](Instant) {}).ok()) return {};  // What waits to be sent goes in this turn.
  for (;;) {
    std::vector<Peer> behind;
    const Status status = under_lane(agent, "flush", [&](Instant) {
      assume_in_lane();
      for (const Session* const session : core_of(agent)->engine.behind()) behind.push_back(peer_of(*session));
    });
    if (!status.ok() || behind.empty()) return {};
    const Instant at = now(agent);
    if (at >= deadline) return behind;
    (void)wait_until(
        agent, [] { return false; }, std::min(deadline, at + kPause));
  }
}

Instant now(const Agent& agent) { return core_of(agent)->now(); }

base::YieldPrice& yields(const Agent& agent) { return core_of(agent)->lane.yields(); }

base::SpinCredit& spins(const Agent& agent) { return core_of(agent)->lane.spins(); }

std::string status_page(const Agent& agent) { return core_of(agent)->status_teller.path(); }

const AgentOptions& options_of(const Agent& agent) { return core_of(agent)->options; }

const base::Logger& log_of(const Agent& agent) { return core_of(agent)->log; }

std::uint64_t born_of(const Agent& agent) { return core_of(agent)->identity.born; }

bool says_driven(const Agent& agent) { return core_of(agent)->identity.driven; }

void say_driven(const Agent& agent, bool driven) {
  if (!core_of(agent)->is_closed()) core_of(agent)->say_driven(driven);
}

bool is_driven(const Agent& agent) { return core_of(agent)->lane.driven(); }

Status usable(const Agent& agent, std::string_view call) { return core_of(agent)->usable(call); }

Status not_forked(const Agent& agent, std::string_view call) {
  return core_of(agent) == nullptr ? Status() : core_of(agent)->not_forked(call);
}

bool has_notifications(const Agent& agent) { return core_of(agent)->inbox.has_notifications(); }

Status add_regions(const Agent& agent, std::span<const RegionOptions> wanted,
                   std::vector<std::shared_ptr<LocalRegion>>* regions, std::size_t* wrong) {
  return core_of(agent)->region_maker.add(wanted, regions, wrong);
}

Status close_regions(const Agent& agent, std::span<const std::shared_ptr<LocalRegion>> regions, Duration timeout) {
  return core_of(agent)->region_closer.close(regions, timeout);
}

void run_for_user(const Agent& agent, const std::function<void()>& code) {
  assume_in_lane();
  core_of(agent)->lane.run_for_user(code);
}

Peer peer_of(const Session& session) { return Peer(session.peer); }

Tenancy* tenancy(const Session& session, const Service& service) { return session.tenancies[service.place()].get(); }

void keep_tenancy(Session& session, const Service& service, std::unique_ptr<Tenancy> tenancy) {
  session.tenancies[service.place()] = std::move(tenancy);
  session.has_tenancies = true;
}

std::shared_ptr<Session> session_apart(const Peer& peer) {
  struct Apart {
    explicit Apart(std::shared_ptr<PeerCore> core)
        : inbox(1), session(std::move(core), proto::NotifyLimits{}, inbox, {}) {}
    Inbox inbox;
    Session session;
  };
  auto made = std::make_shared<Apart>(core_of(peer));
  return {made, &made->session};
}

}  // namespace hawser::agent::inner
