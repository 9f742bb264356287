// Files as regions, and what stands under a path.

#include <nanobind/stl/string.h>

#include "api/python/objects.h"

namespace hawser::api::python {
namespace {

/// A file as a program may name it.
struct FileName {
  int descriptor = -1;
  std::string path;
};

FileName file_name(nb::handle file, const char* call) {
  nb::object number;
  if (PyLong_Check(file.ptr()) && !PyBool_Check(file.ptr())) {
    number = nb::borrow(file);
  } else if (!nb::hasattr(file, "__fspath__") && nb::hasattr(file, "fileno")) {
    number = file.attr("fileno")();
  }
  if (number.is_valid()) {
    int descriptor = -1;
    if (!nb::try_cast(number, descriptor) || descriptor < 0) {
      raise_invalid(std::string(call) + ": the number is no descriptor of a file");
    }
    return {.descriptor = descriptor, .path = {}};
  }
  return {.descriptor = -1,
          .path = path_of(file, call, "the file is neither a path nor a descriptor nor an open file",
                          "give a str, a pathlib.Path, an int or what open() gives; a path holds no zero byte")};
}

DirectIo direct_of(const std::string& text) {
  if (text == "auto") return DirectIo::kAuto;
  if (text == "off") return DirectIo::kOff;
  if (text == "require") return DirectIo::kRequire;
  raise_invalid("add_file: direct = '" + text + "'", "one of auto, off, require");
}

FileInfo query(nb::handle file) {
  const FileName name = file_name(file, "query_file");
  return take(outside([&] { return name.descriptor >= 0 ? query_file(name.descriptor) : query_file(name.path); }));
}

}  // namespace

RegionHandle add_file(const AgentHandle& self, nb::handle file, const std::string& name,
                      Whole<std::uint64_t, "add_file: size"> size, const std::string& rights, bool create,
                      const std::string& direct, bool listed) {
  Agent& its = agent_of(self.state);
  FileName which = file_name(file, "add_file");
  if (create && which.descriptor >= 0) raise_invalid("add_file: create goes with a path only");
  const FileOptions options{.name = name,
                            .descriptor = which.descriptor,
                            .path = std::move(which.path),
                            .create = create,
                            .size = size,
                            .rights = rights_of(rights),
                            .direct = direct_of(direct),
                            .listed = listed};
  Result<Region> made = outside([&] { return its.add_file(options); });
  auto state = std::make_shared<RegionState>();
  state->region = take(std::move(made));
  state->agent = self.state;  // It has no address, so range_of cannot find it.
  state->writable = allows(options.rights, Rights::kWrite);
  return {std::move(state)};
}

void bind_files(nb::module_& module) {
  nb::class_<FileInfo>(module, "FileInfo", "What stands under a path or behind a descriptor.")
      .def_prop_ro("exists", [](const FileInfo& self) { return self.exists; })
      .def_prop_ro("size", [](const FileInfo& self) { return self.size; })
      .def_prop_ro(
          "mode", [](const FileInfo& self) { return self.mode; }, "As in os.stat: kind and permissions.")
      .def_prop_ro(
          "mtime_ns", [](const FileInfo& self) { return self.mtime_ns; }, "Since 1970.");
  module.def("query_file", &query, nb::arg("file"),
             "Of a path, a descriptor or an open file. One that is not there is an answer: `exists` is False.");
}

}  // namespace hawser::api::python
