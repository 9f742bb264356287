#pragma once

// The extension modules live in the main interpreter alone: what nanobind knows of the classes is one for the process,
// and a second interpreter that imported them would take them from the first.
//
// Thread rule: with Python's global lock held.

#include <Python.h>

#include <cstdint>

namespace hawser::api {

/// True: this is the main interpreter. Else ImportError is set.
inline bool is_main_interpreter(const char* package) {
  constexpr std::int64_t kMain = 0;
  if (PyInterpreterState_GetID(PyInterpreterState_Get()) == kMain) return true;
  PyErr_Format(PyExc_ImportError,
               "%s cannot be imported into a subinterpreter: its classes are those of the process's main interpreter. "
               "Import it there, or use another process (mod_wsgi: WSGIApplicationGroup %%{GLOBAL})",
               package);
  return false;
}

}  // namespace hawser::api

/// NB_MODULE for the main interpreter alone. Module `name` of `package`.
#define HAWSER_PYTHON_MODULE(name, package, variable)               \
  extern "C" PyObject* PyInit_##name##_unchecked(void);             \
  extern "C" NB_EXPORT PyObject* PyInit_##name(void);               \
  extern "C" PyObject* PyInit_##name(void) {                        \
    if (!hawser::api::is_main_interpreter(package)) return nullptr; \
    return PyInit_##name##_unchecked();                             \
  }                                                                 \
  NB_MODULE(name##_unchecked, variable)
