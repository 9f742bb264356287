#pragma once

// File: an open file as transfers use it: one descriptor that goes past the page cache, where the file system can, and
// one that goes through it, for what is not aligned.
//
// Thread rule: constant but for `direct_failed`, which any thread may set. Opening blocks as file systems do: on the
// control path only. Lifetime: the descriptors are the File's own and close with it.

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

#include <hawser/file.h>

#include "base/fd.h"

namespace hawser::fileio {

/// The alignment that direct I/O on a file needs, in bytes. Zeros: there is no direct I/O.
struct Alignment {
  std::uint32_t memory = 0;
  std::uint32_t offset = 0;  ///< For offsets and sizes.
};

class File {
 public:
  /// By the options' path or descriptor; its kind, rights and direct I/O checked.
  static Result<std::shared_ptr<File>> open(const FileOptions& options);

  const std::string& name() const { return name_; }  ///< For errors: the path, or "descriptor 7 (/path)".
  /// Through the page cache; -1 when it could not be opened again without O_DIRECT.
  int buffered() const { return buffered_.get(); }
  /// Past it; -1 when there is no such way.
  int direct() const { return direct_failed_.load(std::memory_order_relaxed) ? -1 : direct_.get(); }
  Alignment alignment() const { return alignment_; }
  /// A direct operation that should have worked did not: from now on all goes through the page cache.
  void direct_failed() { direct_failed_.store(true, std::memory_order_relaxed); }
  bool has_buffered() const { return buffered_.valid(); }

 private:
  File() = default;
  Status open_path(const FileOptions& options);
  Status adopt(const FileOptions& options);
  Status check_kind(int fd) const;
  Status check_rights(int mode, Rights rights) const;
  Status discover(const FileOptions& options);

  std::string name_;
  base::Fd buffered_, direct_;
  Alignment alignment_;
  std::atomic<bool> direct_failed_{false};
};

/// The kernel's word on direct I/O for this descriptor (since Linux 6.1), else try_alignment. Zeros: there is none.
Alignment find_alignment(int direct_fd);
/// The result of a trial read; for a descriptor that only writes, a block of its file system or device. An empty
/// file shows nothing wrong.
Alignment try_alignment(int direct_fd);

}  // namespace hawser::fileio
