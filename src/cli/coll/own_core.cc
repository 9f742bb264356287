#include "cli/coll/own_core.h"

#include <charconv>
#include <filesystem>
#include <string>
#include <system_error>

namespace hawser::cli::coll {
namespace {

/// All threads that there are. One that ends meanwhile needs no core.
bool move_threads(const cpu_set_t& cores) {
  std::error_code error;
  bool is_moved = false;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/task", error)) {
    const std::string name = entry.path().filename().string();
    pid_t thread = 0;
    std::from_chars(name.data(), name.data() + name.size(), thread);
    if (thread > 0) is_moved = sched_setaffinity(thread, sizeof cores, &cores) == 0 || is_moved;
  }
  return is_moved;
}

}  // namespace

OwnCore::OwnCore(std::uint32_t local_rank, std::uint32_t local_size) {
  CPU_ZERO(&before_);
  if (sched_getaffinity(0, sizeof before_, &before_) != 0) return;
  if (local_size > static_cast<std::uint32_t>(CPU_COUNT(&before_))) return;
  std::uint32_t number = 0;
  for (int core = 0; core < CPU_SETSIZE; ++core) {
    if (!CPU_ISSET(core, &before_) || number++ != local_rank) continue;
    cpu_set_t own;
    CPU_ZERO(&own);
    CPU_SET(core, &own);
    is_kept_ = move_threads(own);
  }
}

OwnCore::~OwnCore() {
  if (is_kept_) move_threads(before_);
}

}  // namespace hawser::cli::coll
