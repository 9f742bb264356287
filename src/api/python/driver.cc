// Drivers: threads that run agents.

#include "api/python/objects.h"

namespace hawser::api::python {

DriverState::~DriverState() {
  if (forks == Exit::of_module().forks()) return;
  (void)new Driver(std::move(driver));  // Its threads are the parent's: joining would wait for ever.
}

DriverHandle::~DriverHandle() {
  if (state.use_count() != 1) return;
  outside([&] {
    state.reset();
    return 0;
  });
}

DriverRef driver_of(nb::handle driver, nb::handle spin) {
  if (driver.is(nb::handle(Py_False))) return nullptr;
  DriverOptions with;
  with.spin = duration_of(spin, "spin", with.spin);
  if (driver.is(nb::handle(Py_True))) {
    return std::make_shared<DriverState>(take(outside([&] { return Driver::start(with); })));
  }
  const DriverHandle* shared = nullptr;
  if (!nb::try_cast(driver, shared) || shared == nullptr) raise_invalid("Agent: driver is neither a bool nor a Driver");
  if (!spin.is_none()) raise_invalid("Agent: spin goes with a driver of the agent's own", "give it to Driver");
  if (shared->state->forks != Exit::of_module().forks()) raise_invalid("Agent: the driver is of the parent process");
  return shared->state;
}

void bind_drivers(nb::module_& module) {
  nb::class_<DriverHandle>(module, "Driver", "Threads that run several agents, until the last of them is gone.")
      .def(
          "__init__",
          [](DriverHandle* self, Whole<unsigned, "Driver: threads"> threads, nb::handle spin) {
            DriverOptions with{.threads = threads};
            with.spin = duration_of(spin, "spin", with.spin);
            new (self) DriverHandle(std::make_shared<DriverState>(take(outside([&] { return Driver::start(with); }))));
          },
          nb::arg("threads") = 1, nb::arg("spin") = nb::none());
}

}  // namespace hawser::api::python
