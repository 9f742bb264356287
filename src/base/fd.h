#pragma once

// Fd: a file descriptor that closes itself. And what comes with descriptors: flags, and errno as a Status.
//
// Thread rule: a value that moves; one thread at a time. Lifetime: the descriptor closes with its Fd.

#include <string_view>
#include <utility>

#include <hawser/status.h>

namespace hawser::base {

class Fd {
 public:
  Fd() = default;
  /// Takes ownership; a negative number makes an empty Fd.
  explicit Fd(int fd) : fd_(fd) {}
  Fd(Fd&& other) noexcept : fd_(other.release()) {}
  Fd& operator=(Fd&& other) noexcept {
    if (this != &other) reset(other.release());
    return *this;
  }
  ~Fd() { reset(); }

  bool valid() const { return fd_ >= 0; }
  explicit operator bool() const { return valid(); }
  int get() const { return fd_; }
  /// The caller closes it now.
  [[nodiscard]] int release() { return std::exchange(fd_, -1); }
  /// Closes what it holds and takes `fd`. Keeps errno.
  void reset(int fd = -1);
  /// Another descriptor of the same file, close-on-exec.
  Result<Fd> duplicate() const;

 private:
  int fd_ = -1;
};

/// For descriptors that others made; ours are born close-on-exec.
Status set_cloexec(int fd, bool on = true);
Status set_nonblocking(int fd, bool on = true);

/// "what: text of the error (errno 111)".
Status errno_status(Code code, std::string_view what, int error);
/// As above, with code_of_errno(error).
Status errno_status(std::string_view what, int error);
/// It says what this process or system lacks, and so nothing of whoever was to be reached.
inline bool is_shortage(const Status& status) {
  return status.code() == Code::kBusy && status.scope() == Scope::kAgent;
}
/// The code for a system call's error, where the call site knows no better.
Code code_of_errno(int error);

}  // namespace hawser::base
