#pragma once

// Folder: the system calls of the file directory. Files named by key, a lock file whose text is the folder's marker.
//
// The marker is a number that every change makes larger: odd while a change is under way, even after it. So a watcher
// reads one small file to learn that nothing happened, and a process that died in a change leaves it odd, which reads
// as "changing" until the next change mends it. Temporary files live only under the lock: one that is seen by its next
// holder is stale.
//
// Somebody may delete or replace the folder while it is in use: `follow_path` goes over to the one that its path names.
//
// Thread rule: const functions from any thread, but none beside `follow_path`; changes need the FolderLock. Lifetime:
// keeps a descriptor of the folder.

#include <dirent.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include <hawser/status.h>

#include "base/fd.h"
#include "directory/file_format.h"

namespace hawser::directory {

inline constexpr std::string_view kLockName = ".lock";
inline constexpr std::string_view kTempPrefix = ".tmp-";

/// Tells one state of a file from another without reading it, once it is settled: file times are coarse and inodes are
/// used again, so two values that were put within one tick can have the same stamp.
struct FileStamp {
  std::uint64_t inode = 0, size = 0;
  std::int64_t modified_ns = 0, changed_ns = 0;
  bool settled = false;  ///< Not changed lately.
  friend bool operator==(const FileStamp&, const FileStamp&) = default;
};

/// The right to change the folder; released by the destructor.
class FolderLock {
 public:
  FolderLock(FolderLock&& other) noexcept = default;
  FolderLock& operator=(FolderLock&&) = delete;
  ~FolderLock();

  /// Marks the change; the answer is even, above the marker and above `above`: the version of what will be written.
  Result<std::uint64_t> begin_change(std::uint64_t above);

 private:
  friend class Folder;
  FolderLock(base::Fd fd, std::uint64_t marker) : fd_(std::move(fd)), marker_(marker) {}
  base::Fd fd_;
  std::uint64_t marker_;
  bool changing_ = false;
};

/// Reads a folder's names, each once.
class FolderScan {
 public:
  /// Nothing at the end. Without "." and "..".
  std::optional<std::string> next();

 private:
  friend class Folder;
  struct Close {
    void operator()(DIR* dir) const { closedir(dir); }
  };
  std::unique_ptr<DIR, Close> dir_;
};

class Folder {
 public:
  /// Makes it (for this user only) when it is missing, and tries whether it can be written.
  static Result<Folder> open(std::string path, bool sync);

  const std::string& path() const { return path_; }
  /// Goes over to the folder that the path names now, and makes it when there is none. True: it is another one than
  /// before. kDenied when the new one belongs to another user than the old one.
  Result<bool> follow_path();
  Result<FolderScan> scan() const;
  /// Nothing when there is no such file.
  std::optional<FileStamp> stamp(const std::string& name) const;
  /// Nothing when there is no such file; kCorrupt when it is no value.
  Result<std::optional<FileRecord>> read(const std::string& name) const;
  /// Odd when it cannot be told.
  std::uint64_t marker() const;

  /// Nothing when another holds it. Never waits.
  Result<std::optional<FolderLock>> try_lock() const;
  /// Replaces the file at once: readers see the old or the new one. `only_new`: kBusy when there is one.
  Status write(const FolderLock&, const std::string& name, std::string_view bytes, bool only_new) const;
  /// Good, too, when there is no such file.
  Status remove(const FolderLock&, const std::string& name) const;

 private:
  Folder(std::string path, base::Fd fd, bool sync) : path_(std::move(path)), fd_(std::move(fd)), sync_(sync) {}
  Result<base::Fd> open_path() const;
  Status fill(const base::Fd& file, std::string_view bytes) const;
  Status failed(std::string_view what, std::string_view name, int error) const;

  std::string path_;
  base::Fd fd_;
  bool sync_;
};

}  // namespace hawser::directory
