#include "base/status_page.h"

#include <errno.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstring>
#include <thread>
#include <type_traits>

#include "base/file_limit.h"
#include "base/format.h"
#include "base/shown.h"
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

Status no_page(const std::string& path, std::string_view why) {
  return Status(Code::kCorrupt, base::format("'{}' is no status page: {}", shown(path), why));
}

}  // namespace

Result<StatusPage> StatusPage::create(const std::string& folder, std::string_view name) {
  HAWSER_TRY_ASSIGN(LeftFile file,
                    LeftFile::create(folder, name, {.suffix = kSuffix, .bytes = kFileBytes, .mapped = kTextsAt}));
  Header* const header = reinterpret_cast<Header*>(file.memory().data());
  header->version = kVersion;
  header->process = static_cast<std::uint32_t>(::getpid());
  header->process_namespace = own_process_namespace();
  std::atomic_ref(header->magic).store(kMagic, std::memory_order_release);
  return StatusPage(header, std::move(file));
}

Status StatusPage::publish(std::string_view text) {
  if (text.size() > kTextMax) {
    return Status(Code::kInvalid,
                  base::format("a status page holds {} bytes, this text has {}", kTextMax, text.size()));
  }
  if (file_.file() < 0) return {};
  if (!is_within_file_limit(kFileBytes)) return check_file_limit("publishing a status", kFileBytes);
  const std::uint64_t next = std::atomic_ref(header_->shown).load(std::memory_order_relaxed) + 1;
  if (!write_all(file_.file(), text, text_at(next))) {
    return errno_status(base::format("writing '{}'", shown(path())), errno);
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
  HAWSER_TRY_ASSIGN(const Fd file, open_left_file(path, kFileBytes));
  StatusPage::Header header, again;
  for (int i = 0; i < kTriesMax; ++i) {
    if (!read_exactly(file.get(), &header, sizeof header, 0)) return no_page(path, "it cannot be read");
    if (header.magic != kMagic) return no_page(path, "it does not begin as one");
    if (header.version != kVersion) {
      return no_page(path, base::format("its version is {}, not {}", header.version, kVersion));
    }
    StatusReading reading;
    reading.process = header.process;
    reading.is_alive = !is_left(file.get());
    reading.is_stopped = reading.is_alive && is_process_stopped(header.process, header.process_namespace);
    reading.is_asleep = header.is_asleep != 0;
    reading.worked_at = Instant::from_ns(header.worked_ns);
    if (header.shown == 0) return reading;
    const std::size_t size = header.sizes[header.shown % 2];
    if (size > StatusPage::kTextMax) return no_page(path, "its text is longer than its place");
    reading.text.resize(size);
    if (!read_exactly(file.get(), reading.text.data(), size, text_at(header.shown)) ||
        !read_exactly(file.get(), &again, sizeof again, 0)) {
      return no_page(path, "it cannot be read");
    }
    if (again.shown == header.shown) return reading;
    std::this_thread::yield();
  }
  return Status(Code::kBusy, base::format("'{}' changes faster than it can be read", shown(path)));
}

std::vector<std::string> list_status_pages(const std::string& folder) { return list_left_files(folder, kSuffix); }

}  // namespace hawser::base
