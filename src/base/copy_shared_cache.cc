#include "base/copy_shared_cache.h"

#include <fstream>

#include "base/copy.h"

namespace hawser::base {
namespace {

constexpr int kCachesMax = 16;

/// The first line of a file; empty when there is none.
std::string line_of(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

bool pays_here() noexcept {
  try {
    // The same family, of which both were measured.
    return string_moves_pay() && one_cache_for_all("/sys/devices/system/cpu");
  } catch (...) {
    return false;
  }
}

}  // namespace

bool one_cache_for_all(const std::string& root) {
  const std::string online = line_of(root + "/online");
  const std::string first = online.substr(0, online.find_first_not_of("0123456789"));
  if (first.empty()) return false;
  int highest = 0;
  std::string sharers;
  for (int i = 0; i < kCachesMax; ++i) {
    const std::string cache = root + "/cpu" + first + "/cache/index" + std::to_string(i);
    const std::string level = line_of(cache + "/level");
    if (level.size() != 1 || level[0] - '0' <= highest) continue;
    highest = level[0] - '0';
    sharers = line_of(cache + "/shared_cpu_list");
  }
  return highest > 0 && sharers == online;
}

bool shared_cache_pays() noexcept {
  static const bool pays = pays_here();
  return pays;
}

}  // namespace hawser::base
