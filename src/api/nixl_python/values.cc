// NIXL's enumerations, exceptions, and what Python gives for numbers and text.

#include "api/nixl_python/objects.h"

#include <nanobind/ndarray.h>
#include <nanobind/stl/chrono.h>

#include <array>
#include <limits>

#include "api/nixl_python/config.h"
#include "api/with_strides.h"

namespace hawser::api::nixl_python {
namespace {

using compat::NixlCode;

struct ErrorClass {
  NixlCode code;
  const char* name;
  PyObject* type = nullptr;
};

std::array<ErrorClass, 12>& error_classes() {
  static std::array<ErrorClass, 12> classes = {{{NixlCode::kNotPosted, "nixlNotPostedError"},
                                                {NixlCode::kInvalidParam, "nixlInvalidParamError"},
                                                {NixlCode::kBackend, "nixlBackendError"},
                                                {NixlCode::kNotFound, "nixlNotFoundError"},
                                                {NixlCode::kMismatch, "nixlMismatchError"},
                                                {NixlCode::kNotAllowed, "nixlNotAllowedError"},
                                                {NixlCode::kRepostActive, "nixlRepostActiveError"},
                                                {NixlCode::kUnknown, "nixlUnknownError"},
                                                {NixlCode::kNotSupported, "nixlNotSupportedError"},
                                                {NixlCode::kRemoteDisconnect, "nixlRemoteDisconnectError"},
                                                {NixlCode::kCancelled, "nixlCancelledError"},
                                                {NixlCode::kNoTelemetry, "nixlNoTelemetryError"}}};
  return classes;
}

PyObject* error_class(NixlCode code) {
  for (const ErrorClass& one : error_classes()) {
    if (one.code == code) return one.type;
  }
  return PyExc_RuntimeError;
}

template <typename From>
void narrow(const From* from, std::int64_t stride, std::vector<std::int32_t>& to) {
  for (std::size_t i = 0; i < to.size(); ++i) {
    const From wide = from[static_cast<std::int64_t>(i) * stride];
    // A number that no list can have becomes -1, which make_xfer_req refuses.
    const bool fits = wide >= 0 && static_cast<std::uint64_t>(wide) <= std::numeric_limits<std::int32_t>::max();
    to[i] = fits ? static_cast<std::int32_t>(wide) : -1;
  }
}

using AnyArray = nb::ndarray<nb::ro, nb::device::cpu>;

AnyArray array_of(nb::handle from, const char* what) {
  AnyArray array;
  if (!nb::try_cast(with_strides(from), array, false)) {
    PyErr_Clear();
    throw nb::value_error((std::string(what) + " must be a list or a numpy array of numbers").c_str());
  }
  return array;
}

bool is_integer(const nb::dlpack::dtype& type) {
  const auto code = static_cast<nb::dlpack::dtype_code>(type.code);
  return type.lanes == 1 && (code == nb::dlpack::dtype_code::Int || code == nb::dlpack::dtype_code::UInt);
}

void narrow_array(const AnyArray& array, std::vector<std::int32_t>& to) {
  const bool is_signed = static_cast<nb::dlpack::dtype_code>(array.dtype().code) == nb::dlpack::dtype_code::Int;
  const std::int64_t stride = array.stride(0);
  const void* const data = array.data();
  switch (array.dtype().bits) {
    case 64:
      return is_signed ? narrow(static_cast<const std::int64_t*>(data), stride, to)
                       : narrow(static_cast<const std::uint64_t*>(data), stride, to);
    case 32:
      return is_signed ? narrow(static_cast<const std::int32_t*>(data), stride, to)
                       : narrow(static_cast<const std::uint32_t*>(data), stride, to);
    case 16:
      return is_signed ? narrow(static_cast<const std::int16_t*>(data), stride, to)
                       : narrow(static_cast<const std::uint16_t*>(data), stride, to);
    default:
      return is_signed ? narrow(static_cast<const std::int8_t*>(data), stride, to)
                       : narrow(static_cast<const std::uint8_t*>(data), stride, to);
  }
}

}  // namespace

void bind_errors(nb::module_& module) {
  for (ErrorClass& one : error_classes()) {
    one.type = PyErr_NewException((std::string("nixl._bindings.") + one.name).c_str(), nullptr, nullptr);
    if (one.type == nullptr) throw nb::python_error();
    module.attr(one.name) = nb::borrow(one.type);
  }
}

void raise(NixlCode code, const std::string& details) {
  const Calling guard;
  const nb::object error = nb::borrow(error_class(code))(str_of(compat::to_string(code)));
  error.attr("details") = str_of(details);
  if (nb::hasattr(error, "add_note")) error.attr("add_note")(str_of(details));
  PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(error.ptr())), error.ptr());
  throw nb::python_error();
}

void raise(const Status& status) { raise(compat::code_of(status), status.to_string()); }

Text::Text(nb::handle from, const char* what) {
  if (PyUnicode_Check(from.ptr())) {
    Py_ssize_t size = 0;
    const char* const text = PyUnicode_AsUTF8AndSize(from.ptr(), &size);
    if (text == nullptr) throw nb::python_error();  // Lone surrogates: UnicodeEncodeError.
    lent_ = {text, static_cast<std::size_t>(size)};
  } else if (PyBytes_Check(from.ptr())) {
    lent_ = {PyBytes_AsString(from.ptr()), static_cast<std::size_t>(PyBytes_Size(from.ptr()))};
  } else if (PyByteArray_Check(from.ptr())) {
    own_.assign(PyByteArray_AsString(from.ptr()), static_cast<std::size_t>(PyByteArray_Size(from.ptr())));
    is_own_ = true;
  } else {
    throw nb::type_error((std::string(what) + " must be str, bytes or bytearray").c_str());
  }
}

nb::str str_of(std::string_view text) {
  PyObject* const made = PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()), "backslashreplace");
  if (made == nullptr) throw nb::python_error();
  return nb::steal<nb::str>(made);
}

Indices::Indices(nb::handle from, const char* what) {
  // Other iterables are ranges, sets, generators. An object that has a buffer, or lends it, is an array.
  const auto is_array = [&] { return PyObject_CheckBuffer(from.ptr()) || nb::hasattr(from, "__dlpack__"); };
  const auto has_items = [&] { return !PyUnicode_Check(from.ptr()) && nb::hasattr(from, "__iter__"); };
  if (PyList_Check(from.ptr()) || PyTuple_Check(from.ptr()) || (!is_array() && has_items())) {
    from_items(from);
  } else {
    from_array(from, what);
  }
}

void Indices::from_items(nb::handle from) {
  constexpr std::size_t kMax = std::size_t{1} << 27;  // More than any request takes; a generator may never end.
  if (PyList_Check(from.ptr()) || PyTuple_Check(from.ptr())) own_.reserve(nb::len(from));
  for (nb::handle item : nb::iter(from)) {
    int overflow = 0;
    const long long wide = PyLong_AsLongLongAndOverflow(item.ptr(), &overflow);
    if (wide == -1 && PyErr_Occurred() != nullptr) throw nb::python_error();
    const bool fits = overflow == 0 && wide >= 0 && wide <= std::numeric_limits<std::int32_t>::max();
    own_.push_back(fits ? static_cast<std::int32_t>(wide) : -1);
    if (own_.size() > kMax) throw nb::value_error("there are too many indices");
  }
  view_ = own_;
}

void Indices::from_array(nb::handle from, const char* what) {
  const AnyArray array = array_of(from, what);
  if (array.ndim() != 1) throw nb::value_error("indices numpy array must be 1D");
  if (!is_integer(array.dtype())) throw nb::value_error("indices numpy array must hold integers");
  const std::size_t count = array.shape(0);
  // An unsigned one that does not fit is negative when read as signed, which make_xfer_req refuses.
  if (array.dtype().bits == 32 && (count < 2 || array.stride(0) == 1)) {
    owner_ = nb::cast(array);
    view_ = {static_cast<const std::int32_t*>(array.data()), count};
    return;
  }
  outside_for(count, [&] {
    own_.resize(count);
    narrow_array(array, own_);
  });
  view_ = own_;
}

std::span<const std::uint64_t> rows_of(nb::handle from, std::size_t columns, nb::object& owner) {
  const AnyArray array = array_of(from, "descs");
  const std::string shape = "Nx" + std::to_string(columns);
  if (array.ndim() != 2 || array.shape(1) != columns) {
    throw nb::value_error(("descs must be a " + shape + " numpy array").c_str());
  }
  if (!is_integer(array.dtype()) || array.dtype().bits != 64) {
    throw nb::value_error(("descs must be a " + shape + " numpy array of uint64 or int64").c_str());
  }
  const std::size_t rows = array.shape(0);
  const auto width = static_cast<std::int64_t>(columns);
  if (rows > 0 && (array.stride(1) != 1 || (rows > 1 && array.stride(0) != width))) {
    throw nb::value_error("descs must be a C-contiguous numpy array");
  }
  owner = nb::cast(array);
  return {static_cast<const std::uint64_t*>(array.data()), rows * columns};
}

namespace {

void bind_config(nb::module_& module) {
  nb::class_<Config>(module, "nixlAgentConfig",
                     "As NIXL's; all that is not about threads or telemetry changes nothing.")
      // The positions are NIXL's old constructors', from none to all eight.
      .def(
          "__init__",
          [](Config* self, bool prog, bool listen, int port, ThreadSync sync, unsigned, std::uint64_t pthr,
             std::uint64_t lthr, bool telemetry) {
            new (self) Config{
                prog, listen, port, sync, std::chrono::microseconds(pthr), std::chrono::microseconds(lthr), telemetry};
          },
          nb::arg("useProgThread") = false, nb::arg("useListenThread") = false, nb::arg("port") = Config().listen_port,
          nb::arg("syncMode") = ThreadSync::kNone, nb::arg("numWorkers") = 1, nb::arg("pthrDelay") = 0,
          nb::arg("lthrDelay") = 100000, nb::arg("captureTelemetry") = false)
      .def_rw("useProgThread", &Config::progress_thread)
      .def_rw("useListenThread", &Config::listen_thread)
      .def_rw("listenPort", &Config::listen_port)
      .def_rw("syncMode", &Config::sync)
      .def_rw("captureTelemetry", &Config::telemetry)
      .def_prop_rw(
          "pthrDelay", [](const Config& self) { return self.pthr_delay.count(); },
          [](Config& self, std::int64_t us) { self.pthr_delay = std::chrono::microseconds(us); })
      .def_prop_rw(
          "lthrDelay", [](const Config& self) { return self.lthr_delay.count(); },
          [](Config& self, std::int64_t us) { self.lthr_delay = std::chrono::microseconds(us); })
      .def_rw("etcdWatchTimeout", &Config::etcd_watch_timeout);
}

}  // namespace

void bind_values(nb::module_& module) {
  using compat::MemType;
  using compat::XferOp;
  nb::enum_<MemType>(module, "nixl_mem_t", nb::is_arithmetic())
      .value("DRAM_SEG", MemType::kDram)
      .value("VRAM_SEG", MemType::kVram)
      .value("BLK_SEG", MemType::kBlock)
      .value("OBJ_SEG", MemType::kObject)
      .value("FILE_SEG", MemType::kFile)
      .export_values();
  nb::enum_<XferOp>(module, "nixl_xfer_op_t", nb::is_arithmetic())
      .value("NIXL_READ", XferOp::kRead)
      .value("NIXL_WRITE", XferOp::kWrite)
      .export_values();
  nb::enum_<NixlCode>(module, "nixl_status_t", nb::is_arithmetic())
      .value("NIXL_IN_PROG", NixlCode::kInProgress)
      .value("NIXL_SUCCESS", NixlCode::kSuccess)
      .value("NIXL_ERR_NOT_POSTED", NixlCode::kNotPosted)
      .value("NIXL_ERR_INVALID_PARAM", NixlCode::kInvalidParam)
      .value("NIXL_ERR_BACKEND", NixlCode::kBackend)
      .value("NIXL_ERR_NOT_FOUND", NixlCode::kNotFound)
      .value("NIXL_ERR_MISMATCH", NixlCode::kMismatch)
      .value("NIXL_ERR_NOT_ALLOWED", NixlCode::kNotAllowed)
      .value("NIXL_ERR_REPOST_ACTIVE", NixlCode::kRepostActive)
      .value("NIXL_ERR_UNKNOWN", NixlCode::kUnknown)
      .value("NIXL_ERR_NOT_SUPPORTED", NixlCode::kNotSupported)
      .value("NIXL_ERR_REMOTE_DISCONNECT", NixlCode::kRemoteDisconnect)
      .value("NIXL_ERR_CANCELED", NixlCode::kCancelled)
      .value("NIXL_ERR_NO_TELEMETRY", NixlCode::kNoTelemetry)
      .export_values();
  nb::enum_<compat::CostMethod>(module, "nixl_cost_t", nb::is_arithmetic())
      .value("NIXL_COST_ANALYTICAL_BACKEND", compat::CostMethod::kAnalyticalBackend)
      .export_values();
  nb::enum_<ThreadSync>(module, "nixl_thread_sync_t", nb::is_arithmetic())
      .value("NIXL_THREAD_SYNC_NONE", ThreadSync::kNone)
      .value("NIXL_THREAD_SYNC_STRICT", ThreadSync::kStrict)
      .value("NIXL_THREAD_SYNC_RW", ThreadSync::kReadWrite)
      .export_values();
  module.attr("NIXL_THREAD_SYNC_DEFAULT") = module.attr("NIXL_THREAD_SYNC_NONE");
  module.attr("NIXL_INIT_AGENT") = "";
  module.attr("DEFAULT_COMM_PORT") = 8888;
  module.attr("HAVE_UCX_GPU_DEVICE_API") = false;
  bind_config(module);
}

}  // namespace hawser::api::nixl_python
