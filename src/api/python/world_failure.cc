// What a world does after a failure: it agrees, shrinks, recovers.

#include <hawser/world.h>

#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "api/python/world_handles.h"

namespace hawser::api::python {
namespace {

RequestHandle iagree(const WorldHandle& self, bool flag, nb::handle timeout) {
  const Duration patience = deadline_of(timeout);
  return fly(self, {}, [&](World& world) { return world.iagree(flag, patience); });
}

RequestHandle ishrink(const WorldHandle& self, const Wholes<std::uint32_t, "shrink: a rank">& without,
                      nb::handle timeout) {
  const Duration patience = deadline_of(timeout);
  return fly(self, {}, [&](World& world) { return world.ishrink(without.values, patience); });
}

bool agreed(const WorldHandle& self, const RequestHandle& request) {
  return take(outside([&] { return self.state->world.agreed(request.flight.request); }));
}

WorldHandle shrunk(const WorldHandle& self, const RequestHandle& request) {
  World made = take(outside([&] { return self.state->world.shrunk(request.flight.request); }));
  return {std::make_shared<WorldState>(std::move(made), self.state->driven)};
}

std::vector<std::uint32_t> failures(const WorldHandle& self, Whole<std::size_t, "failures: known"> known,
                                    nb::handle timeout) {
  std::vector<std::uint32_t> found;
  const std::optional<bool> over =
      wait_in_slices(duration_of(timeout, "timeout", Duration::zero()), [&](Duration slice) {
        found = self.state->world.failures(known, slice);
        return !found.empty();
      });
  if (!over) throw nb::python_error();
  return found;
}

/// None where there is no event yet.
nb::object recovered(const WorldHandle& self, nb::handle timeout) {
  std::optional<Result<Recovered>> event;
  const std::optional<bool> over =
      wait_in_slices(duration_of(timeout, "timeout", Duration::max()), [&](Duration slice) {
        event.emplace(self.state->world.recovered(slice));
        return event->has_value() || event->error().code() != Code::kTimedOut;
      });
  if (!over) throw nb::python_error();
  if (!event->has_value() && event->error().code() == Code::kTimedOut) return nb::none();
  Recovered made = take(std::move(*event));
  return nb::make_tuple(WorldHandle{std::make_shared<WorldState>(std::move(made.world), self.state->driven)},
                        made.old_rank, made.failed);
}

std::uint32_t old_rank(const WorldHandle& self) {
  const World& world = self.state->world;
  return world.old_rank(world.rank());
}

}  // namespace

void bind_failure(nb::class_<WorldHandle>& world) {
  world
      .def_prop_ro(
          "failed", [](const WorldHandle& self) { return self.state->world.failed(); }, "Ranks that failed.")
      .def_prop_ro(
          "id", [](const WorldHandle& self) { return self.state->world.id(); },
          "0 of the world that was opened; of a group a number of its own. Shrinking keeps it.")
      .def_prop_ro(
          "epoch", [](const WorldHandle& self) { return self.state->world.epoch(); }, "How often it was shrunk.")
      .def_prop_ro("old_rank", &old_rank, "Of a world that shrink made: what this rank was before.")
      .def_prop_ro(
          "last_good", [](const WorldHandle& self) { return self.state->world.last_good(); },
          "Of a world that shrink made: in the one before, the last collective that ended well, as all before it did, "
          "on all ranks of this one.")
      .def_prop_ro(
          "last_number", [](const WorldHandle& self) { return self.state->world.last_number(); },
          "The number of the last collective that this rank began here. The first is 1.")
      .def(
          "acknowledge", [](const WorldHandle& self) { return self.state->world.acknowledge(); },
          "Receives from any source work again, until another rank fails. Returns the ranks that had failed.")
      .def("_iagree", &iagree, nb::arg("flag"), nb::kw_only(), nb::arg("timeout") = nb::none())
      .def("_agreed", &agreed, nb::arg("request"))
      .def("_ishrink", &ishrink, nb::arg("without"), nb::kw_only(), nb::arg("timeout") = nb::none())
      .def("_shrunk", &shrunk, nb::arg("request"))
      .def("_take_recovered", &recovered, nb::arg("timeout") = nb::none())
      .def("_failures", &failures, nb::arg("known"), nb::arg("timeout") = nb::none())
      .def(
          "revoke", [](const WorldHandle& self) { self.state->world.revoke(Status()); },
          "Ends the world's collectives on all ranks.");
}

}  // namespace hawser::api::python
