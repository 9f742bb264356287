#pragma once

// VerbsOptions: the backend's parameters as values.
//
// Thread rule: values.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <hawser/backends.h>
#include <hawser/status.h>
#include <hawser/time.h>

#include "backend/verbs/library/verbs.h"

namespace hawser::backend::verbs {

/// What a queue pair is made and connected with. Codes are those of the InfiniBand specification.
struct QueuePairOptions {
  std::uint32_t send_depth = 512;   ///< Work requests posted at a time.
  std::uint32_t sge_max = 4;        ///< Pieces of local memory in one work request.
  std::uint32_t inline_max = 64;    ///< Bytes that travel in the work request itself, where the device can.
  std::uint8_t mtu = 0;             ///< Code of the largest path MTU; 0: the port's.
  std::uint8_t reads = 16;          ///< Reads under way at a time, at most.
  std::uint8_t timeout = 14;        ///< 4.096 us * 2^timeout until a packet is sent again.
  std::uint8_t retries = 6;         ///< How often. Soft-RoCE takes 7 as for ever, so a dead peer stays unnoticed.
  std::uint8_t rnr_retries = 6;     ///< How often when the receiver has posted no receive; 7 would be for ever.
  std::uint8_t min_rnr_timer = 12;  ///< Code of the pause it asks for; 12: 0.64 ms.
  std::uint8_t traffic_class = 0;   ///< Of the global route: DSCP in its upper six bits on RoCE.
  std::uint8_t service_level = 0;
  std::uint8_t hop_limit = 64;
  std::uint32_t flow_label = 0;  ///< 20 bits. 0: drawn per queue pair, so that networks spread them.
  std::uint16_t pkey_index = 0;
  std::uint32_t immediates = 32;  ///< Writes with immediate under way on a queue pair; 0: none are used.
  std::uint32_t messages = 32;    ///< Messages under way on a path's first queue pair; 0: all go by the control stream.
};

/// What queue pairs are made of.
enum class QueuePairType : std::uint8_t {
  kAuto,  ///< Datagrams on EFA, reliable connections elsewhere.
  kRc,    ///< Reliable connections.
  kSrd,   ///< EFA's scalable reliable datagrams.
};
std::string_view to_string(QueuePairType type);

/// What the user wants of a NIC's access to GPU memory.
enum class GpuDirect : std::uint8_t {
  kAuto,     ///< If it works; GPU memory is refused where it does not.
  kRequire,  ///< Opening fails where it cannot work.
  kOff,      ///< Never.
};
std::string_view to_string(GpuDirect mode);

struct VerbsOptions {
  std::vector<std::string> devices;        ///< "mlx5_0" or "mlx5_0:1"; empty: all that work.
  std::string near;                        ///< "cpu:N", "cuda:N", "nic:NAME"; empty: none.
  std::optional<std::uint32_t> gid_index;  ///< Empty: the best of the port's.
  std::string rails;                       ///< Policy: any, match_name, groups:...
  std::uint32_t pairs = 1;                 ///< Queue pairs per rail.
  std::uint64_t stripe = 1 << 20;          ///< Largest chunk, bytes.
  std::uint64_t window = 4 << 20;          ///< Bulk bytes on one queue pair: what else is posted waits for no more.
  Duration connect_timeout = std::chrono::seconds(3);  ///< Of one attempt to connect a queue pair.
  Duration patience = std::chrono::seconds(2);         ///< A path without any ready queue pair is given up after it.
  bool relaxed_ordering = false;
  GpuDirect gpu_direct = GpuDirect::kAuto;
  std::uint32_t register_threads = 8;  ///< At most so many make a large region's pages present and register it.
  QueuePairType queue_pair_type = QueuePairType::kAuto;  ///< A port that cannot do it is not used.
  QueuePairOptions pair;
  Params control;  ///< For the sockets of the handshake: listen, port.
  Params params;   ///< In force.
  std::vector<std::string> warnings;
};

/// Errors: kInvalid with all wrong values.
Result<VerbsOptions> read_verbs_options(const Params& params);

}  // namespace hawser::backend::verbs
