#include "base/user_socket.h"

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <ctime>
#include <vector>

#include "base/format.h"
#include "base/left_file.h"
#include "base/shown.h"
#include "base/try.h"

namespace hawser::base {
namespace {

constexpr std::size_t kManySockets = 64;       ///< Beyond, a newcomer looks at a slice of them, as for left files.
constexpr std::size_t kSocketSliceDigits = 2;  ///< At the beginning of names.
constexpr std::time_t kYoungSocketSeconds =
    60;  ///< Between its file and its `listen` a socket refuses connections, too.

Result<sockaddr_un> address_of(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path) {
    return Status(Code::kInvalid, base::format("'{}' is too long for a Unix socket: {} bytes, {} at most", shown(path),
                                               path.size(), sizeof address.sun_path - 1))
        .with_advice("choose a folder with a shorter path");
  }
  std::memcpy(address.sun_path, path.data(), path.size());
  return address;
}

const sockaddr* generic(const sockaddr_un& address) { return reinterpret_cast<const sockaddr*>(&address); }

Result<Fd> open_socket() {
  Fd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket) return errno_status("opening a Unix socket", errno);
  return socket;
}

/// True where the process at the other end is of this user.
bool is_of_this_user(int socket) {
  ucred found{};
  socklen_t size = sizeof found;
  return ::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &found, &size) == 0 && found.uid == ::geteuid();
}

void remove_if_dead(const std::string& path) {
  struct stat found {};
  if (::lstat(path.c_str(), &found) != 0 || !S_ISSOCK(found.st_mode)) return;
  const std::time_t seconds = std::time(nullptr) - found.st_mtime;
  if (seconds >= 0 && seconds < kYoungSocketSeconds) return;
  const Result<sockaddr_un> address = address_of(path);
  const Result<Fd> socket = open_socket();
  if (!address || !socket) return;
  if (::connect(socket->get(), generic(*address), sizeof *address) != 0 && errno == ECONNREFUSED) {
    ::unlink(path.c_str());
  }
}

void sweep_sockets(const std::string& folder, std::string_view own_name, std::string_view suffix) {
  const std::vector<std::string> all = list_left_files(folder, suffix);
  const std::string slice =
      folder + "/" + std::string(all.size() > kManySockets ? own_name.substr(0, kSocketSliceDigits) : "");
  for (const std::string& path : all) {
    if (path.starts_with(slice)) remove_if_dead(path);
  }
}

Status not_asked(const std::string& path, std::string_view why) {
  return Status(Code::kDenied, base::format("'{}' is not asked: {}", shown(path), why));
}

}  // namespace

Result<UserSocket> UserSocket::listen(const std::string& folder, std::string_view name, std::string_view suffix,
                                      int backlog) {
  sweep_sockets(folder, name, suffix);
  std::string path = folder + "/" + std::string(name) + std::string(suffix);
  HAWSER_TRY_ASSIGN(const sockaddr_un address, address_of(path));
  HAWSER_TRY_ASSIGN(Fd socket, open_socket());
  // The file gets the mode of the socket, so it never has another one.
  if (::fchmod(socket.get(), 0600) != 0 || ::bind(socket.get(), generic(address), sizeof address) != 0) {
    return errno_status(base::format("making the socket '{}'", shown(path)), errno);
  }
  UserSocket made(std::move(socket), std::move(path), ::getpid());
  if (::listen(made.fd(), backlog) != 0) {
    return errno_status(base::format("listening at '{}'", shown(made.path())), errno);
  }
  return made;
}

UserSocket::~UserSocket() {
  if (!path_.empty() && process_ == ::getpid()) ::unlink(path_.c_str());
}

Result<std::optional<UserSocket::Caller>> UserSocket::accept() const {
  Fd socket(::accept4(socket_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  if (!socket) {
    const int error = errno;
    // A caller that is gone again leaves the next one to the next call.
    if (error == EAGAIN || error == EWOULDBLOCK || error == ECONNABORTED || error == EINTR) {
      return std::optional<Caller>();
    }
    return errno_status("accepting a caller of the status socket", error);
  }
  if (!is_of_this_user(socket.get())) socket.reset();
  return std::optional<Caller>(Caller{std::move(socket)});
}

Result<Fd> connect_to_user_socket(const std::string& path) {
  HAWSER_TRY_ASSIGN(const sockaddr_un address, address_of(path));
  struct stat found {};
  if (::lstat(path.c_str(), &found) != 0) return errno_status(base::format("looking at '{}'", shown(path)), errno);
  if (!S_ISSOCK(found.st_mode)) return not_asked(path, "it is no socket");
  if (found.st_uid != ::geteuid()) return not_asked(path, base::format("it belongs to user {}", found.st_uid));
  if ((found.st_mode & 077) != 0) return not_asked(path, "others may use it (mode 0600 is needed)");
  HAWSER_TRY_ASSIGN(Fd socket, open_socket());
  if (::connect(socket.get(), generic(address), sizeof address) != 0) {
    const int error = errno;
    if (error == EAGAIN) return Status(Code::kBusy, base::format("too many callers wait at '{}'", shown(path)));
    const Code code = error == ECONNREFUSED ? Code::kDisconnected : code_of_errno(error);
    return errno_status(code, base::format("connecting to '{}'", shown(path)), error);
  }
  if (!is_of_this_user(socket.get())) return not_asked(path, "a process of another user listens there");
  return socket;
}

}  // namespace hawser::base
