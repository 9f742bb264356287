#include "backend/shm/peer_socket.h"

#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/format.h"
#include "base/try.h"

namespace hawser::backend::shm {
namespace {

constexpr std::uint32_t kReads = EPOLLIN | EPOLLRDHUP;

}  // namespace

PeerSocket::~PeerSocket() {
  for (const ForkFd* fd : {&socket_, &process_fd_}) {
    if (*fd) watches_.remove(fd->get());
  }
}

void PeerSocket::close() {
  if (socket_) watches_.remove(socket_.get());
  socket_.reset();
}

Status PeerSocket::look_at_peer() {
  HAWSER_TRY_ASSIGN(credentials_, peer_credentials(socket_.get()));
  if (credentials_.user != ::geteuid()) {
    return Status(Code::kDenied, base::format("process {} runs as user {}, this one as {}", credentials_.process,
                                              credentials_.user, ::geteuid()))
        .with_scope(Scope::kPath)
        .with_advice("shm is for processes of one user: run both as one");
  }
  process_fd_ = ForkFd(peer_process(socket_.get(), credentials_.process), forks_);
  return {};
}

Status PeerSocket::watch() {
  HAWSER_TRY(watches_.add(socket_.get(), kReads, socket_watch_));
  return process_fd_ ? watches_.add(process_fd_.get(), EPOLLIN, process_watch_) : Status();
}

Status PeerSocket::send_reply(RegionServer& server) {
  if (!server.has_reply() || !socket_) return {};
  const Io io = server.send(socket_.get());
  const int error = errno;
  if (const bool waits = io == Io::kAgain; waits != std::exchange(is_reply_waiting_, waits)) {
    HAWSER_TRY(watches_.modify(socket_.get(), waits ? EPOLLOUT : kReads, socket_watch_));
  }
  return io == Io::kFailed ? base::errno_status("answering the peer", error) : Status();
}

void PeerSocket::say_last(const std::string& packet) const {
  static_cast<void>(send(std::as_bytes(std::span<const char>(packet))));
  ::shutdown(socket_.get(), SHUT_WR);
}

}  // namespace hawser::backend::shm
