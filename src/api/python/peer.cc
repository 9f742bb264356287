// Peers.

#include <nanobind/operators.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "agent/peer_names.h"
#include "api/python/objects.h"
#include "base/inside.h"

namespace hawser::api::python {
namespace {

/// A region of the peer by name or by number, and its name for tables.
RemoteRange region_of(const PeerHandle& self, nb::handle which) {
  (void)agent_of(self.agent);
  if (PyUnicode_Check(which.ptr())) return take(self.peer.region(Bytes(which, "region").view));
  if (!PyIndex_Check(which.ptr())) raise_invalid("a peer's region is named by its name (str) or its number (int)");
  return take(self.peer.region(whole_of<std::uint32_t>(which, "the number of a peer's region")));
}

RemoteRangeHandle range(const PeerHandle& self, nb::handle which, Whole<std::uint64_t, "range: offset"> offset,
                        MaybeWhole<std::uint64_t, "range: size"> size) {
  RemoteRange range = region_of(self, which);
  const std::uint64_t whole = region_info(range).size;
  const std::uint64_t wanted = size.value_or(offset <= whole ? whole - offset : 0);
  if (offset > whole || wanted > whole - offset) {
    raise_invalid("range: offset " + std::to_string(offset) + " and size " + std::to_string(wanted) +
                  " leave the peer's region of " + std::to_string(whole) + " bytes");
  }
  range.offset = offset;
  range.size = wanted;
  return {self.agent, std::move(range)};
}

TableHandle table_handle(const PeerHandle& self, RangeTable table) {
  check(table.status());
  return {self.agent, nullptr, std::move(table)};
}

void await_regions(const PeerHandle& self, const std::vector<std::string>& regions, nb::handle timeout) {
  (void)agent_of(self.agent);
  constexpr Duration kPatience = std::chrono::seconds(5);
  const std::vector<std::string_view> names(regions.begin(), regions.end());
  Status status;
  const std::optional<bool> over = wait_in_slices(duration_of(timeout, "timeout", kPatience), [&](Duration slice) {
    status = self.peer.await_regions(names, slice);
    return status.code() != Code::kNotFound;
  });
  if (!over) throw nb::python_error();
  check(status);
}

TableHandle table(const PeerHandle& self, const std::string& region, nb::handle blocks, nb::handle timeout) {
  (void)agent_of(self.agent);
  if (!timeout.is_none()) await_regions(self, {region}, timeout);
  if (is_number(blocks)) {
    const auto bytes = whole_of<std::uint64_t>(blocks, "table: the size of a block");
    return table_handle(self, self.peer.table(region, bytes));
  }
  const RangeArray ranges(blocks, "table: ranges");
  return table_handle(self, outside([&] { return self.peer.table(region, ranges.view()); }));
}

TableHandle import_table(const PeerHandle& self, nb::handle bytes) {
  (void)agent_of(self.agent);
  const Bytes its(bytes, "import_table");
  return table_handle(self,
                      outside([&] { return self.peer.import_table(std::as_bytes(std::span<const char>(its.view))); }));
}

nb::list region_names(const PeerHandle& self) {
  nb::list all;
  for (const std::string& name : self.peer.region_names()) all.append(text_of(name));
  return all;
}

void connect(const PeerHandle& self, nb::handle timeout) {
  (void)agent_of(self.agent);
  constexpr Duration kPatience = std::chrono::seconds(5);
  Status status;
  const std::optional<bool> over = wait_in_slices(duration_of(timeout, "timeout", kPatience), [&](Duration slice) {
    status = self.peer.connect(slice);
    return status.code() != Code::kTimedOut;
  });
  if (!over) throw nb::python_error();
  check(status);
}

void reconnect(const PeerHandle& self) {
  (void)agent_of(self.agent);
  check(outside([&] { return self.peer.reconnect(); }));
}

void notify(const PeerHandle& self, nb::handle data) {
  (void)agent_of(self.agent);
  const Bytes bytes(data, "notify");
  check(outside([&] { return self.peer.notify(bytes.view); }));
}

std::uint64_t send(const PeerHandle& self, Whole<std::uint32_t, "send: channel"> channel, nb::handle data,
                   nb::handle timeout) {
  (void)agent_of(self.agent);
  constexpr Duration kPatience = std::chrono::seconds(5);
  const Bytes bytes(data, "send");
  const Duration patience = duration_of(timeout, "timeout", kPatience);
  const auto its = std::as_bytes(std::span<const char>(bytes.view));
  Result<std::uint64_t> sent = outside([&] { return self.peer.send(channel, its); });
  if (sent.error().code() == Code::kBusy && patience > Duration::zero()) {
    const std::optional<bool> over = wait_in_slices(patience, [&](Duration slice) {
      sent = self.peer.send(channel, its, slice);
      return sent.error().code() != Code::kBusy;
    });
    if (!over) throw nb::python_error();
  }
  check(sent.error());
  return *sent;
}

nb::dict acknowledged(const PeerHandle& self) {
  return numbers_by_channel(outside([&] { return self.peer.acknowledged(); }));
}

}  // namespace

nb::dict numbers_by_channel(const std::vector<Acknowledged>& acknowledged) {
  nb::dict numbers;
  for (const Acknowledged& each : acknowledged) numbers[nb::int_(each.channel)] = nb::int_(each.number);
  return numbers;
}

void bind_peers(nb::module_& module) {
  nb::class_<PeerHandle>(module, "Peer", "Another agent, known by its card.")
      .def_prop_ro("name", [](const PeerHandle& self) { return text_of(self.peer.name()); })
      .def_prop_ro("incarnation", [](const PeerHandle& self) { return text_of(to_string(self.peer.incarnation())); })
      .def_prop_ro(
          "state", [](const PeerHandle& self) { return text_of(agent::name_of(self.peer.state())); },
          "known, up, suspect or down")
      .def_prop_ro("is_self", [](const PeerHandle& self) { return self.peer.is_self(); })
      .def("__eq__",
           [](const PeerHandle& self, nb::handle other) {
             const PeerHandle* its = nullptr;
             return nb::try_cast(other, its) && its != nullptr && core_of(its->peer) == core_of(self.peer);
           })
      .def("__hash__", [](const PeerHandle& self) { return std::hash<const void*>()(core_of(self.peer).get()); })
      .def("region_names", &region_names)
      .def(
          "region", [](const PeerHandle& self, nb::handle which) { return range(self, which, {0}, std::nullopt); },
          nb::arg("which"), "All of a region, by name or by number.")
      .def("range", &range, nb::arg("region"), nb::arg("offset") = 0, nb::arg("size") = nb::none())
      .def("table", &table, nb::arg("region"), nb::arg("blocks"), nb::arg("timeout") = nb::none(),
           "As Region.table, over a region of the peer; waits so long for the region where it is not there yet.")
      .def("await_regions", &await_regions, nb::arg("regions"), nb::arg("timeout") = nb::none(),
           "Waits until the peer has regions of all these names.")
      .def("import_table", &import_table, nb::arg("data"), "A table that Table.encode made at the peer.")
      .def("import_grant", &import_peers_grant, nb::arg("data"), "The part of its memory that a grant by it gives.")
      .def("connect", &connect, nb::arg("timeout") = nb::none(), "Opens paths now and waits until one is up.")
      .def("reconnect", &reconnect, "Tries now what the agent would try after a pause. Does not wait.")
      .def("notify", &notify, nb::arg("data"), "Sends a notification that belongs to no transfer.")
      .def(
          "send", &send, nb::arg("channel"), nb::arg("data"), nb::arg("timeout") = nb::none(),
          "Sends a message on a channel that the peer opened. Waits up to `timeout` (5 s) for the peer's greeting, for "
          "the channel to be open and for room; 0 does not wait. Then BusyError. Returns the message's number: on each "
          "channel 1, 2, 3 and so on, anew with each session.")
      .def(
          "acknowledged", &acknowledged,
          "By channel the number of the last message that the peer's agent is known to have taken, with all before it; "
          "0: none. Also of a peer that is down. Taken is in the agent's inbox, not read by its program.")
      .def(
          "opened",
          [](const PeerHandle& self, Whole<std::uint32_t, "opened: channel"> channel) {
            return self.peer.opened(channel);
          },
          nb::arg("channel"), "Whether the peer has told that the channel is open.")
      .def_prop_ro("agent", [](const PeerHandle& self) { return wrapper_of(self.agent); });
}

}  // namespace hawser::api::python
