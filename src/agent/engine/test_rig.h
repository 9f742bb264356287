#pragma once

// What tests of the engine's members stand on: paths, ports and backends by hand, the agent around the engine by hand,
// and a rig that has the engine with all its members, without an agent, a thread or a socket.
//
// Thread rule: one thread.

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "agent/engine.h"
#include "agent/test_backend.h"
#include "base/bytes.h"
#include "base/log.h"
#include "base/test_clock.h"

namespace hawser::agent {

using namespace std::chrono_literals;

struct HandBinding final : backend::Binding {};

class HandPath final : public backend::Path {
 public:
  backend::PathState state() const override { return is_down ? backend::PathState::kDown : backend::PathState::kUp; }
  Result<backend::Binding*> bind(const backend::RemoteRegionRef& region) override {
    if (!bind_answer.ok()) return bind_answer;
    bound.emplace_back(region.index, region.generation);
    return &binding;
  }
  void unbind(std::uint32_t index, std::uint32_t generation) override { unbound.emplace_back(index, generation); }
  backend::Submitted submit(std::span<const backend::Chunk> chunks, Instant) override {
    backend::Submitted result;
    for (const backend::Chunk& chunk : chunks) {
      if (chunk_room == 0 || chunk.bytes > largest_chunk) break;
      --chunk_room;
      submitted.push_back(chunk);
      ++result.taken;
      if (is_done_at_once) ++result.done;
    }
    return result;
  }
  bool move_at_once(const backend::Chunk& chunk) override {
    if (moves_at_once) moved.push_back(chunk);
    return moves_at_once;
  }
  unsigned queue_of(wire::Link link) const override { return has_queues ? static_cast<unsigned>(link.index()) : 0; }
  bool send(wire::Link link, std::span<const std::byte> head, std::span<const std::byte> body) override {
    if (message_room == 0 || full_links.contains(link.index())) return false;
    --message_room;
    std::string message(base::as_text(head));
    message += base::as_text(body);
    sent.push_back(std::move(message));
    return true;
  }
  bool send_aside(wire::Link link, std::span<const std::byte> head, std::span<const std::byte> body) override {
    const bool is_taken = send(link, head, body);
    aside += is_taken ? 1 : 0;
    return is_taken;
  }
  bool each_untaken(const backend::SeeMessage& see) const override {
    for (std::size_t i = taken; i < sent.size(); ++i) {
      const std::size_t shown = std::min(sent[i].size(), backend::kMessageBegin);
      see(base::as_bytes(std::string_view(sent[i]).substr(0, shown)));
    }
    return knows_untaken;
  }
  bool each_whole_untaken(const backend::SeeMessage& see) const override {
    for (std::size_t i = std::max(taken, is_partly_gone); i < sent.size(); ++i) see(base::as_bytes(sent[i]));
    return knows_untaken;
  }
  void stop_taking() override { stopped_taking = true; }
  void cancel(std::uint64_t transfer) override { cancelled.push_back(transfer); }
  void give_up(const Status& why) override { given_up = why; }
  void reconnect(Instant) override { ++reconnected; }
  void set_awaited(bool is_awaited, Instant) override { awaited = is_awaited; }
  PathCounters counters() const override { return {}; }
  std::string describe() const override { return "by hand"; }

  std::set<std::size_t> full_links;  ///< The path takes no message of these.
  bool has_queues = false;           ///< Each link has its own room.

  /// Kinds of the messages that were sent, in order.
  std::vector<wire::SessionKind> kinds_sent() const {
    std::vector<wire::SessionKind> kinds;
    for (const std::string& each : sent) kinds.push_back(wire::open_envelope(base::as_bytes(each))->kind);
    return kinds;
  }

  bool is_down = false, moves_at_once = false, is_done_at_once = false, awaited = false;
  std::size_t chunk_room = 1000, message_room = 1000;
  std::uint64_t largest_chunk = UINT64_MAX;  ///< There is no room for larger ones.
  Status bind_answer, given_up;
  int reconnected = 0;
  HandBinding binding;
  std::vector<std::pair<std::uint32_t, std::uint32_t>> bound, unbound;
  std::vector<backend::Chunk> submitted, moved;
  std::vector<std::string> sent;
  std::size_t aside = 0;           ///< So many of them were sent aside.
  std::size_t taken = 0;           ///< So many of them the peer's agent has taken.
  std::size_t is_partly_gone = 0;  ///< So many of them are not whole any more.
  bool knows_untaken = true, stopped_taking = false;
  std::vector<std::uint64_t> cancelled;
};

class HandPort final : public TestPort {
 public:
  struct Opened {
    std::string peer, address;
    base::Id128 supersedes;
    Instant deadline;
  };

  Result<backend::Path*> open_path(const backend::PathTarget& target, Instant) override {
    opened.push_back({std::string(target.peer), std::string(target.address), target.supersedes, target.deadline});
    if (!open_answer.ok()) return open_answer;
    return make();
  }
  void release_path(backend::Path* path) override { released.push_back(path); }
  std::size_t turn(Instant, const backend::TurnBudget&) override {
    ++turns;
    return 0;
  }
  std::size_t poll(std::span<backend::PortEvent> out) override {
    std::size_t count = 0;
    for (; count < out.size() && !events.empty(); ++count) {
      out[count] = std::move(events.front());
      events.pop_front();
    }
    return count;
  }
  bool has_news(Instant) override {
    ++glances;
    return !events.empty();
  }
  Instant next_deadline() const override { return deadline; }
  bool prepare_sleep() override { return events.empty(); }
  void begin_close(Instant) override { is_closing = true; }

  /// A path that the peer opened, or that is about to be opened.
  HandPath* make() {
    paths.push_back(std::make_unique<HandPath>());
    return paths.back().get();
  }
  HandPath& last() { return *paths.back(); }

  Status open_answer;
  Instant deadline = Instant::max();
  int turns = 0, glances = 0;
  bool is_closing = false;
  std::vector<Opened> opened;
  std::vector<backend::Path*> released;
  std::vector<std::unique_ptr<HandPath>> paths;
  std::deque<backend::PortEvent> events;
};

/// A backend by hand, and its port, which is the engine's.
struct Hand {
  std::shared_ptr<TestBackend> backend;
  HandPort* port = nullptr;
};

inline Hand add_hand(Ports& ports, std::string name, const backend::Traits& traits = {}) {
  Hand hand{.backend = std::make_shared<TestBackend>(), .port = new HandPort};
  hand.backend->its_traits = traits;
  hand.backend->its_traits.name = "by hand";
  OpenBackend open;
  open.name = std::move(name);
  open.backend = hand.backend;
  open.port.reset(hand.port);
  open.traits = &hand.backend->its_traits;
  ports.add(std::move(open));
  return hand;
}

inline std::shared_ptr<PeerCore> hand_peer(const std::string& name, std::uint64_t number = 7) {
  return std::make_shared<PeerCore>(std::weak_ptr<Core>(), name, base::Id128{1, number});
}

/// The agent around the engine.
class HandHost final : public PeerRegister, public Cards, public Keys, public Waiters {
 public:
  Result<std::shared_ptr<PeerCore>> meet(const backend::Identity& who) override {
    if (!meet_answer.ok()) return meet_answer;
    auto& peer = known[who.incarnation];
    if (peer == nullptr) peer = std::make_shared<PeerCore>(std::weak_ptr<Core>(), who.name, who.incarnation);
    return peer;
  }
  void forget(const PeerCore& peer) override {
    forgotten.push_back(peer.name);
    known.erase(peer.incarnation);
  }
  void note_death(const PeerCore& peer, const Status&) override { dead.push_back(peer.name); }
  void note_life(const PeerCore&) override { ++alive; }
  bool speaks_for(PeerCore&, const backend::Identity&) override { return is_the_peer; }
  void note_state(const PeerCore&, PeerState state) override { noted = state; }
  void note_refusal(backend::Quota quota, std::string_view, const Status&) override { refusals.push_back(quota); }
  Status down_status(PeerCore& peer) const override { return Status(Code::kDisconnected, peer.name + " is down"); }
  Status gone_status(const PeerCore& peer, const Status& cause) const override {
    return Status(cause.code(), peer.name + " is gone: " + std::string(cause.message()));
  }
  void keep_totals(const Session&) override { ++kept; }

  std::uint64_t own_revision() const override { return revision; }
  Result<std::string> own_since(std::uint64_t since) const override { return "card since " + std::to_string(since); }
  std::uint64_t known_revision(PeerCore&) const override { return known_card; }
  Result<LoadedCard> load(std::span<const std::byte> bytes, const PeerCore&) override {
    loaded.emplace_back(base::as_text(bytes));
    if (!load_answer.ok()) return load_answer;
    return LoadedCard{.peer = card_of, .change = {}, .base = card_base};
  }
  void renew(OpenBackend& backend) override { renewed.push_back(backend.name); }

  base::Id128 make_key() override { return {9, ++keys}; }
  void hint(CompletionKind kind, std::uint64_t) override { hints.push_back(kind); }
  void wake() override { ++wakes; }

  Status meet_answer, load_answer;
  std::map<base::Id128, std::shared_ptr<PeerCore>> known;
  std::vector<std::string> forgotten, dead, loaded, renewed;
  int alive = 0, kept = 0, wakes = 0;
  bool is_the_peer = true;  ///< Who comes has the key of whom it claims to be.
  PeerState noted = PeerState::kKnown;
  std::vector<backend::Quota> refusals;
  std::uint64_t revision = 1, known_card = 0, card_base = 0;
  std::shared_ptr<PeerCore> card_of;
  std::vector<CompletionKind> hints;
  std::uint64_t keys = 0;  ///< Made so far.
};

/// The engine with all its members. `first` and `second` are its backends, the preferred one first.
class Rig {
 public:
  explicit Rig(backend::Traits first_traits = {.carries_arrivals = true}, backend::Traits second_traits = {}) {
    options.name = "here";
    identity.name = "here";
    identity.version_max = 9;
    first = add_hand(engine.ports(), "first", first_traits);
    second = add_hand(engine.ports(), "second", second_traits);
    self->is_self = true;
  }

  /// Sessions and their peers own each other until the engine lets go.
  ~Rig() { engine.shut_down(now()); }
  Rig(const Rig&) = delete;
  Rig& operator=(const Rig&) = delete;

  Instant now() const { return clock.now_; }
  void pass(Duration time) { clock.now_ = clock.now_ + time; }
  /// Turns all ports, though no time has passed.
  std::size_t turn() {
    for (std::size_t each = 0; each < 2; ++each) engine.ports().expect_answer(each);
    return engine.turn(now());
  }
  Session& session_with(const std::shared_ptr<PeerCore>& peer) { return engine.sessions().of(peer); }

  /// The peer's card names addresses for these backends.
  static void give_card(PeerCore& peer, std::span<const std::string_view> backends) {
    wire::Card card;
    card.name = peer.name;
    card.incarnation = peer.incarnation;
    card.revision = 1;
    for (const std::string_view backend : backends) card.backends.push_back({std::string(backend), "there"});
    const base::MutexLock lock(peer.use().mutex);
    peer.use().card = std::make_unique<CardStore>();
    EXPECT_TRUE(peer.use().card->take(std::move(card)));
  }

  backend::Identity identity_of(const PeerCore& peer) const {
    backend::Identity who;
    who.name = peer.name;
    who.incarnation = peer.incarnation;
    who.version_max = 9;
    return who;
  }
  /// The peer opened a path, or one that was opened here came up.
  void come_up(const Hand& hand, HandPath& path, const PeerCore& peer, std::uint64_t session = 1,
               const base::Id128& supersedes = {}) {
    identities.push_back(identity_of(peer));
    backend::PortEvent event;
    event.kind = backend::PortEvent::Kind::kPathUp;
    event.path = &path;
    event.peer = &identities.back();
    event.session = base::Id128{5, session};
    event.supersedes = supersedes;
    hand.port->events.push_back(std::move(event));
    turn();
  }
  /// The peer misses its heartbeats on the path, or is heard again.
  void fall_silent(const Hand& hand, HandPath& path, bool is_silent = true) {
    backend::PortEvent event;
    event.kind = is_silent ? backend::PortEvent::Kind::kPathSilent : backend::PortEvent::Kind::kPathHeard;
    event.path = &path;
    if (is_silent) event.status = Status(Code::kTimedOut, "no heartbeat").with_scope(Scope::kPath);
    hand.port->events.push_back(std::move(event));
    turn();
  }
  void go_down(const Hand& hand, HandPath& path, const Status& why) {
    path.is_down = true;
    backend::PortEvent event;
    event.kind = backend::PortEvent::Kind::kPathDown;
    event.path = &path;
    event.status = why;
    hand.port->events.push_back(std::move(event));
    turn();
  }
  template <typename Message>
  void receive(const Hand& hand, HandPath& path, const Message& message, std::string_view body = {}) {
    HeadArray buffer;
    messages.emplace_back(base::as_text(wire::encode(message, buffer)));
    messages.back() += body;
    backend::PortEvent event;
    event.kind = backend::PortEvent::Kind::kMessage;
    event.path = &path;
    event.bytes = base::as_bytes(messages.back());
    hand.port->events.push_back(std::move(event));
    turn();
  }
  void be_welcomed(const Hand& hand, HandPath& path, std::uint64_t number = 77, std::uint64_t of_session = 0) {
    const wire::Welcome welcome{
        .session = number, .peer_session = of_session, .notify = {.messages = wire::kNoMessageLimit, .bytes = 1 << 20}};
    receive(hand, path, welcome, wire::encode_credits({}));
  }
  void end_chunk(const Hand& hand, HandPath& path, const backend::Chunk& chunk, Status status = {}) {
    backend::PortEvent event;
    event.kind = backend::PortEvent::Kind::kChunkDone;
    event.path = &path;
    event.cookie = chunk.cookie;
    event.status = std::move(status);
    hand.port->events.push_back(std::move(event));
    turn();
  }
  /// A session that is up over a path of the first backend, which the peer opened.
  HandPath& connect(const std::shared_ptr<PeerCore>& peer) {
    host.known[peer->incarnation] = peer;
    HandPath& path = *first.port->make();
    come_up(first, path, *peer);
    be_welcomed(first, path);
    turn();
    return path;
  }

  // Transfers.
  /// A write of so many chunks of so many bytes each to a region of the peer.
  std::shared_ptr<PlanCore> plan_of(const std::shared_ptr<PeerCore>& peer, std::uint32_t chunks = 1,
                                    std::uint64_t bytes = 8) {
    auto plan = std::make_shared<PlanCore>();
    plan->peer = peer;
    auto remote = std::make_shared<RemoteRegion>();
    remote->index = 3;
    remote->generation = 1;
    remote->name = "target";
    remote->device = Device{};
    plan->remotes.push_back(std::move(remote));
    plan->pieces.groups.push_back({});
    plan->pieces.bytes = bytes * chunks;
    for (std::uint32_t i = 0; i < chunks; ++i)
      plan->chunks.chunks.push_back({.pieces = {}, .bytes = bytes, .group = 0});
    return plan;
  }
  Slot& slot_of(std::shared_ptr<PlanCore> plan) {
    Slot* const slot = slots.take();
    slot->plan = std::move(plan);
    slot->submitted = now();
    return *slot;
  }

  base::TestClock clock;
  AgentOptions options;
  backend::Identity identity;
  base::Logger log;
  Inbox inbox{100};
  backend::RegionTable regions{100};
  SlotPool slots{100};
  HandHost host;
  BackendReports reports;
  std::deque<backend::Identity> identities;
  std::deque<std::string> messages;
  const std::shared_ptr<PeerCore> self = hand_peer("here", 1);
  Engine engine{{.options = options,
                 .identity = identity,
                 .log = log,
                 .inbox = inbox,
                 .regions = regions,
                 .slots = slots,
                 .clock = clock,
                 .peers = host,
                 .cards = host,
                 .keys = host,
                 .waiters = host,
                 .reports = reports,
                 .rng = base::Rng(1)}};
  Hand first, second;
};

}  // namespace hawser::agent
