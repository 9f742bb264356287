// Requests: operations of a world under way.

#include <hawser/world.h>

#include <optional>

#include "api/python/world_handles.h"

namespace hawser::api::python {
namespace {

nb::object result_of(const RequestHandle& self) {
  const Request& request = self.flight.request;
  check(request.status());
  const std::span<const std::byte> bytes = request.bytes();
  if (self.is_call) return nb::bytes(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  if (!self.is_receive) return nb::none();
  const Received got = request.received();
  return nb::make_tuple(got.source, got.tag, got.bytes,
                        nb::bytes(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
}

nb::object wait(RequestHandle& self, nb::handle timeout) {
  Request& request = self.flight.request;
  if (!request.done()) check_not_forked(*self.world);
  const std::optional<bool> over =
      wait_in_slices(duration_of(timeout, "timeout", Duration::max()), [&](Duration slice) {
        if (!request.done()) (void)request.wait(slice);
        return request.done();
      });
  if (!over) throw nb::python_error();
  if (!*over) raise(Status(Code::kTimedOut, "Request.wait: not over yet; the operation goes on"));
  return result_of(self);
}

/// Over? Where no thread makes the world's progress, this makes some.
bool look(RequestHandle& self) {
  Request& request = self.flight.request;
  if (request.done()) return true;
  check_not_forked(*self.world);
  constexpr Duration kTurn = std::chrono::microseconds(1);
  if (!self.world->driven) (void)outside([&] { return request.wait(kTurn); });
  return request.done();
}

}  // namespace

void bind_requests(nb::module_& module) {
  nb::class_<RequestHandle>(module, "Request", nb::is_weak_referenceable(),
                            "One operation of a world under way. Dropped, it goes on, and keeps its arrays; its error "
                            "goes to the log `hawser`.")
      .def(
          "done", [](const RequestHandle& self) { return self.flight.request.done(); }, "Over? Only looks.")
      .def("_wait", &wait, nb::arg("timeout") = nb::none())
      .def("_look", &look)
      .def(
          "cancel",
          [](RequestHandle& self) {
            outside([&] {
              self.flight.request.cancel();
              return 0;
            });
          },
          "It ends now. A collective ends on all ranks, and with it the world's others.");
}

}  // namespace hawser::api::python
