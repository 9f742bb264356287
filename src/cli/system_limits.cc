#include "cli/system_limits.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <fstream>

#include "base/control_group.h"
#include "base/fd.h"
#include "base/quantity.h"
#include "cli/units.h"

namespace hawser::cli {
namespace {

constexpr std::size_t kKernelFileSizeMax = 1u << 20;  // bytes; what is read here is small

std::optional<std::uint64_t> meminfo(const std::string& key) {
  std::ifstream file("/proc/meminfo");
  std::string name, unit;
  std::uint64_t value = 0;
  while (file >> name >> value) {
    std::getline(file, unit);
    if (name == key + ":") return value * 1024;
  }
  return std::nullopt;
}

Limit resource(const char* name, int which, bool bytes) {
  rlimit limit = {};
  getrlimit(static_cast<__rlimit_resource>(which), &limit);
  if (limit.rlim_cur == RLIM_INFINITY) return {name, "unlimited", std::nullopt};
  return {name, bytes ? short_size(limit.rlim_cur) : std::to_string(limit.rlim_cur), limit.rlim_cur};
}

Limit setting(const char* name, const std::string& path, bool bytes) {
  const auto number = read_number(path);
  if (!number) return {name, "unknown", std::nullopt};
  return {name, bytes ? short_size(*number) : std::to_string(*number), number};
}

Limit shared_memory() {
  struct statvfs info = {};
  if (statvfs("/dev/shm", &info) != 0) return {"dev_shm", "not mounted", std::nullopt};
  const std::uint64_t size = std::uint64_t{info.f_blocks} * info.f_frsize;
  return {"dev_shm", short_size(size), size};
}

}  // namespace

std::optional<std::string> read_file(const std::string& path) {
  const base::Fd file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file) return std::nullopt;
  std::string text;
  std::array<char, 4096> part;
  ssize_t n = 0;
  while ((n = read(file.get(), part.data(), part.size())) > 0) {
    text.append(part.data(), static_cast<std::size_t>(n));
    if (text.size() > kKernelFileSizeMax) return std::nullopt;
  }
  if (n < 0) return std::nullopt;  // Such as the speed of an interface that has none.
  text.erase(text.find_last_not_of(" \n\t") + 1);
  return text;
}

std::optional<std::uint64_t> read_number(const std::string& path) {
  const auto text = read_file(path);
  return text ? base::parse_count(*text) : std::nullopt;
}

std::string chosen_word(const std::string& text) {
  const std::size_t open = text.find('['), close = text.find(']');
  if (open == std::string::npos || close == std::string::npos || close < open) return text;
  return text.substr(open + 1, close - open - 1);
}

std::uint64_t available_memory() {
  std::uint64_t available = meminfo("MemAvailable").value_or(0);
  if (const auto group = base::group_memory()) {
    const std::uint64_t left = std::max<std::uint64_t>(group->left, 1);
    available = available == 0 ? left : std::min(available, left);
  }
  return available;
}

std::vector<Limit> system_limits() {
  return {resource("memlock", RLIMIT_MEMLOCK, true),
          resource("nofile", RLIMIT_NOFILE, false),
          setting("max_map_count", "/proc/sys/vm/max_map_count", false),
          shared_memory(),
          setting("wmem_max", "/proc/sys/net/core/wmem_max", true),
          setting("rmem_max", "/proc/sys/net/core/rmem_max", true),
          setting("hugetlb_pages", "/proc/sys/vm/nr_hugepages", false),
          setting("somaxconn", "/proc/sys/net/core/somaxconn", false)};
}

}  // namespace hawser::cli
