#pragma once

// What an EFA device can do, as far as queue pairs of scalable reliable datagrams (SRD) need it.
//
// Thread rule: any thread.

#include <cstdint>
#include <memory>
#include <string_view>

#include <hawser/status.h>

#include "backend/verbs/devices/device.h"
#include "backend/verbs/devices/domain.h"
#include "backend/verbs/options.h"

namespace hawser::backend::verbs {

struct SrdLimits {
  std::uint32_t send_depth = 0;   ///< Work requests posted at a time.
  std::uint32_t sge_max = 0;      ///< Pieces of local memory in one.
  std::uint32_t message_max = 0;  ///< Bytes of one.
};

/// kSrd or kRc. Errors: kUnsupported where the device cannot do what was asked for.
Result<QueuePairType> choose_type(QueuePairType wanted, const DeviceInfo& device);
/// Errors: kUnsupported when libefa is missing, or when the device cannot write or cannot read remote memory; that of
/// the call.
Result<SrdLimits> query_srd(Domain& domain);
/// Names this boot of this machine, across its containers; 0: the kernel does not tell.
std::uint64_t this_boot();
/// An EFA device drops what is for its own host.
Status refuse_same_host(std::string_view peer);
/// Opens the device to ask it: whether a port of it can be used.
Status check_efa(const std::shared_ptr<Verbs>& verbs, const DeviceInfo& device);

}  // namespace hawser::backend::verbs
