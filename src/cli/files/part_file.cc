#include "cli/files/part_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>

#include "base/file_kind.h"
#include "base/shown.h"
#include "base/try.h"
#include "cli/files/protocol.h"

namespace hawser::cli {
namespace {

constexpr int kOpenTries = 16;  // Somebody publishes or removes it between opening and locking.

Status taken_away(const std::string& path) {
  return Status(Code::kFailed, fmt::format("'{}' was removed or replaced while it was copied", base::shown(path)))
      .with_advice("run the command again");
}

/// Syncs a folder: its entries are its data.
Status sync_folder(int folder, const std::string& path) {
  if (::fsync(folder) == 0 || errno == EINVAL) return {};  // EINVAL: this file system has none for folders.
  return base::errno_status(fmt::format("writing the folder of '{}' to its device", base::shown(path)), errno);
}

}  // namespace

std::string PartFile::part_name() const { return name_ + std::string(kPartSuffix); }

Result<std::shared_ptr<PartFile>> PartFile::open(base::Fd folder, std::string name, std::string path, bool make) {
  HAWSER_TRY(base::check_file_place(folder.get(), name, path));
  std::shared_ptr<PartFile> part(
      new PartFile(std::move(folder), std::move(name), std::move(path) + std::string(kPartSuffix)));
  for (int i = 0; i < kOpenTries; ++i) {
    HAWSER_TRY_ASSIGN(const bool open, part->try_open(O_RDWR | (make ? O_CREAT : 0)));
    if (open) return part;
  }
  return Status(Code::kBusy, fmt::format("'{}' comes and goes", base::shown(part->path_)))
      .with_advice("another copy writes it");
}

/// False: what was locked is not what has the name any more.
Result<bool> PartFile::try_open(int flags) {
  constexpr mode_t kMode = 0600;  // Nobody else's until it is published, as its source may be nobody else's.
  HAWSER_TRY(base::check_file_place(folder_.get(), part_name(), path_));
  constexpr int kAlways = O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK | O_NOCTTY;
  fd_.reset(::openat(folder_.get(), part_name().c_str(), flags | kAlways, kMode));
  if (!fd_) return base::errno_status(fmt::format("opening '{}'", base::shown(path_)), errno);
  HAWSER_TRY_ASSIGN(const FileFacts facts, this->facts());
  if (!facts.is_file) return not_copied(path_, facts.kind);  // It came between the two calls.
  if (::flock(fd_.get(), LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
    return Status(Code::kBusy, fmt::format("another copy writes '{}'", base::shown(path_)))
        .with_advice("wait for it, or copy to another name");
  }
  return is_in_place();
}

Result<bool> PartFile::is_in_place() const {
  struct stat ours {
  }, named{};
  if (::fstat(fd_.get(), &ours) != 0)
    return base::errno_status(fmt::format("looking at '{}'", base::shown(path_)), errno);
  if (::fstatat(folder_.get(), part_name().c_str(), &named, AT_SYMLINK_NOFOLLOW) != 0) {
    if (errno == ENOENT) return false;
    return base::errno_status(fmt::format("looking at '{}'", base::shown(path_)), errno);
  }
  return ours.st_dev == named.st_dev && ours.st_ino == named.st_ino;
}

Status PartFile::publish(const FileFacts& facts) {
  HAWSER_TRY_ASSIGN(const FileFacts here, this->facts());
  if (here.size < facts.size) {
    return Status(Code::kFailed, fmt::format("'{}' has {} bytes of {}", base::shown(path_), here.size, facts.size))
        .with_advice("it was cut while it was copied; run the command again");
  }
  HAWSER_TRY(seal_file(fd_.get(), path_, facts));
  if (::fsync(fd_.get()) != 0)
    return base::errno_status(fmt::format("writing '{}' to its device", base::shown(path_)), errno);
  HAWSER_TRY_ASSIGN(const bool in_place, is_in_place());
  if (!in_place) return taken_away(path_);
  HAWSER_TRY(base::check_file_place(folder_.get(), name_, path_.substr(0, path_.size() - kPartSuffix.size())));
  if (::renameat(folder_.get(), part_name().c_str(), folder_.get(), name_.c_str()) != 0)
    return base::errno_status(fmt::format("naming '{}'", base::shown(path_)), errno);
  return sync_folder(folder_.get(), path_);
}

}  // namespace hawser::cli
