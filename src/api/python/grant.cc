// Grants, of their owners and of their holders.

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include "api/python/objects.h"

namespace hawser::api::python {
namespace {

constexpr Duration kRevokeTimeout = std::chrono::seconds(5);

bool revoke(const GrantHandle& self, nb::handle timeout) {
  const Duration patience = duration_of(timeout, "timeout", kRevokeTimeout);
  (void)agent_of(self.agent);
  check(outside([&] { return self.grant.revoke(patience); }));
  return true;
}

RemoteRangeHandle range(const GrantedHandle& self, Whole<std::uint64_t, "range: offset"> offset,
                        MaybeWhole<std::uint64_t, "range: size"> size) {
  const std::uint64_t whole = self.granted.size();
  const std::uint64_t wanted = size.value_or(offset <= whole ? whole - offset : 0);
  if (offset > whole || wanted > whole - offset) {
    raise_invalid("range: offset " + std::to_string(offset) + " and size " + std::to_string(wanted) +
                  " leave the grant of " + std::to_string(whole) + " bytes");
  }
  return {self.agent, self.granted.range(offset, wanted)};
}

TableHandle granted_table(const GrantedHandle& self, RangeTable table) {
  check(table.status());
  return {self.agent, nullptr, std::move(table)};
}

TableHandle table(const GrantedHandle& self, nb::handle blocks) {
  if (is_number(blocks)) {
    const auto bytes = whole_of<std::uint64_t>(blocks, "table: the size of a block");
    return granted_table(self, self.granted.table(bytes));
  }
  const RangeArray ranges(blocks, "table: ranges");
  return granted_table(self, outside([&] { return self.granted.table(ranges.view()); }));
}

template <typename Importer>
GrantedHandle import_by(const AgentRef& agent, const Importer& importer, nb::handle data) {
  const Bytes bytes(data, "import_grant");
  return {agent, take(outside([&] { return importer.import_grant(bytes.view); }))};
}

}  // namespace

GrantHandle make_grant(const RegionHandle& self, Whole<std::uint64_t, "grant: offset"> offset,
                       MaybeWhole<std::uint64_t, "grant: size"> size, const std::string& rights, nb::handle expiry,
                       const PeerHandle* peer, bool single_use) {
  (void)agent_of(self.state->agent);
  const Region& region = self.state->region;
  const std::uint64_t wanted = size.value_or(offset <= region.size() ? region.size() - offset : 0);
  const Duration lifetime = duration_of(expiry, "expiry", Duration::max());
  GrantOptions options{.peer = {}, .single_use = single_use};
  if (peer != nullptr) options.peer = peer->peer;
  const Rights gives = rights_of(rights);
  return {self.state->agent, take(outside([&] { return region.grant(offset, wanted, gives, lifetime, options); }))};
}

GrantedHandle import_grant(const AgentHandle& self, nb::handle data) {
  return import_by(self.state, agent_of(self.state), data);
}

GrantedHandle import_peers_grant(const PeerHandle& self, nb::handle data) {
  (void)agent_of(self.agent);
  return import_by(self.agent, self.peer, data);
}

void bind_grants(nb::module_& module) {
  nb::class_<GrantHandle>(module, "Grant",
                          "The right to a part of a region, as its owner has it. Dropped, the grant goes on.")
      .def_prop_ro(
          "data",
          [](const GrantHandle& self) {
            const std::string_view bytes = self.grant.bytes();
            return nb::bytes(bytes.data(), bytes.size());
          },
          "What the holder imports. Who has them may use the grant, unless it is for one peer: treat them as a "
          "password.")
      .def_prop_ro(
          "ended", [](const GrantHandle& self) { return self.grant.ended(); },
          "Nobody touches the memory by it any more.")
      .def("revoke", &revoke, nb::arg("timeout") = nb::none(),
           "Ends it and waits until nobody touches the memory by it any more.");

  nb::class_<GrantedHandle>(module, "GrantedRegion", "The part of a peer's memory that a grant gives.")
      .def_prop_ro("name", [](const GrantedHandle& self) { return text_of(self.granted.name()); })
      .def_prop_ro("size", [](const GrantedHandle& self) { return self.granted.size(); })
      .def_prop_ro("rights", [](const GrantedHandle& self) { return text_of_rights(self.granted.rights()); })
      .def_prop_ro("single_use", [](const GrantedHandle& self) { return self.granted.single_use(); })
      .def_prop_ro(
          "peer",
          [](const GrantedHandle& self) {
            return PeerHandle{self.agent, self.granted.peer()};
          },
          "Its owner.")
      .def("__len__", [](const GrantedHandle& self) { return self.granted.size(); })
      .def("range", &range, nb::arg("offset") = 0, nb::arg("size") = nb::none(), "A part of it, for plans.")
      .def("table", &table, nb::arg("blocks"), "As Region.table, over what the grant gives.");
}

}  // namespace hawser::api::python
