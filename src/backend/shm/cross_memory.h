#pragma once

// CrossMemory: copies between this process and a peer's by process_vm_readv and process_vm_writev, for memory that
// cannot be mapped. Whether the kernel allows it is found out once, when the path comes up.
//
// A process id is reused and a process may exec, so a call is preceded by a look at the peer's process and socket, the
// calls of one moment by one: a look is a call of the kernel too, and takes a tenth of what moving a few bytes does.
// The kernel is told once what to look at, which makes the look less than half as dear as naming both each time.
//
// Thread rule: confined to the path's lane. Lifetime: borrows both descriptors.

#include <sys/uio.h>

#include <cstddef>
#include <span>

#include <hawser/status.h>
#include <hawser/transfer.h>

#include "backend/shm/control.h"
#include "backend/shm/fork_list.h"
#include "base/short_while.h"

namespace hawser::backend::shm {

inline constexpr std::size_t kCrossPiecesMax = 1024;  ///< Of one call: the kernel's UIO_MAXIOV.

class CrossMemory {
 public:
  CrossMemory() = default;
  CrossMemory(int process, int process_fd, int socket, ForkList& forks)
      : process_(process), process_fd_(process_fd), socket_(socket), forks_(&forks) {}

  /// Reads the peer's probe. Why not, as an error that a planner can show: kUnsupported with advice.
  Status try_probe(const Probe& probe) const;
  /// Whether the peer still stands at the other end, or did a moment ago.
  bool is_alive();

  /// How old an answer may be.
  static constexpr Duration kMoment = std::chrono::nanoseconds(32'768);

  /// One kernel call. Returns the bytes moved, which may be fewer than asked, or -errno.
  ssize_t move(Operation op, std::span<const iovec> local, std::span<const iovec> remote) const;

 private:
  void watch();
  bool look();
  bool look_by_poll() const;

  int process_ = 0;
  int process_fd_ = -1;
  int socket_ = -1;
  ForkList* forks_ = nullptr;
  bool is_watch_tried_ = false;
  base::ShortWhile seen_{static_cast<std::uint64_t>(kMoment.count())};
  ForkFd watch_;  ///< An epoll over both, made at the first look. None: there was no descriptor left.
};

/// What a failed call means for a user.
Status cross_memory_status(int error, int process);

}  // namespace hawser::backend::shm
