#include "backend/verbs/devices/nic.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "backend/verbs/devices/gid_table.h"
#include "base/fd.h"
#include "base/format.h"
#include "base/try.h"

namespace hawser::backend::verbs {
namespace {

/// Longer messages than this give nothing, and a lost packet of one costs more.
constexpr std::uint32_t kMessageMax = 1u << 30;

std::uint8_t clamp_reads(int device, std::uint8_t wanted) {
  return static_cast<std::uint8_t>(std::clamp<int>(std::min<int>(device, wanted), 0, 128));
}

bool same_address(const Gid& a, const Gid& b) { return a.index == b.index && a.bytes == b.bytes && a.type == b.type; }

/// What the port tells is of a packet there, not of an RDMA request.
Status prepare_srd(Nic& nic, const SrdLimits& limits) {
  nic.srd = limits;
  nic.message_max = std::min(limits.message_max, kMessageMax);
  const Access access{.rights = Rights::kWrite};
  HAWSER_TRY_ASSIGN(nic.proof, register_host(nic.domain, &nic.proof_bytes, sizeof(nic.proof_bytes), access));
  return {};
}

}  // namespace

std::shared_ptr<NicDevice> device_among(std::span<const std::shared_ptr<Nic>> nics, std::string_view name) {
  const auto found = std::ranges::find_if(nics, [name](const auto& nic) { return nic->device.name == name; });
  return found == nics.end() ? nullptr : (*found)->shared;
}

std::string Nic::describe() const {
  const Gid gid = address().best();
  return base::format("{}:{} ({}, {})", device.name, port.number, is_srd() ? "EFA" : to_string(gid.type), gid.text());
}

wire::RdmaPort Nic::told() const {
  const NicAddress now = address();
  const Gid& gid = now.best();
  std::vector<wire::RdmaGid> gids;
  for (const Gid& each : now.gids) {
    if (gids.size() == wire::kGidsMax) break;
    gids.push_back(
        {.bytes = to_wire(each.bytes), .type = static_cast<std::uint8_t>(each.type), .prefix = each.prefix_bits});
  }
  return {.device = device.name,
          .number = port.number,
          .transport = static_cast<std::uint8_t>(device.transport),
          .layer = static_cast<std::uint8_t>(port.link_layer),
          .mtu = now.mtu,
          .lid = now.lid,
          .gid = to_wire(gid.bytes),
          .gid_type = static_cast<std::uint8_t>(gid.type),
          .gid_prefix = gid.prefix_bits,
          .mbit_per_s = port.mbit_per_s,
          .gids = std::move(gids)};
}

RailPort Nic::rail_now() const {
  RailPort now = rail;
  now.gids = address().gids;
  now.gid = now.gids.front();
  return now;
}

NicAddress Nic::address() const {
  const base::MutexLock lock(mutex_);
  return address_;
}

Gid Nic::gid_for(std::span<const Gid> peer, std::uint32_t further) const {
  const NicAddress now = address();
  const std::vector<Gid> ways = gids_towards(now.gids, port.netdev, peer);
  return ways[further % ways.size()];
}

std::uint8_t Nic::mtu_of(const ibv_port_attr& attr) const {
  // What a port of EFA tells is told, not used.
  const auto now = std::max(static_cast<std::uint8_t>(attr.active_mtu), static_cast<std::uint8_t>(IBV_MTU_256));
  return mtu_max == 0 ? now : std::min(mtu_max, now);
}

void Nic::refresh_mtu() {
  ibv_port_attr attr{};
  if (domain->verbs().query_port(domain->context(), port.number, &attr) != 0) return;
  const base::MutexLock lock(mutex_);
  address_.mtu = mtu_of(attr);
}

void Nic::set_address(NicAddress now) {
  const base::MutexLock lock(mutex_);
  address_ = std::move(now);
}

Result<bool> Nic::refresh_address() {
  ibv_port_attr attr{};
  if (const int error = domain->verbs().query_port(domain->context(), port.number, &attr); error != 0) {
    return base::errno_status(Code::kFailed, base::format("asking port {} of {}", port.number, device.name), error);
  }
  PortInfo fresh = port;
  HAWSER_TRY_ASSIGN(fresh.gids, read_gids(*domain, fresh, attr, sysfs_root));
  HAWSER_TRY_ASSIGN(std::vector<Gid> gids, usable_gids(fresh, gid_index));
  const NicAddress before = address();
  const bool same =
      before.lid == attr.lid && before.mtu == mtu_of(attr) && std::ranges::equal(before.gids, gids, same_address);
  if (!same) set_address({.gids = std::move(gids), .lid = attr.lid, .mtu = mtu_of(attr)});
  return !same;
}

wire::GidBytes to_wire(const GidBytes& gid) {
  wire::GidBytes bytes;
  std::memcpy(bytes.data(), gid.data(), bytes.size());
  return bytes;
}

Gid gid_of(const wire::RdmaGid& told) {
  Gid gid;
  if (told.type <= static_cast<std::uint8_t>(GidType::kRoceV2)) gid.type = static_cast<GidType>(told.type);
  gid.prefix_bits = told.prefix;
  std::memcpy(gid.bytes.data(), told.bytes.data(), told.bytes.size());
  return gid;
}

RailPort rail_port(const wire::RdmaPort& told) {
  RailPort port;
  port.device = told.device;
  port.port = told.number;
  if (told.transport <= static_cast<std::uint8_t>(Transport::kEfa)) {
    port.transport = static_cast<Transport>(told.transport);
  }
  if (told.layer <= static_cast<std::uint8_t>(LinkLayer::kEthernet)) {
    port.link_layer = static_cast<LinkLayer>(told.layer);
  }
  port.mbit_per_s = told.mbit_per_s;
  port.gid = gid_of({.bytes = told.gid, .type = told.gid_type, .prefix = told.gid_prefix});
  for (const wire::RdmaGid& each : told.gids) port.gids.push_back(gid_of(each));
  return port;
}

namespace {

Result<ibv_port_attr> query_active_port(const Domain& domain, std::uint8_t number) {
  ibv_port_attr attr{};
  if (const int error = domain.verbs().query_port(domain.context(), number, &attr); error != 0) {
    return base::errno_status(Code::kFailed, base::format("asking port {} of {}", number, domain.name()), error);
  }
  if (attr.state == IBV_PORT_ACTIVE) return attr;
  return Status(Code::kUnsupported, base::format("port {} of {} is not active", number, domain.name()))
      .with_advice("bring the link up, or name another device in `devices`");
}

Result<std::shared_ptr<NicDevice>> open_nic_device(const std::shared_ptr<Verbs>& verbs, const std::string& name,
                                                   const VerbsOptions& options, const GpuAccess& gpus) {
  HAWSER_TRY_ASSIGN(std::shared_ptr<Domain> domain, Domain::open(verbs, name));
  HAWSER_TRY_ASSIGN(const GpuDirectPlan plan,
                    plan_gpu_direct(*domain, gpus.driver.get(), options.gpu_direct, gpus.sysfs_root, gpus.missing));
  const bool is_off = options.gpu_direct == GpuDirect::kOff;
  return std::make_shared<NicDevice>(std::move(domain), is_off ? nullptr : gpus.driver, plan);
}

void set_limits(Nic& nic, const ibv_port_attr& attr, const QueuePairOptions& pair) {
  const ibv_device_attr& device = nic.domain->attributes();
  nic.reads_in = clamp_reads(device.max_qp_rd_atom, pair.reads);
  nic.reads_out = clamp_reads(device.max_qp_init_rd_atom, pair.reads);
  nic.message_max = attr.max_msg_sz == 0 ? kMessageMax : std::min(attr.max_msg_sz, kMessageMax);
}

}  // namespace

Result<std::shared_ptr<Nic>> open_nic(const std::shared_ptr<Verbs>& verbs, const LocalPort& place,
                                      const VerbsOptions& options, const GpuAccess& gpus,
                                      const std::shared_ptr<NicDevice>& opened) {
  HAWSER_TRY_ASSIGN(const QueuePairType type, choose_type(options.queue_pair_type, *place.device));
  const bool is_srd = type == QueuePairType::kSrd;
  std::shared_ptr<NicDevice> device = opened;
  if (device == nullptr) {
    HAWSER_TRY_ASSIGN(device, open_nic_device(verbs, place.device->name, options, gpus));
  }
  HAWSER_TRY_ASSIGN(const ibv_port_attr attr, query_active_port(*device->domain, place.port->number));
  SrdLimits srd;
  if (is_srd) {
    HAWSER_TRY_ASSIGN(srd, query_srd(*device->domain));
  }
  auto nic = std::make_shared<Nic>(std::move(device));
  nic->device = *place.device;
  nic->port = *place.port;
  nic->sysfs_root = gpus.sysfs_root;
  nic->type = type;
  // EFA has one GID, which sysfs gives no type.
  nic->gid_index = is_srd && !options.gid_index ? std::optional<std::uint32_t>(0) : options.gid_index;
  if (nic->port.gids.empty()) {
    HAWSER_TRY_ASSIGN(nic->port.gids, read_gids(*nic->domain, nic->port, attr, nic->sysfs_root));
    nic->port.netdev = own_netdev(nic->port, nic->device);
  }
  HAWSER_TRY_ASSIGN(std::vector<Gid> gids, usable_gids(nic->port, nic->gid_index));
  nic->mtu_max = options.pair.mtu;
  nic->set_address({.gids = std::move(gids), .lid = attr.lid, .mtu = nic->mtu_of(attr)});
  nic->rail = rail_port(place, nic->address().best());
  set_limits(*nic, attr, options.pair);
  if (is_srd) HAWSER_TRY(prepare_srd(*nic, srd));
  return nic;
}

Result<std::vector<std::shared_ptr<Nic>>> open_nics(const std::shared_ptr<Verbs>& verbs,
                                                    std::span<const DeviceInfo> devices, const GpuAccess& gpus,
                                                    VerbsOptions* options) {
  ChooseOptions choose;
  choose.devices = options->devices;
  choose.hint = options->near;
  HAWSER_TRY_ASSIGN(const Hint hint, parse_hint(options->near));
  if (hint.kind == Hint::Kind::kCuda) {
    if (gpus.driver == nullptr) return gpus.missing;
    choose.cuda_pci = cuda_pci_of(*gpus.driver);
  }
  HAWSER_TRY_ASSIGN(std::vector<LocalPort> places, choose_ports(devices, choose));
  const bool named = !options->devices.empty();
  std::vector<std::shared_ptr<Nic>> nics;
  Status failure;
  for (const LocalPort& place : places) {
    if (nics.size() == wire::kPortsMax || (!named && place.rank > 0 && !nics.empty())) break;
    Result<std::shared_ptr<Nic>> nic = open_nic(verbs, place, *options, gpus, device_among(nics, place.device->name));
    if (nic) {
      nics.push_back(*std::move(nic));
    } else if (named) {
      return nic.error();
    } else {
      options->warnings.push_back(base::format("{} is not used: {}", place.device->name, nic.error().to_string()));
      if (failure.ok()) failure = nic.error();
    }
  }
  if (nics.empty()) return failure;
  return nics;
}

bool rank_nodes(std::span<const std::shared_ptr<Nic>> nics) {
  bool any = false;
  for (std::size_t node = 0; node < Nic::kNodesMax; ++node) {
    // The class of the way alone: how fast a port is, the load on it tells.
    const auto class_of = [&](const auto& nic) {
      return numa_path(nic->device.pci, static_cast<int>(node)).path_class;
    };
    for (const auto& nic : nics) {
      const auto nearer = std::ranges::count_if(nics, [&](const auto& each) { return class_of(each) < class_of(nic); });
      nic->node_ranks[node].store(static_cast<std::uint8_t>(nearer), std::memory_order_relaxed);
      if (nearer > 0) nic->ranks_nodes.store(true, std::memory_order_relaxed);
      any = any || nearer > 0;
    }
  }
  return any;
}

void rank_ports(std::span<const std::shared_ptr<Nic>> nics, int gpu, const std::string& sysfs_root) {
  if (nics.size() < 2 || nics[0]->gpus == nullptr || gpu < 0) return;
  const auto index = static_cast<std::size_t>(gpu);
  const Result<PciAddress> address = cuda_pci_of(*nics[0]->gpus)(static_cast<std::uint32_t>(gpu));
  if (index >= Nic::kGpusMax || !address) return;
  const std::optional<PciPlace> place = find_pci_place(sysfs_root, *address);
  std::vector<PciPath> paths;
  for (const auto& nic : nics) paths.push_back(pci_path(nic->device.pci, place));
  for (std::size_t i = 0; i < nics.size(); ++i) {
    const auto nearer = std::ranges::count_if(paths, [&](const PciPath& path) { return path.better_than(paths[i]); });
    nics[i]->gpu_ranks[index].store(static_cast<std::uint8_t>(nearer), std::memory_order_relaxed);
    if (nearer > 0) nics[i]->ranks_gpus.store(true, std::memory_order_relaxed);
  }
}

}  // namespace hawser::backend::verbs
