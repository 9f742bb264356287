#pragma once

// What the environment says to the compat layer itself: the variables of NIXL that mean something here, and its own.
//
// Thread rule: pure functions.

#include <string>
#include <string_view>

#include <hawser/agent.h>
#include <hawser/compat/agent.h>

HAWSER_NAMESPACE_BEGIN
namespace compat {

/// NIXL_TELEMETRY_ENABLE: an explicit "no" beats what the client asks for, and a "yes" what it does not.
bool telemetry_wanted(const ConfigSources::Texts& environment, bool asked);

/// NIXL has no deadlines. What takes longer than this is never heard of again, and its user has given up.
inline constexpr Duration kNoDeadline = std::chrono::hours(1);

/// What to warn of where telemetry is on, NIXL_TELEMETRY_DIR or _PROMETHEUS_PORT says where it should go, and no
/// exporter is named: nothing goes there. Else empty. No refusal, for clients set them only to have telemetry at all,
/// which is there: the own tests of nixl-sys do.
std::string telemetry_note(const ConfigSources::Texts& environment);

/// What answers to UCX: kOk for HAWSER_NIXL_UCX=auto, or without it.
Status check_ucx_mode(const ConfigSources::Texts& environment);

/// Hawser's options for an agent of that name. Errors: a wrong value, or HAWSER_NIXL_UCX that is not "auto".
/// `etcd` gets where metadata is exchanged: NIXL_ETCD_ENDPOINTS and NIXL_ETCD_NAMESPACE, with the options etcd.* of
/// Hawser. Without endpoints it has none.
Result<AgentOptions> agent_options(std::string_view name, const AgentConfig& config, EtcdOptions* etcd);

}  // namespace compat
HAWSER_NAMESPACE_END
