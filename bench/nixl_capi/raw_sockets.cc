// Loopback TCP without either library. See ceilings.h.

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <string_view>
#include <utility>
#include <vector>

#include "base/fd.h"
#include "ceilings.h"
#include "cli/bench/cores.h"
#include "library.h"
#include "side.h"

namespace nixl_bench {
namespace {

using hawser::base::Fd;

constexpr std::size_t kCall = 1u << 20;
constexpr std::size_t kMemory = 64u << 20;  ///< Runs through this on either side, so that no cache holds it all.
constexpr std::string_view kCongestion = "reno";

void set_up(int fd) {
  const int on = 1;
  ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
  ::setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, kCongestion.data(), kCongestion.size());
  if (!hawser::base::set_nonblocking(fd).ok()) throw Failure("a socket does not become non-blocking");
}

std::pair<Fd, Fd> connected() {
  const Fd listener(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{.sin_family = AF_INET, .sin_port = 0, .sin_addr = {htonl(INADDR_LOOPBACK)}, .sin_zero = {}};
  socklen_t size = sizeof(address);
  auto* const any = reinterpret_cast<sockaddr*>(&address);
  Fd one(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (::bind(listener.get(), any, size) != 0 || ::listen(listener.get(), 1) != 0 ||
      ::getsockname(listener.get(), any, &size) != 0 || ::connect(one.get(), any, size) != 0) {
    throw Failure("no loopback connection for the ceiling");
  }
  Fd other(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
  if (!other) throw Failure("no loopback connection for the ceiling");
  set_up(one.get());
  set_up(other.get());
  return {std::move(one), std::move(other)};
}

/// What a call on a non-blocking socket did: bytes, 0 for none now. -1: the end.
ssize_t moved(ssize_t result) {
  if (result > 0) return result;
  return result < 0 && (errno == EAGAIN || errno == EINTR) ? 0 : -1;
}

/// The child: takes all until the other side is done.
void drain(const std::vector<int>& sockets) {
  std::vector<char> memory(kMemory);
  std::size_t at = 0, open = sockets.size();
  std::vector<bool> over(sockets.size());
  Patience patience("a raw stream");
  while (open > 0) {
    patience.spin();
    for (std::size_t i = 0; i < sockets.size(); ++i) {
      if (over[i]) continue;
      const ssize_t got = moved(::recv(sockets[i], memory.data() + at, kCall, 0));
      if (got < 0) {
        over[i] = true;
        --open;
      } else if (got > 0) {
        at = (at + kCall) % kMemory;
      }
    }
  }
}

/// Sends or receives all of it; false at the end of the connection.
template <typename Call>
bool all_of(std::uint64_t bytes, const Call& call) {
  Patience patience("a raw round trip");
  for (std::uint64_t done = 0; done < bytes;) {
    patience.spin();
    const ssize_t now = moved(call(done));
    if (now < 0) return false;
    done += static_cast<std::uint64_t>(now);
  }
  return true;
}

bool send_all(int fd, const char* from, std::uint64_t bytes) {
  return all_of(bytes, [&](std::uint64_t at) { return ::send(fd, from + at, bytes - at, MSG_NOSIGNAL); });
}

bool receive_all(int fd, char* into, std::uint64_t bytes) {
  return all_of(bytes, [&](std::uint64_t at) { return ::recv(fd, into + at, bytes - at, 0); });
}

/// A child that runs `body`, while this lives.
class Child {
 public:
  Child(int core, const std::function<void()>& body) : pid_(::fork()) {
    if (pid_ < 0) throw Failure("no child for the ceiling");
    if (pid_ > 0) return;
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (core >= 0) hawser::cli::bench::pin_to(core);
    try {
      body();
    } catch (const std::exception&) {
      ::_exit(1);
    }
    ::_exit(0);
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  ~Child() {
    ::kill(pid_, SIGKILL);  // What it had to say came over the sockets.
    while (::waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
    }
  }

 private:
  const pid_t pid_;
};

class Pinned {
 public:
  explicit Pinned(int core) { (void)hawser::cli::bench::pin_to(core); }
  Pinned(const Pinned&) = delete;
  Pinned& operator=(const Pinned&) = delete;
  ~Pinned() { hawser::cli::bench::unpin(); }
};

}  // namespace

double raw_stream_ns(std::uint64_t bytes, int sockets, const std::array<int, 2>& cores, double seconds) {
  std::vector<std::pair<Fd, Fd>> pairs;
  std::vector<int> ours, theirs;
  for (int i = 0; i < sockets; ++i) {
    pairs.push_back(connected());
    ours.push_back(pairs.back().first.get());
    theirs.push_back(pairs.back().second.get());
  }
  const Child child(cores[1], [&] {
    for (auto& [one, other] : pairs) one.reset();
    drain(theirs);
  });
  const Pinned pinned(cores[0]);
  const std::vector<char> memory(kMemory, 'x');
  std::uint64_t sent = 0;
  std::size_t at = 0;
  const std::int64_t begin = now_ns(), end = begin + static_cast<std::int64_t>(seconds * 1e9);
  while (now_ns() < end) {
    for (const int fd : ours) {
      const ssize_t now = moved(::send(fd, memory.data() + at, kCall, MSG_NOSIGNAL));
      if (now < 0) throw Failure("a raw stream broke");
      if (now == 0) continue;
      sent += static_cast<std::uint64_t>(now);
      at = (at + kCall) % kMemory;
    }
  }
  return static_cast<double>(now_ns() - begin) * static_cast<double>(bytes) /
         static_cast<double>(std::max<std::uint64_t>(sent, 1));
}

double raw_round_trip_ns(std::uint64_t bytes, const std::array<int, 2>& cores, double seconds) {
  std::pair<Fd, Fd> ends = connected();
  std::vector<char> memory(bytes);
  const Child child(cores[1], [&] {
    ends.first.reset();
    while (receive_all(ends.second.get(), memory.data(), bytes) && send_all(ends.second.get(), memory.data(), 8)) {
    }
  });
  const Pinned pinned(cores[0]);
  Samples samples;
  for (const Slice slice(seconds); slice.goes_on(samples.size());) {
    const std::int64_t begin = now_ns();
    if (!send_all(ends.first.get(), memory.data(), bytes) || !receive_all(ends.first.get(), memory.data(), 8)) {
      throw Failure("a raw round trip broke");
    }
    samples.add(now_ns() - begin);
  }
  return samples.timing().value;
}

}  // namespace nixl_bench
