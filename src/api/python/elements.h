#pragma once

// Arrays of Python's as the memory of messages and collectives: where the elements are, how many, and of what type.
//
// Thread rule: with Python's lock held. Errors are raised, and name the call and its argument.

#include <hawser/collective.h>

#include <cstdint>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include "api/python/objects.h"
#include "api/python/world_handles.h"
#include "api/with_strides.h"

namespace hawser::api::python {

using Array = nb::ndarray<nb::c_contig, nb::device::cpu>;

/// What `from` holds, where it is contiguous memory and so its elements are why it was not taken.
std::optional<std::string> odd_elements(nb::handle from, bool writes);

/// `what` of `call` as an array of that kind: Array can be written, Source is only read.
template <typename Kind>
Kind array_of(nb::handle from, const char* call, const char* what) {
  check_not_lazy(from, std::string(call) + ": " + what);
  Kind array;
  if (nb::try_cast<Kind>(with_strides(from), array, false)) return array;
  PyErr_Clear();
  if (const auto held = odd_elements(from, std::is_same_v<Kind, Array>)) {
    raise_invalid(std::string(call) + ": " + what + " holds elements of type " + *held + ", which are not moved here",
                  "give numbers in this machine's byte order, or the bytes: x.view('u1')");
  }
  raise_invalid(std::string(call) + ": " + what + " is no C-contiguous array in host memory" +
                    (std::is_same_v<Kind, Array> ? " that can be written" : ""),
                "give a numpy array, a tensor on the CPU, or a buffer");
}

DataType type_of(const nb::dlpack::dtype& type, const char* call);
ReduceOp op_of(const std::string& name, const char* call);

/// Where the elements are, how many, and of what type.
struct Elements {
  Elements(const Source& from, const char* call)
      : data(from.data()), count(from.size()), type(type_of(from.dtype(), call)) {}
  const void* data;
  std::uint64_t count;
  DataType type;
};

inline Source readable(const Array& array) { return Source(array); }
inline void* writable(const Elements& elements) { return const_cast<void*>(elements.data); }

void same_type(const Elements& a, const Elements& b, const char* call);
void has_count(const Elements& elements, std::uint64_t count, const char* call, const char* what);

std::uint64_t sum(const std::vector<std::uint64_t>& counts);
/// Of each rank, where all have as many.
std::uint64_t share(std::uint64_t count, std::uint32_t size, const char* call, const char* what);
/// Given counts, or the same for all.
std::vector<std::uint64_t> counts_of(const std::optional<std::vector<std::uint64_t>>& given, std::uint64_t each,
                                     std::uint32_t size);

}  // namespace hawser::api::python
