#include "compat/link.h"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <optional>
#include <vector>

#include "base/far_end.h"
#include "base/format.h"
#include "base/try.h"

HAWSER_NAMESPACE_BEGIN
namespace compat {
namespace {

constexpr std::size_t kPiece = 65536;

Instant now() { return Clock::steady().now(); }

int milliseconds_until(Instant deadline) {
  const std::int64_t left = (deadline - now()).count() / 1'000'000;
  return static_cast<int>(std::clamp<std::int64_t>(left + 1, 0, 60'000));
}

/// How long one may take, and who may end it before.
struct Patience {
  Instant deadline;
  const std::atomic<bool>& stop;
};

/// Waits until the socket is ready; false when patience ends, even where bytes keep dripping in.
bool await(int fd, short events, const Patience& patience) {
  constexpr Duration kLook = std::chrono::milliseconds(100);
  while (now() < patience.deadline && !patience.stop.load(std::memory_order_acquire)) {
    pollfd one{.fd = fd, .events = events, .revents = 0};
    if (::poll(&one, 1, milliseconds_until(std::min(patience.deadline, now() + kLook))) > 0) return true;
  }
  return false;
}

bool is_passing(int error) { return error == EAGAIN || error == EWOULDBLOCK || error == EINTR; }

Result<base::Fd> open_socket(int family) {
  base::Fd fd(::socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd) return base::errno_status("metadata by address: socket", errno);
  return fd;
}

Status too_late(const base::SocketAddress& address) {
  return Status(Code::kTimedOut, base::format("metadata by address: {} took too long", base::to_string(address)));
}

Status not_trusted(const std::string& why) {
  return Status(Code::kDenied, base::format("metadata by address: {}", why))
      .with_advice(
          "run both agents as one user, exchange metadata through etcd or as bytes, or set HAWSER_SECURITY=none "
          "for both, which gives it to everybody who can connect");
}

/// Until the listener took the connection, the kernel knows no owner of its other end.
Status await_same_user(int fd, const base::SocketAddress& address, const Patience& patience) {
  constexpr int kLookMs = 2;
  for (;;) {
    std::string why;
    const base::FarEnd far_end = base::far_end_of(fd, &why);
    if (far_end == base::FarEnd::kSameUser) return {};
    if (far_end != base::FarEnd::kNobody) return not_trusted(why);
    pollfd one{.fd = fd, .events = POLLIN | POLLRDHUP, .revents = 0};
    (void)::poll(&one, 1, kLookMs);
    if ((one.revents & (POLLHUP | POLLERR | POLLRDHUP)) != 0) {
      return Status(Code::kDisconnected,
                    base::format("metadata by address: {} closed the connection", base::to_string(address)));
    }
    if (now() >= patience.deadline || patience.stop.load(std::memory_order_acquire)) return too_late(address);
  }
}

Result<base::Fd> connect_to(const base::SocketAddress& address, const Patience& patience) {
  HAWSER_TRY_ASSIGN(base::Fd fd, open_socket(address.family()));
  const std::string what = base::format("metadata by address: connecting to {}", base::to_string(address));
  if (::connect(fd.get(), address.get(), address.size) != 0) {
    if (errno != EINPROGRESS) return base::errno_status(Code::kDisconnected, what, errno);
    if (!await(fd.get(), POLLOUT, patience)) return too_late(address);
    int error = 0;
    socklen_t size = sizeof error;
    if (::getsockopt(fd.get(), SOL_SOCKET, SO_ERROR, &error, &size) != 0) error = errno;
    if (error != 0) return base::errno_status(Code::kDisconnected, what, error);
  }
  return fd;
}

}  // namespace

Result<Frame> ask(const base::SocketAddress& address, const Frame& frame, Instant deadline,
                  const std::atomic<bool>& stop, Trust trust) {
  const Patience patience{deadline, stop};
  HAWSER_TRY_ASSIGN(const base::Fd fd, connect_to(address, patience));
  if (trust == Trust::kSameUser) HAWSER_TRY(await_same_user(fd.get(), address, patience));
  const std::string bytes = encode_frame(frame);
  for (std::size_t sent = 0; sent < bytes.size();) {
    if (!await(fd.get(), POLLOUT, patience)) return too_late(address);
    const ssize_t count = ::send(fd.get(), bytes.data() + sent, bytes.size() - sent, MSG_NOSIGNAL);
    if (count < 0 && !is_passing(errno)) {
      return base::errno_status(Code::kDisconnected, "metadata by address: send", errno);
    }
    if (count > 0) sent += static_cast<std::size_t>(count);
  }
  std::string received;
  std::array<char, kPiece> piece;
  for (;;) {
    HAWSER_TRY_ASSIGN(std::optional<Frame> answer, decode_frame(received));
    if (answer) return *std::move(answer);
    if (!await(fd.get(), POLLIN, patience)) return too_late(address);
    const ssize_t count = ::recv(fd.get(), piece.data(), piece.size(), 0);
    if (count == 0) {
      return Status(Code::kDisconnected,
                    base::format("metadata by address: {} closed without an answer", base::to_string(address)));
    }
    if (count < 0 && !is_passing(errno)) {
      return base::errno_status(Code::kDisconnected, "metadata by address: recv", errno);
    }
    if (count > 0) received.append(piece.data(), static_cast<std::size_t>(count));
  }
}

struct Listener::Link {
  base::Fd fd;
  Instant end;
  std::string received, answer;
  std::size_t sent = 0;
  bool is_answering = false;
};

Result<std::unique_ptr<Listener>> Listener::open(const std::string& host, std::uint16_t port, Trust trust,
                                                 Answer answer) {
  HAWSER_TRY_ASSIGN(base::SocketAddress address, base::numeric_address({.host = host, .port = port}));
  HAWSER_TRY_ASSIGN(base::Fd fd, open_socket(address.family()));
  const int on = 1;
  (void)::setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  const std::string what = base::format("metadata by address: listening at {}", base::to_string(address));
  if (::bind(fd.get(), address.get(), address.size) != 0 || ::listen(fd.get(), 64) != 0) {
    return base::errno_status(what, errno).with_advice("give another listen_port, or 0 for any");
  }
  socklen_t size = sizeof address.storage;
  if (::getsockname(fd.get(), address.get(), &size) != 0) return base::errno_status(what, errno);
  HAWSER_TRY_ASSIGN(base::EventFd wake, base::EventFd::open());
  return std::unique_ptr<Listener>(
      new Listener(std::move(fd), std::move(wake), address.port(), trust, std::move(answer)));
}

Listener::Listener(base::Fd socket, base::EventFd wake, std::uint16_t port, Trust trust, Answer answer)
    : socket_(std::move(socket)), wake_(std::move(wake)), port_(port), trust_(trust), answer_(std::move(answer)) {
  thread_ = std::thread([this] { run(); });
}

Listener::~Listener() {
  if (!thread_.joinable()) return;
  stop_.store(true, std::memory_order_release);
  wake_.signal();
  thread_.join();
}

void Listener::disown() {
  if (thread_.joinable()) thread_.detach();
}

void Listener::run() {
  std::vector<pollfd> waiting;
  while (!stop_.load(std::memory_order_acquire)) {
    waiting.clear();
    waiting.push_back({.fd = wake_.fd(), .events = POLLIN, .revents = 0});
    // With all places taken, others wait in the kernel's queue.
    waiting.push_back({.fd = links_.size() < kLinksMax ? socket_.get() : -1, .events = POLLIN, .revents = 0});
    Instant next = now() + std::chrono::seconds(60);
    for (const auto& link : links_) {
      const short events = link->is_answering ? POLLOUT : POLLIN;
      waiting.push_back({.fd = link->fd.get(), .events = events, .revents = 0});
      next = std::min(next, link->end);
    }
    (void)::poll(waiting.data(), waiting.size(), milliseconds_until(next));
    std::size_t at = 2;
    std::erase_if(links_, [&](const auto& link) {
      const bool is_ready = waiting[at++].revents != 0;
      const bool is_over = now() >= link->end || (is_ready && !move_on(*link));
      if (is_over) held_ -= link->received.size() + link->answer.size();
      return is_over;
    });
    if (waiting[1].revents != 0) accept_one();
  }
}

void Listener::accept_one() {
  base::Fd fd(::accept4(socket_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  if (!fd) return;
  auto link = std::make_unique<Link>(Link{.fd = std::move(fd), .end = now() + kLinkTime});
  std::string why;
  if (trust_ == Trust::kSameUser && base::far_end_of(link->fd.get(), &why) != base::FarEnd::kSameUser) {
    // It is told so, and not a byte of what it says is read.
    link->answer = encode_frame({.kind = Frame::Kind::kRefused, .body = not_trusted(why).to_string()});
    (void)send(*link);
    return;
  }
  links_.push_back(std::move(link));
}

bool Listener::move_on(Link& link) { return link.is_answering ? send(link) : receive(link); }

bool Listener::receive(Link& link) {
  std::array<char, kPiece> piece;
  const ssize_t count = ::recv(link.fd.get(), piece.data(), piece.size(), 0);
  if (count < 0) return is_passing(errno);
  if (count == 0 || held_ + static_cast<std::size_t>(count) > kLinkBytesMax) return false;
  link.received.append(piece.data(), static_cast<std::size_t>(count));
  held_ += static_cast<std::size_t>(count);
  // Only a whole head says how long it is; looking for a frame costs nothing until its last byte is there.
  const Result<std::optional<Frame>> frame = decode_frame(link.received);
  if (frame && !*frame) return true;
  const Frame answer =
      frame ? answer_(**frame) : Frame{.kind = Frame::Kind::kRefused, .body = frame.status().to_string()};
  held_ -= link.received.size();
  link.received.clear();
  link.answer = encode_frame(answer);
  held_ += link.answer.size();
  link.is_answering = true;
  return true;
}

bool Listener::send(Link& link) {
  const ssize_t count =
      ::send(link.fd.get(), link.answer.data() + link.sent, link.answer.size() - link.sent, MSG_NOSIGNAL);
  if (count < 0) return is_passing(errno);
  link.sent += static_cast<std::size_t>(count);
  return link.sent < link.answer.size();
}

}  // namespace compat
HAWSER_NAMESPACE_END
