#include "backend/verbs/devices/device_files.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <climits>
#include <cstdlib>
#include <system_error>

#include "backend/verbs/devices/device.h"
#include "base/small_file.h"

namespace hawser::backend::verbs {

std::string read_text(const std::filesystem::path& path) {
  std::array<char, base::kSmallFileMax> room;
  return std::string(base::read_small_file(path.c_str(), room));
}

std::optional<int> read_int(const std::filesystem::path& path) {
  const std::string text = read_text(path);
  char* end = nullptr;
  errno = 0;
  const long value = std::strtol(text.c_str(), &end, 0);
  if (end == text.c_str() || errno != 0 || value < INT_MIN || value > INT_MAX) return std::nullopt;
  return static_cast<int>(value);
}

std::vector<std::string> names_in(const std::filesystem::path& folder) {
  std::vector<std::string> names;
  std::error_code error;
  std::filesystem::directory_iterator at(folder, error);
  for (; !error && at != std::filesystem::directory_iterator(); at.increment(error)) {
    names.push_back(at->path().filename().string());
  }
  std::sort(names.begin(), names.end(), [](const auto& a, const auto& b) { return name_before(a, b); });
  return names;
}

void read_counters(const std::string& sysfs_root, std::span<DeviceInfo> devices) {
  for (DeviceInfo& device : devices) {
    for (PortInfo& port : device.ports) {
      const std::filesystem::path folder =
          std::filesystem::path(sysfs_root) / "class/infiniband" / device.name / "ports" / std::to_string(port.number);
      port.counters.clear();
      for (const char* const kind : {"counters", "hw_counters"}) {
        for (const std::string& name : names_in(folder / kind)) {
          const std::string text = read_text(folder / kind / name);
          std::uint64_t value = 0;
          const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
          if (error == std::errc() && end == text.data() + text.size()) port.counters.emplace_back(name, value);
        }
      }
    }
  }
}

std::vector<std::string> numa_nodes_in(const std::filesystem::path& sysfs_root) {
  constexpr std::string_view kNode = "node";
  std::vector<std::string> nodes;
  for (const std::string& name : names_in(sysfs_root / "devices/system/node")) {
    const std::string number = name.starts_with(kNode) ? name.substr(kNode.size()) : "";
    if (!number.empty() && number.find_first_not_of("0123456789") == std::string::npos) nodes.push_back(number);
  }
  if (nodes.empty()) nodes.push_back("0");
  return nodes;
}

}  // namespace hawser::backend::verbs
