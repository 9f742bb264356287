#pragma once

// MockDevice: one adapter of the fabric in memory: its ports, its limits, and the addresses that it has.
//
// Thread rule: one thread.

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "backend/verbs/devices/gid.h"
#include "backend/verbs/library/verbs.h"

namespace hawser::backend::verbs {

/// A port of an adapter beside its first.
struct MockPort {
  bool active = true;
  std::uint16_t lid = 0;
  std::uint64_t mbit_per_s = 100'000;
  std::vector<Gid> gids = {};  ///< Empty: fe80::x and 10.0.p.x, where p is the port's number less one.
};

/// One adapter; with one port, unless there are more.
struct MockDevice : MockPort {
  std::string name;
  bool ethernet = true;
  std::vector<MockPort> more = {};  ///< Its ports 2, 3, ...
  std::uint8_t last_byte = 1;       ///< Of its IPv4-mapped GIDs 10.0.p.x.
  bool gone = false;                ///< Pulled out: every call on it fails, and it answers nobody.

  MockPort& port(std::uint8_t number) { return number == 1 ? *this : more.at(number - 2u); }
  const MockPort& port(std::uint8_t number) const { return number == 1 ? *this : more.at(number - 2u); }
  /// The table of a port, entries in use by index.
  std::vector<Gid> gids_of(std::uint8_t number) const;
  bool has_gid(std::uint8_t number, std::span<const std::uint8_t, 16> bytes) const;
  ibv_mtu mtu = IBV_MTU_4096;
  int max_qp_wr = 1024, max_sge = 8, max_sge_rd = 8, max_cqe = 1 << 16, max_qp_rd_atom = 16, max_qp_init_rd_atom = 16;
  std::uint32_t max_msg_sz = 1u << 30;
  bool efa = false;  ///< It has datagrams (SRD) and no reliable connections.
  std::string host;  ///< EFA: what goes to a device of the same host is dropped; empty: a host of its own.
  std::uint32_t efa_caps = 0xf, efa_depth = 256, efa_sge = 1, efa_rdma_size = 1u << 20;
  ibv_device device{};
};

}  // namespace hawser::backend::verbs
