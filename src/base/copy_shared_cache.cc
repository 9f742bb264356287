#include "base/copy_shared_cache.h"

#include <array>
#include <cstdio>
#include <string_view>

#include "base/copy.h"
#include "base/small_file.h"

namespace hawser::base {
namespace {

constexpr int kCachesMax = 16;

// Without the heap: whoever asks on the way to a copy must not fail.
using Path = std::array<char, 512>;
using Text = std::array<char, kSmallFileMax>;

std::string_view read_below(const char* root, const char* name, Text& text) noexcept {
  Path path;
  const int length = std::snprintf(path.data(), path.size(), "%s/%s", root, name);
  if (length < 0 || static_cast<std::size_t>(length) >= path.size()) return {};
  return read_small_file(path.data(), text);
}

std::string_view read_of_cache(const char* root, std::string_view cpu, int index, const char* name,
                               Text& text) noexcept {
  std::array<char, 128> below;
  const int length = std::snprintf(below.data(), below.size(), "cpu%.*s/cache/index%d/%s", static_cast<int>(cpu.size()),
                                   cpu.data(), index, name);
  if (length < 0 || static_cast<std::size_t>(length) >= below.size()) return {};
  return read_below(root, below.data(), text);
}

}  // namespace

bool one_cache_for_all(const char* root) noexcept {
  Text online_text, level_text, sharers_text;
  const std::string_view online = read_below(root, "online", online_text);
  const std::string_view first = online.substr(0, online.find_first_not_of("0123456789"));
  if (first.empty()) return false;
  int highest = 0;
  std::string_view sharers;
  for (int i = 0; i < kCachesMax; ++i) {
    const std::string_view level = read_of_cache(root, first, i, "level", level_text);
    if (level.size() != 1 || level[0] - '0' <= highest) continue;
    highest = level[0] - '0';
    sharers = read_of_cache(root, first, i, "shared_cpu_list", sharers_text);
  }
  return highest > 0 && sharers == online;
}

bool shared_cache_pays() noexcept {
  // Both were measured on one family of processors.
  static const bool pays = string_moves_pay() && one_cache_for_all("/sys/devices/system/cpu");
  return pays;
}

}  // namespace hawser::base
