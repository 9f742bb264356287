#include "runtime/world_core.h"

#include <algorithm>
#include <cstring>
#include <functional>
#include <thread>
#include <utility>

#include "base/planted.h"
#include "base/shown.h"
#include "base/try.h"
#include "reduce/compressor.h"
#include "runtime/board_wait.h"
#include "runtime/cost_file.h"
#include "runtime/digest.h"
#include "runtime/entry.h"
#include "runtime/formation.h"
#include "runtime/graph.h"
#include "runtime/message_operations.h"
#include "runtime/proof_of_death.h"
#include "runtime/quorum.h"
#include "runtime/rank_bitmap.h"
#include "runtime/rank_list.h"
#include "runtime/relay_farewell.h"

namespace hawser::runtime {
namespace {

using agent::inner::Need;
using base::planted;
using base::Planted;
using What = schedule::Operation;

constexpr Duration kLeastTimeout = std::chrono::milliseconds(1);

}  // namespace

Result<std::shared_ptr<WorldCore>> WorldCore::open_agent(const WorldOptions& options, std::uint32_t rank,
                                                         std::uint32_t size, SeatHooks hooks) {
  const auto invalid = [](const std::string& text) { return Status(Code::kInvalid, "World: " + text); };
  if (size == 0) return invalid("a world has one rank at least");
  if (rank >= size) {
    return invalid("rank " + std::to_string(rank) + " is not one of 0 to " + std::to_string(size - 1));
  }
  if (options.name.empty() || options.name.size() > 200) return invalid("its name is not 1 to 200 bytes long");
  HAWSER_TRY(check_topology(options.topology, size));
  auto core = std::make_shared<WorldCore>();
  core->given_costs_ = hooks.told_costs;
  if (!options.cost_model.empty()) {
    HAWSER_TRY_ASSIGN(const CostFile file, read_cost_file(options.cost_model));
    core->given_costs_ = file.model();
  }
  core->options_ = options;
  core->rank_ = rank;
  core->is_root_ = true;
  const bool recovers = options.recovery == RecoveryPolicy::kAutomatic;
  if (!options.quorum) core->options_.quorum = recovers ? Quorum::kMajority : Quorum::kNone;
  core->recovery_.set_policy(options.recovery);
  AgentOptions agent_options = options.agent;
  agent_options.name = options.name + "." + std::to_string(rank);
  agent_options.driven = options.driven;
  std::optional<Relay::Site> relays;
  if (options.topology.kind != Topology::Kind::kFull) {
    relays = {.world = options.name,
              .rank = rank,
              .size = size,
              .topology = options.topology,
              .heartbeat = options.agent.heartbeat,
              .peer_timeout = options.agent.peer_timeout};
  }
  HAWSER_TRY_ASSIGN(core->seat_, RankSeat::open(std::move(agent_options), std::move(relays), std::move(hooks)));
  core->seat_->record({.world = options.name, .rank = rank, .size = size}, options.agent.log);
  return core;
}

WorldCore::~WorldCore() {
  constexpr Duration kPatience = std::chrono::seconds(30);  // For handlers that run.
  if (seat_ != nullptr) leave(kPatience, false);
}

Status WorldCore::connect(const std::vector<Peer>& ranks, Instant until) const {
  for (std::uint32_t rank = 0; rank < ranks.size(); ++rank) {
    if (ranks[rank].is_self() || !seat_->is_neighbour(rank)) continue;
    const Status status = ranks[rank].connect(std::max(until - agent::inner::now(seat_->agent), Duration::zero()));
    if (status.ok()) continue;
    return Status(status.code(), "world '" + options_.name + "': rank " + std::to_string(rank) + " cannot be reached")
        .because(status);
  }
  return {};
}

Status WorldCore::enter(std::vector<Peer> ranks) {
  const std::uint64_t nonce = nonce_of(ranks[0].incarnation());
  for (std::uint32_t rank = 0; rank < ranks.size(); ++rank) root_ranks_.push_back(rank);
  book_.begin_with(0);  // Of the barrier that all enter by: what the user calls begins with 1.
  if (Relay* const relay = seat_->relay.get()) {
    HAWSER_TRY(agent::inner::under_lane(seat_->agent, "World", [&](Instant now) { relay->enter(ranks, now); }));
  }
  HAWSER_TRY(begin_world(std::move(ranks), nonce));
  return agent::inner::under_lane(seat_->agent, "World", [&](Instant) { seat_->root = weak_from_this(); });
}

Status WorldCore::begin_world(std::vector<Peer> ranks, std::uint64_t nonce) {
  return agent::inner::under_lane(seat_->agent, "World", [&](Instant now) {
    begin_under_lane(std::move(ranks), nonce, now);
    seat_->mailbox->run_jobs(now);
  });
}

void WorldCore::begin_under_lane(std::vector<Peer> ranks, std::uint64_t nonce, Instant now) {
  nonce_ = nonce;
  ranks_ = std::move(ranks);
  for (std::uint32_t rank = 0; rank < ranks_.size(); ++rank) {
    members_.insert(source_of(ranks_[rank]));
    rank_by_source_.emplace(source_of(ranks_[rank]), rank);
  }
  fates_.open({.world = options_.name, .size = size(), .name_of = [this](std::uint32_t rank) {
                 return std::string(ranks_[rank].name());
               }});
  accord_ = std::make_shared<Accord>(nonce_, options_.name, rank_, ranks_, *seat_->mailbox);
  calls_ = std::make_shared<Calls>(
      seat_, *seat_->mailbox,
      Calls::Site{.world = nonce_, .name = options_.name, .members = &members_, .rank_of = [this](const Peer& peer) {
                    return rank_of(peer);
                  }});
  open_collectives();
  if (!is_sparse()) {
    open_hearing();
    room_ = std::make_unique<BoardRoom>(BoardRoom::Site{
        .world = nonce_,
        .rank = rank_,
        .ranks = ranks_,
        .mailbox = seat_->mailbox.get(),
        .memory = &mapped_memory_,
        .place = [this](std::span<const std::byte> bytes) { return agent::inner::mapped_place(seat_->agent, bytes); },
        .view = [this](const RankRegion& region) { return view(region); }});
    room_->know_hosts(maker_.several_hosts());  // Of a group. A world knows them once all have entered.
  }
  seat_->mailbox->add_watcher(nonce_, *this, ranks_);
  calls_->open(now);
}

Status WorldCore::find_and_join(Duration timeout) {
  const Instant until = agent::inner::now(seat_->agent) + timeout;
  std::optional<FormationWatch> watch;
  HAWSER_TRY(agent::inner::under_lane(seat_->agent, "World", [&](Instant) {
    watch.emplace(*seat_->mailbox, options_.name, settings_of(options_), [this](const Status& why) {
      if (accord_ != nullptr) revoke_under_lane(why, true, agent::inner::now(seat_->agent));
    });
  }));
  Result<std::vector<Peer>> ranks = Formation(*seat_, options_, rank_, *watch).find_all(until);
  options_.store = {};
  Status status = ranks ? enter(std::move(*ranks)) : Status(ranks.error());
  if (status.ok()) status = all_entered(until - agent::inner::now(seat_->agent)).wait(Duration::max());
  constexpr Duration kPatience = std::chrono::seconds(1);
  // A rank is gone, or meant something else: maybe because of its settings. Another one may say so.
  if (status.code() == Code::kDisconnected || status.code() == Code::kInvalid) {
    static_cast<void>(agent::inner::wait_until(
        seat_->agent, [&] { return watch->has_failed(); },
        std::min(until, agent::inner::now(seat_->agent) + kPatience)));
  }
  if (watch->has_failed()) {  // The others are told why before this rank is gone.
    static_cast<void>(agent::inner::flush(seat_->agent, agent::inner::now(seat_->agent) + kPatience));
    status = watch->status();
  }
  static_cast<void>(agent::inner::under_lane(seat_->agent, "World", [&](Instant) { watch.reset(); }));
  if (!status.ok() || misfit_.ok()) return status;
  static_cast<void>(shutdown(std::max(until - agent::inner::now(seat_->agent), kPatience)));  // All leave together.
  return misfit_;
}

std::uint64_t WorldCore::settings_digest() const {
  Digest how;
  how.add(static_cast<std::uint64_t>(recovery_.policy()));
  how.add(options_.quorum == Quorum::kMajority ? 1 : 0);
  return how.value();
}

Request WorldCore::all_entered(Duration timeout) {
  entries_.assign(size() * kEntryWords, 0);
  std::ranges::copy(entry_of(seat_->host(), given_costs_), entries_.begin() + rank_ * kEntryWords);
  CollectiveCall call = {.call = {.operation = What::kAllGather, .rank = rank_, .size = size()},
                         .output = entries_.data(),
                         .type = DataType::kUInt64,
                         .how = settings_digest()};
  call.call.counts.assign(size(), kEntryWords);
  call.call.has_input_in_output = true;
  const CollectiveOptions options = {.timeout = std::max(timeout, kLeastTimeout)};
  const CollectiveMaker::Made made = maker_.make(std::move(call), options);
  if (made) {
    (*made)->elements.finish = [this] {
      take_entries(std::exchange(entries_, {}));
      return Status();
    };
  }
  return begin_collective(made, options);
}

/// Under the lane. A misfit is no failure of the collective: whoever hears of it first, and leaves for it, would take
/// the words away from those that still wait for them.
void WorldCore::take_entries(std::span<const std::uint64_t> words) {
  host_ids_ = hosts_of(words);
  maker_.know_hosts(host_ids_);
  if (room_ != nullptr) room_->know_hosts(maker_.several_hosts());
  const Result<SettledCosts> costs = settle_costs(words);
  if (!costs) {
    misfit_ =
        Status(costs.error().code(), "World::open: the ranks of world '" + options_.name + "' do not fit together")
            .because(costs.error())
            .with_advice(costs.error().advice());
    return;
  }
  seat_->settle_costs(*costs);
  maker_.choose_by(planted(Planted::kOwnCosts) ? given_costs_.value_or(schedule::CostModel()) : costs->model);
}

Status WorldCore::shutdown(Duration timeout) {
  const Instant until = agent::inner::now(seat_->agent) + timeout;
  const auto left = [&] { return std::max(until - agent::inner::now(seat_->agent), Duration::zero()); };
  // The others hear why it did not end before this rank is gone, and is taken for failed.
  const Duration reserve = std::min<Duration>(timeout / 8, std::chrono::milliseconds(200));
  const CollectiveOptions options = {.timeout = std::max(timeout - reserve, kLeastTimeout)};
  const CollectiveMaker::Made made =
      maker_.make({.call = {.operation = What::kBarrier}, .how = settings_digest()}, options);
  if (made) {
    (*made)->name = "shutdown";
    put_text((*made)->flight.operation, (*made)->name);
  }
  Request met = begin_collective(made, options);
  if (Status status = met.wait(Duration::max()); !status.ok()) {
    static_cast<void>(
        agent::inner::under_lane(seat_->agent, "World::shutdown", [this](Instant now) { retell_revoked(now); }));
    static_cast<void>(agent::inner::flush(seat_->agent, until));
    static_cast<void>(close(left()));
    return status;
  }
  return depart(left(), true);
}

/// What this rank wrote on its board goes with it. Those that have not read it.
std::vector<std::uint32_t> WorldCore::wait_until_read(Instant until) const {
  constexpr Duration kPause = std::chrono::microseconds(100);
  const auto never = [] { return false; };
  for (;;) {
    std::vector<std::uint32_t> by;
    const Status status = agent::inner::under_lane(seat_->agent, "World::leave", [&](Instant) {
      if (room_ == nullptr) return;
      if (fates_.why_not().ok()) by = room_->unread();
      if (fates_.have_only_left()) by = room_->unread_of_good_ones();
    });
    const Instant now = agent::inner::now(seat_->agent);
    if (!status.ok() || by.empty() || now >= until) return by;
    static_cast<void>(agent::inner::wait_until(seat_->agent, never, std::min(until, now + kPause)));
  }
}

/// Under the lane.
void WorldCore::say_left(Instant now) {
  if (std::exchange(has_said_left_, true)) return;
  for (const Peer& peer : ranks_) seat_->mailbox->tell(peer, left_word(nonce_), now);
}

bool WorldCore::is_free_to_leave(Instant now) {
  say_left(now);
  Relay* const relay = seat_->relay.get();
  if (relay == nullptr) return true;
  if (relay->drain(now)) relay->say_leaving(now);
  return relay->all_leave();
}

Status WorldCore::depart(Duration timeout, bool waits) {
  const Instant until = agent::inner::now(seat_->agent) + timeout;
  const std::vector<std::uint32_t> unread = wait_until_read(until);
  std::set<std::uint32_t> behind(unread.begin(), unread.end());
  static_cast<void>(agent::inner::under_lane(seat_->agent, "World::leave", [&](Instant now) { say_left(now); }));
  Status status;
  const bool is_said = seat_->relay == nullptr || say_farewell(*seat_, is_root_, is_root_ && waits, until);
  for (const Peer& peer : agent::inner::flush(seat_->agent, until)) {
    if (const std::optional<std::uint32_t> rank = rank_of(peer)) behind.insert(*rank);
  }
  if (!behind.empty()) {
    status = Status(Code::kTimedOut, "World: of world '" + options_.name + "' these ranks did not take in what rank " +
                                         std::to_string(rank_) + " sent: " + list_of({behind.begin(), behind.end()}));
  } else if (!is_said) {
    status = Status(Code::kTimedOut, "World: rank " + std::to_string(rank_) + " of the sparse world '" + options_.name +
                                         "' still had to relay for others");
  }
  const Status closed = close(std::max(until - agent::inner::now(seat_->agent), Duration::zero()));
  return status.ok() ? closed : status;
}

/// False: a handler still runs.
bool WorldCore::leave(Duration patience, bool with_groups) {
  static_cast<void>(agent::inner::under_lane(seat_->agent, "World::close", [&](Instant now) {
    const bool went_wrong = fates_.has_any_failed() || fates_.is_revoked();
    if (Recorder* const recorder = seat_->mailbox->recorder(); recorder != nullptr && with_groups && went_wrong) {
      recorder->leave();
    }
    if (with_groups) seat_->mailbox->close_all(now);
    on_close(now);
    seat_->mailbox->run_jobs(now);
  }));
  return calls_ == nullptr || calls_->wait_quiet(patience);
}

void WorldCore::on_close(Instant now) {
  const Status status(Code::kCancelled, "world '" + options_.name + "' was closed");
  fates_.revoke(status);
  book_.end_all(status, now);
  recovery_.end(status);
  hearing_.reset();
  if (room_ != nullptr) room_->close();
  if (accord_ != nullptr) accord_->close(status);
  if (calls_ != nullptr) calls_->stop(status, now);
  seat_->mailbox->stop_all(nonce_, status);
  seat_->mailbox->stop_sends(nonce_, ranks_, status, now);
  seat_->mailbox->forget_world(nonce_);
  const bool is_first = seat_->mailbox->remove_watcher(nonce_);
  if (!is_first || is_root_ || !accord_->has_decided()) return;
  seat_->keep(std::make_unique<PastAccord>(nonce_, rank_, ranks_, accord_, *seat_->mailbox));
}

Status WorldCore::close(Duration timeout) {
  const Instant until = agent::inner::now(seat_->agent) + timeout;
  std::shared_ptr<WorldCore> untaken;  // The next world, which nobody wanted.
  static_cast<void>(agent::inner::under_lane(seat_->agent, "World::close", [&](Instant) {
    recovery_.end(Status(Code::kCancelled, "world '" + options_.name + "' was closed"));  // So that none is made now.
    untaken = recovery_.give_up();
  }));
  if (untaken != nullptr) {
    static_cast<void>(leave(timeout, false));
    return untaken->close(std::max(until - agent::inner::now(seat_->agent), Duration::zero()));
  }
  const bool is_root = is_root_;
  const bool is_quiet = leave(timeout, is_root);
  const Duration left = std::max(until - agent::inner::now(seat_->agent), Duration::zero());
  const Status closed = is_root ? seat_->agent.close(left) : Status();
  if (is_quiet) return closed;
  return Status(Code::kTimedOut, "World::close: a handler of world '" + options_.name + "' still runs");
}

// ---- Groups.

Result<std::shared_ptr<WorldCore>> WorldCore::group(std::span<const std::uint32_t> ranks) {
  if (ranks.empty()) return Status(Code::kInvalid, "group: it has no ranks");
  std::set<std::uint32_t> seen;
  for (const std::uint32_t rank : ranks) {
    HAWSER_TRY(check_rank("group", rank));
    if (!seen.insert(rank).second) {
      return Status(Code::kInvalid, "group: rank " + std::to_string(rank) + " is named twice");
    }
  }
  const auto own = std::ranges::find(ranks, rank_);
  if (own == ranks.end()) {
    return Status(Code::kInvalid, "group: this rank, " + std::to_string(rank_) + ", is none of them");
  }
  return child(ranks, static_cast<std::uint32_t>(own - ranks.begin()));
}

std::shared_ptr<WorldCore> WorldCore::offspring(std::span<const std::uint32_t> ranks, std::uint32_t own,
                                                std::vector<Peer>& peers) const {
  auto made = std::make_shared<WorldCore>();
  made->options_ = options_;
  made->recovery_.set_policy(recovery_.policy());
  made->seat_ = seat_;
  made->rank_ = own;
  for (const std::uint32_t rank : ranks) {
    peers.push_back(ranks_[rank]);
    made->root_ranks_.push_back(root_ranks_[rank]);
    if (!host_ids_.empty()) made->host_ids_.push_back(host_ids_[rank]);
  }
  made->maker_.know_hosts(made->host_ids_);
  return made;
}

/// Under the lane. Who failed before the group was there is not told of again.
void WorldCore::take_over_failures(WorldCore& made, std::span<const std::uint32_t> ranks) {
  for (std::uint32_t rank = 0; rank < made.size(); ++rank) {
    const Status failure = fates_.failure(ranks[rank]);
    if (!failure.ok()) made.note_failure(rank, failure);
    const Status loss = fates_.loss(ranks[rank]);  // No session will tell of it again.
    if (failure.ok() && !loss.ok() && made.rank_ != rank) made.note_lost(rank, loss.cause());
  }
}

Result<std::shared_ptr<WorldCore>> WorldCore::child(std::span<const std::uint32_t> ranks, std::uint32_t own) {
  std::vector<Peer> peers;
  std::shared_ptr<WorldCore> made = offspring(ranks, own, peers);
  Lineage::Child child;
  HAWSER_TRY(agent::inner::under_lane(seat_->agent, "group",
                                      [&](Instant) { child = lineage_.group(nonce_, options_.name, ranks); }));
  made->options_.name = child.name;
  made->id_ = child.nonce;
  if (recovery_.policy() == RecoveryPolicy::kAutomatic) made->recovery_.set_policy(RecoveryPolicy::kManual);
  HAWSER_TRY(made->begin_world(std::move(peers), child.nonce));
  HAWSER_TRY(agent::inner::under_lane(seat_->agent, "group", [&](Instant now) {
    take_over_failures(*made, ranks);
    seat_->mailbox->run_jobs(now);
  }));
  return made;
}

Result<std::shared_ptr<WorldCore>> WorldCore::split(std::optional<std::uint32_t> color, std::int64_t key) {
  struct Wish {
    std::uint64_t has_color = 0, color = 0;
    std::int64_t key = 0;
  };
  static_assert(sizeof(Wish) == 24);
  const Wish mine = {.has_color = color ? 1U : 0U, .color = color.value_or(0), .key = key};
  std::vector<Wish> all(size());
  CollectiveCall gather = {
      .call = {.operation = What::kAllGather, .counts = std::vector<std::uint64_t>(size(), sizeof(Wish))},
      .input = &mine,
      .output = all.data()};
  HAWSER_TRY(collective(std::move(gather), {}).wait(Duration::max()));
  if (!color) return std::shared_ptr<WorldCore>();
  std::vector<std::uint32_t> ranks;
  for (std::uint32_t rank = 0; rank < size(); ++rank) {
    if (all[rank].has_color != 0 && all[rank].color == *color) ranks.push_back(rank);
  }
  std::ranges::stable_sort(ranks, {}, [&](std::uint32_t rank) { return all[rank].key; });
  return group(ranks);
}

// ---- Calls.

bool WorldCore::has_direct_peer(std::uint32_t rank) const {
  if (rank >= size() || rank == rank_) return false;
  bool is_direct = true;
  static_cast<void>(agent::inner::under_lane(seat_->agent, "has_direct_peer",
                                             [&](Instant) { is_direct = seat_->is_neighbour(root_ranks_[rank]); }));
  return is_direct;
}

Status WorldCore::check_rank(std::string_view call, std::uint32_t rank) const {
  return runtime::check_rank(call, options_.name, rank, size());
}

Instant WorldCore::deadline(Duration timeout, Instant now) const {
  return now + (timeout == Duration::zero() ? options_.timeout : timeout);
}

/// Ends what has not begun.
void WorldCore::refuse(runtime::Operation& operation, const Status& why) {
  operation.status = why;
  operation.self.reset();
  operation.final.store(true, std::memory_order_release);
}

Request WorldCore::request(std::shared_ptr<runtime::Operation> operation, const Status& refused) {
  if (!refused.ok()) refuse(*operation, refused);
  return Request(shared_from_this(), std::move(operation));
}

/// The world outlives what it leaves to the driver: it enters the lane when it ends, which takes in what was left.
template <typename Begin>
Request WorldCore::begin(const std::shared_ptr<runtime::Operation>& operation, std::string_view what,
                         const Begin& begin) {
  const auto later = [&]() -> agent::Beginning {
    return [operation, begin](Instant now, const Status& refused) {
      if (!refused.ok()) return refuse(*operation, refused);
      static_cast<void>(begin(now));  // It is the driver's turn.
    };
  };
  // By reference: no memory is allocated for the functions.
  return request(operation, agent::inner::begin_in_lane(seat_->agent, what, std::cref(begin), std::cref(later)));
}

Request WorldCore::send(std::span<const std::byte> bytes, std::uint32_t to, std::uint64_t tag,
                        const MessageOptions& options) {
  return begin_send(make_send(bytes), to, tag, options);
}

Request WorldCore::send_parts(std::span<const std::span<const std::byte>> parts, std::uint32_t to, std::uint64_t tag,
                              const MessageOptions& options) {
  Result<std::shared_ptr<Send>> made = make_send(parts);
  return made ? begin_send(std::move(*made), to, tag, options) : request(std::make_shared<Send>(), made.error());
}

Request WorldCore::begin_send(std::shared_ptr<Send> operation, std::uint32_t to, std::uint64_t tag,
                              const MessageOptions& options) {
  if (Status bad = check_rank("send", to); !bad.ok()) return request(operation, bad);
  operation->to = ranks_[to];
  operation->envelope.world = nonce_;
  operation->envelope.tag = tag;
  operation->priority = options.priority;
  operation->self = operation;
  return begin(operation, "send", [this, send = operation.get(), timeout = options.timeout](Instant now) {
    if (!aborted_.ok()) return end_unbegun(*send, aborted_);
    seat_->mailbox->start(*send, deadline(timeout, now), now);
    seat_->mailbox->run_jobs(now);
    return send->final.load(std::memory_order_relaxed) ? Need::kNothing : Need::kTurn;
  });
}

Request WorldCore::receive(std::optional<std::span<std::byte>> into, std::uint32_t from,
                           std::optional<std::uint64_t> tag, const MessageOptions& options) {
  return begin_receive(make_receive(into), from, tag, options);
}

Request WorldCore::receive_parts(std::span<const std::span<std::byte>> parts, std::uint32_t from,
                                 std::optional<std::uint64_t> tag, const MessageOptions& options) {
  Result<std::shared_ptr<Receive>> made = make_receive(parts);
  if (!made) return request(std::make_shared<Receive>(), made.error());
  return begin_receive(std::move(*made), from, tag, options);
}

Request WorldCore::begin_receive(std::shared_ptr<Receive> operation, std::uint32_t from,
                                 std::optional<std::uint64_t> tag, const MessageOptions& options) {
  if (from != kAnySource) {
    if (Status bad = check_rank("receive", from); !bad.ok()) return request(operation, bad);
  }
  operation->pattern = pattern_of(from, tag);
  operation->is_exact = options.exact;
  operation->self = operation;
  return begin(operation, "receive", [this, receive = operation.get(), from, timeout = options.timeout](Instant now) {
    if (!aborted_.ok()) return end_unbegun(*receive, aborted_);
    start_receive(*receive, from, deadline(timeout, now), now);
    if (receive->asked_id != 0) return Need::kTurn;  // Its sender is told that it may send.
    return receive->final.load(std::memory_order_relaxed) ? Need::kNothing : Need::kDriver;
  });
}

/// Under the lane. What came before its sender failed may still be received.
void WorldCore::start_receive(Receive& receive, std::uint32_t from, Instant deadline, Instant now) {
  const bool is_here = seat_->mailbox->probe(receive.pattern) != nullptr;
  const Status lost = from == kAnySource ? fates_.unacknowledged() : fates_.failure(from);
  seat_->mailbox->start(receive, deadline, now);
  if (!is_here && !lost.ok()) seat_->mailbox->stop(receive, lost, now);
  seat_->mailbox->run_jobs(now);
}

Pattern WorldCore::pattern_of(std::uint32_t from, std::optional<std::uint64_t> tag) const {
  const void* const source = from == kAnySource ? nullptr : source_of(ranks_[from]);
  return {.world = nonce_, .source = source, .members = &members_, .tag = tag};
}

std::optional<Received> WorldCore::probe(std::uint32_t from, std::optional<std::uint64_t> tag, Duration timeout) const {
  if (from != kAnySource && from >= size()) return std::nullopt;
  const Pattern pattern = pattern_of(from, tag);
  const Instant until = agent::inner::now(seat_->agent) + timeout;
  for (;;) {
    const std::uint64_t seen = seat_->mailbox->kept_so_far();
    std::optional<Received> found;
    const Status status = agent::inner::under_lane(seat_->agent, "probe", [&](Instant) {
      const Arrived* const arrived = seat_->mailbox->probe(pattern);
      if (arrived == nullptr) return;
      found = {.source = rank_of(arrived->from).value_or(kAnySource),
               .tag = arrived->envelope.tag,
               .bytes = arrived->envelope.bytes};
    });
    if (found || !status.ok()) return found;
    if (!agent::inner::wait_until(
            seat_->agent, [&] { return seat_->mailbox->kept_so_far() != seen; }, until))
      return std::nullopt;
  }
}

Status WorldCore::register_handler(std::string_view name, CallHandler handler, const HandlerOptions& options) {
  Status status;
  HAWSER_TRY(agent::inner::under_lane(seat_->agent, "register_handler", [&](Instant) {
    status = calls_->add_handler(name, std::move(handler), options);
  }));
  return status;
}

Request WorldCore::call(std::uint32_t to, std::string_view name, std::span<const std::byte> arguments,
                        const CallOptions& options) {
  auto made = std::make_shared<Calling>();
  if (Status bad = check_rank("call", to); !bad.ok()) return request(made, bad);
  if (arguments.size() > kOwnBufferMax) {
    return request(made, Status(Code::kInvalid, "call: the arguments are " + std::to_string(arguments.size()) +
                                                    " bytes long, " + std::to_string(kOwnBufferMax) + " are the most"));
  }
  made->text = "handler '" + base::shown(name) + "' of rank " + std::to_string(to);
  const Duration timeout = options.timeout == Duration::zero()
                               ? Calls::patience(options_.timeout, agent::inner::now(seat_->agent))
                               : options.timeout;
  return begin(made, "call", [this, made, to, number = handler_number(name), arguments, timeout](Instant now) {
    calls_->begin(made, ranks_[to], number, arguments, timeout, now);
    seat_->mailbox->run_jobs(now);
    return Need::kTurn;
  });
}

void WorldCore::revoke(const Status& why) {
  static_cast<void>(agent::inner::under_lane(seat_->agent, "revoke", [&](Instant now) {
    revoke_under_lane(why.ok() ? Status(Code::kCancelled, "the world was revoked") : why, true, now);
    seat_->mailbox->run_jobs(now);
  }));
}

std::vector<std::uint32_t> WorldCore::failed() const {
  std::vector<std::uint32_t> all;
  static_cast<void>(agent::inner::under_lane(seat_->agent, "failed", [&](Instant) { all = fates_.unusable(); }));
  return all;
}

// ---- Agreement.

std::vector<std::uint32_t> WorldCore::acknowledge() {
  std::vector<std::uint32_t> all;
  static_cast<void>(agent::inner::under_lane(seat_->agent, "acknowledge", [&](Instant) {
    all = fates_.failed();
    fates_.acknowledge();
  }));
  return all;
}

std::vector<std::uint32_t> WorldCore::failures(std::size_t known, Duration timeout) const {
  const auto news = [&] { return fates_.failures_so_far() > known; };
  static_cast<void>(agent::inner::wait_until(seat_->agent, news, agent::inner::now(seat_->agent) + timeout));
  std::vector<std::uint32_t> all;
  static_cast<void>(agent::inner::under_lane(seat_->agent, "failures", [&](Instant) { all = fates_.failures(); }));
  all.erase(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(std::min(known, all.size())));
  return all;
}

std::uint64_t WorldCore::last_number() const {
  std::uint64_t number = 0;
  static_cast<void>(
      agent::inner::under_lane(seat_->agent, "last_number", [&](Instant) { number = book_.last_number(); }));
  return number;
}

void WorldCore::begin_agreement(const std::shared_ptr<Agreeing>& call, std::uint8_t calls, bool flag, Duration timeout,
                                Instant now) {
  call->value = {.calls = calls, .flag = flag, .last_good = book_.last_good(), .dead = fates_.dead()};
  call->ending = [this](Agreeing& over) { on_agreement_over(over); };
  accord_->begin(call, timeout == Duration::zero() ? options_.timeout : timeout, now, is_undecided());
}

Request WorldCore::agree(bool flag, Duration timeout) {
  const auto call = std::make_shared<Agreeing>();
  return begin(call, "agree", [this, call, flag, timeout](Instant now) {
    const Status refused = aborted_.ok() ? recovery_.note_call("agree", options_.name) : aborted_;
    if (!refused.ok()) return end_unbegun(*call, refused);
    begin_agreement(call, kCallsAgree, flag, timeout, now);
    seat_->mailbox->run_jobs(now);
    return Need::kTurn;
  });
}

/// Within the accord: what follows from it comes later.
void WorldCore::on_agreement_over(Agreeing& over) {
  const bool recovers = recovery_.policy() == RecoveryPolicy::kAutomatic && fates_.has_any_failed();
  if (over.is_own || over.status.code() == Code::kBusy) return;
  // This rank agreed, and the others shrank already.
  if (recovers && over.status.code() == Code::kInvalid) over.status = fates_.first_failure();
  if (over.status.ok() && (over.value.calls & kCallsAgree) == 0) {
    recovery_.end(Status(Code::kInvalid, "recovered: the program shrank world '" + options_.name + "' by itself"));
    seat_->mailbox->note_end();
  }
  take_step(recovery_.note_call_over());
}

/// What has been agreed upon; what it says to have failed has failed here afterwards.
Result<AgreementValue> WorldCore::settle(const Agreeing& call) {
  for (std::uint32_t rank = 0; rank < size(); ++rank) {
    if (!call.value.failed[rank]) continue;
    const Status why(Code::kDisconnected, "the ranks agreed that it has failed");
    if (rank == rank_) exclude(Status(Code::kDisconnected, "the ranks agreed that this rank has failed"));
    if (rank != rank_) note_failure(rank, why);
  }
  HAWSER_TRY(fates_.excluded());
  return call.value;
}

Result<AgreementValue> WorldCore::outcome(runtime::Operation* operation) {
  const auto* const call = dynamic_cast<Agreeing*>(operation);
  if (call == nullptr || !call->final.load(std::memory_order_acquire)) {
    return Status(Code::kInvalid, "this request is no agreement that is over");
  }
  HAWSER_TRY(call->status);
  Result<AgreementValue> value{AgreementValue()};
  HAWSER_TRY(agent::inner::under_lane(seat_->agent, "agree", [&](Instant now) {
    value = settle(*call);
    seat_->mailbox->run_jobs(now);
  }));
  return value;
}

Request WorldCore::begin_shrink(std::span<const std::uint32_t> without, Duration timeout) {
  const auto refuse = [&](const Status& why) { return request(std::make_shared<Agreeing>(), why); };
  for (const std::uint32_t rank : without) {
    if (Status bad = check_rank("shrink", rank); !bad.ok()) return refuse(bad);
    if (rank == rank_) {
      return refuse(Status(Code::kInvalid, "shrink: this rank cannot leave itself out; close the world"));
    }
  }
  const auto call = std::make_shared<Agreeing>();
  return begin(call, "shrink", [this, call, gone = std::vector(without.begin(), without.end()), timeout](Instant now) {
    Status refused = check_left_without(gone);  // Before it harms the others.
    if (refused.ok()) refused = aborted_;
    if (refused.ok()) refused = recovery_.note_call("shrink", options_.name);
    if (!refused.ok()) return end_unbegun(*call, refused);
    for (const std::uint32_t rank : gone) note_failure(rank, Status(Code::kCancelled, "it was left out by shrink"));
    // While a court is open the others go on: they are to hear who failed.
    revokes_later_ = !fates_.is_revoked() && is_undecided();
    revoke_under_lane(Status(Code::kCancelled, "world '" + options_.name + "' was shrunk"), !revokes_later_, now);
    begin_agreement(call, shrinking(), true, timeout, now);
    seat_->mailbox->run_jobs(now);
    return Need::kTurn;
  });
}

std::uint8_t WorldCore::shrinking() const {
  return quorum() == Quorum::kMajority ? kCallsShrinkByMajority : kCallsShrink;
}

/// Under the lane. Who calls it may know of fewer failures than the agreement will.
Status WorldCore::check_left_without(const std::vector<std::uint32_t>& without) const {
  return check_quorum(quorum(), options_.name,
                      {.size = size(), .left = fates_.count_left_without(without), .dead = fates_.count_dead()});
}

Result<std::shared_ptr<WorldCore>> WorldCore::shrunk(runtime::Operation* operation) {
  HAWSER_TRY_ASSIGN(const AgreementValue decision, outcome(operation));
  const bool has_shrunk = decision.calls == kCallsShrink || decision.calls == kCallsShrinkByMajority;
  if (!has_shrunk || std::exchange(static_cast<Agreeing*>(operation)->is_taken, true)) {
    return Status(Code::kInvalid, "shrunk: this request is none of ishrink, or its world was taken before");
  }
  std::shared_ptr<WorldCore> made;
  Status bad;
  HAWSER_TRY(agent::inner::under_lane(seat_->agent, "shrink", [&](Instant now) {
    Result<std::shared_ptr<WorldCore>> result = make_shrunk(decision, now);
    if (result) made = std::move(*result);
    if (!result) bad = result.error();
    seat_->mailbox->run_jobs(now);
  }));
  HAWSER_TRY(bad);
  return made;
}

Result<std::shared_ptr<WorldCore>> WorldCore::make_shrunk(const AgreementValue& decision, Instant now) {
  std::vector<std::uint32_t> ranks;
  for (std::uint32_t rank = 0; rank < size(); ++rank) {
    if (decision.failed[rank] || (planted(Planted::kShrinksAsSeen) && fates_.has_failed(rank))) continue;
    ranks.push_back(rank);
  }
  std::uint32_t dead = 0;
  for (std::uint32_t rank = 0; rank < decision.dead.size(); ++rank) {
    dead += decision.failed[rank] && decision.dead[rank] ? 1 : 0;
  }
  HAWSER_TRY(check_quorum(quorum(), options_.name,
                          {.size = size(), .left = static_cast<std::uint32_t>(ranks.size()), .dead = dead}));
  const auto own = static_cast<std::uint32_t>(std::ranges::find(ranks, rank_) - ranks.begin());
  std::vector<Peer> peers;
  std::shared_ptr<WorldCore> made = offspring(ranks, own, peers);
  made->id_ = id_;
  made->epoch_ = epoch_ + 1;
  made->old_ranks_ = ranks;
  made->last_good_before_ = decision.last_good;
  Lineage::Child child = Lineage::shrunk(nonce_, options_.name, made->epoch_, ranks);
  made->options_.name = std::move(child.name);
  made->begin_under_lane(std::move(peers), child.nonce, now);
  take_over_failures(*made, ranks);
  if (is_root_ && seat_->relay != nullptr) seat_->relay->adopt(made->epoch_, made->root_ranks_, now);
  made->is_root_ = is_root_.exchange(false);  // The agent goes with the new one.
  if (made->is_root_) seat_->root = made;
  return made;
}

// ---- Recovery.

/// A job does it: it must not happen in the midst of what found the failure.
void WorldCore::take_step(Recovery::Step step) {
  if (step == Recovery::Step::kNothing) return;
  seat_->mailbox->run_soon([this, step](Instant now) {
    if (step == Recovery::Step::kAbort) return abort(now);
    if (recovery_.is_over()) return;
    revoke_under_lane(fates_.first_failure(), false, now);  // All others hear of the failure.
    auto call = std::make_shared<Agreeing>();
    call->value = {.calls = shrinking(), .last_good = book_.last_good(), .dead = fates_.dead()};
    call->is_own = true;
    call->ending = [this](Agreeing& over) {
      const auto kept = std::static_pointer_cast<Agreeing>(over.self);
      if (kept == nullptr) return recovery_.end(over.status);  // It did not begin.
      seat_->mailbox->run_soon([this, kept](Instant at) { recover(kept, at); });
    };
    constexpr Duration kLeast = std::chrono::seconds(10);  // Then it goes on with the same agreement.
    accord_->begin(call, std::max(options_.timeout, kLeast), now, is_undecided());
  });
}

/// The agreement is over.
void WorldCore::recover(const std::shared_ptr<Agreeing>& call, Instant now) {
  if (recovery_.is_over()) return;
  const Code code = call->status.code();
  if (code == Code::kTimedOut || code == Code::kInvalid) return take_step(recovery_.note_call_over());
  Status why = call->status;
  if (why.ok()) {
    const Result<AgreementValue> decision = settle(*call);
    Result<std::shared_ptr<WorldCore>> made =
        decision ? make_shrunk(*decision, now) : Result<std::shared_ptr<WorldCore>>(decision.error());
    if (made) {
      std::vector<std::uint32_t> failed;
      for (std::uint32_t rank = 0; rank < size(); ++rank) {
        if (decision->failed[rank]) failed.push_back(rank);
      }
      recovery_.end(Recovery::Made{.world = std::move(*made), .failed = std::move(failed)});
    } else {
      why = made.error();
    }
  }
  if (!why.ok()) recovery_.end(why);
  seat_->mailbox->note_end();
}

Result<Recovery::Made> WorldCore::recovered(Duration timeout) {
  if (recovery_.policy() != RecoveryPolicy::kAutomatic) {
    return Status(Code::kInvalid, "recovered: world '" + options_.name + "' does not recover by itself")
        .with_advice("open it with the recovery policy 'automatic', or call shrink");
  }
  const auto is_over = [this] { return recovery_.is_over(); };
  if (!is_over()) {
    static_cast<void>(agent::inner::wait_until(seat_->agent, is_over, agent::inner::now(seat_->agent) + timeout));
  }
  HAWSER_TRY(agent::inner::not_forked(seat_->agent, "recovered"));
  if (!is_over()) return Status(Code::kTimedOut, "recovered: world '" + options_.name + "' has no event yet");
  Result<Recovery::Made> made = Status(Code::kCancelled, "world '" + options_.name + "' was closed");
  static_cast<void>(
      agent::inner::under_lane(seat_->agent, "recovered", [&](Instant) { made = recovery_.take(options_.name); }));
  return made;
}

/// Calls end first: their messages are theirs to end.
void WorldCore::abort(Instant now) {
  const Status why = fates_.has_any_failed() ? fates_.first_failure() : fates_.excluded();
  aborted_ = Status(Code::kDisconnected, std::string(why.message()) + "; its recovery policy ends all operations")
                 .with_peer(why.peer())
                 .because(why.cause());
  book_.end_all(aborted_, now);
  calls_->stop(aborted_, now);
  accord_->close(aborted_);
  seat_->mailbox->stop_all(nonce_, aborted_);
  seat_->mailbox->stop_landing(nonce_, ranks_, aborted_, now);
  seat_->mailbox->stop_sends(nonce_, ranks_, aborted_, now);
  seat_->mailbox->note_end();
}

/// Under the lane: a call that was refused. A thread may wait for it already, if it was left to the driver.
agent::inner::Need WorldCore::end_unbegun(runtime::Operation& operation, const Status& why) {
  refuse(operation, why);
  seat_->mailbox->note_end();
  return Need::kNothing;
}

// ---- Requests.

bool WorldCore::wait(runtime::Operation& operation, Duration timeout) const {
  if (ends_within(operation, timeout)) return true;
  if (!operation.is_waited.exchange(false, std::memory_order_relaxed)) return false;
  static_cast<void>(  // From now on nobody else looks.
      agent::inner::under_lane_lightly(seat_->agent, "wait", [](Instant) { return Need::kDriver; }));
  return operation.final.load(std::memory_order_acquire);
}

bool WorldCore::ends_within(const runtime::Operation& operation, Duration timeout) const {
  const auto over = [&] { return operation.final.load(std::memory_order_acquire); };
  if (over()) return true;
  const bool looks = operation.kind == OperationKind::kSeveral && room_ != nullptr && seat_->has_threads();
  const auto look = [&] {
    if (looks) look_at_boards(*seat_, *room_, operation, [this] { return !fates_.why_not().ok(); });
    return over();
  };
  if (look()) return true;
  for (const Instant deadline = agent::inner::now(seat_->agent) + timeout;;) {
    // What goes on in pieces waits for others in each. Once they have come, the next ones come soon.
    const std::uint32_t moves = operation.moves.load(std::memory_order_relaxed);
    const auto reached = [&] { return over() || (looks && operation.moves.load(std::memory_order_relaxed) != moves); };
    if (!agent::inner::wait_until(seat_->agent, reached, deadline) || over()) return over();
    if (look()) return true;
  }
}

void WorldCore::cancel(runtime::Operation& operation) {
  const Status status(Code::kCancelled, "it was cancelled at rank " + std::to_string(rank_));
  static_cast<void>(agent::inner::under_lane(seat_->agent, "cancel", [&](Instant now) {
    if (operation.final.load(std::memory_order_relaxed)) return;
    if (operation.kind == OperationKind::kSeveral) {
      operation.listener->on_cancel(operation, status, now);
    } else {
      seat_->mailbox->stop(operation, status, now);
    }
    seat_->mailbox->run_jobs(now);
  }));
}

Received WorldCore::received(const Receive& receive) const {
  return {.source = rank_of(receive.from).value_or(kAnySource), .tag = receive.got.tag, .bytes = receive.received};
}

std::optional<std::uint32_t> WorldCore::rank_of(const Peer& peer) const {
  const auto found = rank_by_source_.find(source_of(peer));
  return found == rank_by_source_.end() ? std::nullopt : std::optional(found->second);
}

// ---- Collectives.

void WorldCore::open_collectives() {
  maker_.open({.world = nonce_,
               .name = options_.name,
               .rank = rank_,
               .ranks = ranks_,
               .is_sparse = is_sparse(),
               .mailbox = seat_->mailbox.get(),
               .model = seat_->costs().model,
               .read_at_once = seat_->read_at_once(),
               .piece_bytes = seat_->piece_bytes(),
               .map = [this](const CollectiveCall& call) { return mapped_call(call); },
               .room = [this] { return board_room(); }});
  book_.open(
      {.world = nonce_, .name = options_.name, .ranks = ranks_, .mailbox = seat_->mailbox.get()},
      {.why_not = [this] { return fates_.why_not(); },
       .rank_of = [this](const Peer& peer) { return rank_of(peer); },
       .revoke = [this](const Status& why, Instant now) { revoke_under_lane(why, true, now); },
       .out_of_sight = [this](Collective& waiting, std::uint32_t rank,
                              Instant now) { return end_out_of_sight(waiting, rank, now); },
       .explained = [this](const Status& status) { return fates_.explained(status); },
       .warn =
           [this](const std::string& text) { agent::inner::log_of(seat_->agent).write(LogLevel::kWarn, "{}", text); }});
}

/// From the first collective on that may go by boards there is memory for this rank's board, which goes to the room
/// once that collective begins. Without, all go by messages.
BoardRoom* WorldCore::board_room() {
  std::call_once(has_board_, [this] {
    if (room_->size() < 2) return;  // Nobody would read it.
    Result<BoardShelf::Memory> memory = seat_->boards().take();
    if (!memory) return;
    board_memory_ = std::move(*memory);
  });
  return room_.get();
}

/// Under the lane, for a collective that was given the room.
void WorldCore::furnish_room() {
  if (!board_memory_) return;
  room_->give_memory(board_memory_->bytes, std::move(board_memory_->owner));
  board_memory_.reset();
}

void WorldCore::on_bell(const Peer& by, Instant now) {
  if (rank_of(by) && room_ != nullptr) room_->on_bell(now);
}

Result<std::unique_ptr<backend::View>> WorldCore::view(const RankRegion& region) const {
  const Peer& peer = ranks_[region.rank];
  return seat_->mailbox->view(peer, agent::inner::told_region(peer, region.id, region.size));
}

std::unique_ptr<MappedCall> WorldCore::mapped_call(const CollectiveCall& call) {
  MappedCall::Uses uses{
      .memory = mapped_memory_,
      .place = [this](std::span<const std::byte> bytes) { return agent::inner::mapped_place(seat_->agent, bytes); },
      .view = [this](const RankRegion& region) { return view(region); },
  };
  return std::make_unique<MappedCall>(std::move(uses), call.call, static_cast<const std::byte*>(call.input),
                                      static_cast<const std::byte*>(call.output));
}

Request WorldCore::collective(CollectiveCall call, const CollectiveOptions& options) {
  if (!options.is_waited_for) return begin_collective(maker_.make(std::move(call), options), options);
  const bool is_exchange = call.call.operation == What::kAllToAll;
  std::optional<Request> rest = begin_waited(std::move(call), options);
  if (rest) return std::move(*rest);
  // Nothing changes them any more.
  static const auto by_boards = std::make_shared<PromptEnd>(schedule::Algorithm::kBoards);
  static const auto by_exchange = std::make_shared<PromptEnd>(schedule::Algorithm::kStaged);
  return request(is_exchange ? by_exchange : by_boards, {});
}

Status WorldCore::collective_now(CollectiveCall call, const CollectiveOptions& options) {
  std::optional<Request> rest = begin_waited(std::move(call), options);
  return rest ? rest->wait(Duration::max()) : Status();
}

/// None: it has ended, and well.
std::optional<Request> WorldCore::begin_waited(CollectiveCall call, const CollectiveOptions& options) {
  if (options.compress.valid()) return begin_collective(maker_.make(std::move(call), options), options, true);
  const Result<schedule::Algorithm> algorithm = maker_.settle(call, options);
  if (!algorithm) return begin_collective(algorithm.error(), options, true);
  if (PromptCall::can_be(call, *algorithm)) {
    std::shared_ptr<Collective> rest;
    const Status status = begin_at_once(call, *algorithm, options, &rest);
    if (rest != nullptr) return request(std::move(rest), status);
    if (status.ok()) return std::nullopt;
  }
  return begin_collective(maker_.make_settled(call, *algorithm), options, true);
}

/// Ok, and no `rest`: it has ended, and well. Not ok: nothing has begun. Else it goes on as `rest`.
Status WorldCore::begin_at_once(const CollectiveCall& call, schedule::Algorithm algorithm,
                                const CollectiveOptions& options, std::shared_ptr<Collective>* rest) {
  const std::uint64_t digest = digest_of(call, algorithm), turns = Collective::turns_of(call.call, algorithm);
  bool is_over = false;
  const auto begin = [&](Instant now) {
    // Nothing is taken unless all of it can be had.
    if (room_ == nullptr || !room_->is_open()) return Need::kNothing;
    const auto ticket = book_.take_ticket(digest, maker_.flight(call, algorithm), now);
    if (!ticket) return Need::kNothing;
    const std::uint64_t turn = room_->take_turns(turns);
    PromptCall prompt(room_->board(), call, turn, ticket->number, digest);
    const bool is_written = prompt.write();
    if (is_written) room_->ring(now);
    is_over = is_written && prompt.carry_through(room_->is_crowded());
    if (is_over) {
      room_->end_well(turn, turns, now);
      book_.end_well(*ticket, seat_->mailbox->now());
    } else {
      *rest = maker_.make_settled(call, algorithm);
      (*rest)->is_waited = seat_->has_threads();
      book_.take_over(*rest, *ticket, deadline(options.timeout, now), now);
      (*rest)->take_over(turn, is_written, now);
    }
    seat_->mailbox->run_jobs(now);
    if (room_->take_messages() || !fates_.why_not().ok()) return Need::kTurn;
    return is_over || (*rest)->is_over() || (*rest)->is_waited ? Need::kNothing : Need::kDriver;
  };
  const Status status = agent::inner::under_lane_lightly(seat_->agent, "collective", std::cref(begin));
  if (!status.ok() || is_over || *rest != nullptr) return status;
  return Status(Code::kBusy, "boards are not open");
}

std::vector<Request> WorldCore::all_reduce_bucketed(std::span<const Tensor> tensors, DataType type, ReduceOp op,
                                                    std::size_t bucket_bytes, const CollectiveOptions& options) {
  std::vector<Request> requests;
  if (options.compress.valid()) {
    const Status why(Code::kInvalid, "all_reduce: a compressor is of one tensor, and there is a list of them");
    requests.push_back(begin_collective(why, options));
    return requests;
  }
  while (!tensors.empty()) {
    const std::size_t taken = CollectiveMaker::bucket_of(tensors, type, bucket_bytes);
    requests.push_back(begin_collective(maker_.make_bucket(tensors.first(taken), type, op, options), options));
    tensors = tensors.subspan(taken);
  }
  return requests;
}

Request WorldCore::begin_collective(const CollectiveMaker::Made& made, const CollectiveOptions& options, bool waits) {
  if (!made) return request(std::make_shared<Collective>(), made.error());
  const std::shared_ptr<Collective>& its = *made;
  if (Status bad = its->check_buffers(); !bad.ok()) {
    its->elements = {};
    return request(its, bad);
  }
  its->is_waited = waits && seat_->has_threads();
  const auto start = [this, its, timeout = options.timeout](Instant now) {
    if (its->room != nullptr) furnish_room();
    book_.begin(its, deadline(timeout, now), now);
    seat_->mailbox->run_jobs(now);
    const bool is_written = its->room != nullptr && fates_.why_not().ok() && (its->is_on_board() || its->is_over());
    if (!is_written || its->room->take_messages()) return Need::kTurn;
    return its->is_over() || its->is_waited ? Need::kNothing : Need::kDriver;
  };
  if (!waits) return begin(its, its->name, start);
  // By reference: no memory is allocated for the function.
  return request(its, agent::inner::under_lane_lightly(seat_->agent, its->name, std::cref(start)));
}

bool WorldCore::is_misfit(const wire::MessageEnvelope& envelope) { return book_.is_misfit(envelope); }

void WorldCore::on_misfit(const Peer& by, const wire::MessageEnvelope& envelope, Instant now) {
  book_.on_misfit(by, envelope.tag, now);
}

void WorldCore::on_check(const Peer& by, const Question& question, Instant now) {
  if (!rank_of(by)) return;
  switch (book_.on_check(by, question, now)) {
    case CollectiveBook::Answer::kNone:
      return;
    case CollectiveBook::Answer::kNotYet:
      return seat_->mailbox->tell_if_room(by, checked_word(nonce_, question.number, Code::kBusy), now);
    case CollectiveBook::Answer::kOver:
      return seat_->mailbox->tell(by, checked_word(nonce_, question.number, Code::kInvalid), now);
    case CollectiveBook::Answer::kEnded:
      return tell_why_not(by, now);
  }
}

void WorldCore::tell_why_not(const Peer& peer, Instant now) {
  if (is_undecided()) return;  // It will hear who failed.
  for (const std::uint32_t rank : fates_.failed()) {
    seat_->mailbox->tell(peer, failed_word(nonce_, rank, fates_.is_dead(rank)), now);
  }
  if (!fates_.has_any_failed()) seat_->mailbox->tell(peer, revoke_word(nonce_, fates_.why_not()), now);
}

void WorldCore::on_checked(const Peer& by, std::uint64_t number, Code code, Instant now) {
  book_.on_checked(by, number, code, now);
}

/// False: it will be decided what became of that rank.
bool WorldCore::end_out_of_sight(Collective& waiting, std::uint32_t rank, Instant now) {
  if (is_undecided()) return false;
  if (fates_.has_left(rank)) {
    waiting.fail(fates_.departure_of(rank), now);
    return true;
  }
  constexpr Duration kUnseenMax = std::chrono::milliseconds(500);  // The news why may be on its way.
  if (!waiting.unseen_since) waiting.unseen_since = now;
  if (now - *waiting.unseen_since < kUnseenMax) return false;
  revoke_under_lane(Status(Code::kDisconnected, waiting.title() + ": the path has ended by which the board of rank " +
                                                    std::to_string(rank) + " was read")
                        .with_peer(ranks_[rank].name()),
                    true, now);
  return true;
}

// ---- Failure.

void WorldCore::on_down(const Peer& peer, const Status& cause) {
  const std::optional<std::uint32_t> rank = rank_of(peer);
  if (rank && peer.is_self()) return exclude(cause);
  if (!rank) return;
  calls_->on_down(source_of(peer));
  const bool is_dead = proves_death(cause);
  if (is_dead) note_dead(*rank);
  if (is_dead || planted(Planted::kCourtSkipped)) return note_failure(*rank, cause);
  note_lost(*rank, cause);
}

// ---- Live ranks that lose sight of one another.

void WorldCore::open_hearing() {
  hearing_ = std::make_unique<Hearing>(Hearing::Site{.world = nonce_,
                                                     .rank = rank_,
                                                     .ranks = ranks_,
                                                     .heartbeat = options_.agent.heartbeat,
                                                     .peer_timeout = options_.agent.peer_timeout},
                                       *seat_->mailbox,
                                       Hearing::Hooks{.convict = [this](std::uint32_t rank) { convict(rank); },
                                                      .decided = [this](Instant now) { on_decided(now); }});
}

/// Whose end is proven does not count for a quorum.
void WorldCore::note_dead(std::uint32_t rank) {
  if (fates_.note_dead(rank)) accord_->note_dead(rank);
}

void WorldCore::note_lost(std::uint32_t rank, const Status& cause) {
  if (fates_.has_failed(rank) || fates_.has_left(rank) || fates_.is_excluded()) return;
  const bool has_court = is_sparse() ? !seat_->relay->has_failed(root_ranks_[rank]) : hearing_ != nullptr;
  if (!has_court) return note_failure(rank, cause);
  // Whoever of the two stays, together they do nothing any more.
  if (!fates_.note_lost(rank, cause)) return;
  const Status loss = fates_.loss(rank);
  book_.end_all(loss, agent::inner::now(seat_->agent));
  seat_->mailbox->stop_any(nonce_, loss);
  if (hearing_ != nullptr) hearing_->note_lost(rank);
}

void WorldCore::on_lost(const Peer& by, std::span<const std::byte> lost, bool asks) {
  const std::optional<std::uint32_t> rank = rank_of(by);
  if (!rank || hearing_ == nullptr || fates_.has_failed(*rank) || fates_.is_excluded()) return;
  hearing_->hear(*rank, lost, asks);
}

void WorldCore::convict(std::uint32_t rank) {
  const Status loss = fates_.loss(rank);
  const Status others(Code::kDisconnected,
                      "other ranks and it have lost each other, and it reaches fewer ranks, or has "
                      "the higher number");
  note_failure(rank, loss.ok() ? others : loss.cause());
}

void WorldCore::on_decided(Instant now) {
  if (std::exchange(revokes_later_, false)) tell_revoked(now);
  accord_->release(now);
}

/// While it is undecided who of them failed.
std::vector<std::uint32_t> WorldCore::lost_by_this() const {
  if (!is_sparse()) return hearing_ == nullptr ? std::vector<std::uint32_t>() : hearing_->lost();
  std::vector<std::uint32_t> all;
  for (const std::uint32_t root : seat_->relay->lost()) {
    const auto at = std::ranges::find(root_ranks_, root);
    if (at != root_ranks_.end()) all.push_back(static_cast<std::uint32_t>(at - root_ranks_.begin()));
  }
  return all;
}

void WorldCore::on_failed(const Peer& by, std::uint32_t rank, bool is_dead) {
  const std::optional<std::uint32_t> teller = rank_of(by);
  if (!teller || fates_.has_failed(*teller) || rank >= size()) return;
  if (rank != rank_) {
    if (is_dead) note_dead(rank);
    return note_failure(rank, Status(Code::kDisconnected, "rank " + std::to_string(*teller) + " found so"));
  }
  std::string text = "rank " + std::to_string(*teller) + " of world '" + options_.name + "' holds this rank, " +
                     std::to_string(rank_) + ", for failed";
  if (const std::vector<std::uint32_t> lost = lost_by_this(); !lost.empty()) {
    text += ": it and rank " + list_of(lost) + " have lost each other, and of such ranks the one that ";
    text += is_sparse() ? "lost more is left out, then the one that fewer others need as a relay, then the higher"
                        : "reaches fewer is left out, then the higher";
  }
  exclude(
      Status(Code::kDisconnected, text).with_advice("the others go on without this rank: end it, or start it anew"));
}

/// The others go on without this rank. Who told it may die before it has told all of them, so this rank does.
void WorldCore::exclude(const Status& why) {
  if (!fates_.exclude(why)) return;
  const Instant now = agent::inner::now(seat_->agent);
  for (const Peer& other : ranks_) seat_->mailbox->tell(other, failed_word(nonce_, rank_, false), now);
  revoke_under_lane(why, false, now);
  seat_->mailbox->stop_any(nonce_, why);
  accord_->stop(why);
  recovery_.end(why);
  hearing_.reset();
  on_decided(now);
  seat_->mailbox->note_end();
  if (recovery_.policy() == RecoveryPolicy::kAbort) take_step(recovery_.note_failure());
}

/// All are told, so that who hears of it first, and leaves for it, is not taken for the one that failed; that one, too,
/// if it can hear: a verdict is final.
void WorldCore::note_failure(std::uint32_t rank, const Status& cause) {
  if (!fates_.note_failed(rank, cause)) return;
  const Status status = fates_.failure(rank);
  const Instant now = agent::inner::now(seat_->agent);
  retell_revoked(now);
  for (const Peer& other : ranks_) seat_->mailbox->tell(other, failed_word(nonce_, rank, fates_.is_dead(rank)), now);
  if (!planted(Planted::kPendingKept)) book_.end_all(status, now);
  if (!planted(Planted::kAnySourceKept)) seat_->mailbox->stop_any(nonce_, status);
  accord_->note_failed(rank, now);
  seat_->mailbox->note_end();
  take_step(recovery_.note_failure());
  if (hearing_ != nullptr) hearing_->note_gone(rank);
}

void WorldCore::on_left(const Peer& peer) {
  const std::optional<std::uint32_t> rank = rank_of(peer);
  if (!rank || !fates_.note_left(*rank)) return;
  note_dead(*rank);
  if (fates_.has_failed(*rank)) return;
  // What it has not written on its board by now never comes. Receives of it end with its session.
  book_.end_waits_for(*rank, fates_.departure_of(*rank), agent::inner::now(seat_->agent));
  accord_->note_failed(*rank, agent::inner::now(seat_->agent));  // It votes no more.
  if (hearing_ != nullptr) hearing_->note_gone(*rank);
}

void WorldCore::on_revoke(const Peer& by, const Status& why) {
  const std::optional<std::uint32_t> rank = rank_of(by);
  if (!rank) return;
  revoke_under_lane(Status(why.code(), "rank " + std::to_string(*rank) + " revoked world '" + options_.name +
                                           "': " + base::shown(why.message())),
                    false, agent::inner::now(seat_->agent));
}

void WorldCore::on_agreement(const Peer& by, const wire::RuntimeMessage& message) {
  if (const std::optional<std::uint32_t> rank = rank_of(by)) {
    accord_->hear(*rank, message, agent::inner::now(seat_->agent));
  }
}

void WorldCore::revoke_under_lane(const Status& why, bool tell, Instant now) {
  if (!fates_.revoke(why)) return;
  if (tell) tell_revoked(now);
  book_.end_all(why, now);
}

/// A rank that revokes the world and closes is gone for some before others have read why.
void WorldCore::retell_revoked(Instant now) {
  const bool is_told = fates_.is_revoked() && !revokes_later_;
  if (is_told && fates_.revoked().code() != Code::kDisconnected) tell_revoked(now);
}

void WorldCore::tell_revoked(Instant now) {
  if (planted(Planted::kRevokeUntold)) return;
  for (const Peer& peer : ranks_) seat_->mailbox->tell(peer, revoke_word(nonce_, fates_.revoked()), now);
}

}  // namespace hawser::runtime
