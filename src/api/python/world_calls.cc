// Calls of a world: handlers by name or number.

#include <hawser/world.h>

#include <memory>
#include <optional>
#include <string>

#include "api/python/python_handler.h"
#include "api/python/world_handles.h"

namespace hawser::api::python {
namespace {

/// A name, or a number.
class HandlerName {
 public:
  HandlerName(nb::handle from, const char* call) {
    if (nb::isinstance<nb::str>(from)) {
      name_ = nb::cast<std::string>(from);
    } else if (!nb::isinstance<nb::bool_>(from) && is_number(from)) {
      number_ = whole_of<std::uint64_t>(from, call);
    } else {
      throw nb::type_error((std::string(call) + " is a str or an int").c_str());
    }
  }
  /// Calls it with the one or the other.
  template <typename Call>
  auto with(Call call) const {
    return number_ ? call(*number_) : call(name_);
  }

 private:
  std::string name_;
  std::optional<std::uint64_t> number_;
};

void register_handler(const WorldHandle& self, nb::handle name, nb::callable function) {
  const HandlerName its(name, "register: name");
  const auto handler = std::make_shared<PythonHandler>(function);
  World& world = world_of(self);
  check(its.with([&](const auto& key) {
    return world.register_handler(key, [handler](const IncomingCall& call) { return handler->call(call); });
  }));
}

RequestHandle icall(const WorldHandle& self, Whole<std::uint32_t, "call: dest"> dest, nb::handle name,
                    nb::bytes arguments, nb::handle timeout) {
  const CallOptions options{.timeout = deadline_of(timeout)};
  const HandlerName its(name, "call: name");
  const std::span bytes(reinterpret_cast<const std::byte*>(arguments.c_str()), arguments.size());
  RequestHandle made = fly(self, {}, [&](World& world) {
    return its.with([&](const auto& key) { return world.icall(dest, key, bytes, options); });
  });
  made.flight.keep = arguments;
  made.is_call = true;
  return made;
}

}  // namespace

void bind_calls(nb::class_<WorldHandle>& world) {
  world.def("_register", &register_handler, nb::arg("name"), nb::arg("fn"))
      .def("_icall", &icall, nb::arg("dest"), nb::arg("name"), nb::arg("arguments"), nb::kw_only(),
           nb::arg("timeout") = nb::none());
}

}  // namespace hawser::api::python
