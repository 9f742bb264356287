// Lists of descriptors: from tuples, from arrays of rows without a loop in Python, and as bytes.
//
// Pickled form, little-endian: u32 magic with the kind of list, u32 memory type, u64 count, 24 bytes of each
// descriptor; then, in lists for registration, for each descriptor u64 length and bytes of its meta information.

#include <nanobind/operators.h>
#include <nanobind/stl/string.h>

#include <cstring>

#include "api/nixl_python/objects.h"

namespace hawser::api::nixl_python {
namespace {

using compat::Desc;
using compat::MemType;
using compat::RegDesc;

constexpr std::uint32_t kXferMagic = 0x4c585748, kRegMagic = 0x4c525748;  // "HWXL", "HWRL"

std::uint64_t number_of(nb::handle from) {
  const nb::object index = nb::steal(PyNumber_Index(from.ptr()));  // Takes numpy's integers, too.
  if (!index.is_valid()) throw nb::python_error();
  const std::uint64_t number = PyLong_AsUnsignedLongLong(index.ptr());
  if (number == static_cast<std::uint64_t>(-1) && PyErr_Occurred() != nullptr) throw nb::python_error();
  return number;
}

nb::tuple tuple_of(nb::handle from, std::size_t size) {
  if (!PyTuple_Check(from.ptr()) && !PyList_Check(from.ptr())) throw nb::type_error("a descriptor must be a tuple");
  if (nb::len(from) != size) {
    throw nb::value_error(("Each descriptor tuple must have exactly " + std::to_string(size) + " elements").c_str());
  }
  return nb::steal<nb::tuple>(PySequence_Tuple(from.ptr()));
}

void read(nb::handle from, Desc& to) {
  const nb::tuple row = tuple_of(from, 3);
  to = {number_of(row[0]), number_of(row[1]), number_of(row[2])};
}

void read(nb::handle from, RegDesc& to) {
  const nb::tuple row = tuple_of(from, 4);
  to = RegDesc(number_of(row[0]), number_of(row[1]), number_of(row[2]),
               std::string(Text(row[3], "meta information").view()));
}

nb::tuple write(const Desc& from) { return nb::make_tuple(from.addr, from.len, from.dev); }
nb::tuple write(const RegDesc& from) { return nb::make_tuple(from.addr, from.len, from.dev, bytes_of(from.meta)); }

/// Before a list is changed: BufferError while another thread reads it, as of a bytearray that is lent.
template <typename List>
List& changeable(List& holder) {
  if (holder.readers > 0) throw nb::buffer_error("the list is read by a call in another thread");
  return holder;
}

/// Rows as they lie in memory: one copy.
void fill(compat::XferDescList& list, std::span<const std::uint64_t> rows) {
  list = compat::XferDescList(list.type(), {reinterpret_cast<const Desc*>(rows.data()), rows.size() / 3});
}

void fill(compat::RegDescList& list, std::span<const std::uint64_t> rows) {
  list.reserve(rows.size() / 3);
  for (std::size_t i = 0; i + 2 < rows.size(); i += 3) list.add(RegDesc(rows[i], rows[i + 1], rows[i + 2]));
}

/// Arguments of constructors after the memory type: none, a count, tuples, or an array of rows.
template <typename List>
void fill_from(List& list, nb::handle from) {
  if (from.is_none()) return;
  if (PyLong_Check(from.ptr())) {
    constexpr std::uint64_t kMax = 1u << 28;
    const std::uint64_t count = number_of(from);
    if (count > kMax) throw nb::value_error("the list is too long");
    outside_for(count, [&] { list.resize(static_cast<std::size_t>(count)); });
    return;
  }
  if (PyList_Check(from.ptr()) || PyTuple_Check(from.ptr())) {
    list.reserve(nb::len(from));
    for (nb::handle item : nb::iter(from)) {
      typename std::remove_cvref_t<decltype(*list.begin())> one;
      read(item, one);
      list.add(std::move(one));
    }
    return;
  }
  nb::object owner;
  const std::span<const std::uint64_t> rows = rows_of(from, 3, owner);
  outside_for(rows.size(), [&] { fill(list, rows); });
}

std::size_t position(std::int64_t index, std::size_t size) {
  const std::int64_t at = index < 0 ? index + static_cast<std::int64_t>(size) : index;
  if (at < 0 || at >= static_cast<std::int64_t>(size)) throw nb::index_error("Index is out of range");
  return static_cast<std::size_t>(at);
}

void put(std::string& out, const void* data, std::size_t size) { out.append(static_cast<const char*>(data), size); }

struct Reader {
  std::string_view rest;
  void get(void* to, std::size_t size) {
    if (rest.size() < size) throw nb::value_error("this is no pickled descriptor list");
    std::memcpy(to, rest.data(), size);
    rest.remove_prefix(size);
  }
};

std::string head(std::uint32_t magic, MemType type, std::uint64_t count) {
  std::string out;
  const std::uint32_t its_type = static_cast<std::uint32_t>(type);
  put(out, &magic, sizeof magic);
  put(out, &its_type, sizeof its_type);
  put(out, &count, sizeof count);
  return out;
}

/// The type and the number of descriptors, all of which are there.
std::pair<MemType, std::size_t> read_head(Reader& from, std::uint32_t magic) {
  std::uint32_t its_magic = 0, type = 0;
  std::uint64_t count = 0;
  from.get(&its_magic, sizeof its_magic);
  from.get(&type, sizeof type);
  from.get(&count, sizeof count);
  if (its_magic != magic || type > static_cast<std::uint32_t>(MemType::kFile) ||
      count > from.rest.size() / sizeof(Desc)) {
    throw nb::value_error("this is no pickled descriptor list");
  }
  return {static_cast<MemType>(type), static_cast<std::size_t>(count)};
}

std::string encode(const compat::XferDescList& list) {
  std::string out = head(kXferMagic, list.type(), list.size());
  put(out, list.span().data(), list.size() * sizeof(Desc));
  return out;
}

std::string encode(const compat::RegDescList& list) {
  std::string out = head(kRegMagic, list.type(), list.size());
  for (const RegDesc& one : list) put(out, static_cast<const Desc*>(&one), sizeof(Desc));
  for (const RegDesc& one : list) {
    const std::uint64_t size = one.meta.size();
    put(out, &size, sizeof size);
    out += one.meta;
  }
  return out;
}

void decode(std::string_view bytes, compat::XferDescList& list) {
  Reader from{bytes};
  const auto [type, count] = read_head(from, kXferMagic);
  list = compat::XferDescList(type);
  list.resize(count);
  if (count > 0) from.get(&*list.begin(), count * sizeof(Desc));
}

void decode(std::string_view bytes, compat::RegDescList& list) {
  Reader from{bytes};
  const auto [type, count] = read_head(from, kRegMagic);
  list = compat::RegDescList(type);
  list.resize(count);
  for (RegDesc& one : list) from.get(static_cast<Desc*>(&one), sizeof(Desc));
  for (RegDesc& one : list) {
    std::uint64_t size = 0;
    from.get(&size, sizeof size);
    if (size > from.rest.size()) throw nb::value_error("this is no pickled descriptor list");
    one.meta = from.rest.substr(0, static_cast<std::size_t>(size));
    from.rest.remove_prefix(static_cast<std::size_t>(size));
  }
}

template <typename Holder>
void bind_pickling(nb::class_<Holder>& type) {
  using List = decltype(Holder::list);
  type.def("__getstate__", [](const Holder& self) {
    const Reading reading(self);
    return bytes_of(outside_for(self.list.size(), [&] { return encode(self.list); }));
  });
  type.def("__setstate__", [](Holder& self, nb::bytes state) {
    List list;
    const std::string_view bytes(state.c_str(), state.size());
    outside_for(bytes.size(), [&] { decode(bytes, list); });
    new (&self) Holder{.list = std::move(list)};
  });
}

/// Methods of both typed lists.
template <typename Holder>
nb::class_<Holder> bind_list(nb::module_& module, const char* name, const char* doc) {
  using List = decltype(Holder::list);
  using One = std::remove_cvref_t<decltype(*std::declval<List>().begin())>;
  nb::class_<Holder> type(module, name, doc);
  type.def(
      "__init__",
      [](Holder* self, MemType mem, nb::handle descs) {
        List list(mem);
        fill_from(list, descs);
        new (self) Holder{.list = std::move(list)};
      },
      nb::arg("type"), nb::arg("descs") = nb::none());
  type.def("getType", [](const Holder& self) { return self.list.type(); });
  type.def("descCount", [](const Holder& self) { return self.list.size(); });
  type.def("isEmpty", [](const Holder& self) { return self.list.empty(); });
  type.def("__len__", [](const Holder& self) { return self.list.size(); });
  type.def(
      "__bool__", [](const Holder&) { return true; }, "As NIXL's: a list is true, also when it is empty.");
  type.def("__eq__", [](const Holder& self, nb::handle other) {
    const Holder* its = nullptr;
    if (!nb::try_cast(other, its) || its == nullptr) return false;
    const Reading reading_self(self), reading_other(*its);
    return outside_for(self.list.size(), [&] { return its->list == self.list; });
  });
  type.def("__getitem__", [](const Holder& self, std::int64_t index) {
    return write(self.list.span()[position(index, self.list.size())]);
  });
  type.def("__setitem__", [](Holder& self, std::int64_t index, nb::handle desc) {
    One one;
    read(desc, one);
    (void)changeable(self).list.set(position(index, self.list.size()), std::move(one));
  });
  for (const char* add : {"addDesc", "append"}) {
    type.def(
        add,
        [](Holder& self, nb::handle desc) {
          One one;
          read(desc, one);
          changeable(self).list.add(std::move(one));
        },
        nb::arg("desc"));
  }
  type.def(
      "index",
      [](const Holder& self, nb::handle desc) {
        One one;
        read(desc, one);
        const std::size_t at = self.list.index_of(one);
        if (at == self.list.size()) raise(compat::NixlCode::kNotFound, "index: the list has no such descriptor");
        return at;
      },
      nb::arg("desc"));
  type.def(
      "remDesc",
      [](Holder& self, std::int64_t index) { (void)changeable(self).list.remove(position(index, self.list.size())); },
      nb::arg("index"));
  type.def("clear", [](Holder& self) { changeable(self).list.clear(); });
  type.def("print", [](const Holder& self) { nb::print(str_of(compat::to_string(self.list))); });
  bind_pickling(type);
  type.attr("__hash__") = nb::none();
  return type;
}

void read_remote(nb::handle from, std::pair<Desc, std::string>& to) {
  const nb::tuple row = tuple_of(from, 4);
  to = {{number_of(row[0]), number_of(row[1]), number_of(row[2])}, std::string(Text(row[3], "remote agent").view())};
}

void fill_remote(RemoteList& list, nb::handle descs) {
  if (descs.is_none()) return;
  if (PyLong_Check(descs.ptr())) {
    list.all.resize(static_cast<std::size_t>(std::min<std::uint64_t>(number_of(descs), 1u << 24)));
    return;
  }
  for (nb::handle item : nb::iter(descs)) read_remote(item, list.all.emplace_back());
}

nb::tuple write_remote(const std::pair<Desc, std::string>& one) {
  return nb::make_tuple(one.first.addr, one.first.len, one.first.dev, str_of(one.second));
}

void bind_remote_list(nb::module_& module) {
  nb::class_<RemoteList> type(module, "nixlRemoteDList", "Descriptors of several agents, for memory views.");
  type.def(
      "__init__",
      [](RemoteList* self, MemType mem, nb::handle descs) {
        RemoteList list{.type = mem, .all = {}};
        fill_remote(list, descs);
        new (self) RemoteList(std::move(list));
      },
      nb::arg("type"), nb::arg("descs") = nb::none());
  type.def("getType", [](const RemoteList& self) { return self.type; });
  type.def("descCount", [](const RemoteList& self) { return self.all.size(); });
  type.def("isEmpty", [](const RemoteList& self) { return self.all.empty(); });
  type.def("__len__", [](const RemoteList& self) { return self.all.size(); });
  type.def("__eq__", [](const RemoteList& self, nb::handle other) {
    const RemoteList* its = nullptr;
    return nb::try_cast(other, its) && its != nullptr && its->type == self.type && its->all == self.all;
  });
  type.def("__getitem__", [](const RemoteList& self, std::int64_t index) {
    return write_remote(self.all[position(index, self.all.size())]);
  });
  type.def("__setitem__", [](RemoteList& self, std::int64_t index, nb::handle desc) {
    read_remote(desc, self.all[position(index, self.all.size())]);
  });
  for (const char* add : {"addDesc", "append"}) {
    type.def(
        add,
        [](RemoteList& self, nb::handle desc) {
          std::pair<Desc, std::string> one;
          read_remote(desc, one);
          self.all.push_back(std::move(one));
        },
        nb::arg("desc"));
  }
  type.def(
      "remDesc",
      [](RemoteList& self, std::int64_t index) {
        self.all.erase(self.all.begin() + static_cast<std::ptrdiff_t>(position(index, self.all.size())));
      },
      nb::arg("index"));
  type.def("clear", [](RemoteList& self) { self.all.clear(); });
  type.def("print", [](const RemoteList& self) {
    nb::print(str_of("remote list of " + std::to_string(self.all.size()) + " descriptors"));
  });
  type.attr("__hash__") = nb::none();
}

}  // namespace

void bind_lists(nb::module_& module) {
  bind_list<XferList>(module, "nixlXferDList", "Memory by (address, length, device), for transfers.");
  bind_list<RegList>(module, "nixlRegDList", "Memory by (address, length, device, meta information), for registration.")
      .def("trim", [](const RegList& self) { return XferList{.list = compat::trim(self.list)}; });
  bind_remote_list(module);
}

}  // namespace hawser::api::nixl_python
