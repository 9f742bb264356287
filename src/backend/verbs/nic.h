#pragma once

// Nic: one port of an RDMA device as the backend uses it: its domain, what is registered there, and its address.
//
// Thread rule: fixed after it is made, but for the cache, which has its own lock. Lifetime: shared by the backend and
// its port; the domain outlives everything made in it.

#include <cstdint>
#include <memory>
#include <string>

#include <hawser/status.h>

#include "backend/verbs/device.h"
#include "backend/verbs/domain.h"
#include "backend/verbs/mr_cache.h"
#include "backend/verbs/options.h"
#include "backend/verbs/pairing.h"
#include "wire/queue_pair.h"

namespace hawser::backend::verbs {

struct Nic {
  Nic(std::shared_ptr<Domain> its_domain) : domain(std::move(its_domain)), source(domain), cache(source) {}

  std::shared_ptr<Domain> domain;
  HostSource source;
  MrCache cache;
  DeviceInfo device;
  PortInfo port;
  Gid gid;
  RailPort rail;
  std::uint8_t mtu = 0;           ///< Code of the largest MTU to use.
  std::uint8_t reads_in = 0;      ///< Reads and atomics that one of its queue pairs answers at a time,
  std::uint8_t reads_out = 0;     ///< and those that it has under way.
  std::uint32_t message_max = 0;  ///< Bytes of one work request.

  bool is_ethernet() const { return port.link_layer == LinkLayer::kEthernet; }
  /// "mlx5_0:1 (RoCE v2, 10.0.0.1)".
  std::string describe() const;
  /// As the peer hears of it.
  wire::RdmaPort told() const;
};

/// Opens the device and asks the port what it can do. Errors: Domain::open's, best_gid's, kUnsupported (port down).
Result<std::shared_ptr<Nic>> open_nic(const std::shared_ptr<Verbs>& verbs, const LocalPort& place,
                                      const VerbsOptions& options);
/// What a peer told of one of its ports, as the pairing takes it.
RailPort rail_port(const wire::RdmaPort& told);

}  // namespace hawser::backend::verbs
