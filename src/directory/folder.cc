#include "directory/folder.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <filesystem>

#include "base/format.h"
#include "base/id128.h"
#include "base/try.h"

namespace hawser::directory {
namespace {

/// 16 hexadecimal digits and a newline, written in place.
constexpr std::size_t kMarkerSize = 17;
constexpr mode_t kFileMode = 0600;  // Cards hold the keys of regions.
/// A lock file that is replaced each time it was opened: somebody deletes it in a loop.
constexpr int kLockTriesMax = 8;
/// Far above the ticks of any file system, and some room for a server's clock.
constexpr std::int64_t kSettledAfterNs = 2'000'000'000;

std::optional<std::uint64_t> read_marker(int fd) {
  std::array<char, kMarkerSize> text{};
  if (pread(fd, text.data(), text.size(), 0) != static_cast<ssize_t>(text.size())) return std::nullopt;
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, 16);
  if (error != std::errc{} || end != text.data() + text.size() - 1) return std::nullopt;
  return value;
}

bool write_marker(int fd, std::uint64_t value) {
  const std::string text = base::format("{:016x}\n", value);
  return pwrite(fd, text.data(), text.size(), 0) == static_cast<ssize_t>(text.size());
}

/// Where a folder without a marker begins: above every version that was given before somebody deleted the lock file.
std::uint64_t first_marker() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::microseconds>(now).count()) & ~1ULL;
}

bool same_file(const struct stat& a, const struct stat& b) { return a.st_ino == b.st_ino && a.st_dev == b.st_dev; }

std::int64_t to_ns(const timespec& at) { return at.tv_sec * 1'000'000'000 + at.tv_nsec; }

/// The system's clock, like the times of files, whatever clock leases run on.
std::int64_t system_now_ns() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::nanoseconds>(now).count();
}

}  // namespace

FolderLock::~FolderLock() {
  if (!fd_.valid()) return;
  if (changing_) (void)write_marker(fd_.get(), marker_);
  // Said outright: a child that was forked meanwhile has the descriptor, too, and closing ours would not release it.
  (void)flock(fd_.get(), LOCK_UN);
}

Result<std::uint64_t> FolderLock::begin_change(std::uint64_t above) {
  const std::uint64_t odd = std::max(marker_, above) | 1;
  if (odd == UINT64_MAX) return Status(Code::kFailed, "directory: versions of the folder are used up");
  if (!write_marker(fd_.get(), odd)) return base::errno_status("directory: writing the lock file", errno);
  changing_ = true;
  marker_ = odd + 1;
  return marker_;
}

std::optional<std::string> FolderScan::next() {
  while (const dirent* entry = readdir(dir_.get())) {
    const std::string_view name = entry->d_name;
    if (name != "." && name != "..") return std::string(name);
  }
  return std::nullopt;
}

Status Folder::failed(std::string_view what, std::string_view name, int error) const {
  const bool denied = error == EACCES || error == EPERM || error == EROFS;
  const std::string where = name.empty() ? path_ : path_ + "/" + std::string(name);
  const bool is_full = error == ENOSPC || error == EDQUOT;
  const Status status = base::errno_status(denied    ? Code::kDenied
                                           : is_full ? Code::kBusy
                                                     : Code::kFailed,
                                           base::format("directory: {} {}", what, where), error);
  if (is_full) return status.with_advice("free space there, or give a folder on another file system");
  return status.with_advice(
      base::format("give a folder that user {} may write, on a file system with room: "
                   "mkdir -p -m 700 FOLDER",
                   geteuid()));
}

Result<Folder> Folder::open(std::string path, bool sync) {
  Folder folder(std::move(path), base::Fd(), sync);
  if (folder.path_.empty())
    return Status(Code::kInvalid, "directory: the folder's path is empty").with_advice("file:/path");
  HAWSER_TRY_ASSIGN(folder.fd_, folder.open_path());
  // The lock file is what every change writes first, so it tells now whether later changes can work.
  const base::Fd lock(openat(folder.fd_.get(), kLockName.data(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, kFileMode));
  if (!lock.valid()) return folder.failed("cannot write", kLockName, errno);
  if (faccessat(folder.fd_.get(), ".", W_OK | X_OK, AT_EACCESS) != 0)
    return folder.failed("cannot write in", "", errno);
  return folder;
}

Result<base::Fd> Folder::open_path() const {
  struct stat found {};
  if (stat(path_.c_str(), &found) != 0) {
    std::error_code error;
    std::filesystem::create_directories(std::filesystem::path(path_).parent_path(), error);
    if (mkdir(path_.c_str(), 0700) != 0 && errno != EEXIST) return failed("cannot make", "", errno);
  }
  base::Fd opened(::open(path_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!opened.valid()) return failed("cannot open", "", errno);
  return opened;
}

Result<bool> Folder::follow_path() {
  struct stat ours {
  }, there{};
  if (fstat(fd_.get(), &ours) != 0) return failed("cannot look at", "", errno);
  if (stat(path_.c_str(), &there) == 0 && same_file(ours, there)) return false;
  HAWSER_TRY_ASSIGN(base::Fd opened, open_path());
  if (fstat(opened.get(), &there) != 0) return failed("cannot look at", "", errno);
  // In a place such as /tmp another user may have made one just after ours was deleted: no card is put there.
  if (there.st_uid != ours.st_uid && there.st_uid != geteuid()) {
    return Status(Code::kDenied,
                  base::format("directory: {} was deleted, and user {} has made another; the first one was user {}'s",
                               path_, there.st_uid, ours.st_uid))
        .with_advice("remove it, or use a folder in a place where only this user may write");
  }
  fd_ = std::move(opened);
  return true;
}

Result<FolderScan> Folder::scan() const {
  FolderScan scan;
  base::Fd own(openat(fd_.get(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!own.valid()) return failed("cannot list", "", errno);
  scan.dir_.reset(fdopendir(own.get()));
  if (scan.dir_ == nullptr) return failed("cannot list", "", errno);
  (void)own.release();
  return scan;
}

std::optional<FileStamp> Folder::stamp(const std::string& name) const {
  struct stat found {};
  if (fstatat(fd_.get(), name.c_str(), &found, AT_SYMLINK_NOFOLLOW) != 0) return std::nullopt;
  FileStamp stamp{.inode = found.st_ino,
                  .size = static_cast<std::uint64_t>(found.st_size),
                  .modified_ns = to_ns(found.st_mtim),
                  .changed_ns = to_ns(found.st_ctim)};
  const std::int64_t age_ns = system_now_ns() - stamp.changed_ns;
  stamp.settled = age_ns > kSettledAfterNs || age_ns < -kSettledAfterNs;
  return stamp;
}

Result<std::optional<FileRecord>> Folder::read(const std::string& name) const {
  // O_NONBLOCK: opening a named pipe that somebody put here must not wait for its writer.
  const base::Fd file(openat(fd_.get(), name.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  if (!file.valid() && errno == ENOENT) return std::optional<FileRecord>();
  if (!file.valid() && errno == ELOOP) return Status(Code::kCorrupt, "not a directory value: it is a symbolic link");
  if (!file.valid()) return failed("cannot read", name, errno);
  struct stat found {};
  if (fstat(file.get(), &found) != 0) return failed("cannot read", name, errno);
  if (!S_ISREG(found.st_mode)) return Status(Code::kCorrupt, "not a directory value: it is no regular file");
  if (found.st_size > static_cast<off_t>(kFileSizeMax)) {
    return Status(Code::kCorrupt, base::format("not a directory value: {} bytes are too many", found.st_size));
  }
  std::string bytes(static_cast<std::size_t>(found.st_size), '\0');
  std::size_t size = 0;
  while (size < bytes.size()) {
    const ssize_t got = pread(file.get(), bytes.data() + size, bytes.size() - size, static_cast<off_t>(size));
    if (got < 0) return failed("cannot read", name, errno);
    if (got == 0) break;  // Shorter now: decoding will say so.
    size += static_cast<std::size_t>(got);
  }
  HAWSER_TRY_ASSIGN(FileRecord record, decode_record(std::string_view(bytes).substr(0, size)));
  return std::optional<FileRecord>(std::move(record));
}

std::uint64_t Folder::marker() const {
  const base::Fd lock(openat(fd_.get(), kLockName.data(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
  return lock.valid() ? read_marker(lock.get()).value_or(1) : 1;
}

Result<std::optional<FolderLock>> Folder::try_lock() const {
  for (int tries = 0; tries < kLockTriesMax; ++tries) {
    base::Fd lock(openat(fd_.get(), kLockName.data(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, kFileMode));
    if (!lock.valid()) return failed("cannot write", kLockName, errno);
    if (flock(lock.get(), LOCK_EX | LOCK_NB) != 0) {
      if (errno == EWOULDBLOCK || errno == EINTR) return std::optional<FolderLock>();
      return failed("cannot lock", kLockName, errno);
    }
    // Deleted between opening and locking: another process may hold the lock of a new file of that name.
    struct stat ours {
    }, there{};
    if (fstat(lock.get(), &ours) != 0) return failed("cannot lock", kLockName, errno);
    if (fstatat(fd_.get(), kLockName.data(), &there, AT_SYMLINK_NOFOLLOW) != 0 || !same_file(ours, there)) continue;
    const std::uint64_t marker = read_marker(lock.get()).value_or(first_marker());
    return std::optional<FolderLock>(FolderLock(std::move(lock), marker));
  }
  return std::optional<FolderLock>();
}

Status Folder::fill(const base::Fd& file, std::string_view bytes) const {
  while (!bytes.empty()) {
    const ssize_t wrote = ::write(file.get(), bytes.data(), bytes.size());
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote <= 0) return failed("cannot write in", "", wrote < 0 ? errno : ENOSPC);
    bytes.remove_prefix(static_cast<std::size_t>(wrote));
  }
  if (sync_ && fsync(file.get()) != 0) return failed("cannot write in", "", errno);
  return {};
}

Status Folder::write(const FolderLock&, const std::string& name, std::string_view bytes, bool only_new) const {
  const std::string temp = std::string(kTempPrefix) + to_hex(base::random_id128());
  {
    const base::Fd file(openat(fd_.get(), temp.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, kFileMode));
    if (!file.valid()) return failed("cannot write in", "", errno);
    if (Status wrong = fill(file, bytes); !wrong.ok()) {
      (void)unlinkat(fd_.get(), temp.c_str(), 0);
      return wrong;
    }
  }
  int error = 0;
  if (only_new) {
    // A link fails where a file is, whatever became of the lock on a file system that does not honour it.
    if (linkat(fd_.get(), temp.c_str(), fd_.get(), name.c_str(), 0) != 0) error = errno;
    (void)unlinkat(fd_.get(), temp.c_str(), 0);
  } else if (renameat(fd_.get(), temp.c_str(), fd_.get(), name.c_str()) != 0) {
    error = errno;
    (void)unlinkat(fd_.get(), temp.c_str(), 0);
  }
  if (error == EEXIST) return Status(Code::kBusy, base::format("directory: {}/{} is there already", path_, name));
  if (error != 0) return failed("cannot write", name, error);
  if (sync_ && fsync(fd_.get()) != 0) return failed("cannot write in", "", errno);
  return {};
}

Status Folder::remove(const FolderLock&, const std::string& name) const {
  if (unlinkat(fd_.get(), name.c_str(), 0) == 0 || errno == ENOENT) return {};
  return failed("cannot remove", name, errno);
}

}  // namespace hawser::directory
