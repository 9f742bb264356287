// How a world is opened: by options, environment, launcher, store, or on an agent of the program's.

#include <hawser/config.h>
#include <hawser/world.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "api/python/python_handler.h"
#include "api/python/world_handles.h"

namespace hawser::api::python {
namespace {

WorldOptions world_options(const std::string& name, nb::handle directory, nb::handle backends, nb::handle timeout) {
  ConfigSources sources = ConfigSources::from_process();
  if (!backends.is_none()) {
    std::string all;
    for (nb::handle one : nb::iter(backends)) {
      all += (all.empty() ? "" : ",") + std::string(Bytes(one, "a backend").view);
    }
    sources.overrides["backends"] = all;
  }
  const DirectoryHandle* shared = nullptr;
  if (PyUnicode_Check(directory.ptr())) {
    sources.overrides["directory"] = std::string(Bytes(directory, "directory").view);
  } else if (!directory.is_none() && !nb::try_cast(directory, shared)) {
    raise_invalid("World: directory is neither a Directory nor a text", "give file_directory(PATH), or file:/path");
  }
  const LoadedConfig config = take(outside([&] { return load_config(sources); }));
  WorldOptions options;
  options.name = name;
  for (const ConfigValue& each : config.values) options.origins[each.name] = each.origin;
  options.agent = config.options;
  options.cost_model = config.cost_model;
  if (shared != nullptr) options.agent.directory = shared->directory;
  options.join_timeout = duration_of(timeout, "timeout", options.join_timeout);
  return options;
}

RecoveryPolicy policy_of(const std::string& name) {
  if (name == "manual") return RecoveryPolicy::kManual;
  if (name == "automatic") return RecoveryPolicy::kAutomatic;
  if (name == "abort") return RecoveryPolicy::kAbort;
  raise_invalid("World: recovery '" + name + "' is none of manual, automatic and abort");
}

std::optional<Quorum> quorum_of(const std::optional<std::string>& given) {
  if (!given) return std::nullopt;
  const std::string& name = *given;
  if (name == "majority") return Quorum::kMajority;
  if (name == "none") return Quorum::kNone;
  raise_invalid("World: quorum '" + name + "' is none of none and majority");
}

BufferPool pool_of(nb::handle given, const char* call) {
  if (given.is_none()) return {};
  if (nb::isinstance<BufferPool>(given)) return nb::cast<BufferPool>(given);
  raise_invalid(std::string(call) + ": pool is no hawser.BufferPool");
}

/// Holds values under keys, as torch.distributed.Store does: set(key, bytes), wait([keys], timedelta), get(key).
WorldStore store_of(nb::handle store) {
  const auto held = std::make_shared<PythonHandler>(store);
  const auto failed = [](const char* what, const std::exception& error) {
    return Status(Code::kFailed, std::string("the store's ") + what + " raised: " + error.what());
  };
  const Status gone(Code::kCancelled, "the interpreter is at its end");
  WorldStore made;
  made.set = [held, failed, gone](const std::string& key, const std::string& value) {
    const Inside inside;
    if (!inside.granted()) return gone;
    try {
      held->function().attr("set")(key, nb::bytes(value.data(), value.size()));
      return Status();
    } catch (const std::exception& error) {
      return failed("set", error);
    }
  };
  made.get = [held, gone](const std::string& key, Duration timeout) -> Result<std::string> {
    const Inside inside;
    if (!inside.granted()) return gone;
    try {
      const double seconds = std::chrono::duration<double>(timeout).count();
      const nb::object span = nb::module_::import_("datetime").attr("timedelta")(nb::arg("seconds") = seconds);
      nb::list keys;
      keys.append(key);
      held->function().attr("wait")(keys, span);
      return std::string(Bytes(held->function().attr("get")(key), "the store's value").view);
    } catch (const std::exception& error) {
      return Status(Code::kTimedOut, std::string("the store has no '") + key + "': " + error.what());
    }
  };
  return made;
}

/// An agent of the program's, and the peers behind the ranks.
struct Guest {
  AgentRef agent;
  std::vector<Peer> ranks;
};

Guest guest_of(nb::handle agent, nb::handle peers) {
  const AgentHandle* its = nullptr;
  if (agent.is_none() || !nb::try_cast(agent, its)) {
    raise_invalid(agent.is_none() ? "World.open: peers are given, and no agent that knows them"
                                  : "World.open: agent is no hawser.Agent");
  }
  Guest guest{.agent = its->state, .ranks = {}};
  (void)agent_of(guest.agent);  // Of this process.
  for (const nb::handle each : nb::iter(peers)) {
    const PeerHandle* peer = nullptr;
    if (!each.is_none() && !nb::try_cast(each, peer)) {
      raise_invalid("World.open: an element of peers is no hawser.Peer", "at this rank's place there may be None");
    }
    guest.ranks.push_back(peer == nullptr ? Peer() : peer->peer);
  }
  return guest;
}

/// Under torchrun, where nothing says where the ranks meet: torchrun's own store, or, without torch, a seed of rank 0.
/// `make` gives the store, or None.
void meet_by_torchrun(WorldOptions& options, nb::handle make) {
  const nb::object store = make.is_none() ? nb::object(nb::none()) : make();
  if (!store.is_none()) {
    options.store = store_of(store);
    return;
  }
  const ConfigSources sources = ConfigSources::from_process();
  options.seed = launched_meeting(sources);
  options.serves_seed = !options.seed.empty();
  const auto token = sources.environment.find("HAWSER_TOKEN_FILE");
  const bool has_token = token != sources.environment.end() && options.token_file.empty();
  if (options.serves_seed && has_token) options.token_file = token->second;
}

/// What a world is asked to be like, however its ranks meet.
struct Wishes {
  const std::optional<std::string>& quorum;
  const std::string& recovery;
  const std::optional<std::string>& cost_model;
  nb::handle pool;

  void put(WorldOptions& options, const char* call) const {
    options.quorum = quorum_of(quorum);
    options.recovery = policy_of(recovery);
    if (cost_model) options.cost_model = *cost_model;
    options.pool = pool_of(pool, call);
  }
};

WorldHandle handle_of(World made, bool is_driven) { return {std::make_shared<WorldState>(std::move(made), is_driven)}; }

nb::list local(Whole<std::uint32_t, "World.local: size"> size, const std::string& name, nb::handle backends,
               nb::handle timeout, const std::string& topology, const std::optional<std::string>& quorum,
               const std::string& recovery, const std::optional<std::string>& cost_model, nb::handle pool) {
  WorldOptions options = world_options(name, nb::none(), backends, timeout);
  Wishes{.quorum = quorum, .recovery = recovery, .cost_model = cost_model, .pool = pool}.put(options, "World.local");
  options.topology = take(parse_topology(topology));
  nb::list all;
  for (World& world : take(outside([&] { return World::local(size, options); }))) {
    all.append(handle_of(std::move(world), true));
  }
  return all;
}

WorldHandle open_world(MaybeWhole<std::uint32_t, "World.open: size"> size,
                       MaybeWhole<std::uint32_t, "World.open: rank"> rank, nb::handle directory,
                       const std::optional<std::string>& name, nb::handle backends, bool driven, nb::handle timeout,
                       nb::handle store, const std::optional<std::string>& seed,
                       const std::optional<std::string>& token_file, const std::optional<std::string>& topology,
                       const std::optional<std::string>& quorum, const std::string& recovery,
                       const std::optional<std::string>& cost_model, nb::handle agent, nb::handle peers,
                       nb::handle pool, nb::handle torch_store) {
  const Wishes wishes{.quorum = quorum, .recovery = recovery, .cost_model = cost_model, .pool = pool};
  if (!peers.is_none()) {
    const Guest guest = guest_of(agent, peers);
    const bool has_others = !store.is_none() || seed || !directory.is_none() || token_file;
    if (has_others) raise_invalid("World.open: peers are given, and a place to find them, too");
    if (!rank) raise_invalid("World.open: with peers, rank says which of them this one is");
    WorldOptions options;
    options.name = name.value_or("world");
    options.driven = driven;
    options.join_timeout = duration_of(timeout, "timeout", options.join_timeout);
    options.topology = topology ? take(parse_topology(*topology)) : Topology();
    wishes.put(options, "World.open");
    options.size = size ? *size : 0;
    options.rank = *rank;
    return handle_of(take(outside([&] { return World::open(guest.agent->agent, guest.ranks, std::move(options)); })),
                     driven);
  }
  if (size.has_value() != rank.has_value()) raise_invalid("World.open: size and rank are given together, or neither");
  const Result<LaunchedRank> launched = launched_rank(ConfigSources::from_process());
  if (!size) check(launched.error());
  const std::string run = !size && !launched->run.empty() ? "world." + launched->run : "world";
  WorldOptions options = world_options(name.value_or(run), directory, backends, timeout);
  options.driven = driven;
  if (!store.is_none()) options.store = store_of(store);
  const bool is_found_elsewhere = !store.is_none() || !directory.is_none();
  if (seed) {
    options.seed = *seed;
  } else if (!is_found_elsewhere) {
    options.seed = launched_seed(ConfigSources::from_process());
    options.token_file = launched_token_file(ConfigSources::from_process());
  }
  if (token_file) options.token_file = *token_file;
  options.topology = take(topology ? parse_topology(*topology) : launched_topology(ConfigSources::from_process()));
  wishes.put(options, "World.open");
  options.size = size ? *size : launched->size;
  options.rank = rank ? *rank : launched->rank;
  const AgentRef guests = agent.is_none() ? nullptr : guest_of(agent, nb::list()).agent;
  if (!size) {
    for (const char* const its : {"world.rank", "world.size"}) options.origins[its] = launched->launcher;
    const bool has_place = options.store.get || !options.seed.empty() || options.agent.directory != nullptr ||
                           (guests != nullptr && guests->has_directory);
    if (launched->launcher == "torchrun" && !has_place) meet_by_torchrun(options, torch_store);
  }
  if (guests != nullptr) {
    return handle_of(take(outside([&] { return World::open(guests->agent, std::move(options)); })), driven);
  }
  return handle_of(take(outside([&] { return World::open(std::move(options)); })), driven);
}

}  // namespace

void bind_opening(nb::class_<WorldHandle>& world) {
  world
      .def_static("_local", &local, nb::arg("size"), nb::kw_only(), nb::arg("name") = "world",
                  nb::arg("backends") = nb::none(), nb::arg("timeout") = nb::none(), nb::arg("topology") = "full",
                  nb::arg("quorum") = nb::none(), nb::arg("recovery") = "manual", nb::arg("cost_model") = nb::none(),
                  nb::arg("pool") = nb::none())
      .def_static("_open", &open_world, nb::arg("size").none(), nb::arg("rank").none(),
                  nb::arg("directory") = nb::none(), nb::kw_only(), nb::arg("name").none(),
                  nb::arg("backends") = nb::none(), nb::arg("driven"), nb::arg("timeout") = nb::none(),
                  nb::arg("store") = nb::none(), nb::arg("seed") = nb::none(), nb::arg("token_file") = nb::none(),
                  nb::arg("topology") = nb::none(), nb::arg("quorum") = nb::none(), nb::arg("recovery") = "manual",
                  nb::arg("cost_model") = nb::none(), nb::arg("agent") = nb::none(), nb::arg("peers") = nb::none(),
                  nb::arg("pool") = nb::none(), nb::arg("torch_store") = nb::none());
}

}  // namespace hawser::api::python
