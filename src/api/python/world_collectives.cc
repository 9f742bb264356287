// Collective operations of a world, and memory that its ranks map.

#include <hawser/world.h>

#include <memory>
#include <utility>

#include "api/python/elements.h"
#include "api/python/world_handles.h"

namespace hawser::api::python {
namespace {

CollectiveOptions options_of(const WorldHandle& self, nb::handle timeout, bool reproducible = false) {
  return {.timeout = deadline_of(timeout), .reproducible = reproducible, .is_waited_for = self.waits};
}

Compressor compressor_of(nb::handle given) {
  if (given.is_none()) return {};
  if (nb::isinstance<Compressor>(given)) return nb::cast<Compressor>(given);
  raise_invalid("all_reduce: compress is no hawser.Compressor");
}

RequestHandle ibarrier(const WorldHandle& self, nb::handle timeout) {
  const CollectiveOptions options = options_of(self, timeout);
  return fly(self, {}, [&](World& world) { return world.ibarrier(options); });
}

RequestHandle iall_reduce(const WorldHandle& self, nb::handle x, const std::string& op, nb::handle out,
                          bool reproducible, nb::handle compress, nb::handle timeout) {
  const char* const call = "all_reduce";
  const Source from = out.is_none() ? readable(array_of<Array>(x, call, "x")) : array_of<Source>(x, call, "x");
  const Source to = out.is_none() ? from : readable(array_of<Array>(out, call, "out"));
  const Elements input(from, call), output(to, call);
  same_type(input, output, call);
  has_count(output, input.count, call, "out");
  const ReduceOp kind = op_of(op, call);
  CollectiveOptions options = options_of(self, timeout, reproducible);
  options.compress = compressor_of(compress);
  return fly(self, {from, to}, [&](World& world) {
    return world.iall_reduce(input.data, writable(output), input.count, input.type, kind, options);
  });
}

/// Arrays of one type that follow one another; a request for each bucket.
std::vector<RequestHandle> iall_reduce_bucketed(const WorldHandle& self, nb::handle arrays, const std::string& op,
                                                Whole<std::size_t, "all_reduce: bucket"> bucket, bool reproducible,
                                                nb::handle timeout) {
  const char* const call = "all_reduce";
  const ReduceOp kind = op_of(op, call);
  const CollectiveOptions options = options_of(self, timeout, reproducible);
  std::vector<Source> all;
  for (const nb::handle each : arrays) all.push_back(readable(array_of<Array>(each, call, "an element of x")));
  std::vector<RequestHandle> handles;
  World& world = world_of(self);
  for (std::size_t begin = 0; begin < all.size();) {
    std::vector<hawser::Tensor> tensors;
    const DataType type = Elements(all[begin], call).type;
    const std::size_t first = begin;
    for (; begin < all.size() && Elements(all[begin], call).type == type; ++begin) {
      const Elements elements(all[begin], call);
      tensors.push_back({writable(elements), elements.count});
    }
    const std::vector<Source> keep(all.begin() + static_cast<std::ptrdiff_t>(first),
                                   all.begin() + static_cast<std::ptrdiff_t>(begin));
    std::vector<Request> requests =
        outside([&] { return world.iall_reduce_bucketed(tensors, type, kind, bucket, options); });
    for (Request& request : requests) handles.emplace_back(self.state, Flight{std::move(request), keep, {}});
  }
  return handles;
}

RequestHandle ireduce(const WorldHandle& self, nb::handle x, Whole<std::uint32_t, "reduce: root"> root,
                      const std::string& op, nb::handle timeout) {
  const Source array = readable(array_of<Array>(x, "reduce", "x"));
  const Elements elements(array, "reduce");
  const ReduceOp kind = op_of(op, "reduce");
  const CollectiveOptions options = options_of(self, timeout);
  return fly(self, {array}, [&](World& world) {
    void* const out = world.rank() == root ? writable(elements) : nullptr;
    return world.ireduce(elements.data, out, elements.count, elements.type, kind, root, options);
  });
}

RequestHandle ibroadcast(const WorldHandle& self, nb::handle x, Whole<std::uint32_t, "broadcast: root"> root,
                         nb::handle timeout) {
  const Source array = readable(array_of<Array>(x, "broadcast", "x"));
  const Elements elements(array, "broadcast");
  const CollectiveOptions options = options_of(self, timeout);
  return fly(self, {array}, [&](World& world) {
    return world.ibroadcast(writable(elements), elements.count, elements.type, root, options);
  });
}

using Counts = MaybeWholes<std::uint64_t, "a count of elements">;

RequestHandle iall_gather(const WorldHandle& self, nb::handle out, nb::handle x, const Counts& counts,
                          nb::handle timeout) {
  const char* const call = "all_gather";
  const Source to = readable(array_of<Array>(out, call, "out")), from = array_of<Source>(x, call, "x");
  const Elements output(to, call), input(from, call);
  same_type(input, output, call);
  const World& world = world_of(self);
  const std::vector<std::uint64_t> all = counts_of(counts, input.count, world.size());
  has_count(output, sum(all), call, "out");
  if (all.size() == world.size()) has_count(input, all[world.rank()], call, "x");
  const CollectiveOptions options = options_of(self, timeout);
  return fly(self, {to, from},
             [&](World& its) { return its.iall_gather(input.data, writable(output), all, input.type, options); });
}

RequestHandle ireduce_scatter(const WorldHandle& self, nb::handle out, nb::handle x, const std::string& op,
                              const Counts& counts, bool reproducible, nb::handle timeout) {
  const char* const call = "reduce_scatter";
  const Source to = readable(array_of<Array>(out, call, "out")), from = array_of<Source>(x, call, "x");
  const Elements output(to, call), input(from, call);
  same_type(input, output, call);
  const World& world = world_of(self);
  const std::vector<std::uint64_t> all = counts_of(counts, output.count, world.size());
  has_count(input, sum(all), call, "x");
  if (all.size() == world.size()) has_count(output, all[world.rank()], call, "out");
  const ReduceOp kind = op_of(op, call);
  const CollectiveOptions options = options_of(self, timeout, reproducible);
  return fly(self, {to, from}, [&](World& its) {
    return its.ireduce_scatter(input.data, writable(output), all, input.type, kind, options);
  });
}

RequestHandle igather(const WorldHandle& self, nb::handle out, nb::handle x, Whole<std::uint32_t, "gather: root"> root,
                      const Counts& counts, nb::handle timeout) {
  const char* const call = "gather";
  const World& world = world_of(self);
  const bool is_root = world.rank() == root;
  const Source from = array_of<Source>(x, call, "x");
  const Source to = is_root ? readable(array_of<Array>(out, call, "out")) : from;
  const Elements output(to, call), input(from, call);
  same_type(input, output, call);
  const std::vector<std::uint64_t> all = counts_of(counts, input.count, world.size());
  if (is_root) has_count(output, sum(all), call, "out");
  if (all.size() == world.size()) has_count(input, all[world.rank()], call, "x");
  const CollectiveOptions options = options_of(self, timeout);
  return fly(self, {to, from}, [&](World& its) {
    return its.igather(input.data, is_root ? writable(output) : nullptr, all, input.type, root, options);
  });
}

RequestHandle iscatter(const WorldHandle& self, nb::handle out, nb::handle x,
                       Whole<std::uint32_t, "scatter: root"> root, const Counts& counts, nb::handle timeout) {
  const char* const call = "scatter";
  const World& world = world_of(self);
  const bool is_root = world.rank() == root;
  const Source to = readable(array_of<Array>(out, call, "out"));
  const Source from = is_root ? array_of<Source>(x, call, "x") : to;
  const Elements output(to, call), input(from, call);
  same_type(input, output, call);
  const std::vector<std::uint64_t> all = counts_of(counts, output.count, world.size());
  if (is_root) has_count(input, sum(all), call, "x");
  if (all.size() == world.size()) has_count(output, all[world.rank()], call, "out");
  const CollectiveOptions options = options_of(self, timeout);
  return fly(self, {to, from}, [&](World& its) {
    return its.iscatter(is_root ? input.data : nullptr, writable(output), all, output.type, root, options);
  });
}

RequestHandle iall_to_all(const WorldHandle& self, nb::handle out, nb::handle x, const Counts& out_counts,
                          const Counts& in_counts, nb::handle timeout) {
  const char* const call = "all_to_all";
  const Source to = readable(array_of<Array>(out, call, "out")), from = array_of<Source>(x, call, "x");
  const Elements output(to, call), input(from, call);
  same_type(input, output, call);
  const std::uint32_t size = world_of(self).size();
  const auto come = out_counts ? *out_counts : counts_of({}, share(output.count, size, call, "out"), size);
  const auto go = in_counts ? *in_counts : counts_of({}, share(input.count, size, call, "x"), size);
  has_count(output, sum(come), call, "out");
  has_count(input, sum(go), call, "x");
  const CollectiveOptions options = options_of(self, timeout);
  if (!out_counts && !in_counts && input.count == output.count) {
    return fly(self, {to, from},
               [&](World& its) { return its.iall_to_all(input.data, writable(output), go[0], input.type, options); });
  }
  return fly(self, {to, from},
             [&](World& its) { return its.iall_to_all(input.data, writable(output), go, come, input.type, options); });
}

RequestHandle iscan(const WorldHandle& self, nb::handle x, const std::string& op, bool exclusive, nb::handle timeout) {
  const Source array = readable(array_of<Array>(x, "scan", "x"));
  const Elements elements(array, "scan");
  const ReduceOp kind = op_of(op, "scan");
  const CollectiveOptions options = options_of(self, timeout);
  return fly(self, {array}, [&](World& world) {
    return world.iscan(elements.data, writable(elements), elements.count, elements.type, kind, exclusive, options);
  });
}

/// Memory that the ranks of the host map. It goes with the last array that views it.
nb::object allocate_mapped(const WorldHandle& self, Whole<std::uint64_t, "allocate: size"> size) {
  struct Kept {
    Region region;
    const int forks = Exit::of_module().forks();
  };
  World& world = world_of(self);
  auto kept = std::make_unique<Kept>();
  kept->region = take(outside([&] { return world.allocate({.size = size}); }));
  std::byte* const bytes = kept->region.bytes().data();
  const nb::capsule owner(kept.release(), [](void* memory) noexcept {
    auto* const its = static_cast<Kept*>(memory);
    if (its->forks != Exit::of_module().forks()) return;  // It is the parent's.
    outside([&] {
      delete its;
      return 0;
    });
  });
  using Bytes = nb::ndarray<nb::numpy, std::uint8_t, nb::ndim<1>>;
  return nb::cast(Bytes(bytes, {static_cast<std::size_t>(size)}, owner));
}

}  // namespace

void bind_collectives(nb::class_<WorldHandle>& world) {
  world.def("_allocate", &allocate_mapped, nb::arg("size"));
  world.def_prop_ro(
      "_waiting", [](const WorldHandle& self) { return WorldHandle{.state = self.state, .waits = true}; },
      "The same rank. The caller waits for each collective as soon as it has begun it by this handle.");
  world.def("ibarrier", &ibarrier, nb::kw_only(), nb::arg("timeout") = nb::none())
      .def("iall_reduce", &iall_reduce, nb::arg("x"), nb::arg("op") = "sum", nb::arg("out") = nb::none(), nb::kw_only(),
           nb::arg("reproducible") = false, nb::arg("compress") = nb::none(), nb::arg("timeout") = nb::none())
      .def("iall_reduce_bucketed", &iall_reduce_bucketed, nb::arg("x"), nb::arg("op") = "sum",
           nb::arg("bucket") = kBucketBytes, nb::kw_only(), nb::arg("reproducible") = false,
           nb::arg("timeout") = nb::none(), "As all_reduce_bucketed; a request for each bucket, in their order.")
      .def("ireduce", &ireduce, nb::arg("x"), nb::arg("root") = 0, nb::arg("op") = "sum", nb::kw_only(),
           nb::arg("timeout") = nb::none())
      .def("ibroadcast", &ibroadcast, nb::arg("x"), nb::arg("root") = 0, nb::kw_only(), nb::arg("timeout") = nb::none())
      .def("_iall_gather", &iall_gather, nb::arg("out"), nb::arg("x"), nb::arg("counts") = nb::none(), nb::kw_only(),
           nb::arg("timeout") = nb::none())
      .def("_ireduce_scatter", &ireduce_scatter, nb::arg("out"), nb::arg("x"), nb::arg("op") = "sum",
           nb::arg("counts") = nb::none(), nb::kw_only(), nb::arg("reproducible") = false,
           nb::arg("timeout") = nb::none())
      .def("_igather", &igather, nb::arg("out").none(), nb::arg("x"), nb::arg("root") = 0,
           nb::arg("counts") = nb::none(), nb::kw_only(), nb::arg("timeout") = nb::none())
      .def("_iscatter", &iscatter, nb::arg("out"), nb::arg("x").none(), nb::arg("root") = 0,
           nb::arg("counts") = nb::none(), nb::kw_only(), nb::arg("timeout") = nb::none())
      .def("_iall_to_all", &iall_to_all, nb::arg("out"), nb::arg("x"), nb::arg("out_counts") = nb::none(),
           nb::arg("in_counts") = nb::none(), nb::kw_only(), nb::arg("timeout") = nb::none())
      .def("_iscan", &iscan, nb::arg("x"), nb::arg("op") = "sum", nb::arg("exclusive") = false, nb::kw_only(),
           nb::arg("timeout") = nb::none());
}

}  // namespace hawser::api::python
