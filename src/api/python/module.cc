// The extension module hawser._hawser.

#include <hawser/version.h>

#include "api/main_interpreter.h"
#include "api/python/objects.h"

namespace hawser::api::python {

HAWSER_PYTHON_MODULE(_hawser, "hawser", module) {
  module.attr("__version__") = HAWSER_VERSION;
  module.attr("MESSAGE_MAX") = kMessageMax;
  bind_peers(module);
  bind_memory(module);
  bind_grants(module);
  bind_transfers(module);
  bind_files(module);
  bind_drivers(module);
  bind_directories(module);
  bind_agents(module);
  bind_rdma(module);
  bind_compressors(module);
  bind_pools(module);
  bind_worlds(module);
  // A thread that is left behind at the end may still hold objects, which is no fault.
  nb::set_leak_warnings(false);
  module.def("_wait_at_exit", [] { Exit::of_module().wait(); });
}

}  // namespace hawser::api::python
