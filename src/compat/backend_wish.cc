#include "compat/backend_wish.h"

#include <optional>
#include <string_view>
#include <utility>

#include "base/format.h"
#include "base/quantity.h"
#include "base/try.h"
#include "compat/environment.h"
#include "compat/posix_params.h"
#include "compat/refusal.h"
#include "compat/ucx_params.h"

HAWSER_NAMESPACE_BEGIN
namespace compat {
namespace {

constexpr std::string_view kOpened = "another backend was created before";

/// NIXL's clients have no call for it.
Status take_deadline(const Params& given, bool is_open, const base::Logger& log, AgentOptions* options) {
  const auto found = given.find(kDeadlineKey);
  if (found == given.end()) return {};
  const std::optional<Duration> deadline = base::parse_duration(found->second);
  if (!deadline || *deadline < std::chrono::milliseconds(1)) {
    return refusal(NixlCode::kInvalidParam, "create_backend", base::format("{}={}", found->first, found->second))
        .with_advice("give a duration from 1ms, such as 30s");
  }
  if (is_open || options->default_deadline != kNoDeadline) {
    HAWSER_LOG(log, kWarn, "create_backend: {} changes nothing: {}", kDeadlineKey,
               is_open ? kOpened : "a deadline is set (HAWSER_DEADLINE, or a file)");
    return {};
  }
  options->default_deadline = *deadline;
  return {};
}

void take_devices(std::string devices, bool is_open, const base::Logger& log, AgentOptions* options) {
  Params& verbs = options->backend_params["verbs"];
  const std::string_view set = is_open ? kOpened
                               : verbs.contains("devices")
                                   ? "the devices of the backend verbs are set (HAWSER_BACKEND_VERBS_DEVICES)"
                                   : std::string_view();
  if (!set.empty()) {
    HAWSER_LOG(log, kWarn, "create_backend: UCX: the list of devices changes nothing: {}", set);
  } else {
    verbs["devices"] = std::move(devices);
  }
}

void take_transports(UcxChoice& choice, bool is_open, const base::Logger& log, AgentOptions* options) {
  if (!options->backends.empty() || is_open) {
    HAWSER_LOG(log, kWarn, "create_backend: UCX: the list of transports changes nothing: {}",
               is_open ? kOpened : "HAWSER_BACKENDS is set");
    return;
  }
  for (std::string& name : choice.backends) options->backends.push_back({.name = std::move(name), .params = {}});
  if (choice.is_lenient) options->mode = OpenMode::kLenient;
}

}  // namespace

Result<BackendWish> read_wish(const AgentOptions& set, const Plugin& plugin, const Params& given, bool is_open,
                              bool (*is_interface)(const std::string& name), const base::Logger& log) {
  BackendWish wish{.options = set, .file = {}, .rdma = {}};
  HAWSER_TRY(take_deadline(given, is_open, log, &wish.options));
  if (takes(plugin, MemType::kFile)) {
    HAWSER_TRY_ASSIGN(PosixChoice choice, choose_for_posix(given));
    for (const std::string& warning : choice.warnings) HAWSER_LOG(log, kWarn, "create_backend: POSIX: {}", warning);
    wish.file = std::move(choice.file);
    return wish;
  }
  HAWSER_TRY_ASSIGN(UcxChoice choice, choose_for_ucx(given, is_interface));
  for (const std::string& warning : choice.warnings) HAWSER_LOG(log, kWarn, "create_backend: UCX: {}", warning);
  wish.rdma = std::move(choice.wants_rdma);
  if (!choice.devices.empty()) take_devices(std::move(choice.devices), is_open, log, &wish.options);
  if (!choice.backends.empty()) take_transports(choice, is_open, log, &wish.options);
  return wish;
}

Params params_in_force(const Plugin& plugin, const Params& given, const base::Logger& log) {
  Params params = default_params(plugin);
  for (const auto& [key, value] : given) {
    if (!knows(plugin, key)) {
      HAWSER_LOG(log, kWarn, "create_backend: {} has no parameter '{}'; it is ignored", plugin.name, key);
    }
    params.insert_or_assign(key, value);
  }
  return params;
}

}  // namespace compat
HAWSER_NAMESPACE_END
