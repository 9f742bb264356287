#pragma once

// Nic: one port of an RDMA device as the backend uses it: its domain, what is registered there, and its address.
//
// Thread rule: fixed after it is made, but for the cache, which has its own lock, and the ranks, which are atomic.
// Lifetime: shared by the backend and its port; the domain outlives everything made in it.

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include <hawser/status.h>

#include "backend/verbs/device.h"
#include "backend/verbs/domain.h"
#include "backend/verbs/efa.h"
#include "backend/verbs/mr_cache.h"
#include "backend/verbs/options.h"
#include "backend/verbs/pairing.h"
#include "backend/verbs/registration_gpu.h"
#include "wire/queue_pair.h"

namespace hawser::backend::verbs {

struct Nic {
  static constexpr std::size_t kGpusMax = 64;  ///< Beyond, all ports count as equally near.

  explicit Nic(std::shared_ptr<Domain> its_domain, std::shared_ptr<GpuDriver> its_gpus = {},
               const GpuDirectPlan& plan = {})
      : domain(std::move(its_domain)), gpus(std::move(its_gpus)), memory(domain, gpus.get(), plan), cache(memory) {}

  std::shared_ptr<Domain> domain;
  std::shared_ptr<GpuDriver> gpus;  ///< Null: all memory is the host's.
  GpuMemory memory;
  MrCache cache;
  DeviceInfo device;
  PortInfo port;
  Gid gid;
  RailPort rail;
  std::uint8_t mtu = 0;           ///< Code of the largest MTU to use.
  std::uint8_t reads_in = 0;      ///< Reads and atomics that one of its queue pairs answers at a time,
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

  bool is_srd() const { return type == QueuePairType::kSrd; }
  bool is_ethernet() const { return port.link_layer == LinkLayer::kEthernet; }
  /// "mlx5_0:1 (RoCE v2, 10.0.0.1)", "rdmap16s27:1 (EFA, fe80::1)".
  std::string describe() const;
  /// As the peer hears of it.
  wire::RdmaPort told() const;
};

/// Opens the device and asks the port what it can do. Errors: Domain::open's, best_gid's, kUnsupported (port down;
/// gpu_direct is required and cannot work; queue_pair_type is not the device's; EFA without reads or writes).
Result<std::shared_ptr<Nic>> open_nic(const std::shared_ptr<Verbs>& verbs, const LocalPort& place,
                                      const VerbsOptions& options, const GpuAccess& gpus = {});
/// Opens the ports to use: those named, or all that are as good as the best that works. What is passed over is told in
/// the options' warnings. Errors: choose_ports's; open_nic's of a port that was named, or when none can be used.
Result<std::vector<std::shared_ptr<Nic>>> open_nics(const std::shared_ptr<Verbs>& verbs,
                                                    std::span<const DeviceInfo> devices, const GpuAccess& gpus,
                                                    VerbsOptions* options);
/// Tells each port how near it is to a GPU. Where that cannot be found out they stay equal.
void rank_ports(std::span<const std::shared_ptr<Nic>> nics, int gpu, const std::string& sysfs_root = "/sys");
/// What a peer told of one of its ports, as the pairing takes it.
RailPort rail_port(const wire::RdmaPort& told);

}  // namespace hawser::backend::verbs
