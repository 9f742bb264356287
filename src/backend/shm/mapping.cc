#include "backend/shm/mapping.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "base/file_limit.h"
#include "base/format.h"
#include "base/try.h"

#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 0x0008U
#endif

namespace hawser::backend::shm {

Result<Mapping> Mapping::map(int fd, std::size_t size, Access access) {
  const int protection = access == Access::kRead ? PROT_READ : PROT_READ | PROT_WRITE;
  void* base = ::mmap(nullptr, size, protection, MAP_SHARED, fd, 0);
  if (base == MAP_FAILED) {
    const int error = errno;
    Status status = base::errno_status(Code::kUnsupported, base::format("mapping {} bytes of a peer", size), error);
    return error == ENOMEM ? status.with_advice("raise vm.max_map_count or the address space limit (`ulimit -v`)")
                           : status;
  }
  ::madvise(base, size, MADV_DONTFORK);
  return Mapping(static_cast<std::byte*>(base), size);
}

void Mapping::reset() {
  if (base_ != nullptr) ::munmap(base_, size_);
  base_ = nullptr;
  size_ = 0;
}

void Mapping::shrink_by(std::size_t size) {
  if (size >= size_) return reset();
  ::munmap(base_ + (size_ - size), size);
  size_ -= size;
}

Result<base::Fd> make_sealed_file(const char* name, std::size_t size, bool reserve) {
  HAWSER_TRY(base::check_file_limit("shared memory (a memory file)", size));
  base::Fd fd(::memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_NOEXEC_SEAL));
  if (!fd && errno == EINVAL) fd.reset(::memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING));  // Linux before 6.3
  if (!fd) return base::errno_status("making a memory file", errno);
  if (::ftruncate(fd.get(), static_cast<off_t>(size)) != 0 ||
      (reserve && ::fallocate(fd.get(), 0, 0, static_cast<off_t>(size)) != 0)) {
    return base::errno_status(base::format("taking {} bytes of shared memory", size), errno);
  }
  if (::fcntl(fd.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0) {
    return base::errno_status("sealing a memory file", errno);
  }
  return fd;
}

Result<std::size_t> sealed_size(int fd) {
  struct stat status {};
  const int seals = ::fcntl(fd, F_GET_SEALS);
  if (seals < 0 || (seals & F_SEAL_SHRINK) == 0 || ::fstat(fd, &status) != 0 || status.st_size <= 0) {
    return Status(Code::kCorrupt, "a peer sent a file that is no sealed memory file");
  }
  return static_cast<std::size_t>(status.st_size);
}

Result<base::Fd> reopen_read_only(int fd) {
  base::Fd copy(::open(base::format("/proc/self/fd/{}", fd).c_str(), O_RDONLY | O_CLOEXEC));
  if (!copy) {
    const Status status = base::errno_status(Code::kFailed, "opening an arena for reading only", errno);
    return status.code() == Code::kBusy ? status : status.with_advice("mount /proc");
  }
  return copy;
}

}  // namespace hawser::backend::shm
