#include "base/status_page.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
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

#include "base/format.h"
#include "base/shown.h"
#include "base/small_file.h"
#include "base/try.h"

namespace hawser::base {

struct StatusPage::Header {
  std::uint64_t magic;
  std::uint32_t version;
  std::uint32_t process;
  std::uint64_t process_namespace;   ///< In which `process` is its number; 0: not known.
  std::atomic<std::uint64_t> shown;  ///< Texts published so far; the last is in the place of that number's parity.
  std::atomic<std::int64_t> worked_ns;
  std::atomic<std::uint32_t> is_asleep;
  std::array<std::atomic<std::uint32_t>, 2> sizes;
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
constexpr std::size_t kDeadMax = 64;        ///< Beyond, those that died go as soon as they are not young.
constexpr int kTriesMax = 1000;

static_assert(sizeof(StatusPage::Header) <= kTextsAt);
static_assert(std::atomic<std::uint64_t>::is_always_lock_free && std::atomic<std::int64_t>::is_always_lock_free);

char* text_of(StatusPage::Header* header, std::uint64_t number) {
  return reinterpret_cast<char*>(header) + kTextsAt + (number % 2) * StatusPage::kTextMax;
}

struct Unmap {
  void operator()(StatusPage::Header* header) const { ::munmap(header, kFileBytes); }
};
using Mapped = std::unique_ptr<StatusPage::Header, Unmap>;

Result<Mapped> map(int file, int protection, const std::string& path) {
  void* const memory = ::mmap(nullptr, kFileBytes, protection, MAP_SHARED, file, 0);
  if (memory == MAP_FAILED) return errno_status(base::format("mapping '{}'", shown(path)), errno);
  return Mapped(static_cast<StatusPage::Header*>(memory));
}

/// Nobody holds its lock.
bool is_dead(int file) {
  if (::flock(file, LOCK_SH | LOCK_NB) != 0) return false;
  ::flock(file, LOCK_UN);
  return true;
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

void sweep(const std::string& folder) {
  std::vector<std::pair<std::time_t, std::string>> dead;
  for (const std::string& path : list_status_pages(folder)) {
    const Fd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
    struct stat found {};
    if (!file || ::fstat(file.get(), &found) != 0 || !is_dead(file.get())) continue;
    dead.emplace_back(std::time(nullptr) - found.st_mtime, path);
  }
  const std::time_t least = dead.size() > kDeadMax ? kYoungSeconds : kKeepSeconds;
  for (const auto& [seconds, path] : dead) {
    if (seconds > least || seconds < 0) ::unlink(path.c_str());
  }
}

Status no_page(const std::string& path, std::string_view why) {
  return Status(Code::kCorrupt, base::format("'{}' is no status page: {}", shown(path), why));
}

}  // namespace

Result<StatusPage> StatusPage::create(const std::string& folder, std::string_view name) {
  sweep(folder);
  std::string path = folder + "/" + std::string(name) + std::string(kSuffix);
  Fd file(::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!file) return errno_status(base::format("making '{}'", shown(path)), errno);
  const auto failed = [&](std::string_view what) {
    const int error = errno;
    ::unlink(path.c_str());
    return errno_status(base::format("{} '{}'", what, shown(path)), error);
  };
  if (::flock(file.get(), LOCK_EX | LOCK_NB) != 0) return failed("locking");
  if (::ftruncate(file.get(), static_cast<off_t>(kFileBytes)) != 0) return failed("sizing");
  Result<Mapped> mapped = map(file.get(), PROT_READ | PROT_WRITE, path);
  if (!mapped) {
    ::unlink(path.c_str());
    return mapped.error();
  }
  Header* const header = mapped->release();
  header->version = kVersion;
  header->process = static_cast<std::uint32_t>(::getpid());
  header->process_namespace = own_process_namespace();
  std::atomic_ref(header->magic).store(kMagic, std::memory_order_release);
  return StatusPage(header, std::move(file), std::move(path));
}

StatusPage::~StatusPage() {
  if (header_ == nullptr) return;
  withdraw();
  Unmap()(header_);
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
  const std::uint64_t next = header_->shown.load(std::memory_order_relaxed) + 1;
  header_->sizes[next % 2].store(static_cast<std::uint32_t>(text.size()), std::memory_order_relaxed);
  std::memcpy(text_of(header_, next), text.data(), text.size());
  header_->shown.store(next, std::memory_order_release);
  // A reader that still copies the text before sees the number change before the next call changes the bytes.
  std::atomic_thread_fence(std::memory_order_seq_cst);
  return {};
}

void StatusPage::worked(Instant now) { header_->worked_ns.store(now.ns(), std::memory_order_relaxed); }

void StatusPage::sleeps(bool asleep) { header_->is_asleep.store(asleep ? 1 : 0, std::memory_order_relaxed); }

Result<StatusReading> read_status_page(const std::string& path) {
  const Fd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  if (!file) return errno_status(base::format("opening '{}'", shown(path)), errno);
  struct stat found {};
  if (::fstat(file.get(), &found) != 0) return errno_status(base::format("looking at '{}'", shown(path)), errno);
  if (!S_ISREG(found.st_mode)) return no_page(path, "it is no file");
  if (found.st_size != static_cast<off_t>(kFileBytes))
    return no_page(path, base::format("it has {} bytes", found.st_size));
  HAWSER_TRY_ASSIGN(const Mapped header, map(file.get(), PROT_READ, path));
  if (header->magic != kMagic) return no_page(path, "it does not begin as one");
  if (header->version != kVersion)
    return no_page(path, base::format("its version is {}, not {}", header->version, kVersion));
  StatusReading reading;
  reading.process = header->process;
  reading.is_alive = !is_dead(file.get());
  reading.is_stopped = reading.is_alive && is_stopped(*header);
  reading.is_asleep = header->is_asleep.load(std::memory_order_relaxed) != 0;
  reading.worked_at = Instant::from_ns(header->worked_ns.load(std::memory_order_relaxed));
  for (int i = 0; i < kTriesMax; ++i) {
    const std::uint64_t number = header->shown.load(std::memory_order_acquire);
    if (number == 0) return reading;
    const std::size_t size = header->sizes[number % 2].load(std::memory_order_relaxed);
    if (size > StatusPage::kTextMax) return no_page(path, "its text is longer than its place");
    reading.text.assign(text_of(header.get(), number), size);
    std::atomic_thread_fence(std::memory_order_seq_cst);
    if (header->shown.load(std::memory_order_relaxed) == number) return reading;
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
