#include "api/python/whole.h"

#include "api/python/objects.h"

namespace hawser::api::python {
namespace {

[[noreturn]] void raise_outside(const char* what, const std::string& is, const std::string& bounds) {
  raise_invalid(std::string(what) + " is " + is + ", and must be from " + bounds);
}

nb::object index_of(nb::handle from, const char* what) {
  nb::object number = nb::steal(PyNumber_Index(from.ptr()));
  if (number.is_valid()) return number;
  if (PyErr_ExceptionMatches(PyExc_TypeError) == 0) throw nb::python_error();  // What its __index__ raised.
  PyErr_Clear();
  raise_invalid(std::string(what) + " is no integer but " + kind_of(from));
}

}  // namespace

std::int64_t signed_of(nb::handle from, const char* what) {
  const nb::object number = index_of(from, what);
  int overflow = 0;
  const std::int64_t value = PyLong_AsLongLongAndOverflow(number.ptr(), &overflow);
  if (overflow == 0) return value;
  raise_outside(what, overflow < 0 ? "below that" : "above that", "-2^63 to 2^63 - 1");
}

std::uint64_t unsigned_of(nb::handle from, std::uint64_t max, const char* what) {
  const nb::object number = index_of(from, what);
  int overflow = 0;
  const std::int64_t small = PyLong_AsLongLongAndOverflow(number.ptr(), &overflow);
  std::uint64_t value = static_cast<std::uint64_t>(small);
  const bool is_negative = overflow < 0 || (overflow == 0 && small < 0);
  bool is_huge = false;
  if (overflow > 0) {
    value = PyLong_AsUnsignedLongLong(number.ptr());
    is_huge = PyErr_Occurred() != nullptr;
    PyErr_Clear();
  }
  if (!is_negative && !is_huge && value <= max) return value;
  const std::string is = overflow < 0  ? "negative"
                         : is_negative ? std::to_string(small)
                         : is_huge     ? "above 2^64 - 1"
                                       : std::to_string(value);
  raise_outside(what, is, "0 to " + std::to_string(max));
}

}  // namespace hawser::api::python
