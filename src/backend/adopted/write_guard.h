#pragma once

// WriteGuard: while it holds pages of this process, threads that store there wait, and go on once it lets go, on
// whatever is mapped there then. So pages can be moved by a copy and a switch, and no store is lost.
//
// By userfaultfd's write protection: the kernel keeps the faulting threads, nobody has a handler for signals, and
// nothing is asked of a thread of ours but the two calls. Reading goes on. It does not see what a device stores, nor a
// system call that had its pages before they were held (O_DIRECT, io_uring).
//
// Who holds must not store there itself, nor wait for anybody who may: Signals may bring stores of their own, so they
// are kept from the holding thread (`Window`).
//
// Thread rule: one thread at a time. Lifetime: lets go of all when it dies. In a forked child it is of no use, and only
// to be dropped there.

#include <signal.h>

#include <cstddef>
#include <cstdint>

#include <hawser/status.h>

#include "backend/address_space.h"
#include "base/fd.h"

namespace hawser::backend {

class WriteGuard {
 public:
  /// Bad: the kernel does not have it (Linux 5.19), or does not allow it to this process.
  static Result<WriteGuard> make();
  /// With what an unprivileged process gets, also where more is allowed. For tests.
  static Result<WriteGuard> make_for_threads_only();

  /// Also system calls that store for a thread wait. Else they fail meanwhile (EFAULT), which loses nothing in silence:
  /// the kernel lets a process hold itself up in system calls only with a privilege.
  bool holds_system_calls() const { return holds_system_calls_; }

  /// One range of pages, held from here on as long as it lives, by the thread that made it.
  class Window {
   public:
    /// See status(): bad, nothing is held. No guard: nothing is held, and that is good.
    Window(const WriteGuard* guard, AddressRange pages);
    ~Window();
    Window(const Window&) = delete;
    Window& operator=(const Window&) = delete;
    const Status& status() const { return status_; }

   private:
    Status hold();

    const WriteGuard* const guard_;
    const AddressRange pages_;
    sigset_t signals_before_;
    Status status_;
  };

 private:
  WriteGuard(base::Fd fd, bool holds_system_calls) : fd_(std::move(fd)), holds_system_calls_(holds_system_calls) {}
  Status agree();

  base::Fd fd_;
  bool holds_system_calls_ = false;
};

}  // namespace hawser::backend
