#pragma once

// Ceilings: what the machine does with the same blocks without either library, measured in the same rounds.
//
// Thread rule: one thread. Lifetime: its memory goes with it; the processes that it starts end with each call.

#include <sys/types.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>

#include "blocks.h"
#include "rows.h"

namespace nixl_bench {

/// Another process's memory, for raw copies into it.
struct ForeignMemory {
  pid_t pid = -1;
  std::uintptr_t base = 0;
};

class Ceilings {
 public:
  static constexpr const char* kCma = "process_vm";
  static constexpr const char* kMapped = "mapped";
  static constexpr const char* kStream = "raw socket";

  Ceilings(std::uint64_t arena, const std::array<int, 2>& cores) : arena_(arena), cores_(cores) {}
  Ceilings(const Ceilings&) = delete;
  Ceilings& operator=(const Ceilings&) = delete;
  ~Ceilings();

  /// Nanoseconds of one operation, by the way's name; empty where nothing bounds the measurement.
  std::map<std::string, double> measure(const Measurement& measurement, const ForeignMemory& foreign, double seconds);

 private:
  void map_arenas();
  /// process_vm_writev or readv, the best of several numbers of blocks a call.
  double foreign_copy(const Measurement& measurement, const ForeignMemory& foreign, double seconds);
  /// Into a memory file that is mapped: memcpy and Hawser's own copy, whichever is faster.
  double mapped_copy(const Measurement& measurement, double seconds);

  const std::uint64_t arena_;
  const std::array<int, 2> cores_;
  std::byte* own_ = nullptr;
  std::byte* shared_ = nullptr;
};

/// One way over loopback TCP; ns of `bytes`. A child process receives.
double raw_stream_ns(std::uint64_t bytes, int sockets, const std::array<int, 2>& cores, double seconds);
/// `bytes` there and eight bytes back, spinning; ns.
double raw_round_trip_ns(std::uint64_t bytes, const std::array<int, 2>& cores, double seconds);

}  // namespace nixl_bench
