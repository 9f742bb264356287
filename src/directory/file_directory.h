#pragma once

// The file directory with its options; <hawser/directory.h> opens it with the defaults.

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include <hawser/directory.h>

namespace hawser::directory {

struct FileOptions {
  std::string path;
  Duration poll_interval = std::chrono::milliseconds(50);  ///< How often watches look, given that run_job is called.
  bool sync = false;                            ///< Wait for the disk: values survive a crash of the host, too.
  std::function<std::uint64_t()> wall_ns = {};  ///< Nanoseconds since 1970; empty: the system's clock.
};

Result<std::shared_ptr<Directory>> open_file_directory(FileOptions options);

}  // namespace hawser::directory
