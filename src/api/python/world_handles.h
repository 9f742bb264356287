#pragma once

// What the classes World and Request of the Python package hold.
//
// Lifetime: an operation under way keeps its arrays and its world, also when nobody holds its request any more. Thread
// rule: with Python's lock held.

#include <hawser/world.h>
// Here, so that each file converts these types alike: one that did not would break the others' conversions.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <list>
#include <memory>
#include <utility>
#include <vector>

#include "api/python/objects.h"

namespace hawser::api::python {

using Source = nb::ndarray<nb::ro, nb::c_contig, nb::device::cpu>;

/// An operation and the arrays that it uses.
struct Flight {
  Request request;
  std::vector<Source> arrays;
  nb::object keep;  ///< As the arrays.
};

struct WorldState {
  WorldState(World its, bool is_driven) : world(std::move(its)), driven(is_driven) {}
  WorldState(const WorldState&) = delete;
  WorldState& operator=(const WorldState&) = delete;
  ~WorldState();
  /// An operation under way that nobody holds any more keeps its arrays. Its error goes to the log: raised by the next
  /// call, it would keep this rank out of a collective that the others begin.
  void look_after();

  World world;
  const bool driven;  ///< A thread of the library makes its progress.
  std::list<Flight> left;
  bool closed = false;
  const int forks = Exit::of_module().forks();
};
using WorldRef = std::shared_ptr<WorldState>;

struct WorldHandle {
  WorldRef state;
  bool waits = false;  ///< The caller of a collective waits for it as soon as it has begun.
};

struct RequestHandle {
  RequestHandle(WorldRef its_world, Flight its) : world(std::move(its_world)), flight(std::move(its)) {}
  RequestHandle(RequestHandle&&) noexcept = default;
  RequestHandle& operator=(RequestHandle&&) = delete;
  ~RequestHandle();

  WorldRef world;
  Flight flight;
  bool is_receive = false;
  bool is_call = false;
};

void check_not_forked(const WorldState& state);
/// For a call of its user's, who hears here of what went wrong meanwhile.
World& world_of(const WorldHandle& self);
/// The deadline of an operation. To the library zero is none: a caller's zero is over at once.
Duration deadline_of(nb::handle timeout);

/// Has `begin` begin an operation that uses these arrays.
template <typename Begin>
RequestHandle fly(const WorldHandle& self, std::vector<Source> arrays, Begin begin) {
  World& world = world_of(self);
  Request request = outside([&] { return begin(world); });
  return {self.state, Flight{std::move(request), std::move(arrays), {}}};
}

// The parts of the class World, each bound in a file of its own.
void bind_requests(nb::module_& module);
void bind_opening(nb::class_<WorldHandle>& world);
void bind_messages(nb::class_<WorldHandle>& world);
void bind_calls(nb::class_<WorldHandle>& world);
void bind_collectives(nb::class_<WorldHandle>& world);
void bind_failure(nb::class_<WorldHandle>& world);

}  // namespace hawser::api::python
