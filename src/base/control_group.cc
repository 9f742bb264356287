#include "base/control_group.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <sstream>

#include "base/fd.h"
#include "base/format.h"
#include "base/quantity.h"

namespace hawser::base {
namespace {

/// Bounds on a file that is read here, and on groups above each other.
constexpr std::size_t kFileMax = 64 * 1024;
constexpr int kGroupsMax = 32;
/// Version 1 writes "no limit" as the largest multiple of a page.
constexpr std::uint64_t kNoLimit = std::uint64_t{1} << 62;

std::string text_of(const std::string& path) {
  const Fd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  std::string text;
  std::array<char, 4096> part;
  for (ssize_t got = 0; file && (got = ::read(file.get(), part.data(), part.size())) > 0 && text.size() < kFileMax;) {
    text.append(part.data(), static_cast<std::size_t>(got));
  }
  return text;
}

std::optional<std::uint64_t> number_of(const std::string& path) { return parse_count(text_of(path)); }

/// The value after `key` in "key value" lines.
std::uint64_t field_of(const std::string& text, std::string_view key) {
  std::istringstream words(text);
  std::string name;
  std::uint64_t value = 0;
  while (words >> name >> value) {
    if (name == key) return value;
  }
  return 0;
}

/// A controller's tree: where it is mounted, and this process's group in it.
struct Place {
  std::string mount, group;
};

/// Version 2 has one tree and no name in its line ("0::/path"); version 1 has a tree for each controller
/// ("4:memory:/path").
Place place_of(const std::string& root, std::string_view controller) {
  Place place;
  std::istringstream lines(text_of(root + "/proc/self/cgroup"));
  for (std::string line; std::getline(lines, line);) {
    const std::size_t first = line.find(':'), second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const std::string names = "," + line.substr(first + 1, second - first - 1) + ",";
    if (names == ",," && place.mount.empty()) place = {root + "/sys/fs/cgroup", line.substr(second + 1)};
    if (names.find("," + std::string(controller) + ",") == std::string::npos) continue;
    return {root + "/sys/fs/cgroup/" + std::string(controller), line.substr(second + 1)};
  }
  return place;
}

bool is_version_1(const Place& place) { return !place.mount.ends_with("/cgroup"); }

/// Calls `look(folder)` for the group and each one above it. In a container the path may be the host's, which is not
/// there; the mount itself is the group then.
template <typename Look>
void for_each_group(const Place& place, Look&& look) {
  if (place.mount.empty()) return;
  std::string group = place.group;
  for (int i = 0; i < kGroupsMax; ++i) {
    while (group.ends_with('/')) group.pop_back();
    look(place.mount + group);
    if (group.empty()) return;
    group.resize(group.rfind('/') == std::string::npos ? 0 : group.rfind('/'));
  }
}

std::optional<GroupMemory> memory_of(const std::string& folder, bool is_first) {
  const std::string file = folder + (is_first ? "/memory.limit_in_bytes" : "/memory.max");
  const auto limit = number_of(file);  // "max" is no number.
  if (!limit || *limit >= kNoLimit) return std::nullopt;
  const std::uint64_t used = number_of(folder + (is_first ? "/memory.usage_in_bytes" : "/memory.current")).value_or(0);
  const std::string stat = text_of(folder + "/memory.stat");
  const std::string prefix = is_first ? "total_" : "";
  const std::uint64_t cached = field_of(stat, prefix + "inactive_file") + field_of(stat, prefix + "active_file");
  const std::uint64_t held = used - std::min(used, cached);
  return GroupMemory{.limit = *limit, .left = *limit - std::min(*limit, held), .file = file};
}

}  // namespace

std::optional<GroupMemory> group_memory(const std::string& root) {
  std::optional<GroupMemory> tightest;
  const Place place = place_of(root, "memory");
  for_each_group(place, [&](const std::string& folder) {
    const auto here = memory_of(folder, is_version_1(place));
    if (here && (!tightest || here->left < tightest->left)) tightest = here;
  });
  return tightest;
}

std::optional<double> group_processors(const std::string& root) {
  std::optional<double> least;
  const Place place = place_of(root, "cpu");
  for_each_group(place, [&](const std::string& folder) {
    const std::string text = is_version_1(place)
                                 ? text_of(folder + "/cpu.cfs_quota_us") + " " + text_of(folder + "/cpu.cfs_period_us")
                                 : text_of(folder + "/cpu.max");
    std::istringstream words(text);
    double quota = 0, period = 0;
    if (!(words >> quota >> period) || quota <= 0 || period <= 0) return;
    least = std::min(least.value_or(quota / period), quota / period);
  });
  return least;
}

Status check_group_memory(std::string_view what, std::uint64_t bytes, const std::string& root) {
  const auto memory = group_memory(root);
  if (!memory || bytes <= memory->left) return {};
  return Status(Code::kBusy, base::format("{} of {} bytes: the control group's memory limit of {} bytes leaves {} ({})",
                                          what, bytes, memory->limit, memory->left, memory->file))
      .with_advice("raise the container's memory limit, or take less memory");
}

}  // namespace hawser::base
