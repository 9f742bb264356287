#include "backend/quic/udp_socket.h"

#include <linux/errqueue.h>
#include <netinet/in.h>
#include <netinet/udp.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/format.h"

namespace hawser::backend::quic {
namespace {

/// Asked for where nothing else is said: a burst has to wait here while its reader does something else.
constexpr int kBufferDefault = 4 << 20;
constexpr std::size_t kIpHeader = 20, kIp6Header = 40, kUdpHeader = 8;

bool set(int fd, int level, int option, int value) {
  return ::setsockopt(fd, level, option, &value, sizeof(value)) == 0;
}

void set_buffer(int fd, int option, int force, int wanted) {
  const int bytes = wanted > 0 ? wanted : kBufferDefault;
  if (!set(fd, SOL_SOCKET, force, bytes)) set(fd, SOL_SOCKET, option, bytes);
}

Status cannot_listen(const base::SocketAddress& address, int error) {
  if (error == EADDRINUSE) {
    return Status(Code::kBusy, base::format("quic: port {} of {} is in use", address.port(), base::to_string(address)))
        .with_advice("choose another `port`, or 0 for any that is free");
  }
  if (error == EADDRNOTAVAIL) {
    return Status(Code::kInvalid, base::format("quic: {} is no address of this host", base::to_string(address)))
        .with_advice("`ip address` lists them; 0.0.0.0 and :: mean all");
  }
  return base::errno_status(base::format("quic: listening on {}", base::to_string(address)), error);
}

/// A control message of `T` is put behind those of `message`.
template <typename T>
void add_control(msghdr& message, std::span<std::byte> room, int level, int type, const T& value) {
  const std::size_t used = message.msg_controllen;
  auto* const head = reinterpret_cast<cmsghdr*>(room.data() + used);
  head->cmsg_level = level;
  head->cmsg_type = type;
  head->cmsg_len = CMSG_LEN(sizeof(T));
  std::memcpy(CMSG_DATA(head), &value, sizeof(T));
  message.msg_control = room.data();
  message.msg_controllen = used + CMSG_SPACE(sizeof(T));
}

template <typename T>
T control_value(const cmsghdr& head) {
  T value;
  std::memcpy(&value, CMSG_DATA(&head), sizeof(T));
  return value;
}

/// From which of this host's addresses it is to go.
void add_local(msghdr& message, std::span<std::byte> room, const base::SocketAddress& local) {
  if (local.family() == AF_INET) {
    sockaddr_in in;
    std::memcpy(&in, &local.storage, sizeof in);
    if (in.sin_addr.s_addr == INADDR_ANY) return;
    in_pktinfo info = {};
    info.ipi_spec_dst = in.sin_addr;
    add_control(message, room, IPPROTO_IP, IP_PKTINFO, info);
  } else if (local.family() == AF_INET6) {
    sockaddr_in6 in6;
    std::memcpy(&in6, &local.storage, sizeof in6);
    if (IN6_IS_ADDR_UNSPECIFIED(&in6.sin6_addr)) return;
    in6_pktinfo info = {};
    info.ipi6_addr = in6.sin6_addr;
    add_control(message, room, IPPROTO_IPV6, IPV6_PKTINFO, info);
  }
}

void read_local(const cmsghdr& head, base::SocketAddress& local) {
  if (head.cmsg_level == IPPROTO_IP && head.cmsg_type == IP_PKTINFO) {
    sockaddr_in in;
    std::memcpy(&in, &local.storage, sizeof in);
    in.sin_addr = control_value<in_pktinfo>(head).ipi_addr;
    std::memcpy(&local.storage, &in, sizeof in);
  } else if (head.cmsg_level == IPPROTO_IPV6 && head.cmsg_type == IPV6_PKTINFO) {
    sockaddr_in6 in6;
    std::memcpy(&in6, &local.storage, sizeof in6);
    in6.sin6_addr = control_value<in6_pktinfo>(head).ipi6_addr;
    std::memcpy(&local.storage, &in6, sizeof in6);
  }
}

}  // namespace

UdpSocket::UdpSocket(base::Fd fd, std::shared_ptr<FdLedger> ledger) : fd_(std::move(fd)), ledger_(std::move(ledger)) {
  ledger_->add(fd_.get());
}

UdpSocket::~UdpSocket() { ledger_->remove(fd_.get()); }

// Each is an improvement, none a need.
void UdpSocket::tune(int family, const Buffers& buffers) {
  buffers_ = buffers;
  set_buffer(fd_.get(), SO_SNDBUF, SO_SNDBUFFORCE, buffers.send);
  set_buffer(fd_.get(), SO_RCVBUF, SO_RCVBUFFORCE, buffers.receive);
  set(fd_.get(), IPPROTO_UDP, UDP_GRO, 1);
  if (family == AF_INET) {
    set(fd_.get(), IPPROTO_IP, IP_MTU_DISCOVER, IP_PMTUDISC_PROBE);
    set(fd_.get(), IPPROTO_IP, IP_PKTINFO, 1);
  } else {
    set(fd_.get(), IPPROTO_IPV6, IPV6_MTU_DISCOVER, IPV6_PMTUDISC_PROBE);
    set(fd_.get(), IPPROTO_IPV6, IPV6_RECVPKTINFO, 1);
  }
}

Result<std::unique_ptr<UdpSocket>> UdpSocket::listen(base::SocketAddress& address, const Buffers& buffers,
                                                     std::shared_ptr<FdLedger> ledger) {
  base::Fd fd(::socket(address.family(), SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!fd) return cannot_listen(address, errno);
  if (address.family() == AF_INET6) set(fd.get(), IPPROTO_IPV6, IPV6_V6ONLY, 1);
  if (::bind(fd.get(), address.get(), address.size) != 0) return cannot_listen(address, errno);
  if (::getsockname(fd.get(), address.get(), &address.size) != 0) return cannot_listen(address, errno);
  std::unique_ptr<UdpSocket> socket(new UdpSocket(std::move(fd), std::move(ledger)));
  socket->tune(address.family(), buffers);
  if (address.family() == AF_INET) {
    set(socket->fd(), IPPROTO_IP, IP_RECVERR, 1);
  } else {
    set(socket->fd(), IPPROTO_IPV6, IPV6_RECVERR, 1);
  }
  socket->route_.local = address;
  return socket;
}

Result<std::unique_ptr<UdpSocket>> UdpSocket::connect(const base::SocketAddress& peer, const Buffers& buffers,
                                                      std::shared_ptr<FdLedger> ledger) {
  base::Fd fd(::socket(peer.family(), SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!fd) return base::errno_status(base::format("a UDP socket to {}", base::to_string(peer)), errno);
  if (::connect(fd.get(), peer.get(), peer.size) != 0) {
    return base::errno_status(base::format("connecting to {}", base::to_string(peer)), errno);
  }
  std::unique_ptr<UdpSocket> socket(new UdpSocket(std::move(fd), std::move(ledger)));
  socket->tune(peer.family(), buffers);
  socket->route_.remote = peer;
  socket->route_.local.size = sizeof(socket->route_.local.storage);
  if (::getsockname(socket->fd(), socket->route_.local.get(), &socket->route_.local.size) != 0) {
    return base::errno_status("the address of a UDP socket", errno);
  }
  return socket;
}

std::unique_ptr<UdpSocket> UdpSocket::moved() const {
  auto other = connect(route_.remote, buffers_, ledger_);
  if (!other) return nullptr;
  base::SocketAddress before = route_.local, now = (*other)->route_.local;
  before.set_port(0), now.set_port(0);
  return is_same_address(before, now) ? nullptr : *std::move(other);
}

void UdpSocket::become(UdpSocket& other) {
  std::swap(fd_, other.fd_);
  std::swap(route_, other.route_);
  std::swap(may_segment_, other.may_segment_);  // It is the device's.
}

std::size_t UdpSocket::datagram_max() const {
  const bool is_ip4 = route_.local.family() == AF_INET;
  int mtu = 0;
  socklen_t size = sizeof(mtu);
  const int result = is_ip4 ? ::getsockopt(fd_.get(), IPPROTO_IP, IP_MTU, &mtu, &size)
                            : ::getsockopt(fd_.get(), IPPROTO_IPV6, IPV6_MTU, &mtu, &size);
  const std::size_t heads = (is_ip4 ? kIpHeader : kIp6Header) + kUdpHeader;
  return result == 0 && mtu > static_cast<int>(heads) ? static_cast<std::size_t>(mtu) - heads : 0;
}

std::uint64_t UdpSocket::receive_buffer() const {
  int bytes = 0;
  socklen_t size = sizeof(bytes);
  return ::getsockopt(fd_.get(), SOL_SOCKET, SO_RCVBUF, &bytes, &size) == 0 ? static_cast<std::uint64_t>(bytes) : 0;
}

bool UdpSocket::send(const Route& route, std::span<const std::byte> packets, std::size_t segment) {
  iovec part = {.iov_base = const_cast<std::byte*>(packets.data()), .iov_len = packets.size()};
  alignas(cmsghdr) std::array<std::byte, CMSG_SPACE(sizeof(in6_pktinfo)) + CMSG_SPACE(sizeof(std::uint16_t))> room = {};
  msghdr message = {};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  base::SocketAddress to = route.remote;
  if (!is_connected()) {
    message.msg_name = to.get();
    message.msg_namelen = to.size;
    add_local(message, room, route.local);
  }
  const bool is_many = packets.size() > segment;
  if (is_many && !may_segment_) {
    for (std::size_t at = 0; at < packets.size(); at += segment) {
      const auto one = packets.subspan(at, std::min(segment, packets.size() - at));
      if (!send(route, one, one.size())) return at > 0;  // QUIC sends the rest again.
    }
    return true;
  }
  if (is_many) add_control(message, room, IPPROTO_UDP, UDP_SEGMENT, static_cast<std::uint16_t>(segment));
  ssize_t sent = 0;
  // A listener is told here of what it sent to another peer before, once.
  for (int i = 0; i < 2; ++i) {
    sent = ::sendmsg(fd_.get(), &message, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (sent >= 0 || (errno != EINTR && (is_connected() || errno != ECONNREFUSED))) break;
  }
  is_lost_ = sent < 0;
  if (sent >= 0) return true;
  if (errno == EAGAIN) {
    was_blocked_ = true;
    return false;
  }
  if (is_many && (errno == EIO || errno == EINVAL)) {  // The device, or the kernel, cannot.
    may_segment_ = false;
    const bool is_taken = send(route, packets, segment);
    may_segment_ = is_lost_;  // It can: the socket's own address is gone, so nothing leaves it.
    return is_taken;
  }
  return true;  // As good as lost; a refusal is told by `receive`.
}

Result<UdpSocket::Received> UdpSocket::receive(std::span<std::byte> buffer) {
  iovec part = {.iov_base = buffer.data(), .iov_len = buffer.size()};
  alignas(cmsghdr) std::array<std::byte, 128> room;
  Received received = {.route = route_, .bytes = {}, .segment = 0};
  msghdr message = {};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = room.data();
  message.msg_controllen = room.size();
  if (!is_connected()) {
    message.msg_name = &received.route.remote.storage;
    message.msg_namelen = sizeof(received.route.remote.storage);
  }
  ssize_t got = 0;
  do {
    got = ::recvmsg(fd_.get(), &message, MSG_DONTWAIT);
  } while (got < 0 && errno == EINTR);
  if (got < 0) {
    received.is_all = errno == EAGAIN;
    if (received.is_all || !is_connected()) return received;  // A listener hears of others' ends, and goes on.
    return base::errno_status(Code::kDisconnected, base::format("receiving from {}", base::to_string(route_.remote)),
                              errno)
        .with_scope(errno == ECONNREFUSED ? Scope::kPeer : Scope::kPath);
  }
  if (!is_connected()) received.route.remote.size = message.msg_namelen;
  received.bytes = buffer.first(static_cast<std::size_t>(got));
  received.segment = received.bytes.size();
  for (cmsghdr* head = CMSG_FIRSTHDR(&message); head != nullptr; head = CMSG_NXTHDR(&message, head)) {
    if (head->cmsg_level == IPPROTO_UDP && head->cmsg_type == UDP_GRO) {
      received.segment = static_cast<std::size_t>(control_value<int>(*head));
    } else if (!is_connected()) {
      read_local(*head, received.route.local);
    }
  }
  return received;
}

std::optional<UdpSocket::Undelivered> UdpSocket::take_undelivered() {
  Undelivered news;
  alignas(cmsghdr) std::array<std::byte, 512> room;
  std::array<std::byte, 64> said;  // The head of what was sent.
  iovec part = {.iov_base = said.data(), .iov_len = said.size()};
  msghdr message = {};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_name = &news.to.storage;
  message.msg_namelen = sizeof(news.to.storage);
  message.msg_control = room.data();
  message.msg_controllen = room.size();
  if (::recvmsg(fd_.get(), &message, MSG_DONTWAIT | MSG_ERRQUEUE) < 0) return std::nullopt;
  news.to.size = message.msg_namelen;
  for (cmsghdr* head = CMSG_FIRSTHDR(&message); head != nullptr; head = CMSG_NXTHDR(&message, head)) {
    const bool is_error = (head->cmsg_level == IPPROTO_IP && head->cmsg_type == IP_RECVERR) ||
                          (head->cmsg_level == IPPROTO_IPV6 && head->cmsg_type == IPV6_RECVERR);
    if (is_error && control_value<sock_extended_err>(*head).ee_errno == ECONNREFUSED) news.is_refused = true;
  }
  return news;
}

}  // namespace hawser::backend::quic
