#include "backend/shm/packet.h"

#include <errno.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <cstring>

namespace hawser::backend::shm {
namespace {

struct FdRoom {
  alignas(cmsghdr) std::array<std::byte, CMSG_SPACE(sizeof(int) * kPacketFdsMax)> bytes{};
};

// One packet cannot hold more descriptors than its control buffer: the kernel closes the rest and sets MSG_CTRUNC.
void collect(msghdr& message, Packet* packet) {
  for (cmsghdr* part = CMSG_FIRSTHDR(&message); part != nullptr; part = CMSG_NXTHDR(&message, part)) {
    if (part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_RIGHTS) continue;
    const std::size_t count = (part->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (std::size_t i = 0; i < count; ++i) {
      int fd = -1;
      std::memcpy(&fd, CMSG_DATA(part) + i * sizeof(int), sizeof fd);
      base::Fd owned(fd);
      if (packet->fd_count < kPacketFdsMax) packet->fds[packet->fd_count++] = std::move(owned);
    }
  }
}

}  // namespace

Io send_packet(int socket, std::span<const std::byte> bytes, std::span<const int> fds) {
  iovec part{const_cast<std::byte*>(bytes.data()), bytes.size()};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  FdRoom room;
  if (!fds.empty()) {
    message.msg_control = room.bytes.data();
    message.msg_controllen = CMSG_SPACE(sizeof(int) * fds.size());
    cmsghdr* header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof(int) * fds.size());
    std::memcpy(CMSG_DATA(header), fds.data(), sizeof(int) * fds.size());
  }
  for (;;) {
    if (::sendmsg(socket, &message, MSG_DONTWAIT | MSG_NOSIGNAL) >= 0) return Io::kDone;
    if (errno == EINTR) continue;
    if (errno == EAGAIN || errno == EWOULDBLOCK) return Io::kAgain;
    return errno == EPIPE || errno == ECONNRESET || errno == ENOTCONN ? Io::kEnd : Io::kFailed;
  }
}

Io receive_packet(int socket, Packet* packet) {
  packet->size = 0;
  packet->fd_count = 0;
  for (base::Fd& fd : packet->fds) fd.reset();
  iovec part{packet->buffer.data(), packet->buffer.size()};
  FdRoom room;
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = room.bytes.data();
  message.msg_controllen = room.bytes.size();
  ssize_t size = 0;
  // A reset is told once, and before what was sent ahead of it.
  for (bool was_reset = false;; was_reset = true) {
    do {
      size = ::recvmsg(socket, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    } while (size < 0 && errno == EINTR);
    if (size >= 0 || errno != ECONNRESET || was_reset) break;
  }
  if (size < 0) {
    if (errno == EAGAIN || errno == EWOULDBLOCK) return Io::kAgain;
    return errno == ECONNRESET || errno == ENOTCONN ? Io::kEnd : Io::kFailed;
  }
  collect(message, packet);
  if (size == 0 && packet->fd_count == 0) return Io::kEnd;  // nobody sends empty packets
  if ((message.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) != 0) {
    // Descriptors that this process has no room for are cut off, too: those are fewer than one packet may hold.
    const bool is_short = (message.msg_flags & MSG_CTRUNC) != 0 && packet->fd_count < kPacketFdsMax;
    errno = is_short ? EMFILE : EMSGSIZE;
    return Io::kFailed;
  }
  packet->size = static_cast<std::size_t>(size);
  return Io::kDone;
}

}  // namespace hawser::backend::shm
