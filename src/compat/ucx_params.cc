#include "compat/ucx_params.h"

#include <algorithm>
#include <array>
#include <span>
#include <string_view>

#include "base/format.h"
#include "base/quantity.h"
#include "base/try.h"
#include "compat/refusal.h"

HAWSER_NAMESPACE_BEGIN
namespace compat {
namespace {

/// Which transports of UCX's each backend stands for, in the order of preference.
struct Stand {
  std::string_view backend;
  std::span<const std::string_view> transports;
};
constexpr std::array<std::string_view, 8> kShared = {"shm", "sm", "posix", "sysv", "xpmem", "cma", "knem", "mm"};
constexpr std::array<std::string_view, 14> kRdma = {"ib",      "rc", "rc_v", "rc_x",   "rc_verbs",
                                                    "rc_mlx5", "ud", "ud_v", "ud_x",   "ud_verbs",
                                                    "ud_mlx5", "dc", "dc_x", "dc_mlx5"};
constexpr std::array<std::string_view, 1> kTcp = {"tcp"};
constexpr std::array<Stand, 3> kStands = {{{"shm", kShared}, {"verbs", kRdma}, {"tcp", kTcp}}};

std::vector<std::string> split(std::string_view text) {
  std::vector<std::string> parts;
  while (!text.empty()) {
    const std::size_t comma = text.find(',');
    if (const std::string_view part = base::trim(text.substr(0, comma)); !part.empty()) parts.emplace_back(part);
    text = comma == std::string_view::npos ? std::string_view() : text.substr(comma + 1);
  }
  return parts;
}

/// The value of TLS in "TLS=tcp,self,RCACHE_ENABLE=n": a part without '=' belongs to the one before.
std::string transports_in(std::string_view config) {
  std::string transports;
  bool in_list = false;
  for (const std::string& part : split(config)) {
    const std::size_t equals = part.find('=');
    if (equals == std::string::npos) {
      if (in_list) transports.append(",").append(part);
      continue;
    }
    const std::string key = base::to_lower(base::trim(std::string_view(part).substr(0, equals)));
    in_list = key == "tls" || key == "ucx_tls";
    if (in_list) transports = base::trim(std::string_view(part).substr(equals + 1));
  }
  return transports;
}

bool has_any(const std::vector<std::string>& names, std::span<const std::string_view> of) {
  return std::any_of(names.begin(), names.end(),
                     [&](const std::string& name) { return std::find(of.begin(), of.end(), name) != of.end(); });
}

void choose_transports(const std::string& list, UcxChoice& choice) {
  const std::vector<std::string> names = split(base::to_lower(list));
  // "^x" is all but x, and to itself an agent speaks whatever is listed: Hawser chooses as always.
  const bool only_self = std::all_of(names.begin(), names.end(), [](const auto& name) { return name == "self"; });
  if (names.front().starts_with('^') || only_self || std::find(names.begin(), names.end(), "all") != names.end())
    return;
  std::vector<std::string> wanted;
  for (const Stand& one : kStands) {
    if (has_any(names, one.transports)) wanted.emplace_back(one.backend);
  }
  const bool has_rdma = has_any(names, kRdma), has_tcp = has_any(names, kTcp);
  if (wanted.empty()) {
    choice.warnings.push_back(base::format("TLS={}: none of these is here; paths are chosen as without a list", list));
  } else if (!(has_rdma && has_tcp)) {  // With both, it is what would be chosen from anyway.
    choice.backends = {"loopback"};
    choice.backends.insert(choice.backends.end(), wanted.begin(), wanted.end());
    choice.is_lenient = has_rdma && wanted.size() > 1;
    if (has_rdma) choice.wants_rdma = "TLS=" + list;
  }
}

/// Names as UCX takes them are names that verbs takes: "mlx5_0", or "mlx5_0:1" for a port of it.
void choose_devices(std::string_view key, const std::string& list, bool (*is_interface)(const std::string&),
                    UcxChoice& choice) {
  std::string devices, interfaces;
  for (const std::string& name : split(list)) {
    if (base::to_lower(name) == "all") return;
    std::string& into = is_interface(name) ? interfaces : devices;
    into.append(into.empty() ? "" : ",").append(name);
  }
  if (!interfaces.empty()) {
    choice.warnings.push_back(
        base::format("{}={}: {} changes nothing: for networks without RDMA the addresses of "
                     "HAWSER_LISTEN decide",
                     key, list, interfaces));
  }
  if (devices.empty()) return;
  choice.devices = devices;
  choice.wants_rdma = base::format("{}={}", key, list);
}

/// These change nothing here, but what UCX would not take is a client's mistake.
Status check_forms(const Params& given) {
  for (const std::string_view key : {"num_workers", "num_threads", "split_batch_size", "ucx_num_device_channels"}) {
    const auto found = given.find(key);
    if (found == given.end() || base::parse_count(found->second)) continue;
    return refusal(NixlCode::kInvalidParam, "create_backend", base::format("UCX: {}={}", key, found->second))
        .with_advice("give a whole number");
  }
  const auto mode = given.find("ucx_error_handling_mode");
  if (mode == given.end() || mode->second == "none" || mode->second == "peer") return {};
  return refusal(NixlCode::kInvalidParam, "create_backend", base::format("UCX: {}={}", mode->first, mode->second))
      .with_advice("give none or peer");
}

}  // namespace

Result<UcxChoice> choose_for_ucx(const Params& given, bool (*is_interface)(const std::string& name)) {
  HAWSER_TRY(check_forms(given));
  UcxChoice choice;
  for (const std::string_view key : {"device_list", "ucx_devices"}) {
    const auto devices = given.find(key);
    if (devices == given.end()) continue;
    if (key == "device_list" && base::trim(devices->second).empty()) {
      return refusal(NixlCode::kBackend, "create_backend", "device_list is empty, so UCX has no device")
          .with_advice("leave it out, or name devices");
    }
    choose_devices(key, devices->second, is_interface, choice);
  }
  if (const auto config = given.find("engine_config"); config != given.end()) {
    const std::string list = transports_in(config->second);
    if (!split(list).empty()) choose_transports(list, choice);
  }
  return choice;
}

}  // namespace compat
HAWSER_NAMESPACE_END
