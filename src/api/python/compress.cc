// Compressors of an all_reduce.

#include <hawser/compress.h>
#include <nanobind/stl/string.h>

#include <vector>

#include "api/python/objects.h"

namespace hawser::api::python {
namespace {

nb::bytes residual(const Compressor& self) {
  const std::vector<float> all = self.residual();
  return nb::bytes(reinterpret_cast<const char*>(all.data()), all.size() * sizeof(float));
}

}  // namespace

void bind_compressors(nb::module_& module) {
  nb::class_<Compressor>(module, "Compressor",
                         "Packs the elements of one tensor for an all_reduce, and keeps what packing left out for the "
                         "next one. Each rank makes one for each tensor, all in the same way.")
      .def_static(
          "top_k", [](double ratio, bool feedback) { return take(Compressor::top_k(ratio, feedback)); },
          nb::arg("ratio"), nb::kw_only(), nb::arg("feedback") = true,
          "The elements of the largest magnitude, that part of them.")
      .def_static(
          "random_k",
          [](double ratio, Whole<std::uint64_t, "random_k: seed"> seed, bool feedback) {
            return take(Compressor::random_k(ratio, seed, feedback));
          },
          nb::arg("ratio"), nb::arg("seed") = 0, nb::kw_only(), nb::arg("feedback") = true,
          "That part of the elements, drawn by the seed, which is the same on all ranks.")
      .def_static(
          "int8", [](bool feedback) { return Compressor::int8(feedback); }, nb::kw_only(), nb::arg("feedback") = true,
          "8 bits for each element, and a scale for each 256 of them.")
      .def_static(
          "fp8",
          [](const std::string& type, bool feedback) {
            const bool is_known = type == "e4m3" || type == "e5m2";
            if (!is_known) raise_invalid("fp8: '" + type + "' is none of e4m3 and e5m2");
            return take(Compressor::fp8(type == "e4m3" ? DataType::kFloat8E4M3 : DataType::kFloat8E5M2, feedback));
          },
          nb::arg("type") = "e4m3", nb::kw_only(), nb::arg("feedback") = true, "The same with floating point.")
      .def_prop_ro("name", &Compressor::name)
      .def("_residual", &residual)
      .def(
          "reset", [](Compressor& self) { check(self.reset()); },
          "Forgets what was left out, and how many calls there were; all ranks at the same place.");
}

}  // namespace hawser::api::python
