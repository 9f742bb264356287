#include "base/status_page.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <ctime>
#include <memory>
#include <thread>
#include <type_traits>

#include "base/file_limit.h"
#include "base/format.h"
#include "base/shown.h"
#include "base/small_file.h"
#include "base/try.h"

namespace hawser::base {

/// The publisher maps it and stores through atomic references; readers copy it by a system call.
struct StatusPage::Header {
  std::uint64_t magic;
  std::uint32_t version;
  std::uint32_t process;
  std::uint64_t process_namespace;  ///< In which `process` is its number; 0: not known.
  std::uint64_t shown;              ///< Texts published so far; the last is in the place of that number's parity.
  std::int64_t worked_ns;
  std::uint32_t is_asleep;
  std::array<std::uint32_t, 2> sizes;
};

namespace {

constexpr std::uint64_t kMagic = 0x5441545352455741;  // Any number that is no accident.
constexpr std::uint32_t kVersion = 1;
constexpr std::size_t kTextsAt = 4096;
constexpr std::size_t kFileBytes = kTextsAt + 2 * StatusPage::kTextMax;
constexpr std::string_view kSuffix = ".status";
constexpr int kNamesMax = 32768;            ///< Names read of a folder.
constexpr std::time_t kKeepSeconds = 3600;  ///< The page of a process that died.
constexpr std::time_t kYoungSeconds = 60;   ///< Between making and locking a page less time passes.
constexpr std::size_t kPagesMax = 64;       ///< Beyond, those of the dead go as soon as they are not young.
constexpr std::size_t kSliceDigits = 2;     ///< Of names: where there are more, a newcomer looks at those alone.
constexpr int kTriesMax = 1000;

static_assert(sizeof(StatusPage::Header) <= kTextsAt && std::is_trivially_copyable_v<StatusPage::Header>);
static_assert(std::atomic_ref<std::uint64_t>::is_always_lock_free);

constexpr off_t text_at(std::uint64_t number) {
  return static_cast<off_t>(kTextsAt + (number % 2) * StatusPage::kTextMax);
}

bool write_all(int file, std::string_view text, off_t at) {
  while (!text.empty()) {
    const ssize_t size = ::pwrite(file, text.data(), text.size(), at);
    if (size < 0 && errno == EINTR) continue;
    if (size <= 0) return false;
    text.remove_prefix(static_cast<std::size_t>(size));
    at += size;
  }
  return true;
}

bool read_all(int file, void* into, std::size_t size, off_t at) {
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

/// A lock of the open file, which ends with its last descriptor. Asking for it takes none, so readers are in nobody's
/// way.
struct flock whole_file() {
  struct flock lock {};
  lock.l_type = F_WRLCK;
  lock.l_whence = SEEK_SET;
  return lock;
}

/// Nobody holds its lock.
bool is_dead(int file) {
  struct flock lock = whole_file();
  return ::fcntl(file, F_OFD_GETLK, &lock) == 0 && lock.l_type == F_UNLCK;
}

std::uint64_t own_process_namespace() {
  struct stat found {};
  return ::stat("/proc/self/ns/pid", &found) == 0 ? found.st_ino : 0;
}

/// By a signal, or by a debugger.
bool is_stopped(const StatusPage::Header& header) {
  if (header.process_namespace == 0 || header.process_namespace != own_process_namespace()) return false;
  std::array<char, 512> room;  // "123 (name of at most 15 bytes) T ..."
  const std::string_view line = read_small_file(base::format("/proc/{}/stat", header.process).c_str(), room);
  const std::size_t name_end = line.rfind(')');
  if (name_end == std::string_view::npos || name_end + 2 >= line.size()) return false;
  return line[name_end + 2] == 'T' || line[name_end + 2] == 't';
}

/// Where there are many, each newcomer tries those whose names begin as its own: names are random, so in time all are
/// tried, and a thousand agents that open do not look at a million pages.
void sweep(const std::string& folder, std::string_view own_name) {
  const std::vector<std::string> pages = list_status_pages(folder);
  const bool are_many = pages.size() > kPagesMax;
  const std::string slice = folder + "/" + std::string(are_many ? own_name.substr(0, kSliceDigits) : "");
  for (const std::string& path : pages) {
    if (!path.starts_with(slice)) continue;
    const Fd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
    struct stat found {};
    if (!file || ::fstat(file.get(), &found) != 0 || !is_dead(file.get())) continue;
    const std::time_t seconds = std::time(nullptr) - found.st_mtime;
    if (seconds > (are_many ? kYoungSeconds : kKeepSeconds) || seconds < 0) ::unlink(path.c_str());
  }
}

Status no_page(const std::string& path, std::string_view why) {
  return Status(Code::kCorrupt, base::format("'{}' is no status page: {}", shown(path), why));
}

}  // namespace

Result<StatusPage> StatusPage::create(const std::string& folder, std::string_view name) {
  sweep(folder, name);
  std::string path = folder + "/" + std::string(name) + std::string(kSuffix);
  HAWSER_TRY(check_file_limit(base::format("making '{}'", shown(path)), kFileBytes));
  Fd file(::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!file) return errno_status(base::format("making '{}'", shown(path)), errno);
  const auto failed = [&](std::string_view what, int error) {
    ::unlink(path.c_str());
    return errno_status(base::format("{} '{}'", what, shown(path)), error);
  };
  struct flock lock = whole_file();
  if (::fcntl(file.get(), F_OFD_SETLK, &lock) != 0) return failed("locking", errno);
  if (::ftruncate(file.get(), static_cast<off_t>(kFileBytes)) != 0) return failed("sizing", errno);
  // What is mapped has its place: a store where a full disk has none would end this process by SIGBUS.
  if (const int error = ::posix_fallocate(file.get(), 0, kTextsAt); error != 0) return failed("allocating", error);
  void* const memory = ::mmap(nullptr, kTextsAt, PROT_READ | PROT_WRITE, MAP_SHARED, file.get(), 0);
  if (memory == MAP_FAILED) return failed("mapping", errno);
  Header* const header = static_cast<Header*>(memory);
  header->version = kVersion;
  header->process = static_cast<std::uint32_t>(::getpid());
  header->process_namespace = own_process_namespace();
  std::atomic_ref(header->magic).store(kMagic, std::memory_order_release);
  return StatusPage(header, std::move(file), std::move(path));
}

StatusPage::~StatusPage() {
  if (header_ == nullptr) return;
  withdraw();
  ::munmap(header_, kTextsAt);
}

void StatusPage::withdraw() {
  if (file_) ::unlink(path_.c_str());
  file_.reset();
}

Status StatusPage::publish(std::string_view text) {
  if (text.size() > kTextMax) {
    return Status(Code::kInvalid,
                  base::format("a status page holds {} bytes, this text has {}", kTextMax, text.size()));
  }
  if (!file_) return {};
  if (!is_within_file_limit(kFileBytes)) return check_file_limit("publishing a status", kFileBytes);
  const std::uint64_t next = std::atomic_ref(header_->shown).load(std::memory_order_relaxed) + 1;
  if (!write_all(file_.get(), text, text_at(next))) {
    return errno_status(base::format("writing '{}'", shown(path_)), errno);
  }
  std::atomic_ref(header_->sizes[next % 2]).store(static_cast<std::uint32_t>(text.size()), std::memory_order_relaxed);
  // A reader that still copies the text before sees the number change before the next call changes the bytes.
  std::atomic_ref(header_->shown).store(next, std::memory_order_seq_cst);
  return {};
}

void StatusPage::worked(Instant now) { std::atomic_ref(header_->worked_ns).store(now.ns(), std::memory_order_relaxed); }

void StatusPage::sleeps(bool asleep) {
  std::atomic_ref(header_->is_asleep).store(asleep ? 1 : 0, std::memory_order_relaxed);
}

Result<StatusReading> read_status_page(const std::string& path) {
  const Fd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  if (!file) return errno_status(base::format("opening '{}'", shown(path)), errno);
  struct stat found {};
  if (::fstat(file.get(), &found) != 0) return errno_status(base::format("looking at '{}'", shown(path)), errno);
  if (!S_ISREG(found.st_mode)) return no_page(path, "it is no file");
  if (found.st_uid != ::geteuid()) return no_page(path, base::format("it belongs to user {}", found.st_uid));
  if (found.st_size != static_cast<off_t>(kFileBytes)) {
    return no_page(path, base::format("it has {} bytes", found.st_size));
  }
  StatusPage::Header header, again;
  for (int i = 0; i < kTriesMax; ++i) {
    if (!read_all(file.get(), &header, sizeof header, 0)) return no_page(path, "it cannot be read");
    if (header.magic != kMagic) return no_page(path, "it does not begin as one");
    if (header.version != kVersion) {
      return no_page(path, base::format("its version is {}, not {}", header.version, kVersion));
    }
    StatusReading reading;
    reading.process = header.process;
    reading.is_alive = !is_dead(file.get());
    reading.is_stopped = reading.is_alive && is_stopped(header);
    reading.is_asleep = header.is_asleep != 0;
    reading.worked_at = Instant::from_ns(header.worked_ns);
    if (header.shown == 0) return reading;
    const std::size_t size = header.sizes[header.shown % 2];
    if (size > StatusPage::kTextMax) return no_page(path, "its text is longer than its place");
    reading.text.resize(size);
    if (!read_all(file.get(), reading.text.data(), size, text_at(header.shown)) ||
        !read_all(file.get(), &again, sizeof again, 0)) {
      return no_page(path, "it cannot be read");
    }
    if (again.shown == header.shown) return reading;
    std::this_thread::yield();
  }
  return Status(Code::kBusy, base::format("'{}' changes faster than it can be read", shown(path)));
}

std::vector<std::string> list_status_pages(const std::string& folder) {
  std::vector<std::string> paths;
  const std::unique_ptr<DIR, int (*)(DIR*)> all(::opendir(folder.c_str()), ::closedir);
  for (int i = 0; all != nullptr && i < kNamesMax; ++i) {
    const dirent* const entry = ::readdir(all.get());
    if (entry == nullptr) break;
    const std::string_view name(entry->d_name);
    if (name.size() > kSuffix.size() && name.ends_with(kSuffix)) paths.push_back(folder + "/" + std::string(name));
  }
  std::ranges::sort(paths);
  return paths;
}

}  // namespace hawser::base
