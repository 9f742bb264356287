#pragma once

// The backend "verbs": RDMA by libibverbs (RoCE, InfiniBand, EFA), opened at run time. docs/rdma.md is for its users,
// NOTES.md has what was measured.
//
// Parameters: devices, near, gid_index, rails, pairs, stripe, window, connect_timeout, patience, relaxed_ordering,
// gpu_direct, queue_pair_type, register_threads, send_depth, max_sge, inline, mtu, rd_atomic, timeout, retry,
// rnr_retry, min_rnr_timer, traffic_class, service_level, hop_limit, flow_label, pkey_index, messages, immediates, and
// for the handshake's sockets listen and port.
//
// Thread rule: any thread.

#include "backend/backend.h"

namespace hawser::backend {

Factory verbs_factory();

}  // namespace hawser::backend
