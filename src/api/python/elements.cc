#include "api/python/elements.h"

#include <initializer_list>
#include <utility>

namespace hawser::api::python {

std::optional<std::string> odd_elements(nb::handle from, bool writes) {
  Py_buffer view;
  if (PyObject_CheckBuffer(from.ptr()) == 0) return std::nullopt;
  if (PyObject_GetBuffer(from.ptr(), &view, PyBUF_ND) != 0) {
    PyErr_Clear();
    return std::nullopt;
  }
  const bool is_read_only = view.readonly != 0;
  PyBuffer_Release(&view);
  if (writes && is_read_only) return std::nullopt;
  return nb::cast<std::string>(nb::str(nb::getattr(from, "dtype", nb::str("an unknown type"))));
}

namespace {

/// As numpy calls it, where numpy has it.
std::string name_of(const nb::dlpack::dtype& type) {
  using Code = nb::dlpack::dtype_code;
  const std::pair<Code, const char*> names[] = {
      {Code::Complex, "complex"}, {Code::Float, "float"}, {Code::Int, "int"}, {Code::UInt, "uint"}};
  std::string name = "a kind that has no name here, bits: ";
  for (const auto& [code, text] : names) {
    if (static_cast<std::uint8_t>(code) == type.code) name = text;
  }
  name += std::to_string(type.bits);
  return type.lanes == 1 ? name : std::to_string(type.lanes) + " x " + name;
}

}  // namespace

DataType type_of(const nb::dlpack::dtype& type, const char* call) {
  using Code = nb::dlpack::dtype_code;
  const auto code = static_cast<Code>(type.code);
  const auto one_of = [&](std::initializer_list<std::pair<int, DataType>> all) -> std::optional<DataType> {
    for (const auto& [bits, is] : all) {
      if (bits == type.bits && type.lanes == 1) return is;
    }
    return std::nullopt;
  };
  std::optional<DataType> found;
  if (code == Code::Float) {
    found = one_of({{64, DataType::kFloat64}, {32, DataType::kFloat32}, {16, DataType::kFloat16}});
  } else if (code == Code::Bfloat) {
    found = one_of({{16, DataType::kBFloat16}});
  } else if (code == Code::Int) {
    found = one_of({{8, DataType::kInt8}, {16, DataType::kInt16}, {32, DataType::kInt32}, {64, DataType::kInt64}});
  } else if (code == Code::UInt) {
    found = one_of({{8, DataType::kUInt8}, {16, DataType::kUInt16}, {32, DataType::kUInt32}, {64, DataType::kUInt64}});
  } else if (code == Code::Bool) {
    found = one_of({{8, DataType::kBool}});
  }
  if (!found) {
    raise_invalid(
        std::string(call) + ": arrays of " + name_of(type) + " are neither moved nor combined here",
        "use floats of 16 to 64 bits, integers of 8 to 64, or bool; where nothing is combined, give the bytes: "
        "x.view('u1')");
  }
  return *found;
}

ReduceOp op_of(const std::string& name, const char* call) {
  for (std::size_t i = 0; i < kReduceOps; ++i) {
    if (to_string(static_cast<ReduceOp>(i)) == name) return static_cast<ReduceOp>(i);
  }
  raise_invalid(std::string(call) + ": there is no op '" + name + "'", "sum, prod, min, max, avg, and, or, xor");
}

void same_type(const Elements& a, const Elements& b, const char* call) {
  if (a.type == b.type) return;
  raise_invalid(std::string(call) + ": one array holds " + std::string(to_string(a.type)) + ", the other " +
                std::string(to_string(b.type)));
}

void has_count(const Elements& elements, std::uint64_t count, const char* call, const char* what) {
  if (elements.count == count) return;
  raise_invalid(std::string(call) + ": " + what + " holds " + std::to_string(elements.count) + " elements, not " +
                std::to_string(count));
}

std::uint64_t sum(const std::vector<std::uint64_t>& counts) {
  std::uint64_t all = 0;
  for (const std::uint64_t count : counts) all += count;
  return all;
}

std::uint64_t share(std::uint64_t count, std::uint32_t size, const char* call, const char* what) {
  if (count % size == 0) return count / size;
  raise_invalid(std::string(call) + ": the " + std::to_string(count) + " elements of " + what +
                    " are no multiple of the " + std::to_string(size) + " ranks",
                "the calls with a v take a count for each rank");
}

std::vector<std::uint64_t> counts_of(const std::optional<std::vector<std::uint64_t>>& given, std::uint64_t each,
                                     std::uint32_t size) {
  return given ? *given : std::vector<std::uint64_t>(size, each);
}

}  // namespace hawser::api::python
