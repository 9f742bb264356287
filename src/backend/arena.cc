#include "backend/arena.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <string_view>

#include "backend/memory_file.h"
#include "base/control_group.h"
#include "base/file_limit.h"
#include "base/format.h"
#include "base/host_memory.h"
#include "base/try.h"

#ifndef F_SEAL_FUTURE_WRITE
#define F_SEAL_FUTURE_WRITE 0x0010
#endif
#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

namespace hawser::backend {
namespace {

/// From here on to take the pages costs more than to read what the control group leaves.
constexpr std::size_t kLargeArena = 256 * 1024;
constexpr std::size_t kHugePage = 2u << 20;  // Of x86-64 and of arm64 with 4 KiB pages.

/// Unmaps what a failed creation leaves behind.
struct Mapping {
  void* base = MAP_FAILED;
  std::size_t size = 0;
  Mapping(void* at, std::size_t bytes) : base(at), size(bytes) {}
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;
  ~Mapping() {
    if (base != MAP_FAILED) ::munmap(base, size);
  }
  std::byte* release() { return static_cast<std::byte*>(std::exchange(base, MAP_FAILED)); }
};

std::size_t small_page() { return static_cast<std::size_t>(::sysconf(_SC_PAGESIZE)); }

/// Whether the kernel gives transparent huge pages to memory files that ask for them.
bool transparent_huge_pages() {
  const base::Fd fd(::open("/sys/kernel/mm/transparent_hugepage/shmem_enabled", O_RDONLY | O_CLOEXEC));
  std::array<char, 128> text{};
  const ssize_t size = fd ? ::read(fd.get(), text.data(), text.size()) : 0;
  const std::string_view modes(text.data(), size > 0 ? static_cast<std::size_t>(size) : 0);
  return modes.find("[always]") != modes.npos || modes.find("[advise]") != modes.npos ||
         modes.find("[within_size]") != modes.npos || modes.find("[force]") != modes.npos;
}

Status failure(std::string_view what, std::size_t size, int error) {
  Status status = base::errno_status(Code::kFailed, base::format("{} of {} bytes", what, size), error);
  if (error == EMFILE || error == ENFILE) return status;
  return status.with_advice(
      "not enough memory for a memory file: see `free -m`, the container's memory limit and shm "
      "size");
}

/// Takes all pages now: a later touch must not meet SIGBUS because memory ran out.
Status populate(int fd, const Mapping& mapping) {
  if (::madvise(mapping.base, mapping.size, MADV_POPULATE_WRITE) == 0) return {};
  if (errno != EINVAL) return failure("taking the pages of an arena", mapping.size, errno);
  // Linux before 5.14
  if (::fallocate(fd, 0, 0, static_cast<off_t>(mapping.size)) == 0) return {};
  return failure("taking the pages of an arena", mapping.size, errno);
}

Status seal(int fd, Rights rights) {
  int seals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;
  // The owner's own mapping stays writable.
  if (!allows(rights, Rights::kWrite)) seals |= F_SEAL_FUTURE_WRITE;
  if (::fcntl(fd, F_ADD_SEALS, seals) == 0) return {};
  return base::errno_status(Code::kFailed, "sealing an arena", errno);
}

struct Made {
  base::Fd fd;
  std::byte* base = nullptr;
  std::size_t size = 0;
};

Result<Made> make(std::size_t size, Rights rights, unsigned flags, std::size_t page) {
  size = (size + page - 1) / page * page;
  HAWSER_TRY(base::check_file_limit("an arena (a memory file)", size));
  // The kernel would kill the process while it takes the pages. Reserved huge pages are counted elsewhere.
  if (size >= kLargeArena && (flags & MFD_HUGETLB) == 0) {
    HAWSER_TRY(base::check_group_memory("an arena", size));
    HAWSER_TRY(base::check_host_memory("an arena", size));
  }
  Made made{make_memory_file("hawser-arena", flags), nullptr, size};
  if (!made.fd) return failure("making an arena", size, errno);
  if (::ftruncate(made.fd.get(), static_cast<off_t>(size)) != 0) {
    return failure("sizing an arena", size, errno);
  }
  Mapping mapping(::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, made.fd.get(), 0), size);
  if (mapping.base == MAP_FAILED) return failure("mapping an arena", size, errno);
  // Refused where the kernel has no huge pages; small ones do.
  if (page > small_page()) static_cast<void>(::madvise(mapping.base, size, MADV_HUGEPAGE));
  if (Status status = populate(made.fd.get(), mapping); !status.ok()) return status;
  if (Status status = seal(made.fd.get(), rights); !status.ok()) return status;
  made.base = mapping.release();
  return made;
}

/// With huge pages of either kind, or why there are none.
Result<Made> make_huge(std::size_t size, Rights rights) {
  if (transparent_huge_pages()) return make(size, rights, 0, kHugePage);
  Result<Made> made = make(size, rights, MFD_HUGETLB, kHugePage);
  if (made) return made;
  return Status(Code::kFailed, "there are no huge pages for an arena")
      .because(made.error())
      .with_advice(
          "as root: echo advise > /sys/kernel/mm/transparent_hugepage/shmem_enabled, "
          "or reserve with vm.nr_hugepages");
}

}  // namespace

Result<std::shared_ptr<Arena>> Arena::create(std::size_t size, Rights rights, HugePages huge_pages) {
  if (size == 0 || size > (std::size_t{1} << 62)) {
    return Status(Code::kInvalid, base::format("an arena of {} bytes cannot be made", size));
  }
  std::size_t page = small_page();
  Result<Made> made = Status(Code::kFailed, "not tried");
  if (huge_pages == HugePages::kRequire || (huge_pages == HugePages::kAuto && size >= kHugePage)) {
    made = make_huge(size, rights);
    if (made) page = kHugePage;
    if (!made && huge_pages == HugePages::kRequire) return made.error();
  }
  if (!made) made = make(size, rights, 0, page);
  if (!made) return made.error();
  return std::shared_ptr<Arena>(
      new Arena(std::move(made->fd), made->base, made->size, page, !allows(rights, Rights::kWrite)));
}

Arena::~Arena() {
  if (!abandoned_) ::munmap(base_, size_);
}

}  // namespace hawser::backend
