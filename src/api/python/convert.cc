// Between Python's values and Hawser's.

#include <algorithm>
#include <cmath>
#include <numeric>

#include "api/python/objects.h"
#include "api/with_strides.h"

namespace hawser::api::python {

namespace {

double seconds(Duration duration) { return std::chrono::duration<double>(duration).count(); }

/// Beyond that a wait is for ever.
constexpr double kSecondsMax = 9e9;

bool is_integer(const nb::dlpack::dtype& type) {
  const auto code = static_cast<nb::dlpack::dtype_code>(type.code);
  return type.lanes == 1 && (code == nb::dlpack::dtype_code::Int || code == nb::dlpack::dtype_code::UInt);
}

std::string text_of_number(std::uint64_t number) { return std::to_string(number); }

/// Resizes `to` as well, which is work of the same size.
template <typename From>
void widen(const From* from, std::int64_t stride, std::size_t count, std::vector<std::uint32_t>& to, const char* what) {
  const std::uint64_t bits = outside_for(count, [&] {
    to.resize(count);
    std::uint64_t all = 0;
    for (std::size_t i = 0; i < count; ++i) {
      const auto wide = static_cast<std::uint64_t>(from[static_cast<std::int64_t>(i) * stride]);
      all |= wide;
      to[i] = static_cast<std::uint32_t>(wide);
    }
    return all;
  });
  if ((bits >> 32) != 0) raise_invalid(std::string(what) + ": an index is negative or above 2^32 - 1");
}

template <typename Array>
Array array_of(nb::handle from, const std::string& what) {
  Array array;
  if (!nb::try_cast<Array>(with_strides(from), array, false)) {
    PyErr_Clear();
    raise_invalid(what + " is no array of numbers in host memory that can be read as it lies",
                  "give a C-contiguous numpy array, a tensor on the CPU, or a list");
  }
  return array;
}

std::uint64_t number_of(nb::handle from, const char* what) { return whole_of<std::uint64_t>(from, what); }

}  // namespace

void check_not_lazy(nb::handle from, const std::string& what) {
  if (PyObject_CheckBuffer(from.ptr()) != 0 || !nb::hasattr(from, "is_conj") || !nb::hasattr(from, "is_neg")) return;
  if (!nb::cast<bool>(from.attr("is_conj")()) && !nb::cast<bool>(from.attr("is_neg")())) return;
  raise_invalid(what + " is conjugated or negated in name only: its memory holds other values",
                "give x.resolve_conj().resolve_neg()");
}

nb::object error_object(const Status& status) {
  if (status.ok()) return nb::none();
  const Calling guard;
  const nb::object make = nb::module_::import_("hawser.errors").attr("_from_status");
  return make(static_cast<int>(status.code()), text_of(status.message()), text_of(name_of(to_string(status.scope()))),
              text_of(name_of(to_string(status.buffer()))), text_of(status.peer()), text_of(status.device()),
              status.bytes_done(), seconds(status.elapsed()), text_of(status.advice()), text_of(status.to_string()),
              error_object(status.cause()));
}

void raise(const Status& status) {
  const nb::object error = error_object(status);
  PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(error.ptr())), error.ptr());
  throw nb::python_error();
}

void raise_invalid(const std::string& what, const std::string& advice) {
  raise(Status(Code::kInvalid, what).with_advice(advice));
}

Priority priority_of(const char* call, const std::string& text) {
  if (text == "bulk") return Priority::kBulk;
  if (text == "realtime") return Priority::kRealtime;
  if (text == "critical") return Priority::kCritical;
  raise_invalid(std::string(call) + ": priority = '" + text + "'", "one of critical, realtime, bulk");
}

std::string name_of(std::string_view words) {
  std::string name(words);
  std::replace(name.begin(), name.end(), ' ', '_');
  return name;
}

nb::str text_of(std::string_view text) {
  PyObject* const made = PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()), "backslashreplace");
  if (made == nullptr) throw nb::python_error();
  return nb::steal<nb::str>(made);
}

std::string kind_of(nb::handle from) {
  if (from.is_none()) return "None";
  const nb::str name = nb::borrow<nb::str>(from.type().attr("__name__"));
  return name.c_str();
}

Bytes::Bytes(nb::handle from, const char* what) {
  char* data = nullptr;
  Py_ssize_t size = 0;
  if (PyUnicode_Check(from.ptr())) {
    const char* const text = PyUnicode_AsUTF8AndSize(from.ptr(), &size);
    if (text == nullptr) throw nb::python_error();  // Lone surrogates: UnicodeEncodeError.
    owner = nb::borrow(from);
    view = {text, static_cast<std::size_t>(size)};
    return;
  }
  if (PyBytes_Check(from.ptr())) {
    owner = nb::borrow(from);
  } else if (PyObject_CheckBuffer(from.ptr()) != 0) {
    owner = nb::steal(PyBytes_FromObject(from.ptr()));
  } else {
    raise_invalid(std::string(what) + " is neither bytes nor str");
  }
  if (!owner.is_valid() || PyBytes_AsStringAndSize(owner.ptr(), &data, &size) != 0) throw nb::python_error();
  view = {data, static_cast<std::size_t>(size)};
}

std::string path_of(nb::handle from, const std::string& call, const char* what, const char* advice) {
  PyObject* bytes = nullptr;
  if (PyUnicode_FSConverter(from.ptr(), &bytes) == 0) {
    PyErr_Clear();
    raise_invalid(call + ": " + what, advice);
  }
  const nb::object owner = nb::steal(bytes);
  return std::string(Bytes(owner, "the path").view);
}

Duration duration_of(nb::handle from, const char* what, Duration otherwise) {
  if (from.is_none()) return otherwise;
  nb::object number = nb::borrow(from);
  if (nb::hasattr(from, "total_seconds")) number = from.attr("total_seconds")();
  const double value = PyFloat_AsDouble(number.ptr());
  if (value == -1.0 && PyErr_Occurred() != nullptr) {
    PyErr_Clear();
    raise_invalid(std::string(what) + " is neither a number of seconds nor a timedelta nor None");
  }
  if (std::isnan(value) || value < 0) raise_invalid(std::string(what) + " is negative or no number");
  if (value > kSecondsMax) return Duration::max();
  return Duration(static_cast<std::int64_t>(value * 1e9));
}

IndexArray::IndexArray(std::uint64_t count) {
  outside_for(count, [&] {
    own_.resize(count);
    std::iota(own_.begin(), own_.end(), 0u);
  });
  view_ = own_;
}

IndexArray::IndexArray(nb::handle from, const char* what) {
  if (PyList_Check(from.ptr()) || PyTuple_Check(from.ptr()) || PyRange_Check(from.ptr())) {
    from_sequence(from, what);
    return;
  }
  array_ = array_of<nb::ndarray<nb::ro, nb::device::cpu>>(from, what);
  from_array(what);
}

void IndexArray::from_sequence(nb::handle from, const char* what) {
  own_.reserve(nb::len(from));
  std::uint64_t all = 0;
  for (nb::handle item : nb::iter(from)) {
    const std::uint64_t number = number_of(item, what);
    all |= number;
    own_.push_back(static_cast<std::uint32_t>(number));
  }
  if ((all >> 32) != 0) raise_invalid(std::string(what) + ": an index is above 2^32 - 1");
  view_ = own_;
}

void IndexArray::from_array(const char* what) {
  const nb::dlpack::dtype type = array_.dtype();
  if (array_.ndim() != 1 || !is_integer(type)) {
    raise_invalid(std::string(what) + " must be a one-dimensional array of integers",
                  "for example numpy.arange(n, dtype=numpy.uint32)");
  }
  const std::size_t count = array_.shape(0);
  const std::int64_t stride = array_.stride(0);
  // A negative 32-bit index is above all tables' sizes when read as unsigned.
  if (type.bits == 32 && (stride == 1 || count < 2)) {
    view_ = {static_cast<const std::uint32_t*>(array_.data()), count};
    return;
  }
  const bool is_signed = static_cast<nb::dlpack::dtype_code>(type.code) == nb::dlpack::dtype_code::Int;
  const void* const data = array_.data();
  switch (type.bits) {
    case 64:
      widen(static_cast<const std::uint64_t*>(data), stride, count, own_, what);
      break;
    case 32:
      widen(static_cast<const std::uint32_t*>(data), stride, count, own_, what);
      break;
    case 16:
      if (is_signed) {
        widen(static_cast<const std::int16_t*>(data), stride, count, own_, what);
      } else {
        widen(static_cast<const std::uint16_t*>(data), stride, count, own_, what);
      }
      break;
    case 8:
      if (is_signed) {
        widen(static_cast<const std::int8_t*>(data), stride, count, own_, what);
      } else {
        widen(static_cast<const std::uint8_t*>(data), stride, count, own_, what);
      }
      break;
    default:
      raise_invalid(std::string(what) + " has integers of " + text_of_number(type.bits) + " bits");
  }
  view_ = own_;
}

RangeArray::RangeArray(nb::handle from, const char* what) {
  if (PyList_Check(from.ptr()) || PyTuple_Check(from.ptr())) {
    from_sequence(from, what);
    return;
  }
  array_ = array_of<nb::ndarray<nb::ro, nb::device::cpu, nb::c_contig>>(from, what);
  const std::size_t columns = array_.ndim() == 2 ? array_.shape(1) : 0;
  if ((columns != 2 && columns != 4) || !is_integer(array_.dtype()) || array_.dtype().bits != 64) {
    raise_invalid(std::string(what) + " must be a C-contiguous array of N x 2 (offset, size) or N x 4 (offset, size, " +
                      "stride, count) integers of 64 bits",
                  "for example numpy.array([[0, 4096]], dtype=numpy.uint64)");
  }
  static_assert(sizeof(StridedRange) == 4 * sizeof(std::uint64_t));
  const std::size_t count = array_.shape(0);
  if (columns == 4) {
    view_ = {static_cast<const StridedRange*>(array_.data()), count};
    return;
  }
  const auto* const pairs = static_cast<const std::uint64_t*>(array_.data());
  outside_for(count, [&] {
    own_.resize(count);
    for (std::size_t i = 0; i < count; ++i) own_[i] = {.offset = pairs[2 * i], .size = pairs[2 * i + 1]};
  });
  view_ = own_;
}

void RangeArray::from_sequence(nb::handle from, const char* what) {
  own_.reserve(nb::len(from));
  for (nb::handle item : nb::iter(from)) {
    const bool is_row = PyTuple_Check(item.ptr()) || PyList_Check(item.ptr());
    const std::size_t columns = is_row ? nb::len(item) : 0;
    if (columns != 2 && columns != 4) {
      raise_invalid(std::string(what) + " must hold (offset, size) or (offset, size, stride, count)");
    }
    StridedRange range{.offset = number_of(item[0], what), .size = number_of(item[1], what)};
    if (columns == 4) {
      range.stride = number_of(item[2], what);
      range.count = number_of(item[3], what);
    }
    own_.push_back(range);
  }
  view_ = own_;
}

}  // namespace hawser::api::python
