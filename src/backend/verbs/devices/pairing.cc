#include "backend/verbs/devices/pairing.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <tuple>
#include <utility>

namespace hawser::backend::verbs {
namespace {

constexpr std::string_view kPairingForms = "any, match_name, groups:mlx5_0,mlx5_1|mlx5_2,mlx5_3";

std::vector<std::string_view> split(std::string_view text, char at) {
  std::vector<std::string_view> parts;
  for (std::size_t from = 0;;) {
    const std::size_t end = text.find(at, from);
    parts.push_back(text.substr(from, end - from));
    if (end == std::string_view::npos) return parts;
    from = end + 1;
  }
}

Status wrong(std::string_view text, std::string_view what) {
  return Status(Code::kInvalid,
                fmt::format("'{}' is no way to pair devices: {}; there are: {}", text, what, kPairingForms));
}

bool in_one_group(const Pairing& pairing, const std::string& a, const std::string& b) {
  return std::any_of(pairing.groups.begin(), pairing.groups.end(), [&](const std::vector<std::string>& group) {
    return std::find(group.begin(), group.end(), a) != group.end() &&
           std::find(group.begin(), group.end(), b) != group.end();
  });
}

bool allowed(const Pairing& pairing, const RailPort& a, const RailPort& b) {
  switch (pairing.policy) {
    case Pairing::Policy::kAny:
      return true;
    case Pairing::Policy::kMatchName:
      return a.device == b.device;
    case Pairing::Policy::kGroups:
      return in_one_group(pairing, a.device, b.device);
  }
  return false;
}

bool any_two(const RailPort& a, const RailPort& b, auto&& property) {
  return std::ranges::any_of(a.all(), [&](const Gid& x) {
    return std::ranges::any_of(b.all(), [&](const Gid& y) { return property(x, y); });
  });
}

bool share_subnet(const RailPort& a, const RailPort& b) {
  return any_two(a, b, [](const Gid& x, const Gid& y) { return x.type == y.type && same_subnet(x, y); });
}

// Whether packets of one are understood by the other at all.
bool speak_alike(const RailPort& a, const RailPort& b) {
  const bool any_family = a.link_layer == LinkLayer::kInfiniBand;
  return a.transport == b.transport && a.link_layer == b.link_layer && any_two(a, b, [&](const Gid& x, const Gid& y) {
           return x.type == y.type && (any_family || x.ipv4_mapped() == y.ipv4_mapped());
         });
}

struct Candidate {
  Rail rail;
  bool same_name;
  bool same_subnet;

  // Equal when the two hosts change places, so that both find the same order: sums and sorted pairs only.
  auto key(std::span<const RailPort> local, std::span<const RailPort> remote) const {
    const GidBytes& a = local[rail.local].gid.bytes;
    const GidBytes& b = remote[rail.remote].gid.bytes;
    return std::tuple(!same_name, !same_subnet, rail.local + rail.remote, std::max(rail.local, rail.remote),
                      std::min(a, b), std::max(a, b));
  }
};

std::vector<Candidate> candidates(std::span<const RailPort> local, std::span<const RailPort> remote,
                                  const Pairing& pairing) {
  std::vector<Candidate> list;
  for (std::uint32_t i = 0; i < local.size(); ++i) {
    for (std::uint32_t j = 0; j < remote.size(); ++j) {
      const RailPort &a = local[i], &b = remote[j];
      if (!allowed(pairing, a, b) || !speak_alike(a, b)) continue;
      list.push_back({{i, j}, a.device == b.device && a.port == b.port, share_subnet(a, b)});
    }
  }
  std::sort(list.begin(), list.end(),
            [&](const Candidate& a, const Candidate& b) { return a.key(local, remote) < b.key(local, remote); });
  return list;
}

std::vector<std::uint64_t> speeds(std::span<const RailPort> ports) {
  std::vector<std::uint64_t> result;
  for (const RailPort& port : ports) result.push_back(port.mbit_per_s);
  return result;
}

std::string list_of(std::span<const RailPort> ports) {
  std::string text;
  for (const RailPort& port : ports) {
    text += fmt::format("{}{}:{} ({}, {} {})", text.empty() ? "" : ", ", port.device, port.port,
                        to_string(port.link_layer), to_string(port.gid.type), port.gid.text());
  }
  return text.empty() ? "none" : text;
}

}  // namespace

Result<Pairing> parse_pairing(std::string_view text) {
  constexpr std::string_view kGroups = "groups:";
  if (text.empty() || text == "any") return Pairing{};
  if (text == "match_name") return Pairing{Pairing::Policy::kMatchName, {}};
  if (!text.starts_with(kGroups)) return wrong(text, "it is unknown");
  Pairing pairing{Pairing::Policy::kGroups, {}};
  std::set<std::string_view> seen;
  for (const std::string_view group : split(text.substr(kGroups.size()), '|')) {
    auto& names = pairing.groups.emplace_back();
    for (const std::string_view name : split(group, ',')) {
      if (name.empty()) return wrong(text, "a name is empty");
      if (!seen.insert(name).second) return wrong(text, fmt::format("'{}' stands there twice", name));
      names.emplace_back(name);
    }
  }
  return pairing;
}

RailPort rail_port(const LocalPort& port, const Gid& gid) {
  return {port.device->name,
          port.port->number,
          port.device->transport,
          port.port->link_layer,
          port.path.mbit_per_s,
          gid,
          {}};
}

std::vector<Rail> choose_rails(std::span<const RailPort> local, std::span<const RailPort> remote,
                               const Pairing& pairing) {
  const std::vector<Candidate> list = candidates(local, remote, pairing);
  std::vector<std::uint64_t> spare_here = speeds(local), spare_there = speeds(remote);
  std::vector<bool> used_here(local.size()), used_there(remote.size());
  std::vector<Rail> rails;
  const auto take = [&](const Rail& rail) {
    const std::uint64_t speed = std::min(spare_here[rail.local], spare_there[rail.remote]);
    spare_here[rail.local] -= speed;
    spare_there[rail.remote] -= speed;
    used_here[rail.local] = used_there[rail.remote] = true;
    rails.push_back(rail);
  };
  for (const Candidate& candidate : list) {
    const Rail& rail = candidate.rail;
    if (!used_here[rail.local] && !used_there[rail.remote]) take(rail);
  }
  for (const Candidate& candidate : list) {
    const Rail& rail = candidate.rail;
    const bool left_over = used_here[rail.local] != used_there[rail.remote];
    if (left_over && spare_here[rail.local] > 0 && spare_there[rail.remote] > 0) take(rail);
  }
  return rails;
}

Status why_no_rails(std::span<const RailPort> local, std::span<const RailPort> remote, const Pairing& pairing) {
  bool any_allowed = false;
  for (const RailPort& a : local) {
    for (const RailPort& b : remote) any_allowed = any_allowed || allowed(pairing, a, b);
  }
  const std::string_view why = any_allowed ? "no two of them are of one kind (link layer, RoCE version, IP family)"
                                           : "the pairing policy joins no two of them";
  return Status(Code::kNotFound,
                fmt::format("no RDMA rail to the peer: {}; here: {}; there: {}", why, list_of(local), list_of(remote)))
      .with_advice(any_allowed ? "give both sides an IPv4 address (hawser topo shows the GIDs)"
                               : "pair by 'any', or name devices of both hosts in one group");
}

}  // namespace hawser::backend::verbs
