// An allocator's segments, which a function in Python tells.

#include "api/python/objects.h"

namespace hawser::api::python {
namespace {

/// More than any table of segments takes.
constexpr std::size_t kSegmentsMax = std::size_t{1} << 20;

std::uint64_t number_of(nb::handle row, std::size_t at, std::uint64_t otherwise) {
  if (at >= nb::len(row)) return otherwise;
  std::uint64_t number = 0;
  if (!nb::try_cast(row[at], number)) {
    raise_invalid("segments: " + std::string(nb::repr(row).c_str()) +
                  " holds something that is no integer from 0 to 2^64 - 1");
  }
  return number;
}

/// (address, size, gpu, generation), the last two as they like.
MemorySegment segment_of(nb::handle row) {
  const bool is_row = PyTuple_Check(row.ptr()) || PyList_Check(row.ptr());
  if (!is_row || nb::len(row) < 2 || nb::len(row) > 4) {
    raise_invalid("segments: " + std::string(nb::repr(row).c_str()) + " is no (address, size, gpu, generation)",
                  "give tuples such as hawser.Segment; gpu and generation may be left out");
  }
  const std::uint64_t address = number_of(row, 0, 0), size = number_of(row, 1, 0), gpu = number_of(row, 2, 0);
  if (address == 0 || size == 0 || address + size < address || gpu > UINT32_MAX) {
    raise_invalid("segments: " + std::string(nb::repr(row).c_str()) + " is no range of addresses of a GPU");
  }
  return {.bytes = {reinterpret_cast<std::byte*>(address), size},
          .device = {.kind = DeviceKind::kCuda, .ordinal = static_cast<std::uint32_t>(gpu)},
          .generation = number_of(row, 3, 0)};
}

/// A broken __str__ is no reason to fail.
std::string text_of_error(const nb::python_error& error) {
  PyObject* const text = PyObject_Str(error.value().ptr());
  if (text == nullptr) {
    PyErr_Clear();
    return "?";
  }
  Py_ssize_t size = 0;
  const nb::object owner = nb::steal(text);
  const char* const data = PyUnicode_AsUTF8AndSize(text, &size);
  if (data == nullptr) PyErr_Clear();  // Lone surrogates.
  return data == nullptr ? "?" : std::string(data, static_cast<std::size_t>(size));
}

/// Tells the exception to Python's hook for those that nobody catches. Registering goes on without segments.
Status tell_raised(nb::python_error& error, nb::handle function) {
  Status status(Code::kFailed, "segments: " + text_of_error(error));
  if (error.matches(PyExc_KeyboardInterrupt)) {
    PyErr_SetInterrupt();  // Ctrl-C is meant for who registers: it is raised there.
  } else {
    error.discard_as_unraisable(function);
  }
  return status;
}

}  // namespace

Result<std::vector<MemorySegment>> SegmentTeller::ask_inside() {
  if (!function_.is_valid()) return Status(Code::kInvalid, "segments: the agent is closed");
  const nb::object function = function_;  // It may be forgotten meanwhile.
  try {
    std::vector<MemorySegment> told;
    for (nb::handle row : nb::iter(function())) {
      if (told.size() >= kSegmentsMax) raise_invalid("segments: more than " + std::to_string(kSegmentsMax));
      told.push_back(segment_of(row));
    }
    return told;
  } catch (nb::python_error& error) {
    return tell_raised(error, function);
  }
}

Result<std::vector<MemorySegment>> SegmentTeller::ask() {
  const Inside inside;
  if (!inside.granted()) return Status(Code::kCancelled, "segments: the interpreter ends");
  return ask_inside();
}

std::shared_ptr<SegmentTeller> segments_of(nb::handle function) {
  if (function.is_none()) return nullptr;
  if (PyCallable_Check(function.ptr()) == 0) {
    raise_invalid("Agent: segments is no function", "give one that returns a list of hawser.Segment");
  }
  return std::make_shared<SegmentTeller>(nb::borrow(function));
}

}  // namespace hawser::api::python
