#include "cli/bench/raw_sockets.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <span>
#include <string_view>

#include <hawser/time.h>

#include "base/try.h"
#include "cli/bench/sampler.h"

namespace hawser::cli::bench {
namespace {

constexpr int kBuffer = 4 << 20;  // bytes asked for in each socket's buffers
constexpr int kAcceptMs = 5000;
constexpr Duration kPingPatience = std::chrono::seconds(5);
constexpr std::size_t kPing = 8;  // bytes

Result<base::Fd> raw_socket() {
  base::Fd fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!fd) return base::errno_status("a raw socket", errno);
  const int one = 1;
  setsockopt(fd.get(), IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
  setsockopt(fd.get(), SOL_SOCKET, SO_SNDBUF, &kBuffer, sizeof(kBuffer));
  setsockopt(fd.get(), SOL_SOCKET, SO_RCVBUF, &kBuffer, sizeof(kBuffer));
  // Systems offer different algorithms. bbr paces and halves loopback, so the others are tried first.
  for (const std::string_view name : {"cubic", "reno"}) {
    if (setsockopt(fd.get(), IPPROTO_TCP, TCP_CONGESTION, name.data(), static_cast<socklen_t>(name.size())) == 0) break;
  }
  return fd;
}

sockaddr_in loopback(std::uint16_t port) {
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}

// Moves all of it, spinning. False: `over` came first.
template <typename Call, typename Over>
Result<bool> move_spinning(std::span<char> bytes, Call call, Over over) {
  std::size_t moved = 0;
  for (std::uint32_t spins = 1; moved < bytes.size(); ++spins) {
    const ssize_t n = call(bytes.data() + moved, bytes.size() - moved);
    if (n > 0) {
      moved += static_cast<std::size_t>(n);
    } else if (n == 0 || (errno != EAGAIN && errno != EINTR)) {
      return base::errno_status("a raw ping", n == 0 ? ECONNRESET : errno);
    } else if (spins % 256 == 0 && over()) {
      return false;
    }
  }
  return true;
}

auto sending(int fd) {
  return [fd](const char* at, std::size_t size) { return send(fd, at, size, MSG_DONTWAIT | MSG_NOSIGNAL); };
}
auto receiving(int fd) {
  return [fd](char* at, std::size_t size) { return recv(fd, at, size, MSG_DONTWAIT); };
}

}  // namespace

Result<RawListener> RawListener::open() {
  HAWSER_TRY_ASSIGN(base::Fd fd, raw_socket());  // Accepted sockets inherit its options.
  sockaddr_in address = loopback(0);
  socklen_t size = sizeof(address);
  auto* generic = reinterpret_cast<sockaddr*>(&address);
  if (bind(fd.get(), generic, size) != 0 || listen(fd.get(), 16) != 0 || getsockname(fd.get(), generic, &size) != 0) {
    return base::errno_status("a raw listener", errno);
  }
  return RawListener(std::move(fd), ntohs(address.sin_port));
}

Result<base::Fd> RawListener::accept() {
  pollfd entry{fd_.get(), POLLIN, 0};
  if (poll(&entry, 1, kAcceptMs) != 1) return Status(Code::kTimedOut, "the second process did not connect");
  base::Fd fd(accept4(fd_.get(), nullptr, nullptr, SOCK_CLOEXEC));
  if (!fd) return base::errno_status("accepting a raw connection", errno);
  const int one = 1;
  setsockopt(fd.get(), IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
  return fd;
}

Result<base::Fd> raw_connect(std::uint16_t port) {
  HAWSER_TRY_ASSIGN(base::Fd fd, raw_socket());
  const sockaddr_in address = loopback(port);
  if (connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0) {
    return base::errno_status("a raw connection", errno);
  }
  return fd;
}

Status answer_pings(int fd, const std::function<bool()>& over) {
  std::array<char, kPing> bytes = {};
  while (true) {
    HAWSER_TRY_ASSIGN(const bool got, move_spinning(std::span<char>(bytes), receiving(fd), over));
    if (!got) return Status();
    HAWSER_TRY(move_spinning(std::span<char>(bytes), sending(fd), [] { return false; }).status());
  }
}

Status raw_ping(int fd) {
  std::array<char, kPing> bytes = {};
  const std::int64_t deadline = now_ns() + kPingPatience.count();
  const auto late = [deadline] { return now_ns() > deadline; };
  HAWSER_TRY(move_spinning(std::span<char>(bytes), sending(fd), late).status());
  HAWSER_TRY_ASSIGN(const bool answered, move_spinning(std::span<char>(bytes), receiving(fd), late));
  return answered ? Status() : Status(Code::kTimedOut, "no answer to a raw ping");
}

}  // namespace hawser::cli::bench
