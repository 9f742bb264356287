// Pools of buffers for receives.

#include <hawser/buffer_pool.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <string>
#include <vector>

#include "api/python/objects.h"

namespace hawser::api::python {
namespace {

BufferPool with_tiers(nb::handle tiers, bool refuse) {
  std::vector<BufferPool::Tier> all;
  for (const nb::handle each : nb::iter(tiers)) {
    const bool is_pair = is_sequence(each) && nb::len(each) == 2;
    if (!is_pair) raise_invalid("BufferPool: a tier is a pair: the bytes of a buffer, and how many there are");
    all.push_back({.bytes = whole_of<std::size_t>(each[nb::int_(0)], "BufferPool: bytes"),
                   .count = whole_of<std::uint32_t>(each[nb::int_(1)], "BufferPool: count")});
  }
  return take(BufferPool::with_tiers(all, refuse ? BufferPool::Beyond::kRefuse : BufferPool::Beyond::kAllocate));
}

nb::dict statistics(const BufferPool& self) {
  const BufferPool::Statistics all = self.statistics();
  nb::list tiers;
  for (const BufferPool::TierStatistics& each : all.tiers) {
    nb::dict tier;
    tier["bytes"] = each.bytes;
    tier["count"] = each.count;
    tier["made"] = each.made;
    tier["used"] = each.used;
    tier["most_used"] = each.most_used;
    tier["taken"] = each.taken;
    tiers.append(tier);
  }
  nb::dict made;
  made["tiers"] = tiers;
  made["bytes"] = all.bytes;
  made["beyond"] = all.beyond;
  return made;
}

}  // namespace

void bind_pools(nb::module_& module) {
  nb::class_<BufferPool>(module, "BufferPool",
                         "Keeps the buffers of receives that are given none; several worlds may share one. Its memory "
                         "is bounded by its tiers. A message that finds no buffer gets ordinary memory.")
      .def_static("training", &BufferPool::training,
                  "256 buffers of 64 KiB, 32 of 8 MiB, 16 of 64 MiB and 4 of 256 MiB.")
      .def_static("inference", &BufferPool::inference, "256 buffers of 64 KiB, 16 of 8 MiB and 4 of 64 MiB.")
      .def_static(
          "with_tiers", &with_tiers, nb::arg("tiers"), nb::kw_only(), nb::arg("refuse") = false,
          "Tiers of one's own, as pairs of the bytes of a buffer and their number. With `refuse` a message that "
          "finds no buffer stays where it is, and its receive ends with BusyError.")
      .def("statistics", &statistics,
           "`tiers`, from the smallest, each with `bytes` of a buffer, `count`, and how many were `made`, are `used`, "
           "were used at once (`most_used`) and were `taken`; `bytes` of all that were made; `beyond`, how many "
           "messages found none.")
      .def("trim", &BufferPool::trim, "Frees the buffers that nobody uses.");
}

}  // namespace hawser::api::python
