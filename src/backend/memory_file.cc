#include "backend/memory_file.h"

#include <errno.h>
#include <sys/mman.h>

#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 0x0008U
#endif

namespace hawser::backend {

base::Fd make_memory_file(const char* name, unsigned flags) {
  flags |= MFD_CLOEXEC | MFD_ALLOW_SEALING;
  base::Fd fd(::memfd_create(name, flags | MFD_NOEXEC_SEAL));
  if (!fd && errno == EINVAL) fd.reset(::memfd_create(name, flags));  // Linux before 6.3
  return fd;
}

}  // namespace hawser::backend
