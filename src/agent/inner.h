#pragma once

// The inner door: what layers of this library that stand on the agent use of it beside the public headers. A layer
// opens an agent with a service of its own, calls into it under the lane's lock, and waits for what the lane does. The
// door has more leaves: inner_plans.h, inner_peers.h, inner_regions.h, inner_identity.h, and inner_simulator.h for the
// simulators.
//
// Thread rule: thread-safe, except where "under the lane" is said.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <hawser/agent.h>
#include <hawser/directory.h>

#include "agent/describe.h"
#include "agent/left_over.h"
#include "agent/open.h"
#include "agent/region.h"
#include "agent/service.h"
#include "base/log.h"
#include "base/spin_credit.h"
#include "base/yield_price.h"

namespace hawser::agent::inner {

/// Agent::open with the backends of this build and this service.
Result<Agent> open(AgentOptions options, std::function<std::shared_ptr<Service>(Carrier& carrier)> tenant);
/// The service of a layer above that the agent has, made now where it has none. The agent keeps it until its end. Peers
/// in session learn of its channels. What `make` gives is that layer's only: it knows whether it is what it made.
Result<std::shared_ptr<Service>> tenant_of(const Agent& agent, std::string_view what,
                                           const std::function<std::shared_ptr<Service>(Carrier& carrier)>& make);
/// The peer's handle is one of this agent's.
bool knows(const Agent& agent, const Peer& peer);
/// Another handle of the agent. It must not close the agent when it goes: see let_go in base/inside.h.
Agent borrowed(const Agent& agent);
/// Agent::open with keys and an admission secret that are not its own alone. kInvalid: security `none` proves nothing.
Result<Agent> open_as(AgentOptions options, const OwnSecrets& secrets);
/// How somebody who has `secrets` types the address of the agent that was opened so: "10.0.0.5:7000#TICKET".
std::string address_with(std::string_view address, const OwnSecrets& secrets);

/// "host:port" with the host's name resolved; several have commas between them.
Result<std::string> resolve(std::string_view address, Instant deadline);

/// The directory's answer; none by the deadline: then the request is taken back. The caller does the directory's work
/// while there is some, and else `rest`.
std::optional<DirectoryEvent> ask(Directory& directory, Ticket ticket, Instant deadline,
                                  const std::function<void()>& rest);

/// Runs `call` under the lane's lock, then a turn for what it began. Not called where the agent is closed, or belongs
/// to the process that this one was forked from: that is the error.
Status under_lane(const Agent& agent, std::string_view what, const std::function<void(Instant now)>& call);
/// What the lane needs after a call that may have done all by itself. Without a turn the agent sends nothing that the
/// call began.
enum class Need : std::uint8_t {
  kNothing,  ///< All is done that the call began.
  kDriver,   ///< The driver, or the next poll, goes on with what the call began.
  kTurn,     ///< Now.
};
/// The same, but the lane turns only where it needs to, or has not turned for a while. `waits`: the caller waits, and
/// looks for what it waits for by such calls.
Status under_lane_lightly(const Agent& agent, std::string_view what, const std::function<Need(Instant now)>& call,
                          bool waits = false);
/// As under_lane_lightly, for a call that only begins something. If the lock is free, this thread runs `call`. If
/// another thread holds it, and a driver runs the lane, this thread leaves to the driver what `later` makes, and
/// returns. The driver runs it soon, before all calls that come by this door afterwards. If the driver has kLeftOverMax
/// of them to run, this thread waits for the lock.
Status begin_in_lane(const Agent& agent, std::string_view what, const std::function<Need(Instant now)>& call,
                     const std::function<Beginning()>& later);
/// Makes progress, or waits for the driver to, until `reached` or the deadline. See Lane::wait_until. In a forked child
/// of the agent's process it only looks.
bool wait_until(const Agent& agent, const std::function<bool()>& reached, Instant deadline);
Instant now(const Agent& agent);
/// What yields of those who wait cost: see Lane::yields.
base::YieldPrice& yields(const Agent& agent);
/// Whether those who wait may look for news: see Lane::spins.
base::SpinCredit& spins(const Agent& agent);
/// Waits until every peer that is not down has what it was sent. Those that have not by the deadline.
std::vector<Peer> flush(const Agent& agent, Instant deadline);

/// The path of the agent's status page; empty: it has none. A layer above leaves files of its own beside it.
std::string status_page(const Agent& agent);

/// As it was opened.
const AgentOptions& options_of(const Agent& agent);
const base::Logger& log_of(const Agent& agent);
/// Orders the incarnations of its name (docs/wire.md, `born`).
std::uint64_t born_of(const Agent& agent);
/// Its hellos and cards say that somebody runs it (AgentOptions::driven).
bool says_driven(const Agent& agent);
/// What hellos and cards say from now on of who runs this agent (AgentOptions::driven), for layers that bring a thread
/// with them. Peers that greeted it before keep what they heard. Nothing where the agent is closed.
void say_driven(const Agent& agent, bool driven);
/// A driver runs it now.
bool is_driven(const Agent& agent);
/// Good: `call` may go on. The agent is neither closed nor the parent's of a forked process.
Status usable(const Agent& agent, std::string_view call);
/// Good: this process opened the agent, or the agent is none any more (see `let_go`). Costs one load.
Status not_forked(const Agent& agent, std::string_view call);
/// Agent::take_notification would give one.
bool has_notifications(const Agent& agent);
/// As Agent::add_region for each of them, in fewer steps. What was added before the one that is wrong (`*wrong` is its
/// place) stays in `regions`.
Status add_regions(const Agent& agent, std::span<const RegionOptions> wanted,
                   std::vector<std::shared_ptr<LocalRegion>>* regions, std::size_t* wrong);
/// Closes them together: see Region::close.
Status close_regions(const Agent& agent, std::span<const std::shared_ptr<LocalRegion>> regions, Duration timeout);

// Under the lane.
/// Runs code of the user. What it calls of the agent is refused where it would wait for the lane.
void run_for_user(const Agent& agent, const std::function<void()>& code);
/// The handle of the session's peer.
Peer peer_of(const Session& session);
Tenancy* tenancy(const Session& session, const Service& service);
void keep_tenancy(Session& session, const Service& service, std::unique_ptr<Tenancy> tenancy);
/// A session that the engine does not know. A service that reaches a peer by other peers keeps in it what it has with
/// that peer. Nothing is sent by it, and it is not the peer's session.
std::shared_ptr<Session> session_apart(const Peer& peer);

}  // namespace hawser::agent::inner
