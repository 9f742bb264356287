// The C ABI of worlds: opening and leaving them, requests, groups, and what is done after a failure.

#include <algorithm>
#include <cstddef>
#include <optional>
#include <string>

#include <hawser/config.h>

#include "api/c/world_objects.h"

namespace hawser::api {

WorldObject::~WorldObject() {
  if (is_parents()) {
    (void)new World(std::move(world));  // Its threads are not in this process.
    return;
  }
  constexpr Duration kPatience = std::chrono::milliseconds(200);
  if (!closed.load(std::memory_order_acquire)) (void)world.close(kPatience);
}

RequestObject::~RequestObject() {
  if (is_parents()) (void)new Request(std::move(request));
}

Result<hawser_operation_options> operation_options(const char* call, const hawser_operation_options* options) {
  HAWSER_TRY_ASSIGN(const auto given, options_of(call, "hawser_operation_options", options,
                                                 offsetof(hawser_operation_options, compressor)));
  if (given.timeout_ns < 0) return invalid(call, "timeout_ns is negative");
  return given;
}

Status finish(Result<Request> begun) {
  if (!begun) return begun.error();
  return begun->wait(Duration::max());
}

Status hand_out(const char* call, Result<Request> begun, hawser_request* out) {
  HAWSER_TRY(not_null(call, out, "request"));
  if (!begun) return begun.error();
  return give_handle(call, out, std::make_unique<RequestObject>(*std::move(begun)));
}

hawser_received received_of(const Received& received) {
  return {.size = sizeof(hawser_received), .source = received.source, .tag = received.tag, .bytes = received.bytes};
}

Status give_ranks(const char* call, const std::vector<std::uint32_t>& from, std::uint32_t* ranks, std::size_t capacity,
                  std::size_t* count) {
  HAWSER_TRY(not_null(call, ranks, capacity, "ranks"));
  HAWSER_TRY(not_null(call, count, "count"));
  std::copy_n(from.begin(), std::min(capacity, from.size()), ranks);
  *count = from.size();
  return {};
}

namespace {

/// Of the first version that had worlds.
constexpr std::size_t kLeastOptions = offsetof(hawser_world_options, token_file);

Result<LoadedConfig> configuration(const char* call, const hawser_world_options& given) {
  ConfigSources sources;
  if ((given.flags & HAWSER_WORLD_NO_ENVIRONMENT) == 0) sources = ConfigSources::from_process();
  HAWSER_TRY(not_null(call, given.settings, given.setting_count, "settings"));
  for (std::size_t i = 0; i < given.setting_count; ++i) {
    if (given.settings[i].key == nullptr || given.settings[i].value == nullptr) {
      return invalid(call, "settings[" + std::to_string(i) + "] has a null key or value");
    }
    sources.overrides[given.settings[i].key] = given.settings[i].value;
  }
  HAWSER_TRY_ASSIGN(LoadedConfig config, load_config(sources));
  if (!config.unknown_override.empty()) return invalid(call, "settings: " + config.unknown_override);
  return config;
}

Result<WorldOptions> world_options(const char* call, const hawser_world_options& given) {
  constexpr std::uint32_t kFlags = HAWSER_WORLD_UNDRIVEN | HAWSER_WORLD_NO_ENVIRONMENT | HAWSER_WORLD_MAJORITY |
                                   HAWSER_WORLD_AUTOMATIC | HAWSER_WORLD_ANY_QUORUM | HAWSER_WORLD_ABORT;
  const auto has_both = [&](std::uint32_t flags) { return (given.flags & flags) == flags; };
  if (has_both(HAWSER_WORLD_AUTOMATIC | HAWSER_WORLD_ABORT)) return invalid(call, "flags has two recovery policies");
  if (has_both(HAWSER_WORLD_MAJORITY | HAWSER_WORLD_ANY_QUORUM)) return invalid(call, "flags has two quorums");
  if ((given.flags & ~kFlags) != 0) return invalid(call, "flags " + std::to_string(given.flags) + " has unknown bits");
  if (given.join_timeout_ns < 0 || given.timeout_ns < 0) return invalid(call, "a timeout is negative");
  HAWSER_TRY_ASSIGN(LoadedConfig config, configuration(call, given));
  WorldOptions options;
  for (const ConfigValue& each : config.values) options.origins[each.name] = each.origin;
  options.cost_model = given.cost_model != nullptr ? std::string(given.cost_model) : std::move(config.cost_model);
  options.agent = std::move(config.options);
  options.driven = (given.flags & HAWSER_WORLD_UNDRIVEN) == 0;
  if ((given.flags & HAWSER_WORLD_MAJORITY) != 0) options.quorum = Quorum::kMajority;
  if ((given.flags & HAWSER_WORLD_ANY_QUORUM) != 0) options.quorum = Quorum::kNone;
  if ((given.flags & HAWSER_WORLD_AUTOMATIC) != 0) options.recovery = RecoveryPolicy::kAutomatic;
  if ((given.flags & HAWSER_WORLD_ABORT) != 0) options.recovery = RecoveryPolicy::kAbort;
  if (given.name != nullptr) options.name = given.name;
  if (given.join_timeout_ns > 0) options.join_timeout = Duration(given.join_timeout_ns);
  if (given.timeout_ns > 0) options.timeout = Duration(given.timeout_ns);
  if (given.directory.id != 0) {
    HAWSER_TRY_ASSIGN(const auto directory, find<DirectoryObject>(call, given.directory));
    options.agent.directory = directory->directory;
  }
  if (given.seed != nullptr) options.seed = given.seed;
  if (given.token_file != nullptr) options.token_file = given.token_file;
  if (given.topology != nullptr) {
    HAWSER_TRY_ASSIGN(options.topology, parse_topology(given.topology));
  }
  if (given.pool.id != 0) {
    HAWSER_TRY_ASSIGN(const auto pool, find<PoolObject>(call, given.pool));
    options.pool = pool->pool;
  }
  options.size = given.ranks;
  options.rank = given.rank;
  return options;
}

/// The topology that the environment names, and the seed where the caller says nothing of a place.
Status ask_environment(const hawser_world_options& given, WorldOptions& options) {
  if ((given.flags & HAWSER_WORLD_NO_ENVIRONMENT) != 0) return {};
  const ConfigSources sources = ConfigSources::from_process();
  if (given.topology == nullptr) {
    HAWSER_TRY_ASSIGN(options.topology, launched_topology(sources));
  }
  if (given.seed == nullptr && given.directory.id == 0) {
    options.seed = launched_seed(sources);
    if (given.token_file == nullptr) options.token_file = launched_token_file(sources);
  }
  return {};
}

/// Which rank of how many, where the caller does not say.
Status ask_launcher(const char* call, const hawser_world_options& given, WorldOptions& options) {
  if (given.ranks != 0) return {};
  if ((given.flags & HAWSER_WORLD_NO_ENVIRONMENT) != 0) {
    return invalid(call, "ranks is 0, and HAWSER_WORLD_NO_ENVIRONMENT forbids to ask the launcher's environment");
  }
  if (given.rank != 0) return invalid(call, "rank is given without ranks");
  HAWSER_TRY_ASSIGN(const LaunchedRank launched, launched_rank(ConfigSources::from_process()));
  options.size = launched.size;
  options.rank = launched.rank;
  for (const char* const its : {"world.rank", "world.size"}) options.origins[its] = launched.launcher;
  if (given.name == nullptr && !launched.run.empty()) options.name = "world." + launched.run;
  return {};
}

Status give_world(const char* call, World made, hawser_world* out) {
  return give_handle(call, out, std::make_unique<WorldObject>(std::move(made)));
}

Status make_local(const char* call, std::uint32_t ranks, const hawser_world_options* options, hawser_world* out) {
  HAWSER_TRY(not_null(call, out, "out"));
  HAWSER_TRY_ASSIGN(const hawser_world_options given, options_of(call, "hawser_world_options", options, kLeastOptions));
  if (given.ranks != 0 || given.rank != 0) return invalid(call, "the options' ranks and rank are for processes");
  if (given.agent.id != 0 || given.peer_count != 0) {
    return invalid(call, "the options' agent and peers are for hawser_world_open");
  }
  HAWSER_TRY_ASSIGN(const WorldOptions with, world_options(call, given));
  HAWSER_TRY_ASSIGN(std::vector<World> all, World::local(ranks, with));
  std::vector<hawser_world> made;
  for (World& each : all) {
    hawser_world handle{};
    if (Status bad = give_world(call, std::move(each), &handle); !bad.ok()) {
      for (const hawser_world& one : made) (void)handles().release<WorldObject>(call, one.id);
      return bad;
    }
    made.push_back(handle);
  }
  std::ranges::copy(made, out);
  return {};
}

Status open_of_peers(const char* call, const hawser_world_options& given, WorldOptions with, hawser_world* out) {
  HAWSER_TRY(not_null(call, given.peers, "peers"));
  HAWSER_TRY_ASSIGN(const auto agent, find<AgentObject>(call, given.agent));
  std::vector<Peer> ranks;
  for (std::size_t i = 0; i < given.peer_count; ++i) {
    Peer peer;
    if (given.peers[i].id != 0) {
      HAWSER_TRY_ASSIGN(const auto its, find<PeerObject>(call, given.peers[i]));
      peer = its->peer;
    }
    ranks.push_back(std::move(peer));
  }
  HAWSER_TRY_ASSIGN(World made, World::open(agent->agent, ranks, std::move(with)));
  return give_world(call, std::move(made), out);
}

Status open_one(const char* call, const hawser_world_options* options, hawser_world* out) {
  HAWSER_TRY(not_null(call, out, "out"));
  HAWSER_TRY_ASSIGN(const hawser_world_options given, options_of(call, "hawser_world_options", options, kLeastOptions));
  HAWSER_TRY_ASSIGN(WorldOptions with, world_options(call, given));
  if (given.agent.id == 0 && (given.peer_count != 0 || given.peers != nullptr)) {
    return invalid(call, "peers are given, and no agent that knows them");
  }
  if (given.peer_count != 0) return open_of_peers(call, given, std::move(with), out);
  HAWSER_TRY(ask_launcher(call, given, with));
  HAWSER_TRY(ask_environment(given, with));
  if (given.agent.id == 0) {
    HAWSER_TRY_ASSIGN(World made, World::open(std::move(with)));
    return give_world(call, std::move(made), out);
  }
  HAWSER_TRY_ASSIGN(const auto agent, find<AgentObject>(call, given.agent));
  HAWSER_TRY_ASSIGN(World made, World::open(agent->agent, std::move(with)));
  return give_world(call, std::move(made), out);
}

hawser_world_info info_of(const World& world) {
  return {.rank = world.rank(),
          .ranks = world.size(),
          .failed = static_cast<std::uint32_t>(world.failed().size()),
          .old_rank = world.old_rank(world.rank()),
          .root_rank = world.root_rank(world.rank()),
          .epoch = world.epoch(),
          .last_good = world.last_good(),
          .last_number = world.last_number(),
          .host = world.host(world.rank()),
          .local_rank = world.local_rank(),
          .local_size = world.local_size(),
          .id = world.id()};
}

/// `end(world)` ends it; afterwards releasing the handle does nothing more.
template <typename End>
Status end_world(const char* call, hawser_world world, End end) {
  HAWSER_TRY_ASSIGN(const auto its, find<WorldObject>(call, world));
  its->closed.store(true, std::memory_order_release);
  return end(its->world);
}

}  // namespace
}  // namespace hawser::api

using namespace hawser;
using namespace hawser::api;

int hawser_world_local(uint32_t ranks, const hawser_world_options* options, hawser_world* out) {
  return run(__func__, [&](const char* call) -> Status { return make_local(call, ranks, options, out); });
}

int hawser_world_open(const hawser_world_options* options, hawser_world* out) {
  return run(__func__, [&](const char* call) -> Status { return open_one(call, options, out); });
}

int hawser_world_info_get(hawser_world world, hawser_world_info* out) {
  return run(__func__, [&](const char* call) -> Status {
    HAWSER_TRY_ASSIGN(const auto its, find<WorldObject>(call, world));
    return give(call, "hawser_world_info", out, info_of(its->world));
  });
}

int hawser_world_peer(hawser_world world, uint32_t rank, hawser_peer* out) {
  return run(__func__, [&](const char* call) -> Status {
    HAWSER_TRY(not_null(call, out, "out"));
    HAWSER_TRY_ASSIGN(const auto its, find<WorldObject>(call, world));
    Peer peer = its->world.peer(rank);
    if (!peer.valid()) {
      return invalid(
          call, "there is no rank " + std::to_string(rank) + " in a world of " + std::to_string(its->world.size()));
    }
    return give_handle(call, out, std::make_unique<PeerObject>(std::move(peer)));
  });
}

int hawser_world_is_sparse(hawser_world world, int* sparse) {
  return run(__func__, [&](const char* call) -> Status {
    HAWSER_TRY(not_null(call, sparse, "sparse"));
    HAWSER_TRY_ASSIGN(const auto its, find<WorldObject>(call, world));
    *sparse = its->world.is_sparse() ? 1 : 0;
    return {};
  });
}

int hawser_world_has_direct_peer(hawser_world world, uint32_t rank, int* direct) {
  return run(__func__, [&](const char* call) -> Status {
    HAWSER_TRY(not_null(call, direct, "direct"));
    HAWSER_TRY_ASSIGN(const auto its, find<WorldObject>(call, world));
    *direct = its->world.has_direct_peer(rank) ? 1 : 0;
    return {};
  });
}

int hawser_world_allocate(hawser_world world, uint64_t bytes, hawser_region* out) {
  return run(__func__, [&](const char* call) -> Status {
    HAWSER_TRY(not_null(call, out, "out"));
    HAWSER_TRY_ASSIGN(const auto its, find<WorldObject>(call, world));
    HAWSER_TRY_ASSIGN(Region region, its->world.allocate({.size = bytes}));
    return give_handle(call, out, std::make_unique<RegionObject>(std::move(region)));
  });
}

int hawser_world_cost_model(hawser_world world, hawser_buffer* text) {
  return run(__func__, [&](const char* call) -> Status {
    HAWSER_TRY_ASSIGN(const auto its, find<WorldObject>(call, world));
    return give(call, text, its->world.cost_model());
  });
}

int hawser_world_config(hawser_world world, hawser_buffer* text) {
  return run(__func__, [&](const char* call) -> Status {
    HAWSER_TRY_ASSIGN(const auto its, find<WorldObject>(call, world));
    std::string lines;
    for (const ConfigValue& each : its->world.config()) {
      lines.append(each.name).append("\t").append(each.value).append("\t").append(each.origin).append("\n");
    }
    return give(call, text, lines);
  });
}

int hawser_world_memory(hawser_world world, const char* kind, uint64_t* bytes) {
  return run(__func__, [&](const char* call) -> Status {
    HAWSER_TRY(not_null(call, bytes, "bytes"));
    HAWSER_TRY_ASSIGN(const auto its, find<WorldObject>(call, world));
    std::uint64_t sum = 0;
    bool is_known = kind == nullptr;
    for (const MemoryUse& each : its->world.memory()) {
      if (kind != nullptr && each.kind != kind) continue;
      is_known = true;
      sum += each.bytes;
    }
    if (!is_known) return Status(Code::kNotFound, std::string(call) + ": there is no memory of the kind " + kind);
    *bytes = sum;
    return {};
  });
}

int hawser_world_host(hawser_world world, uint32_t rank, uint32_t* host) {
  return run(__func__, [&](const char* call) -> Status {
    HAWSER_TRY(not_null(call, host, "host"));
    HAWSER_TRY_ASSIGN(const auto its, find<WorldObject>(call, world));
    if (rank >= its->world.size()) {
      return Status(Code::kInvalid, std::string(call) + ": there is no rank " + std::to_string(rank) + " among " +
                                        std::to_string(its->world.size()));
    }
    *host = its->world.host(rank);
    return {};
  });
}

int hawser_world_shutdown(hawser_world world, int64_t timeout_ns) {
  return run(__func__, [&](const char* call) -> Status {
    return end_world(call, world, [&](World& its) { return its.shutdown(timeout_of(timeout_ns)); });
  });
}

int hawser_world_leave(hawser_world world, int64_t timeout_ns) {
  return run(__func__, [&](const char* call) -> Status {
    return end_world(call, world, [&](World& its) { return its.leave(timeout_of(timeout_ns)); });
  });
}

int hawser_world_close(hawser_world world, int64_t timeout_ns) {
  return run(__func__, [&](const char* call) -> Status {
    return end_world(call, world, [&](World& its) { return its.close(timeout_of(timeout_ns)); });
  });
}

int hawser_world_release(hawser_world world) { return release<WorldObject>(__func__, world); }

int hawser_request_done(hawser_request request, int* done) {
  return run(__func__, [&](const char* call) -> Status {
    HAWSER_TRY(not_null(call, done, "done"));
    HAWSER_TRY_ASSIGN(const auto its, find<RequestObject>(call, request));
    *done = its->request.done() ? 1 : 0;
    return {};
  });
}

int hawser_request_wait(hawser_request request, int64_t timeout_ns) {
  return run(__func__, [&](const char* call) -> Status {
    HAWSER_TRY_ASSIGN(const auto its, find<RequestObject>(call, request));
    return its->request.wait(timeout_of(timeout_ns));
  });
}

int hawser_request_received(hawser_request request, hawser_received* out) {
  return run(__func__, [&](const char* call) -> Status {
    HAWSER_TRY_ASSIGN(const auto its, find<RequestObject>(call, request));
    if (!its->request.done()) return invalid(call, "the request is under way");
    HAWSER_TRY(its->request.status());
    return give(call, "hawser_received", out, received_of(its->request.received()));
  });
}

int hawser_request_bytes(hawser_request request, const void** data, size_t* size) {
  return run(__func__, [&](const char* call) -> Status {
    HAWSER_TRY(not_null(call, data, "data"));
    HAWSER_TRY(not_null(call, size, "size"));
    HAWSER_TRY_ASSIGN(const auto its, find<RequestObject>(call, request));
    if (!its->request.done()) return invalid(call, "the request is under way");
    HAWSER_TRY(its->request.status());
    *data = its->request.bytes().data();
    *size = its->request.bytes().size();
    return {};
  });
}

int hawser_request_cancel(hawser_request request) {
  return run(__func__, [&](const char* call) -> Status {
    HAWSER_TRY_ASSIGN(const auto its, find<RequestObject>(call, request));
    its->request.cancel();
    return {};
  });
}

int hawser_request_release(hawser_request request) { return release<RequestObject>(__func__, request); }

int hawser_world_split(hawser_world world, int64_t color, int64_t key, hawser_world* out) {
  return run(__func__, [&](const char* call) -> Status {
    HAWSER_TRY(not_null(call, out, "out"));
    if (color != HAWSER_NO_COLOR && (color < 0 || color > INT64_C(0xffffffff))) {
      return invalid(call, "color " + std::to_string(color) + " is neither 0 to 2^32 - 1 nor HAWSER_NO_COLOR");
    }
    HAWSER_TRY_ASSIGN(const auto its, find<WorldObject>(call, world));
    std::optional<std::uint32_t> wanted;
    if (color != HAWSER_NO_COLOR) wanted = static_cast<std::uint32_t>(color);
    HAWSER_TRY_ASSIGN(World made, its->world.split(wanted, key));
    if (made.valid()) return give_world(call, std::move(made), out);
    *out = hawser_world{};
    return {};
  });
}

int hawser_world_duplicate(hawser_world world, hawser_world* out) {
  return run(__func__, [&](const char* call) -> Status {
    HAWSER_TRY(not_null(call, out, "out"));
    HAWSER_TRY_ASSIGN(const auto its, find<WorldObject>(call, world));
    HAWSER_TRY_ASSIGN(World made, its->world.duplicate());
    return give_world(call, std::move(made), out);
  });
}

int hawser_world_group(hawser_world world, const uint32_t* ranks, size_t count, hawser_world* out) {
  return run(__func__, [&](const char* call) -> Status {
    HAWSER_TRY(not_null(call, out, "out"));
    HAWSER_TRY(not_null(call, ranks, count, "ranks"));
    HAWSER_TRY_ASSIGN(const auto its, find<WorldObject>(call, world));
    HAWSER_TRY_ASSIGN(World made, its->world.group({ranks, count}));
    return give_world(call, std::move(made), out);
  });
}

int hawser_world_failed(hawser_world world, uint32_t* ranks, size_t capacity, size_t* count) {
  return run(__func__, [&](const char* call) -> Status {
    HAWSER_TRY_ASSIGN(const auto its, find<WorldObject>(call, world));
    return give_ranks(call, its->world.failed(), ranks, capacity, count);
  });
}

int hawser_world_acknowledge(hawser_world world, uint32_t* ranks, size_t capacity, size_t* count) {
  return run(__func__, [&](const char* call) -> Status {
    HAWSER_TRY(not_null(call, ranks, capacity, "ranks"));
    HAWSER_TRY(not_null(call, count, "count"));
    HAWSER_TRY_ASSIGN(const auto its, find<WorldObject>(call, world));
    return give_ranks(call, its->world.acknowledge(), ranks, capacity, count);
  });
}

int hawser_world_failures(hawser_world world, size_t known, int64_t timeout_ns, uint32_t* ranks, size_t capacity,
                          size_t* count) {
  return run(__func__, [&](const char* call) -> Status {
    HAWSER_TRY_ASSIGN(const auto its, find<WorldObject>(call, world));
    return give_ranks(call, its->world.failures(known, timeout_of(timeout_ns)), ranks, capacity, count);
  });
}

int hawser_world_revoke(hawser_world world) {
  return run(__func__, [&](const char* call) -> Status {
    HAWSER_TRY_ASSIGN(const auto its, find<WorldObject>(call, world));
    its->world.revoke(Status());
    return {};
  });
}

namespace {

/// Where 0 stands for the world's time, a time that is over must not become it: minutes would be waited.
Status check_agreement_time(const char* call, std::int64_t timeout_ns) {
  return timeout_ns < 0 ? invalid(call, "timeout_ns is negative") : Status();
}

}  // namespace

int hawser_world_agree(hawser_world world, int flag, int64_t timeout_ns, int* agreed) {
  return run(__func__, [&](const char* call) -> Status {
    HAWSER_TRY(not_null(call, agreed, "agreed"));
    HAWSER_TRY(check_agreement_time(call, timeout_ns));
    HAWSER_TRY_ASSIGN(const auto its, find<WorldObject>(call, world));
    HAWSER_TRY_ASSIGN(const bool all, its->world.agree(flag != 0, timeout_of(timeout_ns)));
    *agreed = all ? 1 : 0;
    return {};
  });
}

int hawser_world_shrink(hawser_world world, const uint32_t* without, size_t count, int64_t timeout_ns,
                        hawser_world* out) {
  return run(__func__, [&](const char* call) -> Status {
    HAWSER_TRY(not_null(call, out, "out"));
    HAWSER_TRY(not_null(call, without, count, "without"));
    HAWSER_TRY(check_agreement_time(call, timeout_ns));
    HAWSER_TRY_ASSIGN(const auto its, find<WorldObject>(call, world));
    HAWSER_TRY_ASSIGN(World made, its->world.shrink({without, count}, timeout_of(timeout_ns)));
    return give_world(call, std::move(made), out);
  });
}

int hawser_world_recovered(hawser_world world, int64_t timeout_ns, hawser_world* out, uint32_t* ranks, size_t capacity,
                           size_t* count) {
  return run(__func__, [&](const char* call) -> Status {
    HAWSER_TRY(not_null(call, out, "out"));
    HAWSER_TRY(not_null(call, ranks, capacity, "ranks"));
    HAWSER_TRY(not_null(call, count, "count"));
    HAWSER_TRY_ASSIGN(const auto its, find<WorldObject>(call, world));
    HAWSER_TRY_ASSIGN(Recovered event, its->world.recovered(timeout_of(timeout_ns)));
    HAWSER_TRY(give_world(call, std::move(event.world), out));
    return give_ranks(call, event.failed, ranks, capacity, count);
  });
}
