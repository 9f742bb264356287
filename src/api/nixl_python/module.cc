// The extension module nixl._bindings: NIXL's own Python names over compat.

#include "api/main_interpreter.h"
#include "api/nixl_python/objects.h"

namespace hawser::api::nixl_python {

HAWSER_PYTHON_MODULE(_bindings, "nixl", module) {
  bind_values(module);
  bind_errors(module);
  bind_lists(module);
  bind_agent(module);
  // A thread that is left behind at the end may still hold objects, which is no fault.
  nb::set_leak_warnings(false);
  module.def("_wait_at_exit", [] { Exit::of_module().wait(); });
}

}  // namespace hawser::api::nixl_python
