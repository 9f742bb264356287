#pragma once

// UserSocket: a listening Unix socket that processes of its own user alone can reach. Its file has the mode 0600, and
// the kernel tells of each caller which user it is: another user's connection is closed before anything is read.
//
// A process that dies leaves its socket's file behind. A newcomer removes those that refuse connections.
//
// Thread rule: one thread at a time. Lifetime: destroying removes the file, but not in a forked child.

#include <sys/types.h>

#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include <hawser/status.h>

#include "base/fd.h"

namespace hawser::base {

class UserSocket {
 public:
  /// `folder`/`name``suffix`. The folder must belong to this user and be closed to others (base/home.h). At most
  /// `backlog` callers wait to be accepted. Errors: kInvalid (the path is too long), or what the kernel said.
  static Result<UserSocket> listen(const std::string& folder, std::string_view name, std::string_view suffix,
                                   int backlog);
  UserSocket(UserSocket&& other) noexcept
      : socket_(std::move(other.socket_)), path_(std::exchange(other.path_, {})), process_(other.process_) {}
  UserSocket& operator=(UserSocket&&) = delete;
  ~UserSocket();

  int fd() const { return socket_.get(); }
  const std::string& path() const { return path_; }

  struct Caller {
    Fd socket;  ///< Does not block. Empty: a caller of another user, whose connection is closed.
  };
  /// Nothing: nobody waits. An error is a shortage of this process or system, and the caller waits on.
  Result<std::optional<Caller>> accept() const;

 private:
  UserSocket(Fd socket, std::string path, pid_t process)
      : socket_(std::move(socket)), path_(std::move(path)), process_(process) {}

  Fd socket_;
  std::string path_;
  pid_t process_;
};

/// A connection, which does not block. Errors: kNotFound (there is none), kDenied (the file, or the process behind it,
/// is of another user; the file is open to others, or no socket), kDisconnected (its process died), kBusy (too many
/// callers wait there).
Result<Fd> connect_to_user_socket(const std::string& path);

}  // namespace hawser::base
