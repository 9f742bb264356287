#pragma once

// Nic: one port of an RDMA device as the backend uses it: its domain, what is registered there, and its addresses.
//
// A device is opened once: its ports share the domain, and memory is registered once for all of them.
//
// Thread rule: fixed after it is made, but for the cache and the addresses, which have their own locks, and the ranks,
// which are atomic. Lifetime: shared by the backend and its port; the domain outlives everything made in it.

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <hawser/status.h>

#include "backend/verbs/devices/device.h"
#include "backend/verbs/devices/domain.h"
#include "backend/verbs/devices/pairing.h"
#include "backend/verbs/efa/efa.h"
#include "backend/verbs/gpu/registration_gpu.h"
#include "backend/verbs/memory/mr_cache.h"
#include "backend/verbs/options.h"
#include "base/mutex.h"
#include "wire/queue_pair.h"

namespace hawser::backend::verbs {

/// What the ports of one device share.
struct NicDevice {
  explicit NicDevice(std::shared_ptr<Domain> its_domain, std::shared_ptr<GpuDriver> its_gpus = {},
                     const GpuDirectPlan& plan = {})
      : domain(std::move(its_domain)), gpus(std::move(its_gpus)), memory(domain, gpus.get(), plan), cache(memory) {}

  const std::shared_ptr<Domain> domain;
  const std::shared_ptr<GpuDriver> gpus;  ///< Null: all memory is the host's.
  GpuMemory memory;
  MrCache cache;
};

/// By what a port is reached, as it is now.
struct NicAddress {
  std::vector<Gid> gids;  ///< Those that may be used, best first.
  std::uint16_t lid = 0;
  std::uint8_t mtu = 0;  ///< Code of the largest packets; it follows the link's.

  const Gid& best() const { return gids.front(); }
};

struct Nic {
  static constexpr std::size_t kGpusMax = 64;   ///< Beyond, all ports count as equally near.
  static constexpr std::size_t kNodesMax = 64;  ///< Likewise.

  explicit Nic(std::shared_ptr<NicDevice> its_device)
      : shared(std::move(its_device)),
        domain(shared->domain),
        gpus(shared->gpus),
        memory(shared->memory),
        cache(shared->cache) {}

  const std::shared_ptr<NicDevice> shared;
  const std::shared_ptr<Domain> domain;
  const std::shared_ptr<GpuDriver> gpus;
  GpuMemory& memory;
  MrCache& cache;
  DeviceInfo device;
  PortInfo port;                           ///< As it was when it was opened; see address().
  RailPort rail;                           ///< Without its GIDs; see rail_now().
  std::optional<std::uint32_t> gid_index;  ///< The user's choice.
  std::string sysfs_root = "/sys";
  std::uint8_t mtu_max = 0;       ///< Code of the largest MTU that the user wants; 0: the port's.
  std::uint8_t reads_in = 0;      ///< Reads that one of its queue pairs answers at a time,
  std::uint8_t reads_out = 0;     ///< and those that it has under way.
  std::uint32_t message_max = 0;  ///< Bytes of one work request.
  QueuePairType type = QueuePairType::kRc;
  SrdLimits srd;                             ///< kSrd.
  std::uint64_t proof_bytes = 0;             ///< kSrd: what peers write to see that the way carries. Nobody reads it.
  std::shared_ptr<Registration> proof = {};  ///< Of these bytes.

  /// How many of this agent's ports are nearer to the GPU; 0 for the host's memory, and until rank_ports was told.
  std::uint8_t gpu_rank(int gpu) const {
    const bool known =
        gpu >= 0 && static_cast<std::size_t>(gpu) < kGpusMax && ranks_gpus.load(std::memory_order_relaxed);
    return known ? gpu_ranks[static_cast<std::size_t>(gpu)].load(std::memory_order_relaxed) : std::uint8_t{0};
  }
  std::atomic<bool> ranks_gpus{false};  ///< Some rank is not 0.
  std::array<std::atomic<std::uint8_t>, kGpusMax> gpu_ranks{};

  /// How many of this agent's ports are at a NUMA node's side while this one is not; 0 for memory of no known node.
  std::uint8_t node_rank(int node) const {
    const bool known = node >= 0 && static_cast<std::size_t>(node) < kNodesMax;
    return known ? node_ranks[static_cast<std::size_t>(node)].load(std::memory_order_relaxed) : std::uint8_t{0};
  }
  std::atomic<bool> ranks_nodes{false};  ///< Some rank is not 0.
  std::array<std::atomic<std::uint8_t>, kNodesMax> node_ranks{};

  bool is_srd() const { return type == QueuePairType::kSrd; }
  bool is_ethernet() const { return port.link_layer == LinkLayer::kEthernet; }
  /// "mlx5_0:1 (RoCE v2, 10.0.0.1)", "rdmap16s27:1 (EFA, fe80::1)".
  std::string describe() const;
  /// As the peer hears of it.
  wire::RdmaPort told() const;
  /// With its GIDs.
  RailPort rail_now() const;

  /// Never without a GID: where the port has lost all of them, those that it had last.
  NicAddress address() const HAWSER_EXCLUDES(mutex_);
  /// The GID to reach a peer with that has these; the best where nothing is known of the peer. `further`: so many
  /// places further on in the order of their worth, and round again.
  Gid gid_for(std::span<const Gid> peer, std::uint32_t further = 0) const HAWSER_EXCLUDES(mutex_);
  void set_address(NicAddress now) HAWSER_EXCLUDES(mutex_);
  /// Asks the device for its LID and GIDs. True: they changed. Errors: of the calls that failed, kNotFound when no GID
  /// can be used; the addresses stay.
  Result<bool> refresh_address() HAWSER_EXCLUDES(mutex_);
  /// Asks for the MTU alone: no event tells of it. What cannot be asked stays as it is.
  void refresh_mtu() HAWSER_EXCLUDES(mutex_);
  /// What the port tells, as far as the user wants it.
  std::uint8_t mtu_of(const ibv_port_attr& attr) const;

 private:
  mutable base::Mutex mutex_;
  NicAddress address_ HAWSER_GUARDED_BY(mutex_) = {.gids = std::vector<Gid>(1)};
};

/// Opens the device, unless another of its ports is open already (`opened`), and asks the port what it can do.
/// Errors: Domain::open's, best_gid's, kUnsupported (port down; gpu_direct is required and cannot work; queue_pair_type
/// is not the device's; EFA without reads or writes).
Result<std::shared_ptr<Nic>> open_nic(const std::shared_ptr<Verbs>& verbs, const LocalPort& place,
                                      const VerbsOptions& options, const GpuAccess& gpus = {},
                                      const std::shared_ptr<NicDevice>& opened = {});
/// The device of this name, where one of its ports is open; else null.
std::shared_ptr<NicDevice> device_among(std::span<const std::shared_ptr<Nic>> nics, std::string_view name);
/// Opens the ports to use: those named, or all that are as good as the best that works. What is passed over is told in
/// the options' warnings. Errors: choose_ports's; open_nic's of a port that was named, or when none can be used.
Result<std::vector<std::shared_ptr<Nic>>> open_nics(const std::shared_ptr<Verbs>& verbs,
                                                    std::span<const DeviceInfo> devices, const GpuAccess& gpus,
                                                    VerbsOptions* options);
/// Tells each port which NUMA nodes others are nearer to. Whether any is.
bool rank_nodes(std::span<const std::shared_ptr<Nic>> nics);
/// Tells each port how near it is to a GPU. Where that cannot be found out they stay equal.
void rank_ports(std::span<const std::shared_ptr<Nic>> nics, int gpu, const std::string& sysfs_root = "/sys");
/// What a peer told of one of its ports, as the pairing takes it.
RailPort rail_port(const wire::RdmaPort& told);
wire::GidBytes to_wire(const GidBytes& gid);
Gid gid_of(const wire::RdmaGid& told);

}  // namespace hawser::backend::verbs
