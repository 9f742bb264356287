#pragma once

// PythonHandler: a function of Python's, or another object, that threads of the library use.
//
// Thread rule: any thread; each use takes Python's lock. Lifetime: the object goes once the lock is there for it.

#include <hawser/call.h>

#include <exception>

#include "api/python/let_go.h"
#include "api/python/objects.h"

namespace hawser::api::python {

class PythonHandler {
 public:
  explicit PythonHandler(nb::handle function) : function_(function.inc_ref().ptr()) {}
  ~PythonHandler() { LetGo::later(function_); }
  PythonHandler(const PythonHandler&) = delete;
  PythonHandler& operator=(const PythonHandler&) = delete;

  Result<CallAnswer> call(const IncomingCall& incoming) const {
    const Inside inside;
    if (!inside.granted()) return Status(Code::kCancelled, "the interpreter of this rank is at its end");
    try {
      const nb::bytes arguments(reinterpret_cast<const char*>(incoming.arguments.data()), incoming.arguments.size());
      const nb::object answer = nb::handle(function_)(incoming.source, arguments);
      const Bytes bytes(answer, "an answer");
      const auto* const data = reinterpret_cast<const std::byte*>(bytes.view.data());
      return CallAnswer(data, data + bytes.view.size());
    } catch (const std::exception& error) {
      return Status(Code::kFailed, error.what());
    }
  }

  nb::handle function() const { return function_; }

 private:
  PyObject* function_;
};

}  // namespace hawser::api::python
