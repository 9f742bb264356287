#include "runtime/world_core.h"

#include <algorithm>
#include <numeric>
#include <set>
#include <string>
#include <utility>

#include "base/planted.h"
#include "base/shown.h"
#include "base/try.h"
#include "runtime/cost_file.h"
#include "runtime/digest.h"
#include "runtime/entry.h"
#include "runtime/formation.h"
#include "runtime/graph.h"
#include "runtime/rank_list.h"
#include "runtime/relay_farewell.h"
#include "runtime/world_config.h"

namespace hawser::runtime {
namespace {

using agent::inner::Need;
using base::planted;
using base::Planted;
using What = schedule::Operation;

constexpr Duration kLeastTimeout = std::chrono::milliseconds(1);

}  // namespace

Result<std::shared_ptr<WorldCore>> WorldCore::prepare(const WorldOptions& options, std::uint32_t rank,
                                                      std::uint32_t size,
                                                      const std::optional<schedule::CostModel>& told_costs) {
  const auto invalid = [](const std::string& text) { return Status(Code::kInvalid, "World: " + text); };
  if (size == 0) return invalid("a world has one rank at least");
  if (rank >= size) {
    return invalid("rank " + std::to_string(rank) + " is not one of 0 to " + std::to_string(size - 1));
  }
  if (options.name.empty() || options.name.size() > 200) return invalid("its name is not 1 to 200 bytes long");
  HAWSER_TRY(check_topology(options.topology, size));
  std::shared_ptr<WorldCore> core = make();
  core->given_costs_ = told_costs;
  if (!options.cost_model.empty()) {
    HAWSER_TRY_ASSIGN(const CostFile file, read_cost_file(options.cost_model));
    core->given_costs_ = file.model();
  }
  core->options_ = options;
  core->roster_.set_own(rank);
  core->is_root_ = true;
  const bool recovers = options.recovery == RecoveryPolicy::kAutomatic;
  if (!options.quorum) core->options_.quorum = recovers ? Quorum::kMajority : Quorum::kNone;
  core->succession_.set_policy(options.recovery);
  core->buffers_ = std::make_shared<BufferSource>(options.pool);
  return core;
}

Result<std::shared_ptr<WorldCore>> WorldCore::open_agent(const WorldOptions& options, std::uint32_t rank,
                                                         std::uint32_t size, SeatHooks hooks) {
  HAWSER_TRY_ASSIGN(const std::shared_ptr<WorldCore> core, prepare(options, rank, size, hooks.told_costs));
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
  core->open_requests();
  core->seat_->record({.world = options.name, .rank = rank, .size = size}, options.agent.log);
  return core;
}

Result<std::shared_ptr<WorldCore>> WorldCore::open_guest(Agent& agent, WorldOptions options, SeatHooks hooks) {
  options.agent = agent::inner::options_of(agent);
  HAWSER_TRY_ASSIGN(const std::shared_ptr<WorldCore> core,
                    prepare(options, options.rank, options.size, hooks.told_costs));
  if (options.topology.kind != Topology::Kind::kFull) {
    return Status(Code::kUnsupported, "World::open: a world on an agent of the program's has the full topology")
        .with_advice("open the world without an agent, or leave the topology out");
  }
  HAWSER_TRY_ASSIGN(core->seat_, RankSeat::join(agent, options.driven, std::move(hooks)));
  core->open_requests();
  return core;
}

/// Under the lane.
Status WorldCore::check_name() const {
  if (!seat_->is_guest()) return {};
  const bool is_ranks = seat_->agent.name() == options_.name + "." + std::to_string(rank());
  if (!is_ranks && !seat_->mailbox->has_known(FormationWatch::key_of(options_.name))) return {};
  return Status(Code::kInvalid, "World::open: agent '" + std::string(seat_->agent.name()) +
                                    "' is, or was, in a world '" + options_.name + "', or has the name of one's rank")
      .with_advice("give each world of an agent a name of its own, the same on all ranks");
}

/// An agent of a world's own is in that world only. One of a program's may be in several, each of another name.
std::uint64_t WorldCore::own_nonce(std::span<const Peer> ranks) const {
  const std::uint64_t nonce = nonce_of(ranks[0].incarnation());
  if (!roster_.is_guest(0)) return nonce;
  Digest digest;
  digest.add(nonce);
  for (const char each : options_.name) digest.add(static_cast<unsigned char>(each));
  return digest.value();
}

void WorldCore::open_requests() {
  requests_.open({.seat = seat_.get(), .patience = options_.timeout, .handle = [this](auto operation) {
                    return Request(shared_from_this(), std::move(operation));
                  }});
}

std::shared_ptr<WorldCore> WorldCore::make() {
  return {new WorldCore, [](WorldCore* core) {
            const std::shared_ptr<RankSeat> seat = core->seat_;
            if (seat == nullptr || !runs_inline_for(seat.get())) {
              delete core;
            } else {
              seat->run([core] { delete core; });  // Here it would wait for the lane, which this thread holds.
            }
          }};
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
  std::vector<bool> guests;
  for (const Peer& peer : ranks) guests.push_back(peer.name() != options_.name + "." + std::to_string(guests.size()));
  roster_.set_guests(std::move(guests));
  const std::uint64_t nonce = own_nonce(ranks);
  family_ = nonce;
  std::vector<std::uint32_t> root_ranks(ranks.size());
  std::iota(root_ranks.begin(), root_ranks.end(), 0U);
  roster_.set_root_ranks(std::move(root_ranks));
  collectives_.begin_with(0);  // Of the barrier that all enter by: what the user calls begins with 1.
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
  roster_.open(std::move(ranks));
  accord_ = std::make_shared<Accord>(nonce_, options_.name, rank(), roster_.peers(), *seat_->mailbox);
  const auto rank_of = [this](const Peer& peer) { return roster_.rank_of(peer); };
  calls_ = std::make_shared<Calls>(
      seat_, *seat_->mailbox,
      Calls::Site{.world = nonce_, .name = options_.name, .members = &roster_.sources(), .rank_of = rank_of});
  open_failures();
  open_succession();
  messages_.open({.world = nonce_,
                  .name = options_.name,
                  .requests = &requests_,
                  .roster = &roster_,
                  .seat = seat_.get(),
                  .failures = &failures_,
                  .buffers = buffers_.get(),
                  .aborted = &succession_.aborted()});
  collectives_.open({.world = nonce_,
                     .name = options_.name,
                     .requests = &requests_,
                     .roster = &roster_,
                     .seat = seat_.get(),
                     .failures = &failures_});
  seat_->mailbox->add_watcher(nonce_, *this, roster_.peers());
  calls_->open(now);
}

void WorldCore::open_failures() {
  failures_.open({.world = nonce_,
                  .name = options_.name,
                  .roster = &roster_,
                  .mailbox = seat_->mailbox.get(),
                  .relay = seat_->relay.get(),
                  .accord = accord_.get(),
                  .heartbeat = options_.agent.heartbeat,
                  .peer_timeout = options_.agent.peer_timeout},
                 {.end_collectives = [this](const Status& why, Instant now) { collectives_.book().end_all(why, now); },
                  .end_waits_for = [this](std::uint32_t rank, const Status& why,
                                          Instant now) { collectives_.book().end_waits_for(rank, why, now); },
                  .end_calls = [this](const Peer& peer) { calls_->on_down(source_of(peer)); },
                  .failed = [this] { succession_.note_failure(); },
                  .excluded = [this](const Status& why) { succession_.note_excluded(why); }});
}

void WorldCore::open_succession() {
  succession_.open({.name = options_.name,
                    .quorum = options_.quorum.value_or(Quorum::kNone),
                    .requests = &requests_,
                    .roster = &roster_,
                    .seat = seat_.get(),
                    .failures = &failures_,
                    .accord = accord_.get()},
                   {.last_good = [this] { return collectives_.book().last_good(); },
                    .make = [this](std::vector<std::uint32_t> ranks, std::uint64_t last_good,
                                   Instant now) { return make_shrunk(std::move(ranks), last_good, now); },
                    .abort = [this](const Status& why, Instant now) { abort(why, now); }});
}

Status WorldCore::find_and_join(Duration timeout, std::span<const Peer> given) {
  const Instant until = agent::inner::now(seat_->agent) + timeout;
  std::optional<FormationWatch> watch;
  Status taken;
  HAWSER_TRY(agent::inner::under_lane(seat_->agent, "World", [&](Instant) {
    taken = check_name();
    if (!taken.ok()) return;
    watch.emplace(*seat_->mailbox, options_.name, settings_of(options_), [this](const Status& why) {
      if (accord_ != nullptr) failures_.revoke(why, true, agent::inner::now(seat_->agent));
    });
  }));
  HAWSER_TRY(taken);
  Result<std::vector<Peer>> ranks = Formation(*seat_, options_, rank(), *watch).find_all(given, until);
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
  if (status.ok() && seat_->is_guest()) {
    seat_->record({.world = options_.name, .rank = rank(), .size = size()}, options_.agent.log);
  }
  if (!status.ok() || misfit_.ok()) return status;
  static_cast<void>(shutdown(std::max(until - agent::inner::now(seat_->agent), kPatience)));  // All leave together.
  return misfit_;
}

std::uint64_t WorldCore::settings_digest() const {
  Digest how;
  how.add(static_cast<std::uint64_t>(succession_.policy()));
  how.add(options_.quorum == Quorum::kMajority ? 1 : 0);
  return how.value();
}

Request WorldCore::all_entered(Duration timeout) {
  entries_.assign(size() * kEntryWords, 0);
  std::ranges::copy(entry_of(seat_->host(), given_costs_), entries_.begin() + rank() * kEntryWords);
  CollectiveCall call = {.call = {.operation = What::kAllGather, .rank = rank(), .size = size()},
                         .output = entries_.data(),
                         .type = DataType::kUInt64,
                         .how = settings_digest()};
  call.call.counts.assign(size(), kEntryWords);
  call.call.has_input_in_output = true;
  const CollectiveOptions options = {.timeout = std::max(timeout, kLeastTimeout)};
  return collectives_.begin_own(std::move(call), options, [this](Collective& made) {
    made.elements.finish = [this] {
      take_entries(std::exchange(entries_, {}));
      return Status();
    };
  });
}

/// Under the lane. A misfit is no failure of the collective: whoever hears of it first, and leaves for it, would take
/// the words away from those that still wait for them.
void WorldCore::take_entries(std::span<const std::uint64_t> words) {
  host_ids_ = hosts_of(words);
  collectives_.know_hosts(host_ids_);
  const Result<SettledCosts> costs = settle_costs(words);
  if (!costs) {
    misfit_ =
        Status(costs.error().code(), "World::open: the ranks of world '" + options_.name + "' do not fit together")
            .because(costs.error())
            .with_advice(costs.error().advice());
    return;
  }
  seat_->settle_costs(*costs);
  collectives_.choose_by(planted(Planted::kOwnCosts) ? given_costs_.value_or(schedule::CostModel()) : costs->model);
}

Status WorldCore::shutdown(Duration timeout) {
  const Instant until = agent::inner::now(seat_->agent) + timeout;
  const auto left = [&] { return std::max(until - agent::inner::now(seat_->agent), Duration::zero()); };
  // The others hear why it did not end before this rank is gone, and is taken for failed.
  const Duration reserve = std::min<Duration>(timeout / 8, std::chrono::milliseconds(200));
  const CollectiveOptions options = {.timeout = std::max(timeout - reserve, kLeastTimeout)};
  Request met = collectives_.begin_own({.call = {.operation = What::kBarrier}, .how = settings_digest()}, options,
                                       [](Collective& made) {
                                         made.name = "shutdown";
                                         put_text(made.flight.operation, made.name);
                                       });
  if (Status status = met.wait(Duration::max()); !status.ok()) {
    static_cast<void>(agent::inner::under_lane(seat_->agent, "World::shutdown",
                                               [this](Instant now) { failures_.tell_revoked_again(now); }));
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
      const BoardRoom* const room = collectives_.room();
      if (room == nullptr) return;
      if (failures_.fates().why_not().ok()) by = room->unread();
      if (failures_.fates().have_only_left()) by = room->unread_of_good_ones();
    });
    const Instant now = agent::inner::now(seat_->agent);
    if (!status.ok() || by.empty() || now >= until) return by;
    static_cast<void>(agent::inner::wait_until(seat_->agent, never, std::min(until, now + kPause)));
  }
}

/// Under the lane.
void WorldCore::say_left(Instant now) {
  if (std::exchange(has_said_left_, true)) return;
  for (const Peer& peer : ranks()) seat_->mailbox->tell(peer, left_word(nonce_), now);
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
    if (const std::optional<std::uint32_t> rank = roster_.rank_of(peer)) behind.insert(*rank);
  }
  if (!behind.empty()) {
    status = Status(Code::kTimedOut, "World: of world '" + options_.name + "' these ranks did not take in what rank " +
                                         std::to_string(rank()) + " sent: " + list_of({behind.begin(), behind.end()}));
  } else if (!is_said) {
    status = Status(Code::kTimedOut, "World: rank " + std::to_string(rank()) + " of the sparse world '" +
                                         options_.name + "' still had to relay for others");
  }
  const Status closed = close(std::max(until - agent::inner::now(seat_->agent), Duration::zero()));
  return status.ok() ? closed : status;
}

/// False: a handler still runs.
bool WorldCore::leave(Duration patience, bool with_groups) {
  static_cast<void>(agent::inner::under_lane(seat_->agent, "World::close", [&](Instant now) {
    const RankFates& fates = failures_.fates();
    const bool went_wrong = fates.has_any_failed() || fates.is_revoked();
    if (Recorder* const recorder = seat_->recorder(); recorder != nullptr && with_groups && went_wrong) {
      recorder->leave();
    }
    if (seat_->is_guest() && is_root_) end_family(now);
    if (with_groups && !seat_->is_guest()) seat_->mailbox->close_all(now);
    on_close(now);
    seat_->mailbox->run_jobs(now);
  }));
  return calls_ == nullptr || calls_->wait_quiet(patience);
}

void WorldCore::say_gone(bool left, Instant now) {
  if (left) return say_left(now);
  if (has_said_left_ || std::exchange(has_said_closed_, true)) return;
  for (const Peer& peer : ranks()) seat_->mailbox->tell(peer, failed_word(nonce_, rank(), true), now);
}

/// No session ends with it, so the other ranks are told: in each of its worlds.
void WorldCore::end_family(Instant now) {
  if (accord_ == nullptr) return;  // It never began.
  const bool left = has_said_left_;
  say_gone(left, now);
  std::vector<Watcher*> all;
  seat_->mailbox->for_family(family_, [&](Watcher& each) {
    each.say_gone(left, now);
    if (&each != this) each.on_close(now);
  });
  seat_->stop_recording();
}

void WorldCore::on_agent_closing(const Status& why, Instant now) {
  end(Status(Code::kCancelled, "world '" + options_.name + "' ended with its agent").because(why), now);
}

void WorldCore::end(const Status& status, Instant now) {
  failures_.close(status);
  collectives_.close(status, now);
  succession_.end(status);
  if (accord_ != nullptr) accord_->close(status);
  if (calls_ != nullptr) calls_->stop(status, now);
  seat_->mailbox->stop_all(nonce_, status);
  seat_->mailbox->stop_sends(nonce_, ranks(), status, now);
  seat_->mailbox->forget_world(nonce_);
  const bool is_first = seat_->mailbox->remove_watcher(nonce_);
  if (!is_first || is_root_ || !accord_->has_decided()) return;
  seat_->keep(std::make_unique<PastAccord>(nonce_, rank(), ranks(), accord_, *seat_->mailbox));
}

Status WorldCore::close(Duration timeout) {
  const Instant until = agent::inner::now(seat_->agent) + timeout;
  std::shared_ptr<WorldCore> untaken;  // The next world, which nobody wanted.
  static_cast<void>(agent::inner::under_lane(seat_->agent, "World::close", [&](Instant) {
    succession_.end(Status(Code::kCancelled, "world '" + options_.name + "' was closed"));  // So that none is made now.
    untaken = succession_.give_up();
  }));
  if (untaken != nullptr) {
    static_cast<void>(leave(timeout, false));
    return untaken->close(std::max(until - agent::inner::now(seat_->agent), Duration::zero()));
  }
  const bool is_root = is_root_;
  const bool is_quiet = leave(timeout, is_root);
  const Duration left = std::max(until - agent::inner::now(seat_->agent), Duration::zero());
  const Status closed = is_root && !seat_->is_guest() ? seat_->agent.close(left) : Status();
  if (is_quiet) return closed;
  return Status(Code::kTimedOut, "World::close: a handler of world '" + options_.name + "' still runs");
}

// ---- What it has, and holds.

std::vector<ConfigValue> WorldCore::config() const {
  WorldOptions its = options_;
  its.size = size();
  its.rank = rank();
  const WorldFacts facts = {.place = place_,
                            .costs = to_string(seat_->costs()),
                            .agent = std::string(seat_->agent.name()),
                            .is_guest = seat_->is_guest()};
  return config_of(its, facts);
}

void WorldCore::add_memory(WorldMemory& sum) {
  sum.collectives += collectives_.book().held_bytes();
  if (calls_ != nullptr) sum.calls += calls_->held_bytes();
}

std::vector<MemoryUse> WorldCore::memory() const {
  WorldMemory sum;
  static_cast<void>(requests_.in_lane("memory", [&](Instant) {
    Mailbox& mailbox = *seat_->mailbox;
    mailbox.for_family(family_, [&sum](Watcher& each) { each.add_memory(sum); });
    sum.unreceived = mailbox.unreceived(family_);
    if (seat_->relay != nullptr) sum.relays = seat_->relay->held_bytes();
    if (seat_->recorder() != nullptr) sum.flight_recorder = kFlightBytes;
  }));
  sum.boards = seat_->board_bytes();
  sum.receives = buffers_->held();
  if (buffers_->pool().valid()) sum.pool = buffers_->pool().statistics().bytes;
  return sum.list();
}

// ---- Groups.

Result<std::shared_ptr<WorldCore>> WorldCore::group(std::span<const std::uint32_t> ranks) {
  if (ranks.empty()) return Status(Code::kInvalid, "group: it has no ranks");
  std::set<std::uint32_t> seen;
  for (const std::uint32_t rank : ranks) {
    HAWSER_TRY(check_rank("group", options_.name, rank, size()));
    if (!seen.insert(rank).second) {
      return Status(Code::kInvalid, "group: rank " + std::to_string(rank) + " is named twice");
    }
  }
  const auto own = std::ranges::find(ranks, rank());
  if (own == ranks.end()) {
    return Status(Code::kInvalid, "group: this rank, " + std::to_string(rank()) + ", is none of them");
  }
  return child(ranks, static_cast<std::uint32_t>(own - ranks.begin()));
}

std::shared_ptr<WorldCore> WorldCore::offspring(std::span<const std::uint32_t> ranks, std::uint32_t own,
                                                std::vector<Peer>& peers) const {
  std::shared_ptr<WorldCore> made = make();
  made->options_ = options_;
  made->succession_.set_policy(succession_.policy());
  made->seat_ = seat_;
  made->family_ = family_;
  made->buffers_ = buffers_;
  made->open_requests();
  made->roster_.set_own(own);
  std::vector<std::uint32_t> root_ranks;
  std::vector<bool> guests;
  for (const std::uint32_t rank : ranks) {
    guests.push_back(roster_.is_guest(rank));
    peers.push_back(roster_.peer(rank));
    root_ranks.push_back(root_rank(rank));
    if (!host_ids_.empty()) made->host_ids_.push_back(host_ids_[rank]);
  }
  made->roster_.set_root_ranks(std::move(root_ranks));
  made->roster_.set_guests(std::move(guests));
  made->collectives_.know_hosts(made->host_ids_);
  return made;
}

Result<std::shared_ptr<WorldCore>> WorldCore::child(std::span<const std::uint32_t> ranks, std::uint32_t own) {
  std::vector<Peer> peers;
  std::shared_ptr<WorldCore> made = offspring(ranks, own, peers);
  Lineage::Child child;
  HAWSER_TRY(agent::inner::under_lane(seat_->agent, "group",
                                      [&](Instant) { child = lineage_.group(nonce_, options_.name, ranks); }));
  made->options_.name = child.name;
  made->id_ = child.nonce;
  if (succession_.policy() == RecoveryPolicy::kAutomatic) made->succession_.set_policy(RecoveryPolicy::kManual);
  HAWSER_TRY(made->begin_world(std::move(peers), child.nonce));
  HAWSER_TRY(agent::inner::under_lane(seat_->agent, "group", [&](Instant now) {
    made->failures_.take_over(failures_, ranks);
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
  HAWSER_TRY(collectives_.begin(std::move(gather), {}).wait(Duration::max()));
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
  if (rank >= size() || rank == this->rank()) return false;
  bool is_direct = true;
  static_cast<void>(
      requests_.in_lane("has_direct_peer", [&](Instant) { is_direct = seat_->is_neighbour(root_rank(rank)); }));
  return is_direct;
}

Status WorldCore::add_handler(const HandlerKey& key, CallHandler handler, const HandlerOptions& options) {
  Status status;
  HAWSER_TRY(agent::inner::under_lane(seat_->agent, "register_handler", [&](Instant) {
    status = calls_->add_handler(key, std::move(handler), options);
  }));
  return status;
}

Status WorldCore::register_handler(std::string_view name, CallHandler handler, const HandlerOptions& options) {
  HAWSER_TRY(check_handler_name(name));
  return add_handler(HandlerKey::of(name), std::move(handler), options);
}

Status WorldCore::register_handler(std::uint64_t number, CallHandler handler, const HandlerOptions& options) {
  return add_handler(HandlerKey::of(number), std::move(handler), options);
}

Request WorldCore::call(std::uint32_t to, std::string_view name, std::span<const std::byte> arguments,
                        const CallOptions& options) {
  return call_by(to, HandlerKey::of(name), arguments, options);
}

Request WorldCore::call(std::uint32_t to, std::uint64_t number, std::span<const std::byte> arguments,
                        const CallOptions& options) {
  return call_by(to, HandlerKey::of(number), arguments, options);
}

Request WorldCore::call_by(std::uint32_t to, const HandlerKey& key, std::span<const std::byte> arguments,
                           const CallOptions& options) {
  auto made = std::make_shared<Calling>();
  if (Status bad = check_rank("call", options_.name, to, size()); !bad.ok()) return requests_.request(made, bad);
  if (arguments.size() > kOwnBufferMax) {
    return requests_.request(
        made, Status(Code::kInvalid, "call: the arguments are " + std::to_string(arguments.size()) + " bytes long, " +
                                         std::to_string(kOwnBufferMax) + " are the most"));
  }
  made->text = "handler " + key.shown() + " of rank " + std::to_string(to);
  const Duration timeout = options.timeout == Duration::zero()
                               ? Calls::patience(options_.timeout, agent::inner::now(seat_->agent))
                               : options.timeout;
  return requests_.begin(made, "call", [this, made, to, number = key.number, arguments, timeout](Instant now) {
    if (const Status gone = failures_.why_gone(to); !gone.ok()) {
      return requests_.end_unbegun(*made, gone);
    }
    calls_->begin(made, roster_.peer(to), number, arguments, timeout, now);
    seat_->mailbox->run_jobs(now);
    return Need::kTurn;
  });
}

void WorldCore::revoke(const Status& why) {
  static_cast<void>(requests_.in_lane("revoke", [&](Instant now) {
    failures_.revoke(why.ok() ? Status(Code::kCancelled, "the world was revoked") : why, true, now);
    seat_->mailbox->run_jobs(now);
  }));
}

std::vector<std::uint32_t> WorldCore::failed() const {
  std::vector<std::uint32_t> all;
  static_cast<void>(requests_.in_lane("failed", [&](Instant) { all = failures_.fates().unusable(); }));
  return all;
}

std::vector<std::uint32_t> WorldCore::acknowledge() {
  std::vector<std::uint32_t> all;
  static_cast<void>(requests_.in_lane("acknowledge", [&](Instant) {
    all = failures_.fates().failed();
    failures_.acknowledge();
  }));
  return all;
}

std::vector<std::uint32_t> WorldCore::failures(std::size_t known, Duration timeout) const {
  const auto news = [&] { return failures_.fates().failures_so_far() > known; };
  if (!runs_inline_for(seat_.get())) {
    static_cast<void>(agent::inner::wait_until(seat_->agent, news, agent::inner::now(seat_->agent) + timeout));
  }
  std::vector<std::uint32_t> all;
  static_cast<void>(requests_.in_lane("failures", [&](Instant) { all = failures_.fates().failures(); }));
  all.erase(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(std::min(known, all.size())));
  return all;
}

std::uint64_t WorldCore::last_number() const {
  std::uint64_t number = 0;
  static_cast<void>(requests_.in_lane("last_number", [&](Instant) { number = collectives_.book().last_number(); }));
  return number;
}

// ---- The next world.

std::shared_ptr<WorldCore> WorldCore::make_shrunk(std::vector<std::uint32_t> ranks, std::uint64_t last_good,
                                                  Instant now) {
  const auto own = static_cast<std::uint32_t>(std::ranges::find(ranks, rank()) - ranks.begin());
  std::vector<Peer> peers;
  std::shared_ptr<WorldCore> made = offspring(ranks, own, peers);
  made->id_ = id_;
  made->epoch_ = epoch_ + 1;
  made->last_good_before_ = last_good;
  Lineage::Child child = Lineage::shrunk(nonce_, options_.name, made->epoch_, ranks);
  made->options_.name = std::move(child.name);
  made->begin_under_lane(std::move(peers), child.nonce, now);
  made->failures_.take_over(failures_, ranks);
  made->old_ranks_ = std::move(ranks);
  if (is_sparse() && is_root_) seat_->relay->adopt(made->epoch_, made->roster_.root_ranks(), now);
  made->is_root_ = is_root_.exchange(false);  // The agent goes with the new one.
  if (made->is_root_) seat_->root = made;
  return made;
}

/// Calls end first: their messages are theirs to end.
void WorldCore::abort(const Status& why, Instant now) {
  collectives_.book().end_all(why, now);
  calls_->stop(why, now);
  accord_->close(why);
  seat_->mailbox->stop_all(nonce_, why);
  seat_->mailbox->stop_landing(nonce_, ranks(), why, now);
  seat_->mailbox->stop_sends(nonce_, ranks(), why, now);
}

// ---- Requests.

bool WorldCore::wait(runtime::Operation& operation, Duration timeout) const {
  if (collectives_.ends_within(operation, timeout)) return true;
  if (!operation.is_waited.exchange(false, std::memory_order_relaxed)) return false;
  static_cast<void>(  // From now on nobody else looks.
      agent::inner::under_lane_lightly(seat_->agent, "wait", [](Instant) { return Need::kDriver; }));
  return operation.final.load(std::memory_order_acquire);
}

void WorldCore::cancel(runtime::Operation& operation) {
  const Status status(Code::kCancelled, "it was cancelled at rank " + std::to_string(rank()));
  static_cast<void>(requests_.in_lane("cancel", [&](Instant now) {
    if (operation.final.load(std::memory_order_relaxed)) return;
    if (operation.kind == OperationKind::kSeveral) {
      operation.listener->on_cancel(operation, status, now);
    } else {
      seat_->mailbox->stop(operation, status, now);
    }
    seat_->mailbox->run_jobs(now);
  }));
}

void WorldCore::on_agreement(const Peer& by, const wire::RuntimeMessage& message) {
  if (const std::optional<std::uint32_t> rank = roster_.rank_of(by)) {
    accord_->hear(*rank, message, agent::inner::now(seat_->agent));
  }
}

}  // namespace hawser::runtime
