#include "cli/bench/raw_cross.h"

#include <algorithm>
#include <cerrno>

#include "base/fd.h"

namespace hawser::cli::bench {
namespace {

std::size_t bytes_of(std::span<const iovec> pieces) {
  std::size_t sum = 0;
  for (const iovec& piece : pieces) sum += piece.iov_len;
  return sum;
}

}  // namespace

Status cross_copy(const CrossLoad& load, std::size_t batch) {
  const bool write = load.operation == Operation::kWrite;
  for (std::size_t at = 0; at < load.local.size(); at += batch) {
    const std::size_t count = std::min(batch, load.local.size() - at);
    const std::span<const iovec> local(load.local.data() + at, count);
    const iovec* remote = load.remote.data() + at;
    const ssize_t n = write ? process_vm_writev(load.pid, local.data(), count, remote, count, 0)
                            : process_vm_readv(load.pid, local.data(), count, remote, count, 0);
    if (n < 0) return base::errno_status(write ? "process_vm_writev" : "process_vm_readv", errno);
    if (static_cast<std::size_t>(n) != bytes_of(local)) return Status(Code::kFailed, "a short cross-memory copy");
  }
  return Status();
}

}  // namespace hawser::cli::bench
