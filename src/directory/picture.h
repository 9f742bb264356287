#pragma once

// Picture: what a folder holds, in memory, brought up to date by scans. A scan reads only files that changed since
// the last one or a moment ago, and goes in steps, so that no job is long; while it runs, the store shows each file as
// it was met.
//
// Thread rule: confined to the job that runs; the store has its own lock. Lifetime: borrows folder and store.

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "directory/folder.h"
#include "directory/store.h"

namespace hawser::directory {

class Picture {
 public:
  /// Told of each file that is passed over: its name and why.
  using Warn = std::function<void(const std::string& name, std::string_view why)>;

  Picture(const Folder& folder, SharedStore& store, Warn warn)
      : folder_(folder), store_(store), warn_(std::move(warn)) {}

  bool scanning() const { return names_.has_value(); }
  Status begin_scan();
  /// False when the scan is over.
  bool step(std::uint64_t wall_ns);
  /// The folder's marker when the last scan began; odd when it must be scanned again.
  std::uint64_t marker() const { return marker_; }

 private:
  /// A file as the last scan saw it.
  struct Known {
    FileStamp stamp;
    std::string key;  ///< Empty: no value, or one that has expired.
    std::uint64_t expiry_ns = 0;
    std::uint64_t scan = 0;  ///< Number of the last scan that saw it.
  };

  void examine(const std::string& name, std::uint64_t wall_ns);
  void adopt(const std::string& name, Known& known, Result<std::optional<FileRecord>> read, std::uint64_t wall_ns);
  void end_scan(std::uint64_t wall_ns);
  void forget(const std::string& key);
  void sweep(std::uint64_t wall_ns);
  void sweep_expired(FolderLock& lock, const std::string& name, std::uint64_t wall_ns);

  const Folder& folder_;
  SharedStore& store_;
  const Warn warn_;
  std::map<std::string, Known> known_;  ///< By file name; as many as the folder has files.
  std::optional<FolderScan> names_;     ///< While a scan runs.
  std::uint64_t scan_ = 0;
  std::uint64_t marker_ = 1;
  std::vector<std::string> stale_;  ///< Temporary files that the scan met; at most kSweepMax, as the next.
  std::vector<std::string> expired_;
};

}  // namespace hawser::directory
