#pragma once

// nixlAgentConfig. Agents are safe to use from several threads whatever `sync` says.

#include <chrono>
#include <cstdint>

namespace hawser::api::nixl_python {

enum class ThreadSync : std::uint8_t { kNone = 0, kStrict = 1, kReadWrite = 2 };

struct Config {
  bool progress_thread = false;
  bool listen_thread = false;
  int listen_port = 8888;
  ThreadSync sync = ThreadSync::kNone;
  std::chrono::microseconds pthr_delay{0};
  std::chrono::microseconds lthr_delay{100000};
  bool telemetry = false;
  std::chrono::microseconds etcd_watch_timeout = std::chrono::seconds(5);
};

}  // namespace hawser::api::nixl_python
