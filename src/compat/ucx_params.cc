#include "compat/ucx_params.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "base/format.h"
#include "base/quantity.h"
#include "compat/refusal.h"

HAWSER_NAMESPACE_BEGIN
namespace compat {
namespace {

constexpr std::array<std::string_view, 1> kTcp = {"tcp"};
constexpr std::array<std::string_view, 9> kShared = {"shm", "sm",   "posix", "sysv", "xpmem",
                                                     "cma", "knem", "mm",    "self"};

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

template <std::size_t kCount>
bool are_all(const std::vector<std::string>& names, const std::array<std::string_view, kCount>& of) {
  return std::all_of(names.begin(), names.end(), [&](const std::string& name) {
    return name == "self" || std::find(of.begin(), of.end(), name) != of.end();
  });
}

void choose_transports(const std::string& list, UcxChoice& choice) {
  std::vector<std::string> names = split(base::to_lower(list));
  // "^x" is all but x, and what else is listed (RDMA, CUDA) is not here: Hawser chooses as always.
  const bool only_self = std::all_of(names.begin(), names.end(), [](const auto& name) { return name == "self"; });
  if (names.empty() || names.front().starts_with('^') || only_self) return;
  if (are_all(names, kTcp)) {
    choice.backends = {"loopback", "tcp"};
  } else if (are_all(names, kShared)) {
    choice.backends = {"loopback", "shm"};
  } else {
    const bool known = std::any_of(names.begin(), names.end(), [&](const std::string& name) {
      return name == "all" || name == "tcp" || std::find(kShared.begin(), kShared.end(), name) != kShared.end();
    });
    if (known) return;
    choice.warnings.push_back(
        base::format("TLS={}: none of these is here; paths are chosen among shared memory and tcp", list));
  }
}

}  // namespace

Result<UcxChoice> choose_for_ucx(const Params& given) {
  UcxChoice choice;
  for (const std::string_view key : {"device_list", "ucx_devices"}) {
    const auto devices = given.find(key);
    if (devices == given.end()) continue;
    if (key == "device_list" && base::trim(devices->second).empty()) {
      return refusal(NixlCode::kBackend, "create_backend", "device_list is empty, so UCX has no device")
          .with_advice("leave it out, or name devices");
    }
    if (base::trim(devices->second).empty() || base::to_lower(base::trim(devices->second)) == "all") continue;
    choice.warnings.push_back(base::format(
        "{}={} changes nothing: the addresses of HAWSER_LISTEN decide on the network", key, devices->second));
  }
  if (const auto config = given.find("engine_config"); config != given.end()) {
    choose_transports(transports_in(config->second), choice);
  }
  return choice;
}

}  // namespace compat
HAWSER_NAMESPACE_END
