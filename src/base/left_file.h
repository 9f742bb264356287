#pragma once

// LeftFile: a file that a process maps and writes, and that others of its user read at any time, also while it is
// stuck or stopped, and after it died.
//
// A lock on the file tells who lives: the kernel drops it with the process. A file that its process left behind stays
// for an hour (where there are more than 64, a minute), so that somebody can look at what it did last.
//
// The mapped part is allocated, so a full disk does not end the process. Readers use system calls, so a file that
// somebody truncates does not end them.
//
// Thread rule: one thread at a time, but for what is stored in `memory`. Lifetime: destroying removes the file.

#include <sys/stat.h>

#include <cstddef>
#include <cstdint>
#include <ctime>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <hawser/status.h>

#include "base/fd.h"

namespace hawser::base {

class LeftFile {
 public:
  struct Shape {
    std::string_view suffix;  ///< The end of its name.
    std::size_t bytes = 0;    ///< Size of the file.
    std::size_t mapped = 0;   ///< Bytes of its beginning that are mapped.
    /// When its process was last at work, seconds since 1970; empty: when it was last written by a system call.
    std::function<std::time_t(int file, const struct stat& found)> touched = {};
  };
  /// `folder`/`name``suffix`, mode 0600, full of zeros. Removes those in the folder that nobody will look at any more.
  static Result<LeftFile> create(const std::string& folder, std::string_view name, const Shape& shape);

  LeftFile(LeftFile&& other) noexcept
      : memory_(std::exchange(other.memory_, {})), file_(std::move(other.file_)), path_(std::move(other.path_)) {}
  LeftFile& operator=(LeftFile&&) = delete;
  ~LeftFile();

  std::span<std::byte> memory() const { return memory_; }
  /// -1 once it was withdrawn or disowned.
  int file() const { return file_.get(); }
  const std::string& path() const { return path_; }
  /// Nobody finds it from now on. The memory may be used on.
  void withdraw();
  /// It stays as that of a process that died, for whoever wants to know what happened.
  void leave() { file_.reset(); }
  /// In a forked child: the file is the parent's. Only system calls.
  void disown_after_fork() { file_.reset(); }

 private:
  LeftFile(std::span<std::byte> memory, Fd file, std::string path)
      : memory_(memory), file_(std::move(file)), path_(std::move(path)) {}

  std::span<std::byte> memory_;
  Fd file_;
  std::string path_;
};

// For readers.
/// kCorrupt: it is no file of this user, or not of so many bytes. Else what the kernel said.
Result<Fd> open_left_file(const std::string& path, std::size_t bytes);
/// Nobody holds its lock: its process is gone.
bool is_left(int file);
bool read_exactly(int file, void* into, std::size_t size, off_t at);
/// The paths of all files of that suffix in a folder, in order. None where the folder is not there.
std::vector<std::string> list_left_files(const std::string& folder, std::string_view suffix);
/// Names this process's numbers of processes; 0: not known.
std::uint64_t own_process_namespace();
/// By a signal, or by a debugger. False where the process is numbered by another namespace.
bool is_process_stopped(std::uint32_t process, std::uint64_t process_namespace);

}  // namespace hawser::base
