#pragma once

// What `hawser doctor` says of RDMA, as a function of what was found, so that it is tested without a device.
//
// Thread rule: pure functions.

#include <cstdint>
#include <optional>

#include "backend/verbs/devices/device_survey.h"
#include "cli/doctor_checks.h"

namespace hawser::cli {

struct RdmaFacts {
  backend::verbs::Survey survey;
  std::optional<std::uint64_t> memlock;  ///< Bytes; nothing: unlimited.
  bool may_exceed_memlock = false;       ///< CAP_IPC_LOCK.
  bool in_container = false;
};

Findings rdma_findings(const RdmaFacts& facts);

}  // namespace hawser::cli
