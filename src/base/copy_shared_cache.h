#pragma once

// Tells whether bytes that another core reads next are best left in the caches.
//
// Thread rule: any thread.

namespace hawser::base {

/// True where one last-level cache serves all processors that are online, by the files below `root`, on this machine
/// /sys/devices/system/cpu: `online`, `cpuN/cache/indexM/level` and `shared_cpu_list` (Linux,
/// Documentation/ABI/testing/sysfs-devices-system-cpu). False where they cannot be read.
bool one_cache_for_all(const char* root) noexcept;

/// For this machine. Both must hold: all cores share a cache, and the processor is of a family that hands lines over
/// within it faster than through memory. On Zen 5 a reader that follows a writer gets 37 GB/s by the cache and 15
/// past it; on Zen 4 13 past it, and that is the best (`hawser bench --row 'shm.consume*'`). Elsewhere nobody measured.
bool shared_cache_pays() noexcept;

}  // namespace hawser::base
