// The door's Agent.

#include <hawser/agent.h>
#include <hawser/version.h>

#include <algorithm>
#include <atomic>
#include <cctype>

#include "agent/admission_ticket.h"
#include "agent/core.h"
#include "agent/default_backends.h"
#include "agent/fork_guard.h"
#include "base/inside.h"
#include "base/try.h"

namespace hawser::agent {
namespace {

/// The user took these: their places go back to the senders, by whoever holds the lane.
void release_taken(Core& core, std::uint32_t channel, std::span<const Message> taken) {
  for (std::size_t i = 0; i < taken.size();) {
    const std::shared_ptr<PeerCore>& peer = core_of(taken[i].peer);
    LeftOver left{
        .peer = peer, .kind = LeftOver::Kind::kRelease, .channel = channel, .epoch = peer->use().channels.epoch()};
    for (; i < taken.size() && core_of(taken[i].peer) == peer; ++i) {
      ++left.messages;
      left.freed += taken[i].bytes.size();
    }
    if (!core.lane.try_lock()) {
      if (core.lane.driven() && core.lane.leave(std::move(left))) continue;
      core.lane.lock();
    }
    core.engine.messages().take_left_over(std::move(left), core.lane.now());
    core.lane.unlock();
    core.lane.wake();
  }
}

/// The user took a notification of so many bytes: its place goes back to the sender.
void release_taken(Core& core, const std::shared_ptr<PeerCore>& peer, std::size_t bytes) {
  const Released::Sum all = peer->use().released.add(bytes);
  // The lane is kept out of most calls, unless the sender may be waiting.
  const bool may_wait = peer->use().is_pinched.load(std::memory_order_seq_cst);
  if (!may_wait && all.bytes + all.messages * wire::kNotificationCost < kUntoldMax) return;
  core.lane.lock();
  core.engine.arrivals().release(*peer);
  core.lane.unlock();
  core.lane.wake();
}

}  // namespace
}  // namespace hawser::agent

HAWSER_NAMESPACE_BEGIN

namespace {

/// What calls of an agent without anything behind it answer: it was moved from.
Status not_empty(const char* call, bool has_core) {
  if (has_core) return {};
  return Status(Code::kInvalid, std::string(call) + ": this agent is empty: it was moved to another variable");
}

}  // namespace

Result<Agent> Agent::open(AgentOptions options) {
  std::vector<backend::Factory> factories = agent::all_backends(options.plugin_paths, base::Logger(options.log));
  Result<std::shared_ptr<agent::Core>> core = agent::Core::open(std::move(options), std::move(factories), {});
  if (!core) return core.error();
  return Agent(std::move(*core));
}

Agent& Agent::operator=(Agent&& other) noexcept {
  if (this != &other) {
    Agent gone(std::move(*this));
    core_ = std::move(other.core_);
  }
  return *this;
}

Agent::~Agent() {
  if (!core_ || core_->disowned()) return;
  // What is not quiet by then is reported to nobody: close() is there for those who want to know.
  constexpr Duration kPatience = std::chrono::milliseconds(200);
  core_->shutdown.close_for_good(kPatience);
}

std::string_view Agent::name() const {
  if (!core_) return {};
  return core_->options.name;
}
Incarnation Agent::incarnation() const { return self().incarnation(); }
Status Agent::close(Duration timeout) {
  HAWSER_TRY(not_empty("Agent::close", core_ != nullptr));
  return core_->shutdown.close(timeout);
}

Result<Region> Agent::add_region(const RegionOptions& options) {
  HAWSER_TRY(not_empty("Agent::add_region", core_ != nullptr));
  HAWSER_TRY_ASSIGN(std::shared_ptr<agent::LocalRegion> made, core_->region_maker.add(options));
  return Region(std::move(made));
}
Result<Region> Agent::add_file(const FileOptions& options) {
  HAWSER_TRY(not_empty("Agent::add_file", core_ != nullptr));
  HAWSER_TRY_ASSIGN(std::shared_ptr<agent::LocalRegion> made, core_->region_maker.add_file(options));
  return Region(std::move(made));
}
Result<Region> Agent::allocate(const AllocateOptions& options) {
  HAWSER_TRY(not_empty("Agent::allocate", core_ != nullptr));
  HAWSER_TRY_ASSIGN(std::shared_ptr<agent::LocalRegion> made, core_->region_maker.allocate(options));
  return Region(std::move(made));
}

Result<std::string> Agent::card() const {
  HAWSER_TRY(not_empty("Agent::card", core_ != nullptr));
  HAWSER_TRY(core_->not_forked("card"));
  return core_->own_card.full();
}
std::string Agent::ticket() const {
  if (!core_ || core_->identity.admission.is_zero()) return {};
  return agent::to_string(agent::AdmissionTicket{core_->identity.public_key, core_->identity.admission});
}
Result<std::string> Agent::partial_card(std::span<const std::uint32_t> regions) const {
  HAWSER_TRY(not_empty("Agent::partial_card", core_ != nullptr));
  HAWSER_TRY(core_->not_forked("partial_card"));
  return core_->own_card.partial(regions);
}
Result<std::string> Agent::card_delta(std::uint64_t since_revision) const {
  HAWSER_TRY(not_empty("Agent::card_delta", core_ != nullptr));
  HAWSER_TRY(core_->not_forked("card_delta"));
  return core_->own_card.since(since_revision);
}
std::uint64_t Agent::card_revision() const {
  if (!core_) return {};
  return core_->own_card.revision();
}

Result<Peer> Agent::add_peer(std::span<const std::byte> card) {
  HAWSER_TRY(not_empty("Agent::add_peer", core_ != nullptr));
  HAWSER_TRY(core_->usable("add_peer"));
  HAWSER_TRY_ASSIGN(std::shared_ptr<agent::PeerCore> peer, core_->card_intake.take_anew(card));
  return Peer(std::move(peer));
}

Result<Peer> Agent::find_peer(std::string_view name, Duration timeout) {
  return find_peer(name, std::span<const std::string_view>(), timeout);
}

Result<Peer> Agent::find_peer(std::string_view name, std::span<const std::string_view> regions, Duration timeout) {
  HAWSER_TRY(not_empty("Agent::find_peer", core_ != nullptr));
  Result<std::shared_ptr<agent::PeerCore>> peer = core_->peer_finder.find(name, regions, core_->now() + timeout);
  if (!peer) return peer.error();
  return Peer(std::move(*peer));
}

std::vector<Peer> Agent::peers() const {
  if (!core_) return {};
  std::vector<Peer> all;
  for (auto& peer : core_->peers()) all.emplace_back(std::move(peer));
  return all;
}

Status Agent::invalidate(const Peer& peer) {
  HAWSER_TRY(not_empty("Agent::invalidate", core_ != nullptr));
  HAWSER_TRY(core_->not_forked("invalidate"));
  HAWSER_TRY(core_->not_inline("invalidate"));
  if (!peer.valid() || core_of(peer)->core.lock() != core_) {
    return Status(Code::kInvalid, "invalidate: the peer handle is empty or of another agent");
  }
  if (peer.is_self()) return Status(Code::kInvalid, "invalidate: an agent cannot forget itself");
  if (peer.state() == PeerState::kDown) return {};
  const Status cause = Status(Code::kCancelled, "the peer was invalidated").with_peer(peer.name());
  core_->lane.lock();
  core_->lane.take_left_over(core_->now());  // What was sent to it before goes out first.
  agent::Session& session = core_->engine.sessions().of(core_of(peer));
  const bool is_idle = session.slots == 0;
  core_->engine.connector().invalidate(session, cause, core_->now());
  if (!is_idle) core_->lane.turn(core_->now());
  core_->lane.unlock();
  if (is_idle) core_->lane.news();
  core_->lane.wake();
  return {};
}

Result<std::size_t> Agent::end(std::uint64_t label, const Status& status) {
  HAWSER_TRY(not_empty("Agent::end", core_ != nullptr));
  if (Status unusable = core_->usable("Agent::end"); !unusable.ok()) return unusable;
  if (label == 0) return Status(Code::kInvalid, "Agent::end: label 0 is that of transfers without one");
  if (status.ok()) return Status(Code::kInvalid, "Agent::end: a transfer that is ended early cannot end well");
  core_->lane.lock();
  const Instant now = core_->now();
  core_->lane.take_submissions(agent::kSubmissionsMax, now);  // What was submitted before this call is in there.
  const std::size_t ended = core_->engine.transfers().end_label(label, status, now);
  core_->lane.turn(now);
  core_->lane.unlock();
  core_->lane.news();
  core_->lane.wake();
  return ended;
}

Peer Agent::self() const {
  if (!core_) return {};
  return Peer(core_->peer_book.self());
}

Status Agent::add_backend(const BackendSpec& spec) {
  HAWSER_TRY(not_empty("Agent::add_backend", core_ != nullptr));
  return core_->backend_opener.add(spec);
}
std::vector<BackendReport> Agent::backends() const {
  if (!core_) return {};
  return core_->reports();
}
bool Agent::has_backend(std::string_view name) const { return require_backend(name).ok(); }

Status Agent::require_backend(std::string_view name) const {
  HAWSER_TRY(not_empty("Agent::require_backend", core_ != nullptr));
  HAWSER_TRY(core_->not_forked("require_backend"));
  std::string known;
  for (const BackendReport& report : core_->reports()) {
    const bool same = report.name.size() == name.size() &&
                      std::equal(name.begin(), name.end(), report.name.begin(),
                                 [](char a, char b) { return std::tolower(static_cast<unsigned char>(a)) == b; });
    if (same && report.open) return {};
    if (same) return Status(report.cause.code(), "backend '" + report.name + "' is not open").because(report.cause);
    if (report.open) known += (known.empty() ? "" : ", ") + report.name;
  }
  return Status(Code::kNotFound, "agent '" + std::string(this->name()) + "' has no backend '" + std::string(name) + "'")
      .with_advice("open are: " + known);
}

std::optional<Notification> Agent::take_notification() {
  Notification one;
  if (take_notifications({&one, 1}) == 0) return std::nullopt;
  return one;
}

std::size_t Agent::take_notifications(std::span<Notification> out) {
  if (!core_) return {};
  if (core_->disowned()) return 0;
  const std::size_t taken = core_->inbox.take_notifications(out);
  for (std::size_t i = 0; i < taken; ++i) agent::release_taken(*core_, core_of(out[i].peer), out[i].text.size());
  return taken;
}

std::optional<PeerEvent> Agent::take_event() {
  if (!core_) return {};
  if (core_->disowned()) return std::nullopt;
  return core_->inbox.take_event();
}

Status Agent::open_channel(std::uint32_t channel, std::uint32_t credit, Priority priority) {
  HAWSER_TRY(not_empty("Agent::open_channel", core_ != nullptr));
  if (Status status = core_->usable("open_channel"); !status.ok()) return status;
  constexpr std::uint32_t kCreditMax = 1u << 20;
  if (channel < wire::kUserChannelMin || credit == 0 || credit > kCreditMax) {
    return Status(Code::kInvalid, "open_channel: channel " + std::to_string(channel) +
                                      " must be at least 16 and credit " + std::to_string(credit) + " in 1..2^20");
  }
  if (static_cast<std::size_t>(priority) >= wire::kClasses) {
    return Status(Code::kInvalid, "open_channel: priority " + std::to_string(static_cast<unsigned>(priority)) +
                                      " must be 0 (critical), 1 (realtime) or 2 (bulk)");
  }
  core_->lane.lock();
  const Status opened = core_->engine.messages().open_channel(channel, credit, priority);
  core_->lane.unlock();
  core_->lane.wake();
  return opened;
}

std::optional<Message> Agent::take_message(std::uint32_t channel) {
  Message one;
  if (take_messages(channel, {&one, 1}) == 0) return std::nullopt;
  return one;
}

std::size_t Agent::take_messages(std::uint32_t channel, std::span<Message> out) {
  if (!core_) return {};
  if (core_->disowned()) return 0;
  const std::size_t taken = core_->inbox.take_messages(channel, out);
  if (taken > 0) agent::release_taken(*core_, channel, out.first(taken));
  return taken;
}

Result<CompletionQueue> Agent::make_queue(std::size_t capacity) {
  HAWSER_TRY(not_empty("Agent::make_queue", core_ != nullptr));
  if (Status status = core_->usable("make_queue"); !status.ok()) return status;
  Result<std::shared_ptr<agent::QueueCore>> queue = agent::QueueCore::make(core_, capacity);
  if (!queue) return queue.error();
  core_->queues.add(*queue);
  return CompletionQueue(std::move(*queue));
}

std::size_t Agent::poll() {
  if (!core_) return {};
  if (core_->disowned() || core_->is_closed()) return 0;
  return core_->lane.try_turn();
}

bool Agent::wait(Duration timeout) {
  if (!core_) return false;
  if (!core_->usable("wait").ok()) return false;
  const std::uint64_t before = core_->inbox.arrivals();
  const std::uint64_t ended = core_->lane.ended();
  return core_->lane.wait_until(
      [&] {
        return core_->inbox.arrivals() != before || core_->lane.ended() != ended || core_->inbox.has_notifications();
      },
      core_->now() + timeout);
}

int Agent::event_fd() const {
  if (!core_) return -1;
  if (core_->disowned()) return -1;
  const Result<int> fd = core_->lane.event_fd();
  return fd ? *fd : -1;
}

AgentCounters Agent::counters() const {
  if (!core_) return {};
  return core_->counters();
}

const char* version() noexcept { return HAWSER_VERSION; }

std::size_t CompletionQueue::poll(std::span<Completion> out) { return core_ ? core_->poll(out) : 0; }
int CompletionQueue::event_fd() const { return core_ ? core_->event_fd() : -1; }
std::size_t CompletionQueue::capacity() const { return core_ ? core_->capacity() : 0; }

std::size_t CompletionQueue::wait(std::span<Completion> out, Duration timeout) {
  if (!core_) return 0;
  if (const std::size_t taken = core_->poll(out); taken > 0 || out.empty()) return taken;
  const auto core = core_->agent_core();
  if (!core || !core->usable("CompletionQueue::wait").ok()) return core_->poll(out);
  core->lane.wait_until([&] { return !core_->empty() || core->is_closed(); }, core->now() + timeout);
  return core_->poll(out);
}

HAWSER_NAMESPACE_END
