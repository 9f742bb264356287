// The raw loop over loopback TCP: two processes, gathering sendmsg and scattering recvmsg, spinning. See ceiling.h.

#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <span>
#include <string_view>

#include <hawser/time.h>

#include "base/fd.h"
#include "base/try.h"
#include "cli/ceiling.h"
#include "cli/ceiling_arena.h"
#include "cli/units.h"

namespace hawser::cli {
namespace {

constexpr std::size_t kGather = 64;  // blocks in one call
constexpr int kCeilingPasses = 2;    // timed ones, after one that warms up; the best counts
constexpr int kBuffer = 4 << 20;     // bytes asked for in each socket's buffers
constexpr Duration kTimeout = std::chrono::seconds(30);

struct Pair {
  base::Fd sender, receiver;
};

// Systems offer different algorithms. bbr paces and halves loopback, so the others are tried first.
void choose_congestion_control(int fd) {
  for (const std::string_view name : {"cubic", "reno"}) {
    if (setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, name.data(), static_cast<socklen_t>(name.size())) == 0) return;
  }
}

void tune(int fd) {
  const int one = 1;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
  setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &kBuffer, sizeof(kBuffer));
  setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &kBuffer, sizeof(kBuffer));
  choose_congestion_control(fd);
}

Result<Pair> connect_pair() {
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(address);
  auto* generic = reinterpret_cast<sockaddr*>(&address);
  const base::Fd listener(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  Pair pair{base::Fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)), base::Fd()};
  tune(listener.get());
  tune(pair.sender.get());
  if (bind(listener.get(), generic, size) != 0 || listen(listener.get(), 1) != 0 ||
      getsockname(listener.get(), generic, &size) != 0 || connect(pair.sender.get(), generic, size) != 0) {
    return base::errno_status("a loopback connection for the ceiling", errno);
  }
  pair.receiver = base::Fd(accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
  if (!pair.receiver) return base::errno_status("a loopback connection for the ceiling", errno);
  return pair;
}

// One socket's share of the blocks, gathered call by call.
class Stream {
 public:
  Stream(int fd, std::byte* base, std::span<const std::uint64_t> offsets, std::uint64_t block_bytes)
      : fd_(fd), base_(base), offsets_(offsets), block_bytes_(block_bytes) {}

  bool done() const { return next_ == offsets_.size(); }

  /// One call. False when the connection broke. Where nothing moves, the other process gets the core.
  template <typename Call>
  bool move(Call call) {
    std::array<iovec, kGather> pieces;
    std::size_t count = 0;
    std::uint64_t skip = within_;
    for (std::size_t i = next_; i < offsets_.size() && count < kGather; ++i, skip = 0) {
      pieces[count++] = {base_ + offsets_[i] + skip, block_bytes_ - skip};
    }
    msghdr message = {};
    message.msg_iov = pieces.data();
    message.msg_iovlen = count;
    const ssize_t n = call(fd_, &message, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (n > 0) {
      const std::uint64_t moved = within_ + static_cast<std::uint64_t>(n);
      next_ += moved / block_bytes_;
      within_ = moved % block_bytes_;
    }
    const bool again = n < 0 && (errno == EAGAIN || errno == EINTR);
    if (again) sched_yield();
    return n > 0 || again;
  }

 private:
  int fd_;
  std::byte* base_;
  std::span<const std::uint64_t> offsets_;
  std::uint64_t block_bytes_;
  std::size_t next_ = 0;
  std::uint64_t within_ = 0;  ///< Bytes of block next_ that went already.
};

template <typename Call>
bool move_all(std::span<const int> sockets, std::byte* base, std::span<const std::uint64_t> offsets,
              std::uint64_t block_bytes, Call call) {
  std::vector<Stream> streams;
  const std::size_t share = (offsets.size() + sockets.size() - 1) / sockets.size();
  for (std::size_t i = 0; i < sockets.size(); ++i) {
    const std::size_t first = std::min(i * share, offsets.size());
    streams.emplace_back(sockets[i], base, offsets.subspan(first, std::min(share, offsets.size() - first)),
                         block_bytes);
  }
  const Instant deadline = Clock::steady().now() + kTimeout;
  while (std::any_of(streams.begin(), streams.end(), [](const Stream& s) { return !s.done(); })) {
    for (Stream& stream : streams) {
      if (!stream.done() && !stream.move(call)) return false;
    }
    if (Clock::steady().now() > deadline) return false;
  }
  return true;
}

// The receiver answers each pass with a byte on its first socket.
[[noreturn]] void receive_in_child(std::span<const int> sockets, std::byte* base,
                                   std::span<const std::uint64_t> offsets, std::uint64_t block_bytes) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  for (int pass = 0; pass <= kCeilingPasses; ++pass) {
    if (!move_all(sockets, base, offsets, block_bytes, recvmsg)) _exit(1);
    if (send(sockets[0], "", 1, MSG_NOSIGNAL) != 1) _exit(1);
  }
  _exit(0);
}

std::int64_t best_pass(std::span<const int> sockets, std::byte* base, std::span<const std::uint64_t> offsets,
                       std::uint64_t block_bytes) {
  std::int64_t best = 0;
  for (int pass = 0; pass <= kCeilingPasses; ++pass) {
    char answer = 0;
    const Instant start = Clock::steady().now();
    if (!move_all(sockets, base, offsets, block_bytes, sendmsg) || recv(sockets[0], &answer, 1, 0) != 1) return 0;
    const std::int64_t ns = (Clock::steady().now() - start).count();
    if (pass > 0 && (best == 0 || ns < best)) best = ns;
  }
  return best;
}

Result<double> measure(std::size_t socket_count, const ScratchArena& from, const ScratchArena& to,
                       const CeilingShape& shape, std::uint64_t count) {
  std::vector<Pair> pairs;
  std::vector<int> senders, receivers;
  for (std::size_t i = 0; i < socket_count; ++i) {
    HAWSER_TRY_ASSIGN(Pair pair, connect_pair());
    senders.push_back(pair.sender.get());
    receivers.push_back(pair.receiver.get());
    pairs.push_back(std::move(pair));
  }
  const auto sources = shuffled_offsets(count, shape.block_bytes, 1);
  const auto targets = shuffled_offsets(count, shape.block_bytes, 2);
  const pid_t child = fork();
  if (child < 0) return base::errno_status("a receiver for the ceiling", errno);
  if (child == 0) {
    for (const int fd : senders) close(fd);
    receive_in_child(receivers, to.base(), targets, shape.block_bytes);
  }
  for (Pair& pair : pairs) pair.receiver.reset();  // So that a dead receiver is noticed.
  const std::int64_t ns = best_pass(senders, from.base(), sources, shape.block_bytes);
  pairs.clear();
  waitpid(child, nullptr, 0);
  if (ns == 0) return Status(Code::kFailed, "the raw TCP loop broke");
  return rate(count * shape.block_bytes, ns);
}

}  // namespace

Result<Ceiling> tcp_ceiling(const CeilingShape& shape) {
  const std::uint64_t count = std::max<std::uint64_t>(shape.bytes / shape.block_bytes, 2);
  HAWSER_TRY_ASSIGN(const ScratchArena from, ScratchArena::create(count * shape.block_bytes));
  HAWSER_TRY_ASSIGN(const ScratchArena to, ScratchArena::create(count * shape.block_bytes));
  Ceiling best;
  for (const std::size_t sockets : {1, 2}) {
    HAWSER_TRY_ASSIGN(const double speed, measure(sockets, from, to, shape, count));
    if (speed > best.gb_per_s) {
      best = {fmt::format("raw sendmsg/recvmsg of {} blocks, {} socket{}", kGather, sockets, sockets == 1 ? "" : "s"),
              speed};
    }
  }
  return best;
}

}  // namespace hawser::cli
