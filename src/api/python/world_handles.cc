#include "api/python/world_handles.h"

#include <algorithm>
#include <string>

namespace hawser::api::python {

WorldState::~WorldState() {
  if (forks != Exit::of_module().forks()) return;
  outside([&] {
    for (Flight& flight : left) flight.request.cancel();
    constexpr Duration kPatience = std::chrono::milliseconds(200);
    if (!closed) (void)world.close(kPatience);
    left.clear();
    world = World();  // Here, too, handlers that run are waited for, which need the lock.
    return 0;
  });
}

void WorldState::look_after() {
  std::vector<Status> failed;
  for (auto at = left.begin(); at != left.end();) {
    if (!at->request.done()) {
      ++at;
      continue;
    }
    if (Status status = at->request.status(); !status.ok()) failed.push_back(std::move(status));
    at = left.erase(at);
  }
  for (const Status& status : failed) {
    const nb::object log = nb::module_::import_("logging").attr("getLogger")("hawser");
    log.attr("warning")("an operation of a world, whose request was dropped, failed: %s", status.to_string());
  }
}

RequestHandle::~RequestHandle() {
  const bool is_forked = world && world->forks != Exit::of_module().forks();
  if (!world || is_forked || flight.request.done()) return;
  // The caller may have said that it waits, and was interrupted: the world's own thread looks after it from now on.
  (void)outside([&] { return flight.request.wait(Duration::zero()).ok(); });
  world->left.push_back(std::move(flight));
}

void check_not_forked(const WorldState& state) {
  if (state.forks != Exit::of_module().forks()) raise_invalid("World: it was opened by the parent of this process");
}

World& world_of(const WorldHandle& self) {
  WorldState& state = *self.state;
  check_not_forked(state);
  state.look_after();
  return state.world;
}

Duration deadline_of(nb::handle timeout) {
  if (timeout.is_none()) return Duration::zero();
  return std::max(duration_of(timeout, "timeout", Duration::zero()), Duration(1));
}

}  // namespace hawser::api::python
