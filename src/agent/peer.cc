// The door's Peer.

#include <hawser/peer.h>

#include <algorithm>
#include <cstring>

#include "agent/core.h"
#include "agent/engine/unacknowledged.h"
#include "agent/fork_guard.h"
#include "base/bytes.h"
#include "base/inside.h"
#include "base/shown.h"
#include "base/try.h"
#include "wire/table.h"

namespace hawser::agent {

namespace {

using RegionResult = Result<std::shared_ptr<const RemoteRegion>>;

std::shared_ptr<const RemoteRegion> make_remote(const std::shared_ptr<PeerCore>& peer, const wire::CardRegion& region)
    HAWSER_REQUIRES(peer->use().mutex) {
  std::weak_ptr<const RemoteRegion>& known = peer->use().handle_of(region.index);
  if (auto same = known.lock(); same && same->generation == region.generation && same->key == region.key) return same;
  auto made = remote_region(peer, region, std::string(region.name));
  for (const wire::CardBackend& backend : peer->use().card->backends()) {
    if (region.extra_count == 0) break;
    const std::string_view extra = peer->use().card->extra(region, backend.name);
    if (!extra.empty()) made->extras.emplace_back(backend.name, extra);
  }
  known = made;
  return made;
}

/// The agent's own regions as a peer would see them.
std::shared_ptr<const RemoteRegion> make_own(const std::shared_ptr<PeerCore>& self, const backend::RegionEntry& entry) {
  const base::MutexLock lock(self->use().mutex);
  std::weak_ptr<const RemoteRegion>& known = self->use().handle_of(entry.index);
  if (auto same = known.lock(); same && same->generation == entry.generation) return same;
  auto made = remote_region(self, entry, entry.name);
  known = made;
  return made;
}

Status no_such_region(const Peer& peer, const std::string& what) {
  std::string names;
  constexpr std::size_t kNamesShown = 8;
  const std::vector<std::string> all = peer.region_names();
  for (std::size_t i = 0; i < all.size() && i < kNamesShown; ++i) names += (i == 0 ? "" : ", ") + base::shown(all[i]);
  if (all.size() > kNamesShown) names += ", and " + std::to_string(all.size() - kNamesShown) + " more";
  Status missing(Code::kNotFound, "peer '" + std::string(peer.name()) + "' has no region " + what);
  if (!all.empty()) return missing.with_peer(peer.name()).with_advice("it has: " + names);
  if (peer.is_self()) return missing.with_peer(peer.name()).with_advice("register one first");
  return missing.with_peer(peer.name())
      .with_advice("the card that is known of it names no region: add the peer again with a card of after it has some");
}

/// Good, or kInvalid because its agent was the parent's. A lock of a peer may be held for ever in the child.
Status not_forked(const PeerCore& peer) {
  if (peer.forks == forks_so_far()) [[likely]]
    return {};
  const auto core = peer.core.lock();
  return core ? core->not_forked("Peer::region") : Status();  // One that is gone has no threads.
}

template <typename Match>
RegionResult own_region(const std::shared_ptr<PeerCore>& self, const Match& match, const Status& missing) {
  const auto core = self->core.lock();
  if (!core) return missing;
  for (const auto& entry : core->region_book.open_entries()) {
    if (match(*entry)) return make_own(self, *entry);
  }
  return missing;
}

const wire::CardRegion* known_region(const PeerCore& peer, const RegionId& id) HAWSER_REQUIRES(peer.use().mutex) {
  const wire::CardRegion* const region = peer.use().card ? peer.use().card->find(id.index) : nullptr;
  const bool is_it = region != nullptr && region->generation == id.generation && region->key == id.key;
  return is_it ? region : nullptr;
}

RegionResult find_region(const Peer& peer, std::string_view name) {
  if (!peer.valid()) return Status(Code::kInvalid, "Peer::region: this handle is empty");
  const std::shared_ptr<PeerCore>& core = core_of(peer);
  HAWSER_TRY(not_forked(*core));
  if (core->is_self) {
    return own_region(
        core, [&](const backend::RegionEntry& entry) { return entry.listed && entry.name == name; },
        Status(Code::kNotFound, "this agent has no region '" + std::string(name) + "'"));
  }
  {
    const base::MutexLock lock(core->use().mutex);
    const wire::CardRegion* region = core->use().card && !name.empty() ? core->use().card->find_name(name) : nullptr;
    if (region != nullptr) return make_remote(core, *region);
  }
  return no_such_region(peer, "'" + std::string(name) + "'");
}

RegionResult find_region(const Peer& peer, std::uint32_t index) {
  if (!peer.valid()) return Status(Code::kInvalid, "Peer::region: this handle is empty");
  const std::shared_ptr<PeerCore>& core = core_of(peer);
  HAWSER_TRY(not_forked(*core));
  if (core->is_self) {
    return own_region(
        core, [&](const backend::RegionEntry& entry) { return entry.index == index; },
        Status(Code::kNotFound, "this agent has no region #" + std::to_string(index)));
  }
  {
    const base::MutexLock lock(core->use().mutex);
    const wire::CardRegion* region = core->use().card ? core->use().card->find(index) : nullptr;
    if (region != nullptr) return make_remote(core, *region);
  }
  return no_such_region(peer, "#" + std::to_string(index));
}

RemoteRange whole(std::shared_ptr<const RemoteRegion> region) {
  const std::uint64_t size = region->size;
  return {.region = std::move(region), .offset = 0, .size = size};
}

/// Only a session that has to be opened needs it.
Instant time_for(Core& core, const Session& session) HAWSER_REQUIRES(in_lane) {
  return session.control_serial != 0 ? Instant() : core.lane.now();
}

/// Where a ring took a message there is nothing left to do; but only a turn finds what goes to the agent itself. A turn
/// while transfers are under way may copy for milliseconds: a driver does that, not who sends a message.
void turn_if_needed(Core& core, const PeerCore& to) HAWSER_REQUIRES(in_lane) {
  const bool is_drivers = core.lane.driven() && core.engine.transfers().in_flight() > 0;
  if (to.is_self || (core.engine.sessions().has_work() && !is_drivers)) core.lane.turn(core.lane.now());
}

/// Room in the queue of messages is not told; what is said of it is looked at again after so long.
constexpr Duration kSendAgain = std::chrono::milliseconds(2);

Status unreached_status(PeerCore& peer) {
  const base::MutexLock lock(peer.use().mutex);
  return peer.use().unreached_why;
}

/// Whether a thread that does not get the lane's lock may leave what it sends. There must be a driver, which turns the
/// lane soon: who holds the lock of a polled agent may be done with it, and nobody would look until the next poll. And
/// where there is a session, nothing but room can be missing.
bool may_leave(const Core& core, const PeerCore& peer) {
  return core.lane.driven() && peer.use().is_greeted.load(std::memory_order_acquire) &&
         !peer.use().is_unreached.load(std::memory_order_acquire) &&
         peer.state.load(std::memory_order_acquire) == PeerState::kUp;
}

/// What became of what was to be left. Nothing: it may not be left, or so much was left already that the sender has to
/// wait for the lane.
using Left = std::optional<Status>;
/// A message that was left has a number. Nothing: as for Left.
using LeftMessage = std::optional<Result<std::uint64_t>>;

LeftMessage leave_message(Core& core, const std::shared_ptr<PeerCore>& peer, std::uint32_t channel,
                          std::span<const std::byte> bytes) {
  if (!may_leave(core, *peer)) return std::nullopt;
  LeftOver left{
      .peer = peer, .bytes = std::string(base::as_text(bytes)), .kind = LeftOver::Kind::kMessage, .channel = channel};
  ChannelCredits::Ticket ticket;
  const auto leave = [&](const ChannelCredits::Ticket& its) {
    left.epoch = its.epoch;
    left.priority = its.priority;
    return core.lane.leave_quietly(std::move(left));
  };
  const ChannelCredits::Taken taken = peer->use().channels.try_leave(channel, bytes.size(), &ticket, leave);
  if (taken == ChannelCredits::Taken::kNotLeft) return std::nullopt;
  if (taken != ChannelCredits::Taken::kYes) return MessageDesk::no_room(*peer, channel);
  core.lane.tell_of_left();
  return ticket.number;
}

Left leave_notification(Core& core, const std::shared_ptr<PeerCore>& peer, std::string_view text) {
  if (!may_leave(core, *peer)) return std::nullopt;
  if (!peer->use().notify_out.try_take(text.size())) return MessageDesk::no_room_to_notify(*peer);
  LeftOver left{.peer = peer, .bytes = std::string(text), .kind = LeftOver::Kind::kNotification};
  if (core.lane.leave(std::move(left))) return Status();
  peer->use().notify_out.give_back(text.size());
  return std::nullopt;
}

/// Other threads leave messages of this channel all the time, which go first: this one joins their queue.
Result<std::uint64_t> send_behind(Core& core, const std::shared_ptr<PeerCore>& peer, std::uint32_t channel,
                                  std::span<const std::byte> bytes) HAWSER_REQUIRES(in_lane) {
  LeftMessage left = leave_message(core, peer, channel, bytes);
  core.lane.take_left_over(core.lane.now());
  if (left) return *std::move(left);
  return Status(Code::kBusy, "send: the queue of messages to " + peer->name + " is full").with_peer(peer->name);
}

Result<std::uint64_t> send_now(Core& core, const std::shared_ptr<PeerCore>& peer, std::uint32_t channel,
                               std::span<const std::byte> bytes) {
  if (!core.lane.try_lock()) {
    if (LeftMessage left = leave_message(core, peer, channel, bytes)) return *std::move(left);
    core.lane.lock();
  }
  core.lane.take_left_over(core.lane.now());
  Session& session = core.engine.sessions().of(peer);
  MessageDesk::Sending sending = core.engine.messages().send(session, channel, bytes, time_for(core, session));
  if (!sending) [[unlikely]]
    sending = send_behind(core, peer, channel, bytes);
  turn_if_needed(core, *peer);
  core.lane.unlock();
  core.lane.wake();
  return *std::move(sending);
}

Status notify_now(Core& core, const std::shared_ptr<PeerCore>& peer, std::string_view text) {
  if (!core.lane.try_lock()) {
    if (const Left left = leave_notification(core, peer, text)) return *left;
    core.lane.lock();
  }
  core.lane.take_left_over(core.lane.now());
  Session& session = core.engine.sessions().of(peer);
  const Status status = core.engine.messages().notify(session, text, time_for(core, session));
  turn_if_needed(core, *peer);
  core.lane.unlock();
  core.lane.wake();
  return status;
}

/// False, and nothing looked at: the peer has no session that goes on.
template <typename Look>
bool look_at_session(const std::shared_ptr<PeerCore>& peer, const Look& look) {
  const auto core = peer && not_forked(*peer).ok() ? peer->core.lock() : nullptr;
  if (!core) return false;
  core->lane.lock();
  const bool goes_on = peer->session() != nullptr && peer->state.load(std::memory_order_acquire) != PeerState::kDown;
  if (goes_on) look(*peer->session());
  core->lane.unlock();
  return goes_on;
}

/// What its last session left, once that is over.
std::vector<Acknowledged> acknowledged_when_down(const std::shared_ptr<PeerCore>& peer) {
  if (!peer || !not_forked(*peer).ok()) return {};
  const base::MutexLock lock(peer->use().mutex);
  return peer->use().acknowledged == nullptr ? std::vector<Acknowledged>() : *peer->use().acknowledged;
}

/// Until a path is up and the peer has said what it lets us send.
Status await_greeting(Core& core, const std::shared_ptr<PeerCore>& peer, Instant deadline) {
  const std::uint32_t unreached = peer->use().unreached.load(std::memory_order_acquire);
  const auto is_down = [&] { return peer->state.load(std::memory_order_acquire) == PeerState::kDown; };
  const auto is_up = [&] {
    return peer->state.load(std::memory_order_acquire) == PeerState::kUp &&
           (peer->is_self || peer->use().is_greeted.load(std::memory_order_acquire));
  };
  const auto is_unreached = [&] { return peer->use().unreached.load(std::memory_order_acquire) != unreached; };
  core.lane.lock();
  core.engine.connector().want(core.engine.sessions().of(peer), core.now());
  core.lane.unlock();
  core.lane.wake();
  core.lane.wait_until([&] { return is_up() || is_down() || is_unreached(); }, deadline);
  if (is_up()) return {};
  if (is_down()) return agent::down_status(*peer);
  if (is_unreached()) return unreached_status(*peer);
  return Status(Code::kTimedOut, "Peer::connect: no path to '" + peer->name + "' came up in time")
      .with_peer(peer->name);
}

}  // namespace

std::shared_ptr<const RemoteRegion> find_remote(const std::shared_ptr<PeerCore>& peer, const RegionId& id) {
  if (!not_forked(*peer).ok()) return nullptr;
  const base::MutexLock lock(peer->use().mutex);
  const wire::CardRegion* const region = known_region(*peer, id);
  return region != nullptr ? make_remote(peer, *region) : nullptr;
}

std::vector<bool> are_known(PeerCore& peer, std::span<const RegionId> ids) {
  constexpr std::size_t kAtOnce = 1024;  // The lane may want the lock.
  std::vector<bool> known(ids.size());
  for (std::size_t first = 0; first < ids.size(); first += kAtOnce) {
    const base::MutexLock lock(peer.use().mutex);
    for (std::size_t i = first; i < std::min(ids.size(), first + kAtOnce); ++i) {
      known[i] = known_region(peer, ids[i]) != nullptr;
    }
  }
  return known;
}

}  // namespace hawser::agent

HAWSER_NAMESPACE_BEGIN

std::string to_string(const Incarnation& incarnation) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  for (const std::byte byte : incarnation.bytes) {
    text += kDigits[std::to_integer<unsigned>(byte) >> 4];
    text += kDigits[std::to_integer<unsigned>(byte) & 15];
  }
  return text;
}

std::string_view Peer::name() const { return core_ ? std::string_view(core_->name) : std::string_view(); }

Incarnation Peer::incarnation() const {
  Incarnation result;
  if (!core_) return result;
  for (std::size_t i = 0; i < 8; ++i) {
    result.bytes[i] = static_cast<std::byte>(core_->incarnation.hi >> (56 - 8 * i));
    result.bytes[8 + i] = static_cast<std::byte>(core_->incarnation.lo >> (56 - 8 * i));
  }
  return result;
}

PeerState Peer::state() const { return core_ ? core_->state.load(std::memory_order_acquire) : PeerState::kDown; }
bool Peer::is_self() const { return core_ && core_->is_self; }

Result<RemoteRange> Peer::region(std::string_view name) const {
  agent::RegionResult found = agent::find_region(*this, name);
  if (!found) return found.error();
  return agent::whole(std::move(*found));
}

Result<RemoteRange> Peer::region(std::uint32_t index) const {
  agent::RegionResult found = agent::find_region(*this, index);
  if (!found) return found.error();
  return agent::whole(std::move(*found));
}

std::vector<std::string> Peer::region_names() const {
  std::vector<std::string> names;
  if (!core_ || !agent::not_forked(*core_).ok()) return names;
  const auto add = [&](std::string_view name, std::uint32_t index) {
    names.push_back(name.empty() ? "#" + std::to_string(index) : std::string(name));
  };
  if (core_->is_self) {
    if (const auto core = core_->core.lock()) {
      for (const auto& entry : core->region_book.open_entries()) {
        if (entry->listed) add(entry->name, entry->index);
      }
    }
    return names;
  }
  const base::MutexLock lock(core_->use().mutex);
  if (!core_->use().card) return names;
  core_->use().card->for_each([&](const wire::CardRegion& region) { add(region.name, region.index); });
  return names;
}

RemoteRange Peer::range(std::string_view region, std::uint64_t offset, std::uint64_t size) const {
  agent::RegionResult found = agent::find_region(*this, region);
  return {.region = found ? std::move(*found) : nullptr, .offset = offset, .size = size};
}

RangeTable Peer::table(std::string_view region, std::uint64_t block_bytes) const {
  agent::RegionResult found = agent::find_region(*this, region);
  if (!found) return agent::failed_table(found.error());
  return agent::make_block_table(std::move(*found), block_bytes);
}

RangeTable Peer::table(std::string_view region, std::span<const StridedRange> ranges) const {
  agent::RegionResult found = agent::find_region(*this, region);
  if (!found) return agent::failed_table(found.error());
  return agent::make_table(std::move(*found), ranges);
}

Status Peer::await_regions(std::span<const std::string_view> names, Duration timeout) const {
  const auto core = core_ ? core_->core.lock() : nullptr;
  if (!core) return Status(Code::kInvalid, "Peer::await_regions: this handle is empty or its agent is gone");
  HAWSER_TRY(core->usable("Peer::await_regions"));
  return core->peer_finder.await_regions(core_, names, core->now() + timeout);
}

RangeTable Peer::table(std::string_view region, std::uint64_t block_bytes, Duration timeout) const {
  if (Status missing = await_regions({region}, timeout); !missing.ok()) return agent::failed_table(missing);
  return table(region, block_bytes);
}

RangeTable Peer::table(std::string_view region, std::span<const StridedRange> ranges, Duration timeout) const {
  if (Status missing = await_regions({region}, timeout); !missing.ok()) return agent::failed_table(missing);
  return table(region, ranges);
}

RangeTable Peer::import_table(std::span<const std::byte> bytes) const {
  Result<wire::TableShape> shape = wire::decode_table(bytes);
  if (!shape) return agent::failed_table(shape.error());
  agent::RegionResult found = agent::find_region(*this, shape->region);
  if (!found) return agent::failed_table(found.error());
  const agent::RegionId id{.index = (*found)->index, .generation = (*found)->generation, .key = (*found)->key};
  const bool is_reused = id.generation != shape->generation;
  if (is_reused || agent::mark_of(id) != shape->mark) {
    return agent::failed_table(
        Status(Code::kNotFound, "import_table: the table is of another " +
                                    std::string(is_reused ? "generation of region" : "process's region") + " #" +
                                    std::to_string(shape->region) + " than peer '" + core_->name + "' has now")
            .with_advice("load the peer's new card, and a table that its owner made after it"));
  }
  return agent::make_table(std::move(*found), shape->ranges);
}

Status Peer::connect(Duration timeout) const {
  const auto core = core_ ? core_->core.lock() : nullptr;
  if (!core) return Status(Code::kInvalid, "Peer::connect: this handle is empty or its agent is gone");
  if (Status status = core->usable("Peer::connect"); !status.ok()) return status;
  if (state() == PeerState::kDown) return agent::down_status(*core_);
  return agent::await_greeting(*core, core_, core->now() + timeout);
}

Status Peer::reconnect() const {
  const auto core = core_ ? core_->core.lock() : nullptr;
  if (!core) return Status(Code::kInvalid, "Peer::reconnect: this handle is empty or its agent is gone");
  if (Status status = core->usable("Peer::reconnect"); !status.ok()) return status;
  if (state() == PeerState::kDown) return agent::down_status(*core_);
  core->lane.lock();
  core->engine.connector().reconnect(core->engine.sessions().of(core_), core->now());
  core->lane.turn(core->now());
  core->lane.unlock();
  core->lane.wake();
  return {};
}

Status Peer::notify(std::string_view text) const {
  const auto core = core_ ? core_->core.lock() : nullptr;
  if (!core) return Status(Code::kInvalid, "Peer::notify: this handle is empty or its agent is gone");
  if (Status status = core->usable("Peer::notify"); !status.ok()) return status;
  if (text.size() > kMessageMax) {
    return Status(Code::kInvalid,
                  "Peer::notify: " + std::to_string(text.size()) + " bytes are more than kMessageMax, 65536");
  }
  if (state() == PeerState::kDown) return agent::down_status(*core_);
  return agent::notify_now(*core, core_, text);
}

Result<std::uint64_t> Peer::send(std::uint32_t channel, std::span<const std::byte> bytes) const {
  return send(channel, bytes, Duration::zero());
}

Result<std::uint64_t> Peer::send(std::uint32_t channel, std::span<const std::byte> bytes, Duration timeout) const {
  const auto core = core_ ? core_->core.lock() : nullptr;
  if (!core) return Status(Code::kInvalid, "Peer::send: this handle is empty or its agent is gone");
  if (Status status = core->usable("Peer::send"); !status.ok()) return status;
  if (channel < wire::kUserChannelMin || bytes.size() > kMessageMax) {
    return Status(Code::kInvalid, "Peer::send: channel " + std::to_string(channel) + " must be at least 16, and " +
                                      std::to_string(bytes.size()) + " bytes at most kMessageMax, 65536");
  }
  const Instant deadline = timeout > Duration::zero() ? core->now() + timeout : Instant::min();
  const bool is_greeted = is_self() || core_->use().is_greeted.load(std::memory_order_acquire);
  if (timeout > Duration::zero() && !is_greeted) {
    HAWSER_TRY(agent::await_greeting(*core, core_, deadline));
  }
  for (;;) {
    if (state() == PeerState::kDown) return agent::down_status(*core_);
    const std::uint32_t seen = core_->use().news.load(std::memory_order_acquire);
    const std::uint32_t unreached = core_->use().unreached.load(std::memory_order_acquire);
    Result<std::uint64_t> sent = agent::send_now(*core, core_, channel, bytes);
    if (sent || sent.error().code() != Code::kBusy || core->now() >= deadline) return sent;
    const auto changed = [&] {
      return core_->use().news.load(std::memory_order_acquire) != seen || state() == PeerState::kDown ||
             core_->use().unreached.load(std::memory_order_acquire) != unreached;
    };
    core->lane.wait_until(changed, std::min(deadline, core->now() + agent::kSendAgain));
    if (core_->use().unreached.load(std::memory_order_acquire) != unreached) return agent::unreached_status(*core_);
  }
}

std::uint64_t Peer::acknowledged(std::uint32_t channel) const {
  std::uint64_t number = 0;
  const bool is_known = agent::look_at_session(
      core_, [&](const agent::Session& session) { number = agent::acknowledged_on(session, channel); });
  if (is_known) return number;
  for (const Acknowledged& each : agent::acknowledged_when_down(core_)) {
    if (each.channel == channel) return each.number;
  }
  return 0;
}

std::vector<Acknowledged> Peer::acknowledged() const {
  std::vector<Acknowledged> all;
  const bool is_known =
      agent::look_at_session(core_, [&](const agent::Session& session) { all = agent::acknowledged_of(session); });
  return is_known ? all : agent::acknowledged_when_down(core_);
}

bool Peer::opened(std::uint32_t channel) const {
  const auto core = core_ ? core_->core.lock() : nullptr;
  if (!core || !core->usable("Peer::opened").ok()) return false;
  return core_->use().channels.is_open(channel);
}

HAWSER_NAMESPACE_END
