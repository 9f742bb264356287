#include "cli/output.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <iostream>

#include "base/fd.h"

namespace hawser::cli {

void open_missing_streams() {
  for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; ++fd) {
    if (::fcntl(fd, F_GETFD) >= 0 || errno != EBADF) continue;
    if (::open("/dev/null", O_RDWR) != fd) return;  // It takes the lowest number that is free.
  }
}

Status finish_output() {
  errno = 0;
  std::cout.flush();
  const bool is_flushed = std::fflush(stdout) == 0;
  if (is_flushed && std::ferror(stdout) == 0 && std::cout.good()) return {};
  constexpr const char* kText = "not all of the output could be written";
  return errno == 0 ? Status(Code::kFailed, kText) : base::errno_status(Code::kFailed, kText, errno);
}

}  // namespace hawser::cli
