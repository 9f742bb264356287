#pragma once

// Buffers of Python's whose owners leave their strides out, as ctypes does: nanobind reads strides of every buffer.
//
// Thread rule: with Python's lock.

#include <Python.h>
#include <nanobind/nanobind.h>

namespace hawser::api {

/// The object, or a memoryview of it, which has strides, where its buffer has none.
inline nanobind::object with_strides(nanobind::handle from) {
  Py_buffer view;
  const bool may_lack_them = PyObject_CheckBuffer(from.ptr()) != 0 && !nanobind::hasattr(from, "__dlpack__");
  if (!may_lack_them) return nanobind::borrow(from);
  if (PyObject_GetBuffer(from.ptr(), &view, PyBUF_RECORDS_RO) != 0) {
    PyErr_Clear();
    return nanobind::borrow(from);
  }
  const bool has_them = view.strides != nullptr;
  PyBuffer_Release(&view);
  if (has_them) return nanobind::borrow(from);
  nanobind::object seen = nanobind::steal(PyMemoryView_FromObject(from.ptr()));
  if (!seen.is_valid()) throw nanobind::python_error();
  return seen;
}

}  // namespace hawser::api
