#pragma once

// The RDMA devices of this host as `hawser topo` and `hawser info` show them.
//
// Thread rule: pure functions; print_* write to standard output.

#include <string>
#include <vector>

#include "backend/verbs/devices/device_survey.h"
#include "cli/json_out.h"

namespace hawser::cli {

/// The facts about the devices themselves, for ports_by_place.
std::vector<backend::verbs::DeviceInfo> infos_of(const backend::verbs::Survey& survey);

/// A row for each port: state, link, speed, MTU, the GID that would be used, whether the device opens. Empty without
/// devices.
std::string rdma_ports_text(const backend::verbs::Survey& survey);
/// A row for each of the kernel's counters that is not 0. Empty without any.
std::string rdma_counters_text(const backend::verbs::Survey& survey);
/// A row for each GID: its score and the reason for it, best first.
std::string rdma_gids_text(const backend::verbs::Survey& survey);
/// A row for each place and port, best first: ports of equal rank share the transfers.
std::string rdma_rails_text(const std::vector<backend::verbs::PlacePorts>& places);

Json rdma_json(const backend::verbs::Survey& survey);
Json rails_json(const std::vector<backend::verbs::PlacePorts>& places);

}  // namespace hawser::cli
