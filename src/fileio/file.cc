#include "fileio/file.h"

#include <fcntl.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <cstdlib>

#include "base/format.h"
#include "base/try.h"

namespace hawser::fileio {
namespace {

constexpr std::uint32_t kPageMost = 4096;  // No file system that we know of asks for more.
/// Flags that a file keeps when it is opened again: its access mode, and that what is written is
/// on the device when the write ends (O_SYNC, and O_DSYNC, which is a part of it).
constexpr int kKept = O_ACCMODE | O_SYNC;

std::string own_path(int fd) { return base::format("/proc/self/fd/{}", fd); }

std::string name_of(int fd) {
  std::array<char, 4096> target;
  const ssize_t size = ::readlink(own_path(fd).c_str(), target.data(), target.size());
  if (size <= 0) return base::format("descriptor {}", fd);
  return base::format("descriptor {} ({})", fd, std::string_view(target.data(), static_cast<std::size_t>(size)));
}

int access_of(Rights rights) {
  if (rights == Rights::kRead) return O_RDONLY;
  return rights == Rights::kWrite ? O_WRONLY : O_RDWR;
}

base::Fd reopen(int fd, int flags) { return base::Fd(::open(own_path(fd).c_str(), flags | O_CLOEXEC | O_NOCTTY)); }

Status failed(const std::string& what, int error) { return base::errno_status("add_file: " + what, error); }

bool can_read_aligned(int fd, std::uint32_t align) {
  void* memory = nullptr;
  if (::posix_memalign(&memory, kPageMost, std::size_t{2} * kPageMost) != 0) return false;
  const ssize_t got = ::pread(fd, static_cast<char*>(memory) + align % kPageMost, align, align);
  const int error = errno;
  std::free(memory);
  return got >= 0 || error != EINVAL;
}

/// A file system's block is never smaller than its device's. A network file system's block is a size that it
/// prefers.
std::uint32_t block_of(int fd) {
  constexpr std::uint32_t kLargest = 65536;
  struct stat is {};
  if (::fstat(fd, &is) == 0 && S_ISBLK(is.st_mode)) {
    int sector = 0;
    if (::ioctl(fd, BLKSSZGET, &sector) == 0 && sector > 0) return static_cast<std::uint32_t>(sector);
  }
  struct statfs its {};
  if (::fstatfs(fd, &its) != 0 || its.f_bsize <= 0 || its.f_bsize > kLargest) return kPageMost;
  const auto block = static_cast<std::uint32_t>(its.f_bsize);
  return std::has_single_bit(block) ? block : kPageMost;
}

}  // namespace

Alignment try_alignment(int direct_fd) {
  const int flags = ::fcntl(direct_fd, F_GETFL);
  if ((flags & O_ACCMODE) == O_WRONLY) {  // Nothing can be tried unseen.
    const std::uint32_t align = std::max(kPageMost, block_of(direct_fd));
    return {.memory = align, .offset = align};
  }
  for (const std::uint32_t align : {512u, kPageMost}) {
    if (can_read_aligned(direct_fd, align)) return {.memory = align, .offset = align};
  }
  return {};
}

Alignment find_alignment(int direct_fd) {
#ifdef STATX_DIOALIGN
  struct statx known {};
  if (::statx(direct_fd, "", AT_EMPTY_PATH, STATX_DIOALIGN, &known) == 0 && (known.stx_mask & STATX_DIOALIGN) != 0) {
    return {.memory = known.stx_dio_mem_align, .offset = known.stx_dio_offset_align};
  }
#endif
  return try_alignment(direct_fd);
}

Result<std::shared_ptr<File>> File::open(const FileOptions& options) {
  if ((options.descriptor >= 0) == !options.path.empty()) {
    return Status(Code::kInvalid, "add_file: give either a descriptor or a path");
  }
  if (options.rights == Rights::kNone) {
    return Status(Code::kInvalid, "add_file: a file without the right to read or to write can do nothing");
  }
  std::shared_ptr<File> file(new File);
  HAWSER_TRY(options.descriptor >= 0 ? file->adopt(options) : file->open_path(options));
  HAWSER_TRY(file->discover(options));
  return file;
}

Status File::open_path(const FileOptions& options) {
  name_ = options.path;
  if (name_.find('\0') != std::string::npos) return Status(Code::kInvalid, "add_file: the path holds a zero byte");
  constexpr mode_t kMode = 0666;
  const int flags = access_of(options.rights) | O_CLOEXEC | O_NOCTTY | O_NONBLOCK | (options.create ? O_CREAT : 0);
  buffered_.reset(::open(name_.c_str(), flags, kMode));
  if (!buffered_ && errno == EISDIR) return Status(Code::kInvalid, "add_file: " + name_ + " is a directory");
  if (!buffered_) {
    const int error = errno;
    const Code code = error == ENOENT                     ? Code::kNotFound
                      : error == EACCES || error == EROFS ? Code::kDenied
                                                          : base::code_of_errno(error);
    return base::errno_status(code, "add_file: opening " + name_, error)
        .with_advice(error == ENOENT ? "create it first, or set FileOptions::create" : "");
  }
  HAWSER_TRY(check_kind(buffered_.get()));
  return base::set_nonblocking(buffered_.get(), false);  // Set so that opening a pipe does not wait for its other end.
}

// Opened again rather than duplicated: flags belong to all duplicates, and O_APPEND would move writes to the end of the
// file, O_NONBLOCK would make them fail. A descriptor that came from somebody with more rights can only be duplicated.
Status File::adopt(const FileOptions& options) {
  const int flags = ::fcntl(options.descriptor, F_GETFL);
  if (flags < 0) {
    return base::errno_status(Code::kInvalid, base::format("add_file: descriptor {}", options.descriptor), errno)
        .with_advice("give the descriptor of a file that is open in this process");
  }
  name_ = name_of(options.descriptor);
  HAWSER_TRY(check_kind(options.descriptor));
  HAWSER_TRY(check_rights(flags & O_ACCMODE, options.rights));
  const bool is_direct = (flags & O_DIRECT) != 0, is_odd = (flags & (O_APPEND | O_NONBLOCK)) != 0;
  buffered_ = reopen(options.descriptor, flags & kKept);
  if (is_direct) direct_ = reopen(options.descriptor, (flags & kKept) | O_DIRECT);
  base::Fd& same = is_direct ? direct_ : buffered_;
  if (!same && !is_odd) same.reset(::fcntl(options.descriptor, F_DUPFD_CLOEXEC, 0));
  if (same) return {};
  return failed("opening " + name_ + " again without O_APPEND and O_NONBLOCK", errno)
      .with_advice("give a descriptor that has neither flag");
}

Status File::check_kind(int fd) const {
  struct stat is {};
  if (::fstat(fd, &is) != 0) return failed(name_, errno);
  if (S_ISREG(is.st_mode) || S_ISBLK(is.st_mode)) return {};
  const std::string_view what = S_ISDIR(is.st_mode)    ? "a directory"
                                : S_ISFIFO(is.st_mode) ? "a pipe"
                                : S_ISSOCK(is.st_mode) ? "a socket"
                                                       : "no file with offsets";
  return Status(Code::kInvalid, base::format("add_file: {} is {}", name_, what))
      .with_advice("give a regular file or a block device");
}

Status File::check_rights(int mode, Rights rights) const {
  const bool reads = mode == O_RDONLY || mode == O_RDWR, writes = mode == O_WRONLY || mode == O_RDWR;
  if ((reads || !allows(rights, Rights::kRead)) && (writes || !allows(rights, Rights::kWrite))) return {};
  return Status(Code::kInvalid, base::format("add_file: {} is open for {} only", name_, reads ? "reading" : "writing"))
      .with_advice("open it for both, or give FileOptions::rights that fit");
}

Status File::discover(const FileOptions& options) {
  std::string why = "it is switched off";
  const bool wanted =
      options.direct == DirectIo::kRequire || (options.direct == DirectIo::kAuto && options.descriptor < 0);
  if (!direct_ && wanted) {
    direct_ = reopen(buffered_.get(), (::fcntl(buffered_.get(), F_GETFL) & kKept) | O_DIRECT);
    if (!direct_) why = base::errno_status("opening it with O_DIRECT", errno).to_string();
  }
  if (direct_) {
    alignment_ = find_alignment(direct_.get());
    if (alignment_.offset == 0) why = "its file system has none";
  }
  const bool useless = alignment_.offset == 0 || options.direct == DirectIo::kOff;
  if (direct_ && useless && buffered_) direct_.reset();
  if (options.direct == DirectIo::kRequire && !direct_) {
    return Status(Code::kUnsupported, base::format("add_file: no direct I/O on {}: {}", name_, why))
        .with_advice("use DirectIo::kAuto, or a file on another file system");
  }
  return {};
}

}  // namespace hawser::fileio

HAWSER_NAMESPACE_BEGIN
namespace {

FileInfo info_of(const struct stat& is) {
  constexpr std::int64_t kSecond = 1'000'000'000;
  return {.exists = true,
          .size = static_cast<std::uint64_t>(is.st_size),
          .mode = static_cast<std::uint32_t>(is.st_mode),
          .mtime_ns = is.st_mtim.tv_sec * kSecond + is.st_mtim.tv_nsec};
}

}  // namespace

Result<FileInfo> query_file(std::string_view path) {
  struct stat is {};
  if (path.empty() || path.find('\0') != std::string_view::npos) {
    return Status(Code::kInvalid, "query_file: the path is empty or holds a zero byte");
  }
  if (::stat(std::string(path).c_str(), &is) == 0) return info_of(is);
  if (errno == ENOENT || errno == ENOTDIR) return FileInfo();
  return base::errno_status("query_file: " + std::string(path), errno);
}

Result<FileInfo> query_file(int descriptor) {
  struct stat is {};
  if (::fstat(descriptor, &is) == 0) return info_of(is);
  return base::errno_status(Code::kInvalid, base::format("query_file: descriptor {}", descriptor), errno);
}

HAWSER_NAMESPACE_END
