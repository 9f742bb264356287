#include "backend/tcp/socket.h"

#include <linux/sockios.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "backend/places/source.h"
#include "base/format.h"

namespace hawser::backend {
namespace {

// A dead host behind a connection that nobody writes to is noticed by these; a stopped process only by heartbeats.
constexpr int kKeepIdleSeconds = 10;
constexpr int kKeepIntervalSeconds = 5;
constexpr int kKeepCount = 3;

bool set(int fd, int level, int option, int value) {
  return ::setsockopt(fd, level, option, &value, sizeof(value)) == 0;
}

}  // namespace

void tune_socket(int fd, const TcpOptions& options, bool loopback) {
  // Each is an improvement, none a need: a system that refuses one is used without.
  set(fd, IPPROTO_TCP, TCP_NODELAY, 1);
  set(fd, SOL_SOCKET, SO_KEEPALIVE, 1);
  set(fd, IPPROTO_TCP, TCP_KEEPIDLE, kKeepIdleSeconds);
  set(fd, IPPROTO_TCP, TCP_KEEPINTVL, kKeepIntervalSeconds);
  set(fd, IPPROTO_TCP, TCP_KEEPCNT, kKeepCount);
  if (options.sndbuf > 0) set(fd, SOL_SOCKET, SO_SNDBUF, options.sndbuf);
  if (options.rcvbuf > 0) set(fd, SOL_SOCKET, SO_RCVBUF, options.rcvbuf);
  if (options.notsent > 0) set(fd, IPPROTO_TCP, TCP_NOTSENT_LOWAT, static_cast<int>(options.notsent));
  // bbr paces, which halves what several connections over loopback can do.
  std::string_view control = options.congestion;
  if (control.empty() && loopback) control = "reno";
  if (!control.empty()) {
    ::setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, control.data(), static_cast<socklen_t>(control.size()));
  }
}

TcpStream::TcpStream(std::shared_ptr<TcpShared> shared, base::Fd fd, const base::SocketAddress& peer, bool connecting)
    : shared_(std::move(shared)),
      fd_(std::move(fd)),
      peer_(peer),
      state_(connecting ? stream::StreamState::kConnecting : stream::StreamState::kOpen) {
  shared_->ledger->add(fd_.get());
}

TcpStream::~TcpStream() { close(true); }

Status TcpStream::watch() {
  const auto cookie = reinterpret_cast<std::uintptr_t>(this);
  return shared_->epoll.add(fd_.get(), EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET, cookie);
}

stream::Moved TcpStream::lost(std::string_view doing, int error) {
  state_ = stream::StreamState::kClosed;
  status_ = base::errno_status(Code::kDisconnected, base::format("{} {}", doing, base::to_string(peer_)), error)
                .with_scope(Scope::kPath);
  return {.bytes = 0, .closed = true, .status = status_};
}

stream::Moved TcpStream::send(std::span<const iovec> parts) {
  ssize_t sent = 0;
  do {
    if (parts.size() == 1) {
      sent = ::send(fd_.get(), parts[0].iov_base, parts[0].iov_len, MSG_NOSIGNAL | MSG_DONTWAIT);
    } else {
      msghdr message = {};
      message.msg_iov = const_cast<iovec*>(parts.data());
      message.msg_iovlen = parts.size();
      sent = ::sendmsg(fd_.get(), &message, MSG_NOSIGNAL | MSG_DONTWAIT);
    }
  } while (sent < 0 && errno == EINTR);
  if (sent < 0 && errno != EAGAIN) return lost("sending to", errno);
  wants_room_ = true;
  if (sent < 0) return {};
  sent_ += static_cast<std::uint64_t>(sent);
  std::size_t wanted = 0;
  for (const iovec& part : parts) wanted += part.iov_len;
  wants_room_ = static_cast<std::size_t>(sent) < wanted;
  return {.bytes = static_cast<std::size_t>(sent), .closed = false, .status = Status()};
}

stream::Moved TcpStream::receive(std::span<const iovec> parts) {
  ssize_t got = 0;
  do {
    if (parts.size() == 1) {
      got = ::recv(fd_.get(), parts[0].iov_base, parts[0].iov_len, MSG_DONTWAIT);
    } else {
      msghdr message = {};
      message.msg_iov = const_cast<iovec*>(parts.data());
      message.msg_iovlen = parts.size();
      got = ::recvmsg(fd_.get(), &message, MSG_DONTWAIT);
    }
  } while (got < 0 && errno == EINTR);
  if (got > 0) return {.bytes = static_cast<std::size_t>(got), .closed = false, .status = Status()};
  if (got < 0) return errno == EAGAIN ? stream::Moved{} : lost("receiving from", errno);
  state_ = stream::StreamState::kClosed;
  return {.bytes = 0, .closed = true, .status = Status()};
}

stream::Moved TcpStream::peek(std::byte* next) {
  const ssize_t got = ::recv(fd_.get(), next, 1, MSG_DONTWAIT | MSG_PEEK);
  if (got > 0) return {.bytes = 1, .closed = false, .status = Status()};
  if (got < 0) return errno == EAGAIN || errno == EINTR ? stream::Moved{} : lost("receiving from", errno);
  state_ = stream::StreamState::kClosed;
  return {.bytes = 0, .closed = true, .status = Status()};
}

void TcpStream::close(bool abort) {
  if (!fd_) return;
  if (abort) {
    const linger now = {.l_onoff = 1, .l_linger = 0};
    ::setsockopt(fd_.get(), SOL_SOCKET, SO_LINGER, &now, sizeof(now));
  }
  // By hand: a forked child may hold a copy, with which the kernel would go on watching.
  static_cast<void>(shared_->epoll.remove(fd_.get()));
  shared_->ledger->remove(fd_.get());
  fd_.reset();
  const auto news = std::span(shared_->stash).first(shared_->stashed);
  const auto rest =
      std::remove_if(news.begin(), news.end(), [this](const auto& told) { return told.stream == front_; });
  shared_->stashed = static_cast<std::size_t>(rest - news.begin());
  state_ = stream::StreamState::kClosed;
}

std::string TcpStream::describe() const {
  base::SocketAddress local;
  local.size = sizeof(local.storage);
  if (!fd_ || ::getsockname(fd_.get(), local.get(), &local.size) != 0) return base::to_string(peer_);
  return base::format("{} - {}", base::to_string(local), base::to_string(peer_));
}

std::uint64_t TcpStream::source() const { return source_of(peer_); }

std::string TcpStream::condition() const {
  tcp_info info = {};
  socklen_t size = sizeof(info);
  if (!fd_ || ::getsockopt(fd_.get(), IPPROTO_TCP, TCP_INFO, &info, &size) != 0) return {};
  std::string text = base::format("MSS {}, {} segments unacknowledged, {} retransmitted in all", info.tcpi_snd_mss,
                                  info.tcpi_unacked, info.tcpi_total_retrans);
  if (info.tcpi_retransmits > 0) {
    text +=
        base::format(", {} retransmissions in a row without an answer", static_cast<unsigned>(info.tcpi_retransmits));
  }
  int queued = 0;
  if (::ioctl(fd_.get(), SIOCOUTQ, &queued) == 0) text += base::format(", {} bytes in its send queue", queued);
  return text;
}

bool is_same_ip(base::SocketAddress a, base::SocketAddress b) {
  a.set_port(0);
  b.set_port(0);
  return base::to_string(a) == base::to_string(b);
}

// What comes from an address of ours came from here.
bool TcpStream::is_within_host() const {
  base::SocketAddress local;
  local.size = sizeof(local.storage);
  if (!fd_ || ::getsockname(fd_.get(), local.get(), &local.size) != 0) return false;
  return base::is_loopback(peer_) || is_same_ip(local, peer_);
}

// A socket that connects to a free port of its own host may be given that very port, and then talks to itself.
bool TcpStream::is_connected_to_itself() const {
  base::SocketAddress local;
  local.size = sizeof(local.storage);
  return ::getsockname(fd_.get(), local.get(), &local.size) == 0 && base::to_string(local) == base::to_string(peer_);
}

void TcpStream::finish_connecting() {
  int error = 0;
  socklen_t size = sizeof(error);
  if (::getsockopt(fd_.get(), SOL_SOCKET, SO_ERROR, &error, &size) != 0) error = errno;
  if (error == 0 && is_connected_to_itself()) error = ECONNREFUSED;
  if (error == 0) {
    state_ = stream::StreamState::kOpen;
    return;
  }
  static_cast<void>(lost("connecting to", error));
  // Refused: the host is there, and nobody listens.
  if (error == ECONNREFUSED) status_ = status_.with_scope(Scope::kPeer);
}

bool TcpStream::on_events(std::uint32_t events, stream::Readiness* news) {
  const bool ended = (events & (EPOLLERR | EPOLLHUP | EPOLLRDHUP)) != 0;
  const bool writable = (events & EPOLLOUT) != 0;
  *news = {.stream = this, .readable = ended || (events & EPOLLIN) != 0, .writable = ended || writable};
  if (state_ == stream::StreamState::kConnecting) {
    if (!ended && !writable) return false;
    finish_connecting();
    return true;
  }
  const bool told = news->readable || (writable && wants_room_);
  if (writable) wants_room_ = false;
  return told;
}

}  // namespace hawser::backend
