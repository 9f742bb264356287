// The C++ face of remote buffers, for python/hawser/rdma.py, which is what users see.

#include <hawser/rdma.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <utility>

#include "api/python/let_go.h"
#include "api/python/objects.h"
#include "base/inside.h"

namespace hawser::api::python {
namespace {

/// Keeps an object of Python's alive for C++, which lets go of it on whatever thread, without waiting. Once the
/// interpreter is leaving, nothing is let go any more.
std::shared_ptr<const void> keeper_of(nb::handle object) {
  object.inc_ref();
  return {static_cast<const void*>(object.ptr()),
          [](const void* kept) { LetGo::later(static_cast<PyObject*>(const_cast<void*>(kept))); }};
}

/// The end of a call that may have let go of something.
template <typename Value>
Value let_go_and(Value value) {
  LetGo::now();
  return value;
}

struct RdmaMemoryHandle {
  explicit RdmaMemoryHandle(rdma::LocalMemory its) : memory(std::move(its)) {}
  RdmaMemoryHandle(RdmaMemoryHandle&&) noexcept = default;
  RdmaMemoryHandle& operator=(RdmaMemoryHandle&&) = delete;
  ~RdmaMemoryHandle() {
    if (!memory.valid()) return;
    outside([&] {  // The last handle closes the registration.
      memory = rdma::LocalMemory();
      return 0;
    });
    LetGo::now();
  }
  rdma::LocalMemory memory;
};

struct RdmaHandle {
  RdmaHandle(AgentRef its_agent, rdma::Backend its) : agent(std::move(its_agent)), backend(std::move(its)) {}
  RdmaHandle(RdmaHandle&&) noexcept = default;
  RdmaHandle& operator=(RdmaHandle&&) = delete;
  ~RdmaHandle() { close(); }
  void close() {
    if (!backend) return;
    outside([&] {
      backend.reset();
      return 0;
    });
    LetGo::now();
  }
  AgentRef agent;
  std::optional<rdma::Backend> backend;
};

rdma::Backend& backend_of(RdmaHandle& self) {
  (void)agent_of(self.agent);
  if (!self.backend) raise_invalid("the rdma backend of agent '" + self.agent->name + "' is closed");
  return *self.backend;
}

RdmaHandle open(const AgentHandle& agent) {
  Agent& its = agent_of(agent.state);
  Result<rdma::Backend> made = outside([&] { return rdma::Backend::open(its); });
  return {agent.state, take(std::move(made))};
}

RdmaMemoryHandle memory_at(RdmaHandle& self, std::uintptr_t address, std::size_t size, nb::handle owner, bool writable,
                           std::optional<std::uint32_t> gpu) {
  rdma::Backend& backend = backend_of(self);
  const std::span<std::byte> bytes(reinterpret_cast<std::byte*>(address), size);
  std::shared_ptr<const void> keeper;
  if (!owner.is_none()) keeper = keeper_of(owner);
  Device device;
  if (gpu) device = {.kind = DeviceKind::kCuda, .ordinal = *gpu};
  Result<rdma::LocalMemory> made =
      outside([&] { return backend.local_memory(bytes, std::move(keeper), writable, device); });
  return RdmaMemoryHandle(take(std::move(made)));
}

/// (kind, memory or None, buffer, value, expected, notify or None, what to keep alive)
rdma::Op op_of(nb::handle from, std::vector<Bytes>& texts) {
  constexpr std::size_t kFields = 7;
  if (!PyTuple_Check(from.ptr()) || nb::len(from) != kFields) raise_invalid("submit: an operation is a tuple of seven");
  const auto fields = nb::borrow<nb::tuple>(from);
  rdma::Op op{.type = static_cast<rdma::OpType>(nb::cast<int>(fields[0]))};
  if (!fields[1].is_none()) {
    const rdma::LocalMemory& memory = nb::cast<const RdmaMemoryHandle&>(fields[1]).memory;
    // The owner of the bytes goes after the registration: members end in the order of last to first.
    using Kept = std::pair<std::shared_ptr<const void>, std::shared_ptr<rdma::MemoryCore>>;
    auto kept = std::make_shared<Kept>(keeper_of(fields[6]), core_of(memory));
    rdma::MemoryCore* const core = kept->second.get();
    op.local = rdma::LocalMemory({std::move(kept), core}, memory.offset(), memory.size());
  }
  op.remote = nb::cast<const rdma::RemoteBuffer&>(fields[2]);
  op.value = nb::cast<std::uint64_t>(fields[3]);
  op.expected = nb::cast<std::uint64_t>(fields[4]);
  if (!fields[5].is_none()) op.notify = texts.emplace_back(fields[5], "notify").view;
  return op;
}

rdma::Batch submit(RdmaHandle& self, const nb::list& ops, nb::handle timeout) {
  rdma::Backend& backend = backend_of(self);
  constexpr Duration kPatience = std::chrono::seconds(60);
  const Duration patience = duration_of(timeout, "timeout", kPatience);
  std::vector<Bytes> texts;
  std::vector<rdma::Op> all;
  texts.reserve(nb::len(ops));
  all.reserve(nb::len(ops));
  for (nb::handle each : ops) all.push_back(op_of(each, texts));
  Result<rdma::Batch> made = outside([&] {
    Result<rdma::Batch> one = backend.submit(all, patience);
    all.clear();  // Operations that are over go without the lock held twice.
    return one;
  });
  LetGo::now();
  return take(std::move(made));
}

rdma::Batch release(RdmaHandle& self, const rdma::RemoteBuffer& buffer, nb::handle timeout) {
  rdma::Backend& backend = backend_of(self);
  constexpr Duration kPatience = std::chrono::seconds(60);
  const Duration patience = duration_of(timeout, "timeout", kPatience);
  return take(outside([&] { return backend.release(buffer, patience); }));
}

/// False: the time is over.
bool wait(const rdma::Batch& self, nb::handle timeout) {
  if (self.done()) return let_go_and(true);
  const std::optional<bool> over =
      wait_in_slices(duration_of(timeout, "timeout", Duration::max()), [&](Duration slice) {
        (void)self.wait(slice);
        return self.done();
      });
  if (!over) throw nb::python_error();
  return let_go_and(*over);
}

nb::list outcomes(const rdma::Batch& self) {
  nb::list all;
  for (const rdma::Outcome& one : self.outcomes()) {
    all.append(nb::make_tuple(error_object(one.status), one.bytes, one.previous));
  }
  return all;
}

nb::tuple transport_of(RdmaHandle& self, const rdma::RemoteBuffer& buffer) {
  rdma::Backend& backend = backend_of(self);
  const rdma::TransportInfo info = take(outside([&] { return backend.transport_info(buffer); }));
  return nb::make_tuple(text_of(info.backend), text_of(rdma::to_string(info.level)));
}

nb::object explain(RdmaHandle& self, const rdma::RemoteBuffer& buffer, const RdmaMemoryHandle* memory) {
  rdma::Backend& backend = backend_of(self);
  const rdma::LocalMemory local = memory == nullptr ? rdma::LocalMemory() : memory->memory;
  return text_of(outside([&] { return backend.explain(buffer, local); }));
}

rdma::RemoteBuffer request_buffer(RdmaHandle& self, std::uint64_t id, const RdmaMemoryHandle& memory,
                                  const std::string& rights, const std::string& name) {
  rdma::Backend& backend = backend_of(self);
  const rdma::Lending lending{.rights = rights_of(rights), .name = name};
  return take(outside([&] { return backend.request_buffer(id, memory.memory, lending); }));
}

rdma::RemoteBuffer renew(RdmaHandle& self, const rdma::RemoteBuffer& buffer, nb::handle timeout) {
  rdma::Backend& backend = backend_of(self);
  constexpr Duration kPatience = std::chrono::seconds(60);
  const Duration patience = duration_of(timeout, "timeout", kPatience);
  return take(outside([&] { return backend.renew(buffer, patience); }));
}

void bind_handles(nb::module_& module) {
  nb::class_<RdmaMemoryHandle>(module, "RdmaMemory", "Registered memory of this process, for operations.")
      .def_prop_ro("size", [](const RdmaMemoryHandle& self) { return self.memory.size(); })
      .def_prop_ro("writable", [](const RdmaMemoryHandle& self) { return self.memory.writable(); });

  nb::class_<rdma::RemoteBuffer>(module, "RdmaBuffer", "The handle of a buffer, or of a part of one.")
      .def_prop_ro("id", [](const rdma::RemoteBuffer& self) { return self.id(); })
      .def_prop_ro("offset", [](const rdma::RemoteBuffer& self) { return self.offset(); })
      .def_prop_ro("size", [](const rdma::RemoteBuffer& self) { return self.size(); })
      .def_prop_ro("owner", [](const rdma::RemoteBuffer& self) { return text_of(self.owner()); })
      .def_prop_ro("name", [](const rdma::RemoteBuffer& self) { return text_of(self.name()); })
      .def_prop_ro("incarnation",
                   [](const rdma::RemoteBuffer& self) { return text_of(to_string(self.owner_incarnation())); })
      .def_prop_ro("contexts",
                   [](const rdma::RemoteBuffer& self) {
                     nb::list names;
                     for (const std::string& name : self.contexts()) names.append(text_of(name));
                     return names;
                   })
      .def(
          "slice",
          [](const rdma::RemoteBuffer& self, Whole<std::uint64_t, "slice: offset"> offset,
             Whole<std::uint64_t, "slice: size"> size) { return take(self.slice(offset, size)); },
          nb::arg("offset"), nb::arg("size"))
      .def("encode",
           [](const rdma::RemoteBuffer& self) {
             const std::string bytes = self.encode();
             return nb::bytes(bytes.data(), bytes.size());
           })
      .def_static(
          "decode",
          [](nb::handle bytes) { return take(rdma::RemoteBuffer::decode(Bytes(bytes, "decode: the handle").view)); },
          nb::arg("bytes"));

  nb::class_<rdma::Bell>(module, "RdmaBell", "Where ended batches are told, for an event loop.")
      .def(nb::new_([] { return take(rdma::Bell::open()); }))
      .def_prop_ro("fd", [](const rdma::Bell& self) { return self.fd(); })
      .def("take", [](rdma::Bell& self) { return let_go_and(self.take()); });
}

}  // namespace

void bind_rdma(nb::module_& module) {
  bind_handles(module);
  module.def(
      "address_of",
      [](nb::handle memory) {
        Py_buffer view;
        if (PyObject_GetBuffer(memory.ptr(), &view, PyBUF_ND) != 0) throw nb::python_error();
        const auto address = reinterpret_cast<std::uintptr_t>(view.buf);
        PyBuffer_Release(&view);
        return address;
      },
      nb::arg("memory"), "Where a contiguous buffer's bytes are.");
  nb::class_<rdma::Batch>(module, "RdmaBatch", "Operations under way. Dropping it leaves them running.")
      .def_prop_ro("done", [](const rdma::Batch& self) { return let_go_and(self.done()); })
      .def_prop_ro("error", [](const rdma::Batch& self) { return let_go_and(error_object(self.status())); })
      .def_prop_ro("outcomes", &outcomes, "(error or None, bytes, what an atomic found) of each.")
      .def("wait", &wait, nb::arg("timeout") = nb::none())
      .def("cancel",
           [](const rdma::Batch& self) {
             outside([&] {
               self.cancel();
               return 0;
             });
           })
      .def(
          "tell",
          [](const rdma::Batch& self, const rdma::Bell& bell, std::uint64_t cookie) {
            return let_go_and(self.tell(bell, cookie));
          },
          nb::arg("bell"), nb::arg("cookie"));

  nb::class_<RdmaHandle>(module, "RdmaBackend", "Remote buffers of one agent.")
      .def(nb::new_(&open), nb::arg("agent"))
      .def("memory_at", &memory_at, nb::arg("address"), nb::arg("size"), nb::arg("owner").none(), nb::arg("writable"),
           nb::arg("gpu") = nb::none())
      .def("request_buffer", &request_buffer, nb::arg("id"), nb::arg("memory"), nb::arg("rights") = "read_write",
           nb::arg("name") = "")
      .def("renew", &renew, nb::arg("buffer"), nb::arg("timeout") = nb::none())
      .def("explain", &explain, nb::arg("buffer"), nb::arg("memory").none() = nb::none())
      .def(
          "is_local",
          [](RdmaHandle& self, const rdma::RemoteBuffer& buffer) {
            return backend_of(self).local_of(buffer).has_value();
          },
          nb::arg("buffer"))
      .def_prop_ro("buffer_count", [](RdmaHandle& self) { return backend_of(self).buffer_count(); })
      .def("submit", &submit, nb::arg("ops"), nb::arg("timeout") = nb::none())
      .def("release", &release, nb::arg("buffer"), nb::arg("timeout") = nb::none())
      .def("transport_of", &transport_of, nb::arg("buffer"))
      .def("close", [](RdmaHandle& self) { self.close(); });
}

}  // namespace hawser::api::python
