#include "backend/shm/gate.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <memory>

#include "base/format.h"
#include "base/try.h"

namespace hawser::backend::shm {
namespace {

constexpr std::uint32_t kReserveStep = 16384;  // Words: 64 KiB.

bool register_membarrier() {
  const long commands = ::syscall(SYS_membarrier, MEMBARRIER_CMD_QUERY, 0, 0);
  constexpr long kNeeded = MEMBARRIER_CMD_GLOBAL_EXPEDITED | MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED;
  if (commands < 0 || (commands & kNeeded) != kNeeded) return false;
  return ::syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED, 0, 0) == 0;
}

}  // namespace

Result<std::unique_ptr<Gates>> Gates::make(ForkList& forks, bool membarrier) {
  std::unique_ptr<Gates> gates(new Gates);
  HAWSER_TRY_ASSIGN(base::Fd fd, make_sealed_file("hawser-gates", kGateBytes, false));
  HAWSER_TRY_ASSIGN(base::Fd peer_fd, reopen_read_only(fd.get()));
  HAWSER_TRY_ASSIGN(gates->mapping_, Mapping::map(fd.get(), kGateBytes, Mapping::Access::kReadWrite));
  gates->fd_ = ForkFd(std::move(fd), forks);
  gates->peer_fd_ = ForkFd(std::move(peer_fd), forks);
  gates->has_membarrier_ = membarrier && register_membarrier();
  return gates;
}

Status Gates::reserve(std::uint32_t index) {
  if (index < reserved_) return {};
  const std::uint32_t wanted = (index / kReserveStep + 1) * kReserveStep;
  if (::fallocate(fd_.get(), 0, 0, static_cast<off_t>(wanted) * static_cast<off_t>(sizeof(std::uint32_t))) != 0) {
    return base::errno_status("taking memory for the gates of regions", errno);
  }
  reserved_ = wanted;
  return {};
}

Status Gates::open(std::uint32_t index, std::uint32_t generation) {
  if (index >= kGateCount) {
    return Status(Code::kBusy, base::format("shm serves {} regions of an agent, which is the limit", kGateCount));
  }
  base::MutexLock lock(mutex_);
  HAWSER_TRY(reserve(index));
  words()[index].store(generation, std::memory_order_release);
  return {};
}

void Gates::shut(std::span<const RegionId> ids, bool others) {
  // Held through the barrier: who finds the gate shut already must not look at pins before the barrier is done.
  base::MutexLock lock(mutex_);
  bool is_shut_now = false;
  for (const RegionId& id : ids) {
    if (id.index >= reserved_) continue;
    Atomics::GateWord& word = words()[id.index];
    if (word.load(std::memory_order_relaxed) != id.generation) continue;
    word.store(0, std::memory_order_seq_cst);
    is_shut_now = true;
  }
  if (!is_shut_now) return;
  Atomics::fence();
  if (!others || !has_membarrier_) return;
  ::syscall(SYS_membarrier, MEMBARRIER_CMD_GLOBAL_EXPEDITED, 0, 0);
  barriers_.fetch_add(1, std::memory_order_relaxed);
}

Result<PeerGates> PeerGates::map(int fd) {
  HAWSER_TRY_ASSIGN(const std::size_t size, sealed_size(fd));
  if (size != kGateBytes) return Status(Code::kCorrupt, base::format("a peer's gates have {} bytes", size));
  PeerGates gates;
  HAWSER_TRY_ASSIGN(gates.mapping_, Mapping::map(fd, size, Mapping::Access::kRead));
  return gates;
}

}  // namespace hawser::backend::shm
