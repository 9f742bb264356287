#include "base/left_file.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <memory>

#include "base/file_limit.h"
#include "base/format.h"
#include "base/shown.h"
#include "base/small_file.h"
#include "base/try.h"

namespace hawser::base {
namespace {

constexpr int kNamesMax = 32768;            ///< Names read of a folder.
constexpr std::time_t kKeepSeconds = 3600;  ///< The file of a process that died.
constexpr std::time_t kYoungSeconds = 60;   ///< Between making and locking a file less time passes.
constexpr std::size_t kFilesMax = 64;       ///< Beyond, those of the dead go as soon as they are not young.
constexpr std::size_t kSliceDigits = 2;     ///< Where there are more, a newcomer looks at names that begin as its own.

/// A lock of the open file, which ends with its last descriptor. Asking for it takes none, so readers are in nobody's
/// way.
struct flock whole_file() {
  struct flock lock {};
  lock.l_type = F_WRLCK;
  lock.l_whence = SEEK_SET;
  return lock;
}

/// Where there are many, each newcomer tries those whose names begin as its own: names are random, so in time all are
/// tried, and a thousand agents that open do not look at a million files.
void sweep(const std::string& folder, std::string_view own_name, const LeftFile::Shape& shape) {
  const std::vector<std::string> files = list_left_files(folder, shape.suffix);
  const bool are_many = files.size() > kFilesMax;
  const std::string slice = folder + "/" + std::string(are_many ? own_name.substr(0, kSliceDigits) : "");
  for (const std::string& path : files) {
    if (!path.starts_with(slice)) continue;
    const Fd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
    struct stat found {};
    if (!file || ::fstat(file.get(), &found) != 0 || !is_left(file.get())) continue;
    const std::time_t touched = shape.touched ? shape.touched(file.get(), found) : found.st_mtime;
    const std::time_t seconds = std::time(nullptr) - touched;
    if (seconds > (are_many ? kYoungSeconds : kKeepSeconds) || seconds < 0) ::unlink(path.c_str());
  }
}

Status not_left(const std::string& path, std::string_view why) {
  return Status(Code::kCorrupt, base::format("'{}' is not what it should be: {}", shown(path), why));
}

}  // namespace

Result<LeftFile> LeftFile::create(const std::string& folder, std::string_view name, const Shape& shape) {
  sweep(folder, name, shape);
  std::string path = folder + "/" + std::string(name) + std::string(shape.suffix);
  HAWSER_TRY(check_file_limit(base::format("making '{}'", shown(path)), shape.bytes));
  Fd file(::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!file) return errno_status(base::format("making '{}'", shown(path)), errno);
  const auto failed = [&](std::string_view what, int error) {
    ::unlink(path.c_str());
    return errno_status(base::format("{} '{}'", what, shown(path)), error);
  };
  struct flock lock = whole_file();
  if (::fcntl(file.get(), F_OFD_SETLK, &lock) != 0) return failed("locking", errno);
  if (::ftruncate(file.get(), static_cast<off_t>(shape.bytes)) != 0) return failed("sizing", errno);
  // Blocks are allocated before they are mapped: a store into a hole of a full disk would end this process by SIGBUS.
  if (const int error = ::posix_fallocate(file.get(), 0, static_cast<off_t>(shape.mapped)); error != 0) {
    return failed("allocating", error);
  }
  // A mapping keeps its open file, and so its lock, in each forked child: the mapping has an open file of its own.
  const Fd mapped(::open(path.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW));
  if (!mapped) return failed("opening", errno);
  void* const memory = ::mmap(nullptr, shape.mapped, PROT_READ | PROT_WRITE, MAP_SHARED, mapped.get(), 0);
  if (memory == MAP_FAILED) return failed("mapping", errno);
  return LeftFile({static_cast<std::byte*>(memory), shape.mapped}, std::move(file), std::move(path));
}

LeftFile::~LeftFile() {
  if (memory_.empty()) return;
  withdraw();
  ::munmap(memory_.data(), memory_.size());
}

void LeftFile::withdraw() {
  if (file_) ::unlink(path_.c_str());
  file_.reset();
}

Result<Fd> open_left_file(const std::string& path, std::size_t bytes) {
  Fd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  if (!file) return errno_status(base::format("opening '{}'", shown(path)), errno);
  struct stat found {};
  if (::fstat(file.get(), &found) != 0) return errno_status(base::format("looking at '{}'", shown(path)), errno);
  if (!S_ISREG(found.st_mode)) return not_left(path, "it is no file");
  if (found.st_uid != ::geteuid()) return not_left(path, base::format("it belongs to user {}", found.st_uid));
  if (found.st_size != static_cast<off_t>(bytes)) return not_left(path, base::format("it has {} bytes", found.st_size));
  return file;
}

bool is_left(int file) {
  struct flock lock = whole_file();
  return ::fcntl(file, F_OFD_GETLK, &lock) == 0 && lock.l_type == F_UNLCK;
}

bool read_exactly(int file, void* into, std::size_t size, off_t at) {
  char* out = static_cast<char*>(into);
  while (size > 0) {
    const ssize_t got = ::pread(file, out, size, at);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    out += got;
    at += got;
    size -= static_cast<std::size_t>(got);
  }
  return true;
}

std::vector<std::string> list_left_files(const std::string& folder, std::string_view suffix) {
  std::vector<std::string> paths;
  const std::unique_ptr<DIR, int (*)(DIR*)> all(::opendir(folder.c_str()), ::closedir);
  for (int i = 0; all != nullptr && i < kNamesMax; ++i) {
    const dirent* const entry = ::readdir(all.get());
    if (entry == nullptr) break;
    const std::string_view name(entry->d_name);
    if (name.size() > suffix.size() && name.ends_with(suffix)) paths.push_back(folder + "/" + std::string(name));
  }
  std::ranges::sort(paths);
  return paths;
}

std::uint64_t own_process_namespace() {
  struct stat found {};
  return ::stat("/proc/self/ns/pid", &found) == 0 ? found.st_ino : 0;
}

bool is_process_stopped(std::uint32_t process, std::uint64_t process_namespace) {
  if (process_namespace == 0 || process_namespace != own_process_namespace()) return false;
  std::array<char, 512> room;  // "123 (name of at most 15 bytes) T ..."
  const std::string_view line = read_small_file(base::format("/proc/{}/stat", process).c_str(), room);
  const std::size_t name_end = line.rfind(')');
  if (name_end == std::string_view::npos || name_end + 2 >= line.size()) return false;
  return line[name_end + 2] == 'T' || line[name_end + 2] == 't';
}

}  // namespace hawser::base
