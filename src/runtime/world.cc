// The door's worlds.

#include <hawser/world.h>
#include <algorithm>

#include <numeric>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "agent/inner.h"
#include "base/inside.h"
#include "base/try.h"
#include "identity/world_token.h"
#include "runtime/calls.h"
#include "runtime/directory_store.h"
#include "runtime/seed_client.h"
#include "runtime/seed_server.h"
#include "runtime/world_config.h"
#include "runtime/world_core.h"

HAWSER_NAMESPACE_BEGIN

using runtime::CollectiveCall;
using runtime::WorldCore;
using What = schedule::Operation;

namespace {

/// Not so: a handle that was never filled, or what it held was moved away; or the call is made in an inline handler,
/// and would wait for the thread that it is made on.
Status usable(const char* call, const WorldCore* core) {
  if (core == nullptr) return Status(Code::kInvalid, std::string(call) + ": this handle is empty");
  if (!runtime::runs_inline_for(core->seat().get())) return {};
  return Status(Code::kInvalid, std::string(call) +
                                    ": an inline handler of this rank must not call it: it runs in the "
                                    "middle of what the call waits for")
      .with_advice("register the handler without `runs_inline`");
}

Request ended_request(Status why) {
  auto operation = std::make_shared<runtime::Send>();
  operation->status = std::move(why);
  operation->final.store(true, std::memory_order_release);
  return {nullptr, std::move(operation)};
}

Result<CallAnswer> answer_of(Request request) {
  HAWSER_TRY(request.wait(Duration::max()));
  const std::span<const std::byte> bytes = request.bytes();
  return CallAnswer(bytes.begin(), bytes.end());
}

// What each collective is, whether or not its caller waits at once.

CollectiveCall barrier_call() { return {.call = {.operation = What::kBarrier}}; }

CollectiveCall broadcast_call(void* data, std::size_t count, DataType type, std::uint32_t root) {
  return {.call = {.operation = What::kBroadcast, .root = root, .count = count},
          .input = data,
          .output = data,
          .type = type};
}

CollectiveCall reduce_call(const void* in, void* out, std::size_t count, DataType type, ReduceOp op,
                           std::uint32_t root) {
  return {.call = {.operation = What::kReduce, .root = root, .count = count, .has_input_in_output = in == out},
          .input = in,
          .output = out,
          .type = type,
          .op = op};
}

CollectiveCall all_reduce_call(const void* in, void* out, std::size_t count, DataType type, ReduceOp op) {
  return {.call = {.operation = What::kAllReduce, .count = count, .has_input_in_output = in == out},
          .input = in,
          .output = out,
          .type = type,
          .op = op};
}

CollectiveCall all_gather_call(const void* in, void* out, std::span<const std::uint64_t> counts, DataType type) {
  return {.call = {.operation = What::kAllGather, .counts = {counts.begin(), counts.end()}},
          .input = in,
          .output = out,
          .type = type};
}

CollectiveCall reduce_scatter_call(const void* in, void* out, std::span<const std::uint64_t> counts, DataType type,
                                   ReduceOp op) {
  return {.call = {.operation = What::kReduceScatter, .counts = {counts.begin(), counts.end()}},
          .input = in,
          .output = out,
          .type = type,
          .op = op};
}

CollectiveCall gather_call(const void* in, void* out, std::span<const std::uint64_t> counts, DataType type,
                           std::uint32_t root) {
  return {.call = {.operation = What::kGather, .root = root, .counts = {counts.begin(), counts.end()}},
          .input = in,
          .output = out,
          .type = type};
}

CollectiveCall scatter_call(const void* in, void* out, std::span<const std::uint64_t> counts, DataType type,
                            std::uint32_t root) {
  return {.call = {.operation = What::kScatter, .root = root, .counts = {counts.begin(), counts.end()}},
          .input = in,
          .output = out,
          .type = type};
}

CollectiveCall all_to_all_call(const void* in, void* out, std::span<const std::uint64_t> out_counts,
                               std::span<const std::uint64_t> in_counts, DataType type) {
  return {.call = {.operation = What::kAllToAll,
                   .counts = {out_counts.begin(), out_counts.end()},
                   .in_counts = {in_counts.begin(), in_counts.end()}},
          .input = in,
          .output = out,
          .type = type};
}

CollectiveCall even_all_to_all_call(const void* in, void* out, std::uint64_t count, std::uint32_t size, DataType type) {
  const std::vector<std::uint64_t> counts(size, count);
  CollectiveCall made = all_to_all_call(in, out, counts, counts, type);
  made.call.is_even = true;
  return made;
}

CollectiveCall scan_call(const void* in, void* out, std::size_t count, DataType type, ReduceOp op, bool exclusive) {
  return {.call = {.operation = exclusive ? What::kExclusiveScan : What::kScan,
                   .count = count,
                   .has_input_in_output = in == out},
          .input = in,
          .output = out,
          .type = type,
          .op = op};
}

}  // namespace

// ---- Requests.

Request::Request(std::shared_ptr<WorldCore> world, std::shared_ptr<runtime::Operation> operation)
    : world_(std::move(world)), operation_(std::move(operation)) {}
Request::Request(Request&&) noexcept = default;

Request& Request::operator=(Request&& other) noexcept {
  if (this != &other) {
    Request gone(std::move(*this));
    world_ = std::move(other.world_);
    operation_ = std::move(other.operation_);
  }
  return *this;
}

Request::~Request() { cancel(); }

bool Request::done() const { return operation_ != nullptr && operation_->final.load(std::memory_order_acquire); }

Status Request::wait(Duration timeout) {
  if (!operation_) return Status(Code::kInvalid, "Request::wait: this handle is empty");
  if (!world_) return operation_->status;
  if (!done()) HAWSER_TRY(usable("Request::wait", world_.get()));
  if (world_->wait(*operation_, timeout)) return operation_->status;
  HAWSER_TRY(agent::inner::not_forked(world_->agent(), "Request::wait"));
  return Status(Code::kTimedOut, "Request::wait: not over yet; the operation goes on").with_scope(Scope::kRequest);
}

Status Request::status() const { return done() ? operation_->status : Status(); }

Received Request::received() const {
  if (!done() || operation_->kind != runtime::OperationKind::kReceive) return {};
  return world_->received(static_cast<const runtime::Receive&>(*operation_));
}

std::string_view Request::algorithm() const { return done() ? operation_->algorithm_name() : std::string_view(); }

std::span<const std::byte> Request::bytes() const {
  return done() ? operation_->made_bytes() : std::span<const std::byte>();
}

void Request::cancel() {
  if (operation_ != nullptr && !done()) world_->cancel(*operation_);
}

// ---- Batches.

bool Batch::done() const { return std::ranges::all_of(requests_, &Request::done); }

Status Batch::wait(Duration timeout) {
  const Instant begun = Clock::steady().now();
  const bool has_end = timeout < Duration::max();
  const auto left = [&] {
    return has_end ? std::max(timeout - (Clock::steady().now() - begun), Duration::zero()) : Duration::max();
  };
  Status first;
  for (std::size_t i = 0; i < requests_.size(); ++i) {
    const Status status = requests_[i].wait(left());
    if (!requests_[i].done()) return status;  // In a forked child, too.
    if (status.ok() || !first.ok()) continue;
    first = Status(status.code(), "message " + std::to_string(i + 1) + " of " + std::to_string(requests_.size()) +
                                      ": " + std::string(status.message()))
                .because(status);
  }
  return first;
}

void Batch::cancel() {
  for (Request& each : requests_) each.cancel();
}

// ---- Formation.

Result<std::vector<World>> World::local(std::uint32_t size, const WorldOptions& options) {
  constexpr std::uint32_t kLocalMax = 1024;
  if (size == 0 || size > kLocalMax) {
    return Status(Code::kInvalid, "World::local: " + std::to_string(size) + " ranks; there may be 1 to " +
                                      std::to_string(kLocalMax) + " in one process");
  }
  WorldOptions driven = options;
  driven.driven = true;
  std::vector<std::shared_ptr<WorldCore>> cores;
  for (std::uint32_t rank = 0; rank < size; ++rank) {
    Result<std::shared_ptr<WorldCore>> core = WorldCore::open_agent(driven, rank, size);
    if (!core) return core.error();
    (*core)->note_place("this process");
    cores.push_back(std::move(*core));
  }
  std::vector<std::vector<Peer>> peers(size);
  for (std::uint32_t rank = 0; rank < size; ++rank) {
    for (std::uint32_t other = 0; other < size; ++other) {
      if (other == rank) {
        peers[rank].push_back(cores[rank]->agent().self());
        continue;
      }
      const Result<std::string> card = cores[other]->agent().card();
      if (!card) return card.error();
      Agent& agent = cores[rank]->agent();
      Result<Peer> peer = agent.add_peer(*card);
      if (!peer) return peer.error();
      peers[rank].push_back(std::move(*peer));
    }
  }
  const Instant until = agent::inner::now(cores[0]->agent()) + options.join_timeout;
  std::vector<Request> entered;
  for (std::uint32_t rank = 0; rank < size; ++rank) HAWSER_TRY(cores[rank]->connect(peers[rank], until));
  for (std::uint32_t rank = 0; rank < size; ++rank) HAWSER_TRY(cores[rank]->enter(std::move(peers[rank])));
  for (const std::shared_ptr<WorldCore>& core : cores) entered.push_back(core->all_entered(options.join_timeout));
  std::vector<World> worlds;
  for (std::uint32_t rank = 0; rank < size; ++rank) {
    HAWSER_TRY(entered[rank].wait(Duration::max()));
    HAWSER_TRY(cores[rank]->misfit());
    worlds.emplace_back(std::move(cores[rank]));
  }
  return worlds;
}

namespace {

/// Of World::open: where the ranks find one another.
Status check_place(const WorldOptions& options) {
  const bool has_store = options.store.set && options.store.get;
  if (has_store && !options.seed.empty()) {
    return Status(Code::kInvalid, "World::open: a store and a seed are given; the ranks find one another in one place");
  }
  if (options.serves_seed && options.seed.empty()) {
    return Status(Code::kInvalid, "World::open: rank 0 is to serve the seed, and no address is given for it");
  }
  if (!options.token_file.empty() && options.seed.empty()) {
    return Status(Code::kInvalid, "World::open: a token is given, but no seed to which it is proven")
        .with_advice("set WorldOptions::seed or HAWSER_SEED to the seed's HOST:PORT");
  }
  if (!options.agent.directory && !has_store && options.seed.empty() && options.size > 1) {
    return Status(Code::kInvalid, "World::open: no directory, store or seed is given where the ranks find one another")
        .with_advice("set WorldOptions::agent.directory, store or seed");
  }
  return {};
}

/// The ranks ask the seed by it. While it lives, rank 0 serves the seed, where the options say so.
Result<std::unique_ptr<runtime::SeedServer>> take_seed(WorldOptions& options) {
  std::unique_ptr<runtime::SeedServer> server;
  if (options.seed.empty() || options.size <= 1) return server;
  std::optional<identity::WorldToken> token;
  if (!options.token_file.empty()) {
    HAWSER_TRY_ASSIGN(token, identity::WorldToken::read(options.token_file));
  }
  if (options.serves_seed && options.rank == 0) {
    HAWSER_TRY_ASSIGN(server, runtime::serve_at(options.seed, options.agent, token));
  }
  Result<std::shared_ptr<runtime::SeedClient>> client =
      options.serves_seed
          ? runtime::SeedClient::open_patiently(options.seed, options.agent, options.join_timeout, token)
          : runtime::SeedClient::open(options.seed, options.agent, options.join_timeout, token);
  if (!client) return client.error();
  options.store = runtime::SeedClient::store_of(*client);
  return server;
}

Status check_given(const Agent& agent, std::span<const Peer> ranks, const WorldOptions& options) {
  const auto invalid = [](const std::string& text) { return Status(Code::kInvalid, "World::open: " + text); };
  if (ranks.empty()) return invalid("no ranks are given");
  if (options.size != 0 && options.size != ranks.size()) {
    return invalid("the size is " + std::to_string(options.size) + ", and " + std::to_string(ranks.size()) +
                   " ranks are given");
  }
  if (options.rank >= ranks.size()) {
    return invalid("rank " + std::to_string(options.rank) + " is not one of the " + std::to_string(ranks.size()) +
                   " that are given");
  }
  const bool has_place = options.store.get || !options.seed.empty() || !options.token_file.empty();
  if (has_place) return invalid("ranks are given, and a place to find them, too");
  std::set<const void*> seen;
  for (std::uint32_t rank = 0; rank < ranks.size(); ++rank) {
    const Peer& peer = ranks[rank];
    const bool is_own = rank == options.rank;
    if (is_own && (!peer.valid() || (peer.is_self() && agent::inner::knows(agent, peer)))) continue;
    const std::string which = "rank " + std::to_string(rank);
    if (is_own) return invalid(which + " is this rank, and another peer is given for it");
    if (!peer.valid()) return invalid(which + " has no peer");
    if (!agent::inner::knows(agent, peer)) return invalid(which + " is a peer of another agent");
    if (peer.is_self())
      return invalid(which + " is this agent itself, and this rank is " + std::to_string(options.rank));
    if (!seen.insert(core_of(peer).get()).second) return invalid(which + " is given twice");
  }
  return {};
}

Result<World> open_guest(Agent& agent, std::span<const Peer> given, WorldOptions options, std::string place) {
  const Duration patience = options.join_timeout;
  HAWSER_TRY_ASSIGN(std::shared_ptr<WorldCore> core, WorldCore::open_guest(agent, std::move(options)));
  core->note_place(std::move(place));
  HAWSER_TRY(core->find_and_join(patience, given));
  return World(std::move(core));
}

}  // namespace

Result<World> World::open(WorldOptions options) {
  HAWSER_TRY(check_place(options));
  for (const char* const backend : {"tcp", "quic"}) {  // Ranks may be on other hosts.
    options.agent.backend_params[backend].try_emplace("listen", "auto");
  }
  const std::string place = runtime::place_of(options);
  HAWSER_TRY_ASSIGN(const auto seed, take_seed(options));
  Result<std::shared_ptr<WorldCore>> core = WorldCore::open_agent(options, options.rank, options.size);
  if (!core) return core.error();
  (*core)->note_place(place);
  HAWSER_TRY((*core)->find_and_join(options.join_timeout));
  return World(std::move(*core));
}

Result<World> World::open(Agent& agent, WorldOptions options) {
  HAWSER_TRY(agent::inner::under_lane(agent, "World::open", [](Instant) {}));
  std::shared_ptr<Directory> directory = std::move(options.agent.directory);
  options.agent = agent::inner::options_of(agent);
  if (directory != nullptr) options.agent.directory = std::move(directory);
  HAWSER_TRY(check_place(options));
  std::string place = runtime::place_of(options);
  HAWSER_TRY_ASSIGN(const auto seed, take_seed(options));
  if (!options.store.get && options.agent.directory) options.store = runtime::store_in(options.agent.directory, agent);
  return open_guest(agent, {}, std::move(options), std::move(place));
}

Result<World> World::open(Agent& agent, std::span<const Peer> ranks, WorldOptions options) {
  HAWSER_TRY(agent::inner::under_lane(agent, "World::open", [](Instant) {}));
  HAWSER_TRY(check_given(agent, ranks, options));
  options.size = static_cast<std::uint32_t>(ranks.size());
  return open_guest(agent, ranks, std::move(options), "given peers");
}

std::uint32_t World::rank() const {
  if (!core_) return {};
  return core_->rank();
}
std::uint32_t World::size() const {
  if (!core_) return {};
  return core_->size();
}
Peer World::peer(std::uint32_t rank) const {
  if (!core_) return {};
  return rank < size() ? core_->ranks()[rank] : Peer();
}
std::string World::cost_model() const {
  if (!core_) return {};
  return to_string(core_->seat()->costs());
}
std::vector<std::pair<std::string, double>> World::costs() const {
  if (!core_) return {};
  std::vector<std::pair<std::string, double>> all;
  for (const schedule::CostField& field : schedule::kCostFields) {
    all.emplace_back(field.name, core_->seat()->costs().model.*field.value);
  }
  return all;
}
std::vector<ConfigValue> World::config() const {
  if (!core_) return {};
  return core_->config();
}
std::vector<MemoryUse> World::memory() const {
  if (!core_) return {};
  return core_->memory();
}
bool World::is_sparse() const {
  if (!core_) return {};
  return core_->is_sparse();
}
bool World::has_direct_peer(std::uint32_t rank) const {
  if (!core_) return {};
  return core_->has_direct_peer(rank);
}

std::uint32_t World::host(std::uint32_t rank) const {
  if (!core_) return {};
  return core_->hosts().empty() ? 0 : core_->hosts()[rank < size() ? rank : this->rank()];
}
std::uint32_t World::local_rank() const {
  if (!core_) return {};
  const auto& hosts = core_->hosts();
  return hosts.empty() ? 0
                       : static_cast<std::uint32_t>(std::count(hosts.begin(), hosts.begin() + rank(), host(rank())));
}
std::uint32_t World::local_size() const {
  if (!core_) return {};
  const auto& hosts = core_->hosts();
  return hosts.empty() ? 1 : static_cast<std::uint32_t>(std::ranges::count(hosts, host(rank())));
}

std::vector<std::uint32_t> World::failed() const {
  if (!core_) return {};
  return core_->failed();
}
void World::revoke(const Status& why) {
  if (!core_) return;
  core_->revoke(why);
}
Status World::close(Duration timeout) {
  HAWSER_TRY(usable("World::close", core_.get()));
  return core_->close(timeout);
}

Status World::leave(Duration timeout) {
  HAWSER_TRY(usable("World::leave", core_.get()));
  return core_->depart(timeout);
}
Status World::shutdown(Duration timeout) {
  HAWSER_TRY(usable("World::shutdown", core_.get()));
  return core_->shutdown(timeout);
}

// ---- After a failure.

Request World::iagree(bool flag, Duration timeout) {
  if (Status bad = usable("World::iagree", core_.get()); !bad.ok()) return ended_request(std::move(bad));
  return core_->succession().agree(flag, timeout);
}

Result<bool> World::agreed(const Request& request) {
  HAWSER_TRY(usable("World::agreed", core_.get()));
  HAWSER_TRY_ASSIGN(const runtime::AgreementValue decision, core_->succession().outcome(request.operation_.get()));
  return decision.flag;
}

Result<bool> World::agree(bool flag, Duration timeout) {
  Request request = iagree(flag, timeout);
  HAWSER_TRY(request.wait(Duration::max()));
  return agreed(request);
}

Request World::ishrink(std::span<const std::uint32_t> without, Duration timeout) {
  if (Status bad = usable("World::ishrink", core_.get()); !bad.ok()) return ended_request(std::move(bad));
  return core_->succession().begin_shrink(without, timeout);
}

Result<World> World::shrunk(const Request& request) {
  HAWSER_TRY(usable("World::shrunk", core_.get()));
  HAWSER_TRY_ASSIGN(std::shared_ptr<WorldCore> made, core_->succession().shrunk(request.operation_.get()));
  return World(std::move(made));
}

Result<World> World::shrink(std::span<const std::uint32_t> without, Duration timeout) {
  Request request = ishrink(without, timeout);
  HAWSER_TRY(request.wait(Duration::max()));
  return shrunk(request);
}

std::vector<std::uint32_t> World::failures(std::size_t known, Duration timeout) const {
  if (!core_) return {};
  return core_->failures(known, timeout);
}

Result<Recovered> World::recovered(Duration timeout) {
  HAWSER_TRY(usable("World::recovered", core_.get()));
  HAWSER_TRY_ASSIGN(runtime::Recovery::Made made, core_->succession().recovered(timeout));
  return Recovered{.world = World(std::move(made.world)), .old_rank = rank(), .failed = std::move(made.failed)};
}

std::vector<std::uint32_t> World::acknowledge() {
  if (!core_) return {};
  return core_->acknowledge();
}
std::uint64_t World::id() const {
  if (!core_) return {};
  return core_->id();
}

std::uint64_t World::epoch() const {
  if (!core_) return {};
  return core_->epoch();
}
std::uint32_t World::old_rank(std::uint32_t rank) const {
  if (!core_) return {};
  return core_->old_rank(rank);
}
std::uint64_t World::last_good() const {
  if (!core_) return {};
  return core_->last_good();
}
std::uint64_t World::last_number() const {
  if (!core_) return {};
  return core_->last_number();
}

// ---- Groups.

Result<World> World::split(std::optional<std::uint32_t> color, std::int64_t key) {
  HAWSER_TRY(usable("World::split", core_.get()));
  HAWSER_TRY_ASSIGN(std::shared_ptr<WorldCore> made, core_->split(color, key));
  return World(std::move(made));
}

Result<World> World::duplicate() {
  std::vector<std::uint32_t> all(size());
  std::iota(all.begin(), all.end(), 0U);
  return group(all);
}

Result<World> World::group(std::span<const std::uint32_t> ranks) {
  HAWSER_TRY(usable("World::group", core_.get()));
  HAWSER_TRY_ASSIGN(std::shared_ptr<WorldCore> made, core_->group(ranks));
  return World(std::move(made));
}

std::uint32_t World::root_rank(std::uint32_t rank) const {
  if (!core_) return {};
  return core_->root_rank(rank);
}

// ---- Messages.

Request World::isend(std::span<const std::byte> bytes, std::uint32_t to, std::uint64_t tag,
                     const MessageOptions& options) {
  if (Status bad = usable("World::isend", core_.get()); !bad.ok()) return ended_request(std::move(bad));
  return core_->messages().send(bytes, to, tag, options);
}

Request World::ireceive(std::span<std::byte> into, std::uint32_t from, std::optional<std::uint64_t> tag,
                        const MessageOptions& options) {
  if (Status bad = usable("World::ireceive", core_.get()); !bad.ok()) return ended_request(std::move(bad));
  return core_->messages().receive(into, from, tag, options);
}

Request World::isend_parts(std::span<const std::span<const std::byte>> parts, std::uint32_t to, std::uint64_t tag,
                           const MessageOptions& options) {
  if (Status bad = usable("World::isend_parts", core_.get()); !bad.ok()) return ended_request(std::move(bad));
  return core_->messages().send_parts(parts, to, tag, options);
}

Request World::ireceive_parts(std::span<const std::span<std::byte>> parts, std::uint32_t from,
                              std::optional<std::uint64_t> tag, const MessageOptions& options) {
  if (Status bad = usable("World::ireceive_parts", core_.get()); !bad.ok()) return ended_request(std::move(bad));
  return core_->messages().receive_parts(parts, from, tag, options);
}

Status World::send_parts(std::span<const std::span<const std::byte>> parts, std::uint32_t to, std::uint64_t tag,
                         const MessageOptions& options) {
  return isend_parts(parts, to, tag, options).wait(Duration::max());
}

Result<Received> World::receive_parts(std::span<const std::span<std::byte>> parts, std::uint32_t from,
                                      std::optional<std::uint64_t> tag, const MessageOptions& options) {
  Request request = ireceive_parts(parts, from, tag, options);
  if (Status status = request.wait(Duration::max()); !status.ok()) return status;
  return request.received();
}

Batch World::ibatch(std::span<const OutgoingMessage> sends, std::span<const AwaitedMessage> receives,
                    const MessageOptions& options) {
  if (Status bad = usable("World::ibatch", core_.get()); !bad.ok()) {
    std::vector<Request> ended;
    for (std::size_t i = 0; i < sends.size() + receives.size(); ++i) ended.push_back(ended_request(bad));
    return Batch(std::move(ended));
  }
  return Batch(core_->messages().batch(sends, receives, options));
}

Status World::batch(std::span<const OutgoingMessage> sends, std::span<const AwaitedMessage> receives,
                    const MessageOptions& options) {
  HAWSER_TRY(usable("World::batch", core_.get()));
  return ibatch(sends, receives, options).wait(Duration::max());
}

Request World::ireceive_any_size(std::uint32_t from, std::optional<std::uint64_t> tag, const MessageOptions& options) {
  if (Status bad = usable("World::ireceive_any_size", core_.get()); !bad.ok()) return ended_request(std::move(bad));
  return core_->messages().receive(std::nullopt, from, tag, options);
}

Status World::send(std::span<const std::byte> bytes, std::uint32_t to, std::uint64_t tag,
                   const MessageOptions& options) {
  return isend(bytes, to, tag, options).wait(Duration::max());
}

Result<Received> World::receive(std::span<std::byte> into, std::uint32_t from, std::optional<std::uint64_t> tag,
                                const MessageOptions& options) {
  Request request = ireceive(into, from, tag, options);
  if (Status status = request.wait(Duration::max()); !status.ok()) return status;
  return request.received();
}

std::optional<Received> World::probe(std::uint32_t from, std::optional<std::uint64_t> tag, Duration timeout) const {
  if (!core_) return {};
  return core_->messages().probe(from, tag, timeout);
}

// ---- Calls.

Status World::register_handler(std::string_view name, CallHandler handler, const HandlerOptions& options) {
  HAWSER_TRY(usable("World::register_handler", core_.get()));
  return core_->register_handler(name, std::move(handler), options);
}

Status World::register_handler(std::uint64_t number, CallHandler handler, const HandlerOptions& options) {
  HAWSER_TRY(usable("World::register_handler", core_.get()));
  return core_->register_handler(number, std::move(handler), options);
}

Request World::icall(std::uint32_t to, std::uint64_t number, std::span<const std::byte> arguments,
                     const CallOptions& options) {
  if (Status bad = usable("World::icall", core_.get()); !bad.ok()) return ended_request(std::move(bad));
  return core_->call(to, number, arguments, options);
}

Result<CallAnswer> World::call(std::uint32_t to, std::uint64_t number, std::span<const std::byte> arguments,
                               const CallOptions& options) {
  return answer_of(icall(to, number, arguments, options));
}

Request World::icall(std::uint32_t to, std::string_view name, std::span<const std::byte> arguments,
                     const CallOptions& options) {
  if (Status bad = usable("World::icall", core_.get()); !bad.ok()) return ended_request(std::move(bad));
  return core_->call(to, name, arguments, options);
}

Result<CallAnswer> World::call(std::uint32_t to, std::string_view name, std::span<const std::byte> arguments,
                               const CallOptions& options) {
  return answer_of(icall(to, name, arguments, options));
}

// ---- Collectives.

Result<Region> World::allocate(const AllocateOptions& options) {
  HAWSER_TRY(usable("World::allocate", core_.get()));
  return core_->agent().allocate(options);
}

Result<Region> World::add_region(const RegionOptions& options) {
  HAWSER_TRY(usable("World::add_region", core_.get()));
  return core_->agent().add_region(options);
}

Request World::ibarrier(const CollectiveOptions& options) {
  if (Status bad = usable("World::ibarrier", core_.get()); !bad.ok()) return ended_request(std::move(bad));
  return core_->collectives().begin(barrier_call(), options);
}

Request World::ibroadcast(void* data, std::size_t count, DataType type, std::uint32_t root,
                          const CollectiveOptions& options) {
  if (Status bad = usable("World::ibroadcast", core_.get()); !bad.ok()) return ended_request(std::move(bad));
  return core_->collectives().begin(broadcast_call(data, count, type, root), options);
}

Request World::ireduce(const void* in, void* out, std::size_t count, DataType type, ReduceOp op, std::uint32_t root,
                       const CollectiveOptions& options) {
  if (Status bad = usable("World::ireduce", core_.get()); !bad.ok()) return ended_request(std::move(bad));
  return core_->collectives().begin(reduce_call(in, out, count, type, op, root), options);
}

Request World::iall_reduce(const void* in, void* out, std::size_t count, DataType type, ReduceOp op,
                           const CollectiveOptions& options) {
  if (Status bad = usable("World::iall_reduce", core_.get()); !bad.ok()) return ended_request(std::move(bad));
  return core_->collectives().begin(all_reduce_call(in, out, count, type, op), options);
}

std::vector<Request> World::iall_reduce_bucketed(std::span<const Tensor> tensors, DataType type, ReduceOp op,
                                                 std::size_t bucket_bytes, const CollectiveOptions& options) {
  if (!core_) return {};
  return core_->collectives().all_reduce_bucketed(tensors, type, op, bucket_bytes, options);
}

Status World::all_reduce_bucketed(std::span<const Tensor> tensors, DataType type, ReduceOp op, std::size_t bucket_bytes,
                                  const CollectiveOptions& options) {
  Status first;
  for (Request& request : iall_reduce_bucketed(tensors, type, op, bucket_bytes, options)) {
    const Status status = request.wait(Duration::max());
    if (first.ok()) first = status;
  }
  return first;
}

Request World::iall_gather(const void* in, void* out, std::span<const std::uint64_t> counts, DataType type,
                           const CollectiveOptions& options) {
  if (Status bad = usable("World::iall_gather", core_.get()); !bad.ok()) return ended_request(std::move(bad));
  return core_->collectives().begin(all_gather_call(in, out, counts, type), options);
}

Request World::ireduce_scatter(const void* in, void* out, std::span<const std::uint64_t> counts, DataType type,
                               ReduceOp op, const CollectiveOptions& options) {
  if (Status bad = usable("World::ireduce_scatter", core_.get()); !bad.ok()) return ended_request(std::move(bad));
  return core_->collectives().begin(reduce_scatter_call(in, out, counts, type, op), options);
}

Request World::igather(const void* in, void* out, std::span<const std::uint64_t> counts, DataType type,
                       std::uint32_t root, const CollectiveOptions& options) {
  if (Status bad = usable("World::igather", core_.get()); !bad.ok()) return ended_request(std::move(bad));
  return core_->collectives().begin(gather_call(in, out, counts, type, root), options);
}

Request World::iscatter(const void* in, void* out, std::span<const std::uint64_t> counts, DataType type,
                        std::uint32_t root, const CollectiveOptions& options) {
  if (Status bad = usable("World::iscatter", core_.get()); !bad.ok()) return ended_request(std::move(bad));
  return core_->collectives().begin(scatter_call(in, out, counts, type, root), options);
}

Request World::iall_to_all(const void* in, void* out, std::span<const std::uint64_t> out_counts,
                           std::span<const std::uint64_t> in_counts, DataType type, const CollectiveOptions& options) {
  if (Status bad = usable("World::iall_to_all", core_.get()); !bad.ok()) return ended_request(std::move(bad));
  return core_->collectives().begin(all_to_all_call(in, out, out_counts, in_counts, type), options);
}

Request World::iall_to_all(const void* in, void* out, std::uint64_t count, DataType type,
                           const CollectiveOptions& options) {
  if (Status bad = usable("World::iall_to_all", core_.get()); !bad.ok()) return ended_request(std::move(bad));
  return core_->collectives().begin(even_all_to_all_call(in, out, count, core_->size(), type), options);
}

Request World::iscan(const void* in, void* out, std::size_t count, DataType type, ReduceOp op, bool exclusive,
                     const CollectiveOptions& options) {
  if (Status bad = usable("World::iscan", core_.get()); !bad.ok()) return ended_request(std::move(bad));
  return core_->collectives().begin(scan_call(in, out, count, type, op, exclusive), options);
}

Status World::barrier(const CollectiveOptions& options) {
  HAWSER_TRY(usable("World::barrier", core_.get()));
  return core_->collectives().carry_out(barrier_call(), options);
}

Status World::broadcast(void* data, std::size_t count, DataType type, std::uint32_t root,
                        const CollectiveOptions& options) {
  HAWSER_TRY(usable("World::broadcast", core_.get()));
  return core_->collectives().carry_out(broadcast_call(data, count, type, root), options);
}

Status World::reduce(const void* in, void* out, std::size_t count, DataType type, ReduceOp op, std::uint32_t root,
                     const CollectiveOptions& options) {
  HAWSER_TRY(usable("World::reduce", core_.get()));
  return core_->collectives().carry_out(reduce_call(in, out, count, type, op, root), options);
}

Status World::all_reduce(const void* in, void* out, std::size_t count, DataType type, ReduceOp op,
                         const CollectiveOptions& options) {
  HAWSER_TRY(usable("World::all_reduce", core_.get()));
  return core_->collectives().carry_out(all_reduce_call(in, out, count, type, op), options);
}

Status World::all_gather(const void* in, void* out, std::span<const std::uint64_t> counts, DataType type,
                         const CollectiveOptions& options) {
  HAWSER_TRY(usable("World::all_gather", core_.get()));
  return core_->collectives().carry_out(all_gather_call(in, out, counts, type), options);
}

Status World::reduce_scatter(const void* in, void* out, std::span<const std::uint64_t> counts, DataType type,
                             ReduceOp op, const CollectiveOptions& options) {
  HAWSER_TRY(usable("World::reduce_scatter", core_.get()));
  return core_->collectives().carry_out(reduce_scatter_call(in, out, counts, type, op), options);
}

Status World::gather(const void* in, void* out, std::span<const std::uint64_t> counts, DataType type,
                     std::uint32_t root, const CollectiveOptions& options) {
  HAWSER_TRY(usable("World::gather", core_.get()));
  return core_->collectives().carry_out(gather_call(in, out, counts, type, root), options);
}

Status World::scatter(const void* in, void* out, std::span<const std::uint64_t> counts, DataType type,
                      std::uint32_t root, const CollectiveOptions& options) {
  HAWSER_TRY(usable("World::scatter", core_.get()));
  return core_->collectives().carry_out(scatter_call(in, out, counts, type, root), options);
}

Status World::all_to_all(const void* in, void* out, std::span<const std::uint64_t> out_counts,
                         std::span<const std::uint64_t> in_counts, DataType type, const CollectiveOptions& options) {
  HAWSER_TRY(usable("World::all_to_all", core_.get()));
  return core_->collectives().carry_out(all_to_all_call(in, out, out_counts, in_counts, type), options);
}

Status World::all_to_all(const void* in, void* out, std::uint64_t count, DataType type,
                         const CollectiveOptions& options) {
  HAWSER_TRY(usable("World::all_to_all", core_.get()));
  return core_->collectives().carry_out(even_all_to_all_call(in, out, count, core_->size(), type), options);
}

Status World::scan(const void* in, void* out, std::size_t count, DataType type, ReduceOp op, bool exclusive,
                   const CollectiveOptions& options) {
  HAWSER_TRY(usable("World::scan", core_.get()));
  return core_->collectives().carry_out(scan_call(in, out, count, type, op, exclusive), options);
}

HAWSER_NAMESPACE_END
