#pragma once

// Processor time of this process, all threads, user and system.

#include <sys/resource.h>

#include <cstdint>

namespace hawser::cli::bench {

struct CpuTime {
  std::int64_t ns = 0;
  friend CpuTime operator-(CpuTime a, CpuTime b) { return {a.ns - b.ns}; }
};

inline CpuTime cpu_time_now() {
  rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  const auto ns = [](const timeval& t) { return (static_cast<std::int64_t>(t.tv_sec) * 1'000'000 + t.tv_usec) * 1000; };
  return {ns(usage.ru_utime) + ns(usage.ru_stime)};
}

}  // namespace hawser::cli::bench
