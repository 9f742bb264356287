// Worlds: ranks that send messages and run collective operations.

#include <hawser/world.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "api/python/world_handles.h"

namespace hawser::api::python {
namespace {

void close(const WorldHandle& self, nb::handle timeout, bool together) {
  constexpr Duration kPatience = std::chrono::seconds(30);
  const Duration patience = duration_of(timeout, "timeout", kPatience);
  World& world = self.state->world;
  if (std::exchange(self.state->closed, true)) return;
  check(outside([&] { return together ? world.shutdown(patience) : world.close(patience); }));
}

WorldHandle group(const WorldHandle& self, const Wholes<std::uint32_t, "group: a rank">& ranks) {
  World& world = world_of(self);
  return {std::make_shared<WorldState>(take(outside([&] { return world.group(ranks.values); })), self.state->driven)};
}

WorldHandle duplicate(const WorldHandle& self) {
  World& world = world_of(self);
  return {std::make_shared<WorldState>(take(outside([&] { return world.duplicate(); })), self.state->driven)};
}

std::optional<WorldHandle> split(const WorldHandle& self, MaybeWhole<std::uint32_t, "split: color"> color,
                                 Whole<std::int64_t, "split: key"> key) {
  World& world = world_of(self);
  World made = take(outside([&] { return world.split(color, key); }));
  if (!made.valid()) return std::nullopt;
  return WorldHandle{std::make_shared<WorldState>(std::move(made), self.state->driven)};
}

std::uint32_t host_of(const WorldHandle& self, Whole<std::uint32_t, "host_of: rank"> rank) {
  const World& world = self.state->world;
  if (rank < world.size()) return world.host(rank);
  raise_invalid("World.host_of: there is no rank " + std::to_string(rank.value));
}

std::uint32_t root_rank(const WorldHandle& self, Whole<std::uint32_t, "root_rank: rank"> rank) {
  const World& world = world_of(self);
  if (rank < world.size()) return world.root_rank(rank);
  raise_invalid("World.root_rank: there is no rank " + std::to_string(rank.value));
}

nb::list config_of(const WorldHandle& self) {
  nb::list all;
  for (const ConfigValue& each : world_of(self).config()) {
    all.append(nb::make_tuple(each.name, each.value, each.origin));
  }
  return all;
}

nb::dict memory_of(const WorldHandle& self) {
  World& world = world_of(self);
  nb::dict all;
  for (const MemoryUse& each : outside([&] { return world.memory(); })) {
    all[nb::str(each.kind.data(), each.kind.size())] = each.bytes;
  }
  return all;
}

}  // namespace

void bind_worlds(nb::module_& module) {
  bind_requests(module);
  nb::class_<WorldHandle> world(module, "World", nb::is_weak_referenceable(),
                                "One rank of a number of ranks that send messages and run collective operations.");
  world
      .def_prop_ro(
          "cost_model", [](const WorldHandle& self) { return world_of(self).cost_model(); },
          "By what the algorithms of collectives are chosen: 'built in', or which rank told it, and its values.")
      .def_prop_ro("rank", [](const WorldHandle& self) { return self.state->world.rank(); })
      .def_prop_ro("size", [](const WorldHandle& self) { return self.state->world.size(); })
      .def_prop_ro(
          "is_sparse", [](const WorldHandle& self) { return self.state->world.is_sparse(); },
          "Whether ranks that are no neighbours reach one another by others.")
      .def_prop_ro(
          "host", [](const WorldHandle& self) { return self.state->world.host(self.state->world.rank()); },
          "The number of this rank's host: from 0, in the order of the hosts' first ranks.")
      .def("host_of", &host_of, nb::arg("rank"), "The number of a rank's host.")
      .def_prop_ro(
          "local_rank", [](const WorldHandle& self) { return self.state->world.local_rank(); },
          "This rank's number among the ranks of its host, from 0.")
      .def_prop_ro(
          "local_size", [](const WorldHandle& self) { return self.state->world.local_size(); },
          "How many ranks are on this rank's host.")
      .def(
          "has_direct_peer",
          [](const WorldHandle& self, Whole<std::uint32_t, "has_direct_peer: rank"> rank) {
            return self.state->world.has_direct_peer(rank);
          },
          nb::arg("rank"), "Whether the rank is a neighbour in the world's topology.")
      .def("_config", &config_of)
      .def("memory", &memory_of,
           "Bytes that this rank holds for the world and its groups, by kind: boards, unreceived, receives, pool, "
           "calls, "
           "collectives, relays, flight recorder.")
      .def("_split", &split, nb::keep_alive<0, 1>(), nb::arg("color").none(), nb::arg("key") = 0,
           "As split, but Ctrl-C does not end it.")
      .def("duplicate", &duplicate, nb::keep_alive<0, 1>(),
           "These ranks once more, with messages and collectives of their own.")
      .def("group", &group, nb::keep_alive<0, 1>(), nb::arg("ranks"),
           "These ranks in this order; each of them calls it, and nobody else.")
      .def("root_rank", &root_rank, nb::arg("rank"), "What a rank of this group is in the world that was opened.")
      .def(
          "_shutdown", [](const WorldHandle& self, nb::handle timeout) { close(self, timeout, true); },
          nb::arg("timeout") = nb::none(), "As shutdown, but Ctrl-C does not end it.")
      .def(
          "_leave",
          [](const WorldHandle& self, nb::handle timeout) {
            const Duration patience = duration_of(timeout, "timeout", std::chrono::seconds(30));
            if (std::exchange(self.state->closed, true)) return;
            check(outside([&] { return self.state->world.leave(patience); }));
          },
          nb::arg("timeout") = nb::none(), "As leave, but Ctrl-C does not end it.")
      .def(
          "close", [](const WorldHandle& self, nb::handle timeout) { close(self, timeout, false); },
          nb::arg("timeout") = nb::none(), "Leaves at once. To the others this rank has failed.");
  bind_opening(world);
  bind_messages(world);
  bind_calls(world);
  bind_collectives(world);
  bind_failure(world);
}

}  // namespace hawser::api::python
