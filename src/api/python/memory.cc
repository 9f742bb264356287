// Regions, ranges and tables.

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include "api/python/objects.h"

namespace hawser::api::python {

RegionState::~RegionState() {
  const nb::error_scope
      raised;  // The memory's lender may run Python code when it gets it back, also while one unwinds.
  constexpr Duration kPatience = std::chrono::seconds(5);
  bool quiet = true;
  if (agent && !agent->forked()) {
    // This memory may be registered again, under this address.
    const auto [begin, end] = agent->regions.equal_range(reinterpret_cast<std::uintptr_t>(region.bytes().data()));
    for (auto next = begin; next != end;) next = next->second.expired() ? agent->regions.erase(next) : std::next(next);
    quiet = outside([&] { return region.close(kPatience).ok(); });
  }
  if (!quiet) {
    // Somebody may still touch the memory: its owner in Python must never go.
    if (tensor.is_valid()) (void)new Tensor(tensor);
    return;
  }
  exports = 0;
  closed = true;
  give_back();
}

void RegionState::give_back() {
  if (!closed || exports > 0) return;
  const Tensor last = std::exchange(tensor, Tensor());
  Py_buffer lent = view;
  if (std::exchange(has_view, false)) PyBuffer_Release(&lent);
}

Rights rights_of(const std::string& text) {
  if (text == "read_write") return Rights::kReadWrite;
  if (text == "read") return Rights::kRead;
  if (text == "write") return Rights::kWrite;
  if (text == "none") return Rights::kNone;
  raise_invalid("rights = '" + text + "'", "one of read_write, read, write, none");
}

const char* text_of_rights(Rights rights) {
  switch (rights) {
    case Rights::kRead:
      return "read";
    case Rights::kWrite:
      return "write";
    case Rights::kReadWrite:
      return "read_write";
    case Rights::kNone:
      break;
  }
  return "none";
}

namespace {

constexpr Duration kCloseTimeout = std::chrono::seconds(5);
constexpr const char* kWholeArray = "register the whole array and pick parts of it by ranges, or give a contiguous one";

Rights default_rights(const std::optional<std::string>& wanted, bool writable) {
  if (!wanted) return writable ? Rights::kReadWrite : Rights::kRead;
  const Rights rights = rights_of(*wanted);
  if (!writable && allows(rights, Rights::kWrite)) {
    raise_invalid("add_region: the memory is read-only, so its rights cannot be '" + *wanted + "'",
                  "give memory that can be written, or rights='read'");
  }
  return rights;
}

/// True where items of that format of the buffer protocol hold objects of Python. Names of fields stand between colons.
bool has_objects(std::string_view format) {
  bool in_name = false;
  for (const char letter : format) {
    if (letter == ':') in_name = !in_name;
    if (letter == 'O' && !in_name) return true;
  }
  return false;
}

/// Asked apart from the memory: some arrays (of dates, say) give out their bytes, but no format of them.
bool holds_objects(nb::handle from) {
  Py_buffer view;
  if (PyObject_GetBuffer(from.ptr(), &view, PyBUF_ND | PyBUF_FORMAT) != 0) {
    PyErr_Clear();
    return false;
  }
  const bool found = view.format != nullptr && has_objects(view.format);
  PyBuffer_Release(&view);
  return found;
}

/// The memory behind the buffer protocol: numpy, bytearray, mmap, shared memory, ctypes. `call` is for errors.
RegionOptions open_buffer(nb::handle from, RegionState& state, const std::string& call) {
  if (PyObject_GetBuffer(from.ptr(), &state.view, PyBUF_ND) != 0) {
    PyErr_Clear();
    raise_invalid(call + ": the memory is not contiguous (or its owner does not give it out)", kWholeArray);
  }
  state.has_view = true;
  state.writable = state.view.readonly == 0;
  return {.bytes = {static_cast<std::byte*>(state.view.buf), static_cast<std::size_t>(state.view.len)}};
}

/// Tensors that give themselves out by DLPack only.
RegionOptions open_tensor(nb::handle from, RegionState& state, const std::string& call) {
  check_not_lazy(from, call + ": the tensor");
  // No conversion: it would register a copy.
  nb::ndarray<nb::c_contig> writable;
  state.writable = nb::try_cast(from, writable, false);
  if (!nb::try_cast(from, state.tensor, false)) {
    PyErr_Clear();
    if (nb::hasattr(from, "__dlpack__")) {
      raise_invalid(call + ": the tensor is not contiguous (or its owner does not give it out)", kWholeArray);
    }
    raise_invalid(call + ": " + kind_of(from) + " gives out no memory",
                  "give one with the buffer protocol or with __dlpack__, such as a numpy array or a tensor");
  }
  RegionOptions options{
      .bytes = {static_cast<std::byte*>(const_cast<void*>(state.tensor.data())), state.tensor.nbytes()}};
  if (state.tensor.device_type() == nb::device::cuda::value) {
    options.device = {.kind = DeviceKind::kCuda, .ordinal = static_cast<std::uint32_t>(state.tensor.device_id())};
  } else if (state.tensor.device_type() != nb::device::cpu::value &&
             state.tensor.device_type() != nb::device::cuda_host::value) {
    raise(Status(Code::kUnsupported,
                 call + ": memory of DLPack device type " + std::to_string(state.tensor.device_type()))
              .with_advice("give memory of the host or of CUDA"));
  }
  return options;
}

RegionOptions open_memory(nb::handle from, RegionState& state, const std::string& call) {
  return PyObject_CheckBuffer(from.ptr()) != 0 ? open_buffer(from, state, call) : open_tensor(from, state, call);
}

RegionHandle keep(const AgentRef& agent, std::shared_ptr<RegionState> state, Result<Region> made) {
  state->region = take(std::move(made));
  state->agent = agent;
  agent->regions.emplace(reinterpret_cast<std::uintptr_t>(state->region.bytes().data()), state);
  return {std::move(state)};
}

/// The open region that holds [start, start + size), if there is one: of several, which may lie in each other, the one
/// that begins last, and of those that begin there the newest.
RegionRef region_at(AgentState& agent, std::uintptr_t start, std::size_t size) {
  for (auto next = agent.regions.upper_bound(start); next != agent.regions.begin();) {
    --next;
    RegionRef found = next->second.lock();
    const std::size_t before = start - next->first;
    if (!found || found->closing || before > found->region.size()) continue;
    if (size <= found->region.size() - before) return found;
  }
  return nullptr;
}

RangeHandle range(const RegionHandle& self, Whole<std::uint64_t, "range: offset"> offset,
                  MaybeWhole<std::uint64_t, "range: size"> size) {
  const std::uint64_t whole = self.state->region.size();
  const std::uint64_t wanted = size.value_or(offset <= whole ? whole - offset : 0);
  if (offset > whole || wanted > whole - offset) {
    raise_invalid("range: offset " + std::to_string(offset) + " and size " + std::to_string(wanted) +
                  " leave the region of " + std::to_string(whole) + " bytes");
  }
  return {self.state, self.state->region.range(offset, wanted)};
}

TableHandle table_handle(const RegionRef& region, RangeTable table) {
  check(table.status());
  return {region->agent, region, std::move(table)};
}

TableHandle local_table(const RegionHandle& self, nb::handle blocks) {
  const Region& region = self.state->region;
  if (is_number(blocks)) {
    const auto bytes = whole_of<std::uint64_t>(blocks, "table: the size of a block");
    return table_handle(self.state, region.table(bytes));
  }
  const RangeArray ranges(blocks, "table: ranges");
  return table_handle(self.state, outside([&] { return region.table(ranges.view()); }));
}

nb::tuple table_at(const TableHandle& self, Whole<std::int64_t, "the index of a table"> index) {
  const auto size = static_cast<std::int64_t>(self.table.size());
  const std::int64_t at = index < 0 ? index + size : index.value;
  if (at < 0 || at >= size) throw nb::index_error("table index out of range");
  const StridedRange range = take(self.table.at(static_cast<std::uint64_t>(at)));
  return nb::make_tuple(range.offset, range.size);
}

bool close_region(const RegionHandle& self, nb::handle timeout) {
  const Duration patience = duration_of(timeout, "timeout", kCloseTimeout);
  const RegionRef state = self.state;  // Others may drop it meanwhile.
  if (state->agent->forked()) (void)agent_of(state->agent);
  state->closing = true;
  check(outside([&] { return state->region.close(patience); }));
  state->closed = true;
  state->give_back();
  return true;
}

// Region gives its memory out by the buffer protocol; whoever holds it keeps the region's memory mapped.
int get_buffer(PyObject* self, Py_buffer* view, int flags) {
  RegionHandle* const region = nb::inst_ptr<RegionHandle>(self);
  const std::span<std::byte> bytes = region->state->region.bytes();
  if (bytes.data() == nullptr) {
    PyErr_SetString(PyExc_BufferError, "a file's region has no memory: move its bytes by plans");
    view->obj = nullptr;
    return -1;
  }
  RegionState& state = *region->state;
  if (state.is_lent && state.closed && state.exports == 0) {
    PyErr_SetString(PyExc_BufferError, "the region is closed, and its owner has the memory back");
    view->obj = nullptr;
    return -1;
  }
  const int answer =
      PyBuffer_FillInfo(view, self, bytes.data(), static_cast<Py_ssize_t>(bytes.size()), state.writable ? 0 : 1, flags);
  if (answer == 0) ++state.exports;
  return answer;
}

void release_buffer(PyObject* self, Py_buffer*) {
  const RegionRef state = nb::inst_ptr<RegionHandle>(self)->state;
  --state->exports;
  state->give_back();
}

PyType_Slot kRegionSlots[] = {{Py_bf_getbuffer, reinterpret_cast<void*>(get_buffer)},
                              {Py_bf_releasebuffer, reinterpret_cast<void*>(release_buffer)},
                              {0, nullptr}};

}  // namespace

RegionHandle add_region(const AgentHandle& self, nb::handle memory, const std::string& name,
                        const std::optional<std::string>& rights, bool listed) {
  Agent& its = agent_of(self.state);
  auto state = std::make_shared<RegionState>();
  RegionOptions options = open_memory(memory, *state, "add_region");
  if (state->has_view && holds_objects(memory)) {
    raise_invalid("add_region: the memory holds Python objects, which cannot be moved", "give an array of numbers");
  }
  options.name = name;
  options.listed = listed;
  options.rights = default_rights(rights, state->writable);
  Result<Region> made = outside([&] { return its.add_region(options); });
  state->is_lent = true;
  return keep(self.state, std::move(state), std::move(made));
}

RegionHandle allocate(const AgentHandle& self, Whole<std::uint64_t, "allocate: size"> size, const std::string& name,
                      const std::string& rights, const std::string& huge_pages, bool listed) {
  Agent& its = agent_of(self.state);
  AllocateOptions options{.name = name, .size = size, .rights = rights_of(rights), .listed = listed};
  if (huge_pages == "off") {
    options.huge_pages = HugePages::kOff;
  } else if (huge_pages == "require") {
    options.huge_pages = HugePages::kRequire;
  } else if (huge_pages != "auto") {
    raise_invalid("allocate: huge_pages = '" + huge_pages + "'", "one of auto, off, require");
  }
  Result<Region> made = outside([&] { return its.allocate(options); });
  return keep(self.state, std::make_shared<RegionState>(), std::move(made));
}

RangeHandle range_of(const AgentHandle& self, nb::handle memory) {
  (void)agent_of(self.state);
  RegionState probe;
  const RegionOptions options = open_memory(memory, probe, "range_of");
  const auto start = reinterpret_cast<std::uintptr_t>(options.bytes.data());
  RegionRef region = region_at(*self.state, start, options.bytes.size());
  if (!region) {
    raise(Status(Code::kNotFound, "range_of: no region of agent '" + self.state->name + "' holds this memory")
              .with_advice("register it by add_region, or make it by empty"));
  }
  const auto base = reinterpret_cast<std::uintptr_t>(region->region.bytes().data());
  LocalRange range = region->region.range(start - base, options.bytes.size());
  return {std::move(region), std::move(range)};
}

void bind_memory(nb::module_& module) {
  nb::class_<RegionHandle>(
      module, "Region", nb::type_slots(kRegionSlots),
      "Registered memory of an agent. Has the buffer protocol: memoryview(region) views its bytes.")
      .def_prop_ro("name", [](const RegionHandle& self) { return text_of(self.state->region.name()); })
      .def_prop_ro("size", [](const RegionHandle& self) { return self.state->region.size(); })
      .def_prop_ro(
          "address",
          [](const RegionHandle& self) { return reinterpret_cast<std::uintptr_t>(self.state->region.bytes().data()); })
      .def_prop_ro("rights", [](const RegionHandle& self) { return text_of_rights(self.state->region.rights()); })
      .def_prop_ro("device", [](const RegionHandle& self) { return text_of(to_string(self.state->region.device())); })
      .def_prop_ro("index", [](const RegionHandle& self) { return self.state->region.index(); })
      .def_prop_ro("writable", [](const RegionHandle& self) { return self.state->writable; })
      .def_prop_ro("huge_pages", [](const RegionHandle& self) { return self.state->region.huge_pages(); })
      .def_prop_ro(
          "mappable", [](const RegionHandle& self) { return self.state->region.mappable().ok(); },
          "Whether peers of this host can map it: allocated memory, and what was adopted.")
      .def_prop_ro(
          "why_not_mappable",
          [](const RegionHandle& self) {
            const Status status = self.state->region.mappable();
            return status.ok() ? std::optional<nb::str>() : text_of(status.to_string());
          },
          "None for memory that is mappable.")
      .def("__len__", [](const RegionHandle& self) { return self.state->region.size(); })
      .def("range", &range, nb::arg("offset") = 0, nb::arg("size") = nb::none(), "A part of it, for plans.")
      .def("table", &local_table, nb::arg("blocks"),
           "A prepared list of ranges: blocks of that many bytes over the whole region, or an array or list of "
           "(offset, size) or (offset, size, stride, count).")
      .def_prop_ro(
          "listed", [](const RegionHandle& self) { return self.state->region.listed(); },
          "Whether the agent's card tells of it.")
      .def("grant", &make_grant, nb::arg("offset") = 0, nb::arg("size") = nb::none(), nb::kw_only(),
           nb::arg("rights") = "read_write", nb::arg("expiry").none(), nb::arg("peer") = nb::none(),
           nb::arg("single_use") = false,
           "The right to a part of it, as bytes for a peer. `expiry`: seconds, or None: until it is revoked or the "
           "region is closed. `peer`: the only one that may use it. `single_use`: for one transfer.")
      .def("close", &close_region, nb::arg("timeout") = nb::none(),
           "Refuses new uses, revokes its grants, and waits until nobody touches the memory any more.")
      .def("__enter__", [](nb::handle self) { return nb::borrow(self); })
      .def(
          "__exit__", [](const RegionHandle& self, nb::args) { close_region(self, nb::none()); }, nb::arg("exc_info"));

  nb::class_<RangeHandle>(module, "Range", "A part of a region of this agent.")
      .def_prop_ro("region", [](const RangeHandle& self) { return RegionHandle{self.region}; })
      .def_prop_ro("offset", [](const RangeHandle& self) { return self.range.offset; })
      .def_prop_ro("size", [](const RangeHandle& self) { return self.range.size; });

  nb::class_<RemoteRangeHandle>(module, "RemoteRange", "A part of a region of a peer.")
      .def_prop_ro("region", [](const RemoteRangeHandle& self) { return text_of(region_info(self.range).name); })
      .def_prop_ro("rights",
                   [](const RemoteRangeHandle& self) { return text_of_rights(region_info(self.range).rights); })
      .def_prop_ro("offset", [](const RemoteRangeHandle& self) { return self.range.offset; })
      .def_prop_ro("size", [](const RemoteRangeHandle& self) { return self.range.size; });

  nb::class_<TableHandle>(module, "Table", "A prepared, immutable list of ranges of one region, by index.")
      .def("__len__", [](const TableHandle& self) { return self.table.size(); })
      .def("__getitem__", &table_at, nb::arg("index"), "(offset, size) of one range.")
      .def_prop_ro("is_remote", [](const TableHandle& self) { return self.table.is_remote(); })
      .def(
          "encode",
          [](const TableHandle& self) {
            const std::string bytes = take(outside([&] { return self.table.encode(); }));
            return nb::bytes(bytes.data(), bytes.size());
          },
          "Its shape as bytes, for Peer.import_table at a peer.");
}

}  // namespace hawser::api::python
