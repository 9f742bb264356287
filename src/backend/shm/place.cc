#include "backend/shm/place.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <ctime>
#include <memory>
#include <vector>

#include "base/bytes.h"
#include "base/format.h"
#include "base/home.h"
#include "base/shown.h"
#include "base/try.h"

#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD 77
#endif

namespace hawser::backend::shm {
namespace {

constexpr std::uint8_t kAddressVersion = 1;
constexpr int kBacklog = 1024;            // Connections that wait to be accepted; the kernel lowers it to somaxconn.
constexpr int kSweepNamesMax = 32768;     // Names read when a place opens.
constexpr std::size_t kSweepAllMax = 64;  // Lock files up to which all are tried.
constexpr std::size_t kSweepSliceDigits = 2;  // Of names, where there are more.
constexpr std::time_t kProofSeconds = 60;     // So long a dead agent's socket stays after the first newcomer found it.
constexpr std::string_view kSocketSuffix = ".sock";
constexpr std::string_view kLockSuffix = ".lock";

Result<sockaddr_un> unix_address(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path) {
    return Status(Code::kInvalid, base::format("'{}' is too long for a unix socket: {} bytes, {} at most", path,
                                               path.size(), sizeof address.sun_path - 1))
        .with_advice("choose a shorter folder with the shm parameter socket_dir");
  }
  std::memcpy(address.sun_path, path.data(), path.size());
  return address;
}

Result<base::Home> home_of(std::string given, const std::string& runtime_dir) {
  if (given.empty()) return base::choose_home(base::usual_homes(runtime_dir));
  HAWSER_TRY(base::prepare_folder(given));
  return base::Home{.folder = std::move(given), .warning = {}};
}

/// A dead agent's socket refuses connections, and so proves the death to its peers. It stays for a while: the first
/// newcomer that finds it marks its lock file, by its mode and time.
bool is_proof_still(int lock) {
  struct stat found {};
  if (::fstat(lock, &found) != 0) return false;
  const std::time_t now = std::time(nullptr);
  if ((found.st_mode & S_IWUSR) == 0) return found.st_mtime <= now && now - found.st_mtime < kProofSeconds;
  return ::fchmod(lock, S_IRUSR) == 0 && ::futimens(lock, nullptr) == 0;
}

/// A lock file that nobody holds belonged to a process that died.
void sweep_one(const std::string& lock_path) {
  const base::Fd lock(::open(lock_path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  if (!lock || ::flock(lock.get(), LOCK_EX | LOCK_NB) != 0 || is_proof_still(lock.get())) return;
  std::string socket_path = lock_path.substr(0, lock_path.size() - kLockSuffix.size());
  socket_path += kSocketSuffix;
  ::unlink(socket_path.c_str());
  ::unlink(lock_path.c_str());  // last: what has a socket has a lock
}

/// Where many live, each newcomer tries those only whose names begin as its own: names are random, so in time all are
/// tried, and a thousand agents that open do not try a million files.
void sweep(const std::string& folder, std::string_view own_name) {
  const std::unique_ptr<DIR, int (*)(DIR*)> directory(::opendir(folder.c_str()), ::closedir);
  if (directory == nullptr) return;
  std::vector<std::string> locks;
  for (int i = 0; i < kSweepNamesMax; ++i) {
    const dirent* entry = ::readdir(directory.get());
    if (entry == nullptr) break;
    if (std::string_view(entry->d_name).ends_with(kLockSuffix)) locks.emplace_back(entry->d_name);
  }
  const std::string_view slice = locks.size() > kSweepAllMax ? own_name.substr(0, kSweepSliceDigits) : "";
  for (const std::string& lock : locks) {
    if (lock.starts_with(slice)) sweep_one(folder + "/" + lock);
  }
}

/// A fresh lock file may be swept before it is locked, so it counts only if it still has a name afterwards.
Result<base::Fd> take_lock(const std::string& path) {
  constexpr int kTries = 8;
  for (int i = 0; i < kTries; ++i) {
    base::Fd lock(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
    if (!lock) return base::errno_status(base::format("making '{}'", path), errno);
    struct stat status {};
    if (::flock(lock.get(), LOCK_EX | LOCK_NB) == 0 && ::fstat(lock.get(), &status) == 0 && status.st_nlink > 0) {
      return lock;
    }
  }
  return Status(Code::kFailed, base::format("'{}' is locked by another process", path));
}

Result<base::Fd> listen_at(const std::string& path) {
  HAWSER_TRY_ASSIGN(const sockaddr_un address, unix_address(path));
  base::Fd socket(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket) return base::errno_status("opening a unix socket", errno);
  // The folder keeps others out while the mode is still the default.
  if (::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 ||
      ::chmod(path.c_str(), 0600) != 0 || ::listen(socket.get(), kBacklog) != 0) {
    return base::errno_status(base::format("listening at '{}'", path), errno);
  }
  return socket;
}

}  // namespace

std::string encode(const Address& address) {
  std::string bytes;
  base::ByteWriter out(&bytes);
  out.u8(kAddressVersion);
  out.id(address.boot);
  out.u32(address.user);
  out.string(address.socket);
  return bytes;
}

Result<Address> decode_address(std::string_view bytes) {
  base::ByteReader in(bytes);
  Address address;
  const std::uint8_t version = in.u8();
  address.boot = in.id();
  address.user = in.u32();
  address.socket = in.string(sizeof(sockaddr_un::sun_path) - 1);
  if (!in.finished() || version != kAddressVersion || address.socket.find('\0') != std::string::npos) {
    return Status(Code::kInvalid, "this is no address of the shm backend");
  }
  return address;
}

Result<base::Id128> boot_id() {
  const base::Fd fd(::open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC));
  std::array<char, 64> text{};
  const ssize_t size = fd ? ::read(fd.get(), text.data(), text.size()) : -1;
  if (size < 0) {
    const Status status = base::errno_status(Code::kUnsupported, "reading /proc/sys/kernel/random/boot_id", errno);
    return status.code() == Code::kBusy ? status : status.with_advice("shm needs it to tell hosts apart; mount /proc");
  }
  std::string digits;
  for (const char c : std::string_view(text.data(), static_cast<std::size_t>(size))) {
    if (c != '-' && c != '\n') digits += c;
  }
  if (const auto id = base::id128_from_hex(digits)) return *id;
  return Status(Code::kUnsupported, "/proc/sys/kernel/random/boot_id holds no id");
}

Status reach(const Address& address, const base::Id128& boot) {
  if (!(address.boot == boot)) {
    return Status(Code::kUnsupported, base::format("the peer is on another host (boot {}, here {})",
                                                   base::to_hex(address.boot), base::to_hex(boot)));
  }
  if (address.user != ::geteuid()) {
    return Status(Code::kDenied,
                  base::format("the peer runs as user {}, this process as {}", address.user, ::geteuid()))
        .with_advice("shm is for processes of one user: run both as one");
  }
  return {};
}

Result<std::unique_ptr<Place>> Place::open(Where where, const base::Id128& incarnation, ForkList& forks) {
  HAWSER_TRY_ASSIGN(const base::Home home, home_of(std::move(where.folder), where.runtime_dir));
  const std::string& folder = home.folder;
  const std::string name = base::to_hex(incarnation);
  sweep(folder, name);
  const std::string stem = folder + "/" + name;
  std::unique_ptr<Place> place(new Place);
  place->warning_ = home.warning;
  place->lock_path_ = stem;
  place->lock_path_ += kLockSuffix;
  HAWSER_TRY_ASSIGN(base::Fd lock, take_lock(place->lock_path_));
  place->lock_ = ForkFd(std::move(lock), forks);
  place->path_ = stem;
  place->path_ += kSocketSuffix;
  HAWSER_TRY_ASSIGN(base::Fd socket, listen_at(place->path_));
  place->socket_ = ForkFd(std::move(socket), forks);
  return place;
}

void Place::close() {
  if (!lock_) return;
  ::unlink(path_.c_str());
  ::unlink(lock_path_.c_str());
  socket_.reset();
  lock_.reset();
}

Result<base::Fd> connect_to(const std::string& path) {
  HAWSER_TRY_ASSIGN(const sockaddr_un address, unix_address(path));
  base::Fd socket(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket) return base::errno_status("opening a unix socket", errno);
  if (::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0) return socket;
  const int error = errno;
  if (error == EAGAIN) {
    return Status(Code::kBusy, base::format("too many connections wait at '{}'", base::shown(path)))
        .with_scope(Scope::kPeer);
  }
  // The name holds the incarnation, and a socket outlives its process: nobody else was ever there.
  if (error == ECONNREFUSED) {
    return Status(Code::kDisconnected,
                  base::format("its process ended: nobody holds the socket '{}' any more", base::shown(path)))
        .with_scope(Scope::kPeer);
  }
  // Another container has another folder of this name, so that proves nothing.
  if (error == ENOENT || error == ENOTDIR) {
    return Status(Code::kUnsupported, base::format("there is no socket '{}' here", base::shown(path)))
        .with_scope(Scope::kPath)
        .with_advice(
            "if the peer runs in another container of this host, mount the folder of that socket in both; else its "
            "agent was closed");
  }
  return base::errno_status(error == EACCES ? Code::kDenied : Code::kDisconnected,
                            base::format("connecting to '{}'", base::shown(path)), error)
      .with_scope(Scope::kPath);
}

Result<Credentials> peer_credentials(int socket) {
  ucred found{};
  socklen_t size = sizeof found;
  if (::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &found, &size) != 0) {
    return base::errno_status("asking who is at the other end of a unix socket", errno);
  }
  return Credentials{found.pid, found.uid};
}

base::Fd peer_process(int socket, int process) {
  int fd = -1;
  socklen_t size = sizeof fd;
  // From Linux 6.5; it cannot meet a process that got the same number later.
  if (::getsockopt(socket, SOL_SOCKET, SO_PEERPIDFD, &fd, &size) == 0 && fd >= 0) return base::Fd(fd);
  if (process <= 0) return {};
  return base::Fd(static_cast<int>(::syscall(SYS_pidfd_open, process, 0)));
}

}  // namespace hawser::backend::shm
